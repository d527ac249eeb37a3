/** Acquiring: a manifest in, a verdict out; and what became of a request (W2 to W12). */

import { commands } from "../../kernel/contract/commands.ts";
import { optional } from "../../kernel/contract/field.ts";
import { agentId } from "../../kernel/contract/inputs.ts";
import { acting, reading } from "../operating/roles.ts";
import { ok, operationsOf, type ReplyShape } from "../operation.ts";
import { decoderOf } from "../schema/convert.ts";
import { holding, paging } from "../schema/fields.ts";
import { inputs } from "../schema/from-fields.ts";
import * as shapes from "./shapes.ts";

const { command, query } = operationsOf("Acquiring");

/** W10: the grant of a request that is asked for again has ended. */
const lapsed = ["lease_expired", "lease_released", "lease_revoked"] as const;

const verdicts: readonly ReplyShape[] = [
  ok(shapes.granted, "GRANTED: all intents are leased."),
  ok(shapes.waiting, "WAIT: in line; it ends in a grant, a timeout, a cancellation or PAUSED.", 202),
  ok(shapes.standby, "STANDBY: it would die; granted as soon as it fits, else it ends in DIE.", 202),
  ok(shapes.denied, "Denied: not for this tenant, this resource or this agent.", 403),
  ok(shapes.died, "DIE: an older agent is in the way; roll back and ask again.", 409),
  ok(shapes.paused, "PAUSED: somebody must act first.", 423),
];

export const acquire = command({
  name: "acquire",
  path: "/v1/acquire",
  counted: "intents",
  fields: {
    ...inputs(commands.acquire, {
      intents: "The manifest: granted whole or not at all.",
      ttl_ms: "How long the leases last without a heartbeat; capped, 60000 by default.",
      wait_timeout_ms: "How long to wait in line; 0 to not wait; capped, 30000 by default.",
      standby_ms:
        "Where the verdict would be DIE, and the agent holds nothing: how long to stand by for a grant instead (W14).",
      idle_timeout_ms: "Revoke the leases after this long without reported activity.",
      tokens: "Whether every lease comes with a token.",
      dry_run: "Give the verdict and change nothing.",
      request_id: "An idempotency key of the caller's choice, known per agent.",
      collect:
        "False: the answer does not collect a grant that ended a wait (W8), and says with `claim_within_ms` how long is left; the client sends a heartbeat when it has it.",
    }),
    ...holding,
  },
  roles: acting,
  summary: "Acquires leases for a manifest",
  description:
    "Decided once, on arrival, against all conflicting leases and waiters (W2). With `hold_ms` a WAIT or STANDBY is answered when it ends, " +
    "or at the end of the hold. Sent again with the same `request_id`, it is answered from its present state (W10).",
  example: {
    agent_id: "agt_01jcs8qk2m9x4n7r",
    intents: [{ predicate: "MUTATES", resource: "FILE:/shop/src/auth.ts", units: 1, to: null, pick: null }],
    ttl_ms: 60_000,
    wait_timeout_ms: 30_000,
    standby_ms: 0,
    hold_ms: 0,
    idle_timeout_ms: null,
    purpose: "rename login()",
    tokens: false,
    dry_run: false,
    request_id: "rename-login-1",
  },
  replies: verdicts,
  errors: [
    "agent_unknown",
    "stale_epoch",
    "duplicate_intent",
    "reserved_resource",
    "lease_denied",
    "would_wait",
    "verify_required",
    "die",
    "wait_timeout",
    "request_canceled",
    "request_id_reused",
    "paused",
    ...lapsed,
  ],
});

const requestWords = { request_id: "The `request_id` of the reply, not the caller's own." };
const collectWords =
  "Whether the answer collects a grant (W8). Left out: it does if the agent asks, and not if a supervisor's or operator's key does.";

export const getRequest = command({
  name: "get_request",
  method: "GET",
  path: "/v1/requests/{request_id}",
  fields: { ...inputs(commands.collect_request, { ...requestWords, collect: collectWords }), ...holding },
  roles: acting,
  summary: "Asks what became of a request",
  description:
    "Answered as an acquire is. Its agent collects a granted request by asking for it (W8), also within a hold, if it is still connected then. " +
    "A grant that has lapsed or ended is 410 with how it ended (W10).",
  example: { request_id: "req_01jcs8qm5t6w8y0a", hold_ms: 25_000 },
  replies: verdicts,
  errors: [
    "request_unknown",
    "stale_epoch",
    "lease_denied",
    "die",
    "wait_timeout",
    "request_canceled",
    "paused",
    ...lapsed,
  ],
  decode: decoderOf("collect_request"),
});

export const listRequests = query({
  name: "list_requests",
  path: "/v1/requests",
  fields: { ...inputs({ agentId: optional(agentId) }, {}), ...paging },
  roles: reading,
  summary: "Lists requests that wait or stand by",
  description: "In order of arrival, each with what it waits for now. A list collects nothing.",
  example: { agent_id: "agt_01jcs8qk2m9x4n7r", limit: 50 },
  replies: [ok(shapes.page("requests", shapes.openRequest), "One page.")],
});

export const cancelRequest = command({
  name: "cancel_request",
  method: "DELETE",
  path: "/v1/requests/{request_id}",
  fields: inputs(commands.cancel_request, requestWords),
  roles: acting,
  summary: "Ends a wait",
  description: "The request holds nothing and will get nothing. Cancelling again changes nothing.",
  example: { request_id: "req_01jcs8qm5t6w8y0a" },
  replies: [ok(shapes.nothingMore, "It is over.")],
  errors: ["request_unknown", "stale_epoch"],
});
