/** Holding: keeping leases alive, handing them on, and looking at them (L4, L8, L15, G8). */

import { commands } from "../../kernel/contract/commands.ts";
import { choice, optional } from "../../kernel/contract/field.ts";
import { agentId, leaseId, resourceName } from "../../kernel/contract/inputs.ts";
import { leaseStates } from "../../kernel/contract/records.ts";
import { acting, reading } from "../operating/roles.ts";
import { ok, operationsOf } from "../operation.ts";
import { paging } from "../schema/fields.ts";
import { inputs } from "../schema/from-fields.ts";
import { list, record, sometimes, text } from "../schema/schema.ts";
import * as shapes from "./shapes.ts";

const { command, query } = operationsOf("Holding");

const example = { lease_id: "lse_01jcs8qm5t6w8y0a" };
const agentExample = { agent_id: "agt_01jcs8qk2m9x4n7r" };
const ends = [
  "lease_unknown",
  "lease_expired",
  "lease_released",
  "lease_revoked",
  "not_lease_holder",
  "stale_epoch",
] as const;

export const heartbeat = command({
  name: "heartbeat",
  path: "/v1/leases/{lease_id}/heartbeat",
  roles: acting,
  summary: "Extends a lease",
  description:
    "Sets `expires_at` to now + `ttl` (L4). A lease on a bound resource is renewed instead (G8). If it collects a grant " +
    "that ended a wait, it answers with the observation update (A4).",
  example: { ...example, activity: true },
  replies: [ok(shapes.keptLease, "The lease, extended.")],
  errors: [...ends, "renew_required", "verify_required", "resource_withdrawn", "lease_denied"],
});

export const heartbeatAll = command({
  name: "heartbeat_all",
  path: "/v1/heartbeat",
  roles: acting,
  summary: "Extends an agent's leases at once",
  description: "All of them where none is named. `lost` names those that could not be extended, with their state.",
  example: { ...agentExample, lease_ids: null, activity: true },
  replies: [
    ok(
      record({
        leases: list(shapes.lease),
        lost: list(shapes.leaseEnd),
        not_extended: sometimes(
          list(shapes.leaseEnd, { description: "Of `leases`, those that keep their present end, and why." }),
        ),
        ...shapes.leasesTotal,
        directives: list(text({ description: "What the holder is asked to do." })),
        ...shapes.update,
      }),
      "What was extended, and what was not.",
    ),
  ],
  errors: ["agent_unknown", "stale_epoch"],
});

/** For what a cell has to take before it is answered. */
const pausedByCell = ok(shapes.paused, "PAUSED: its cell does not answer.", 423);

export const renewLease = command({
  name: "renew_lease",
  path: "/v1/leases/{lease_id}/renew",
  fields: inputs(commands.renew_lease, {
    generation: "The generation the caller has; another one is refused.",
  }),
  roles: acting,
  summary: "Issues a lease again",
  description:
    "A fresh grant under the same id: the next generation, a new fence, a fresh token; the old ones are stale (G8).",
  example: { ...example, generation: 1 },
  replies: [
    ok(shapes.keptLease, "The lease, issued again; on a bound resource, once its cell has taken it."),
    pausedByCell,
  ],
  errors: [
    ...ends,
    "stale_generation",
    "renew_required",
    "verify_required",
    "resource_fenced",
    "resource_withdrawn",
    "lease_denied",
  ],
});

export const transferLease = command({
  name: "transfer_lease",
  path: "/v1/leases/{lease_id}/transfer",
  fields: inputs(commands.transfer_lease, { to_agent_id: "The agent that gets it." }),
  roles: acting,
  summary: "Transfers a lease to another agent",
  description:
    "Of the same tenant. The lease keeps its id and gets a new fence. What was written under it so far counts as " +
    "written by the giver, at `version` (L15, A6).",
  example: { ...example, to_agent_id: "agt_01jcs8qn0v3b5d7f", version: "sha256:9f2c" },
  replies: [ok(shapes.lease, "The lease, in its new hands."), pausedByCell],
  errors: [...ends, "agent_unknown", "transfer_refused", "renew_required", "verify_required"],
});

export const downgradeLease = command({
  name: "downgrade_lease",
  path: "/v1/leases/{lease_id}/downgrade",
  roles: acting,
  summary: "Downgrades a lease to a weaker predicate",
  description:
    "To a predicate that conflicts with less: a writer becomes a reader. What it wrote counts from now on, at `version` " +
    "(L15, A6).",
  example: { ...example, predicate: "CONSUMES", version: "sha256:9f2c" },
  replies: [ok(shapes.lease, "The lease, weakened."), pausedByCell],
  errors: [...ends, "not_weaker", "renew_required", "verify_required"],
});

export const reportViolation = command({
  name: "report_violation",
  path: "/v1/leases/{lease_id}/violations",
  roles: acting,
  summary: "Reports a write that went past a lease",
  description:
    "By the guard of the agent that wrote: what its tool did shows only afterwards. It ends nothing; the holder and " +
    "watchers get a `lease.violated` event.",
  example: { ...example, ...agentExample, resource: "FILE:/shop/src/auth.ts" },
  replies: [ok(shapes.lease, "The lease that stood against it.")],
  errors: ["lease_unknown", "agent_unknown", "stale_epoch"],
});

export const listLeases = query({
  name: "list_leases",
  path: "/v1/leases",
  fields: {
    ...inputs(
      { resource: optional(resourceName), agentId: optional(agentId), state: optional(choice(leaseStates)) },
      { state: "Only leases in this state." },
    ),
    ...paging,
  },
  roles: reading,
  summary: "Lists leases",
  description:
    "The tenant's leases, a page at a time; each filter narrows the list. Those that are alive, unless `state` asks for " +
    "ended ones; then the youngest come first, and a page may be short. `resource` finds what overlaps with it.",
  example: { agent_id: agentExample.agent_id, state: "ACTIVE", limit: 50 },
  replies: [ok(shapes.page("leases", shapes.lease), "One page.")],
});

export const getLease = query({
  name: "get_lease",
  path: "/v1/leases/{lease_id}",
  fields: inputs({ leaseId }, {}),
  roles: reading,
  summary: "Shows a lease",
  description: "Ended leases too, for a day by default (L16). Only its holder is shown its token.",
  example,
  replies: [ok(shapes.lease, "The lease.")],
  errors: ["lease_unknown"],
});
