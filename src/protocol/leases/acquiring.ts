/** Acquiring: a manifest in, a verdict out; and what became of a request (W2 to W12). */
import type { IntentInput } from "../../kernel/contract/commands.ts";
import { acting, reading } from "../operating/roles.ts";
import { command, ok, query, type ReplyShape } from "../operation.ts";
import { agentId, duration, holdMs, intent, pageOf, paging, purpose } from "../schema/fields.ts";
import { limits } from "../schema/limits.ts";
import { flag, list, optional, type Static, text } from "../schema/schema.ts";
import * as shapes from "./shapes.ts";

const verdicts: readonly ReplyShape[] = [
  ok(shapes.granted, "GRANTED: all intents are leased."),
  ok(shapes.waiting, "WAIT: in line; it ends in a grant, a timeout, a cancellation or PAUSED.", 202),
  ok(shapes.denied, "Denied: not for this tenant, this resource or this agent.", 403),
  ok(shapes.died, "DIE: an older agent is in the way; roll back and ask again.", 409),
  ok(shapes.paused, "PAUSED: somebody must act first.", 423),
];

export const acquire = command({
  name: "acquire",
  tag: "Acquiring",
  method: "POST",
  path: "/v1/acquire",
  fields: {
    agent_id: agentId,
    intents: list(intent, {
      minItems: 1,
      maxItems: limits.intentsMax,
      description: "The manifest: granted whole or not at all.",
      "x-error": { minItems: "empty_manifest", maxItems: "manifest_too_large" },
    }),
    ttl_ms: optional(
      duration(
        "How long the leases last without a heartbeat; capped, 60000 by default.",
        limits.ttlMsMin,
        "invalid_ttl",
      ),
    ),
    wait_timeout_ms: optional(
      duration("How long to wait in line; 0 to not wait; capped, 30000 by default.", 0, "invalid_wait_timeout"),
    ),
    hold_ms: optional(holdMs),
    idle_timeout_ms: optional(
      duration("Revoke the leases after so long without reported activity.", limits.ttlMsMin, "invalid_idle_timeout"),
    ),
    purpose: optional(purpose),
    tokens: optional(flag({ description: "Whether every lease comes with a token." })),
    dry_run: optional(flag({ description: "Give the verdict and change nothing." })),
    request_id: optional(
      text({
        minLength: 1,
        maxLength: limits.keyLengthMax,
        description: "An idempotency key of the caller's choice, known per agent.",
        "x-error": "invalid_request_id",
      }),
    ),
  },
  roles: acting,
  summary: "Acquires leases for a manifest",
  description:
    "Decided once, on arrival, against all that stands in the way (W2). With `hold_ms` a WAIT is answered when it ends, " +
    "or at the end of the hold. Sent again with the same `request_id`, it is answered from its present state (W10).",
  example: {
    agent_id: "agt_01jcs8qk2m9x4n7r",
    intents: [{ predicate: "MUTATES", resource: "FILE:/src/auth.ts", units: 1, to: null, pick: null }],
    ttl_ms: 60_000,
    wait_timeout_ms: 30_000,
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
    "empty_manifest",
    "manifest_too_large",
    "duplicate_intent",
    "invalid_agent_id",
    "invalid_resource",
    "reserved_resource",
    "invalid_predicate",
    "invalid_units",
    "invalid_target",
    "invalid_ttl",
    "invalid_wait_timeout",
    "invalid_idle_timeout",
    "invalid_purpose",
    "invalid_request_id",
    "lease_denied",
    "would_wait",
    "verify_required",
    "die",
    "wait_timeout",
    "request_canceled",
    "request_id_reused",
    "paused",
  ],
  decode: (input, { tenant, actor, entropy }) => ({
    type: "acquire",
    tenant,
    actor,
    entropy,
    agentId: input.agent_id,
    intents: decodeIntents(input.intents),
    ttlMs: input.ttl_ms ?? null,
    waitTimeoutMs: input.wait_timeout_ms ?? null,
    idleTimeoutMs: input.idle_timeout_ms ?? null,
    purpose: input.purpose ?? null,
    tokens: input.tokens ?? false,
    dryRun: input.dry_run ?? false,
    requestKey: input.request_id ?? null,
  }),
});

const requestId = text({
  minLength: 1,
  maxLength: limits.idLengthMax,
  description: "The `request_id` of the reply, not the caller's own.",
});

export const getRequest = command({
  name: "get_request",
  tag: "Acquiring",
  method: "GET",
  path: "/v1/requests/{request_id}",
  fields: { request_id: requestId, hold_ms: optional(holdMs) },
  roles: acting,
  summary: "Asks what became of a request",
  description: "Answered from the same table as an acquire. Asking for a granted request collects it (W8).",
  example: { request_id: "req_01jcs8qm5t6w8y0a", hold_ms: 25_000 },
  replies: verdicts,
  errors: ["request_unknown", "stale_epoch", "lease_denied", "wait_timeout", "request_canceled", "paused"],
  decode: (input, { tenant, actor, entropy }) => ({
    type: "collect_request",
    tenant,
    actor,
    entropy,
    requestId: input.request_id,
  }),
});

export const listRequests = query({
  name: "list_requests",
  tag: "Acquiring",
  method: "GET",
  path: "/v1/requests",
  fields: { agent_id: optional(agentId), ...paging },
  roles: reading,
  summary: "Lists requests that wait",
  description:
    "In order of arrival, each with what stands in its way now: who waits for whom. Looking collects nothing.",
  example: { agent_id: "agt_01jcs8qk2m9x4n7r", limit: 50 },
  replies: [ok(shapes.page("requests", shapes.openRequest), "One page.")],
  decode: (input, { tenant, actor }) => ({
    type: "list_requests",
    tenant,
    actor,
    agentId: input.agent_id ?? null,
    ...pageOf(input),
  }),
});

export const cancelRequest = command({
  name: "cancel_request",
  tag: "Acquiring",
  method: "DELETE",
  path: "/v1/requests/{request_id}",
  fields: { request_id: requestId },
  roles: acting,
  summary: "Ends a wait",
  description: "The request holds nothing and gets nothing any more. Cancelling again changes nothing.",
  example: { request_id: "req_01jcs8qm5t6w8y0a" },
  replies: [ok(shapes.nothingMore, "It is over.")],
  errors: ["request_unknown", "stale_epoch"],
  decode: (input, { tenant, actor, entropy }) => ({
    type: "cancel_request",
    tenant,
    actor,
    entropy,
    requestId: input.request_id,
  }),
});

/** One shape for all, whatever was left out: the kernel's code stays quick, and its fingerprints equal (W10). */
export function decodeIntents(intents: readonly Static<typeof intent>[]): readonly IntentInput[] {
  return intents.map(({ predicate, resource, units, to, pick }) => ({
    predicate,
    resource,
    units: units ?? null,
    to: to ?? null,
    pick: pick ?? null,
  }));
}
