/** Ending leases: given back by their holder (L5), or taken away from above (L14). */
import type { Revoke } from "../../kernel/contract/commands.ts";
import { releasedAnswer } from "../answers/reply-json.ts";
import { above, acting } from "../operating/roles.ts";
import { command, ok } from "../operation.ts";
import { agentId, leaseId, leaseIds, reason, resource, version } from "../schema/fields.ts";
import { limits } from "../schema/limits.ts";
import { integer, list, map, optional, record } from "../schema/schema.ts";
import * as shapes from "./shapes.ts";

const example = { lease_id: "lse_01jcs8qm5t6w8y0a" };
const agentExample = { agent_id: "agt_01jcs8qk2m9x4n7r" };

export const releaseLease = command({
  name: "release_lease",
  tag: "Holding",
  method: "POST",
  path: "/v1/leases/{lease_id}/release",
  also: [{ method: "DELETE", path: "/v1/leases/{lease_id}" }],
  fields: { lease_id: leaseId, version: optional(version) },
  roles: acting,
  summary: "Gives a lease back",
  description: "Releasing what has ended already answers 200 and changes nothing (L5).",
  example: { ...example, version: "sha256:9f2c" },
  replies: [ok(shapes.leaseEnd, "How the lease ended.")],
  errors: ["lease_unknown", "not_lease_holder", "stale_epoch", "invalid_version"],
  decode: (input, { tenant, actor, entropy }) => ({
    type: "release_lease",
    tenant,
    actor,
    entropy,
    leaseId: input.lease_id,
    version: input.version ?? null,
  }),
  encode: releasedAnswer,
});

export const releaseAll = command({
  name: "release_all",
  tag: "Holding",
  method: "POST",
  path: "/v1/release",
  fields: {
    agent_id: agentId,
    lease_ids: optional(leaseIds),
    versions: optional(
      map(version, { minLength: 1, maxLength: limits.resourceLengthMax }, limits.leaseIdsMax, {
        description: "What the resources are now, by lease id or by resource.",
        "x-error": "invalid_version",
      }),
    ),
  },
  roles: acting,
  summary: "Gives an agent's leases back at once",
  description: "All of them where none is named.",
  example: { ...agentExample, lease_ids: [example.lease_id], versions: { [example.lease_id]: "sha256:9f2c" } },
  replies: [ok(record({ leases: list(shapes.leaseEnd) }), "How each of them ended.")],
  errors: ["agent_unknown", "stale_epoch", "invalid_version"],
  decode: (input, { tenant, actor, entropy }) => ({
    type: "release_all",
    tenant,
    actor,
    entropy,
    agentId: input.agent_id,
    leaseIds: input.lease_ids ?? null,
    versions: input.versions ?? null,
  }),
  encode: releasedAnswer,
});

interface Targets {
  readonly lease_id?: string | null;
  readonly agent_id?: string | null;
  readonly resource_prefix?: string | null;
}

export const revoke = command({
  name: "revoke",
  tag: "Holding",
  method: "POST",
  path: "/v1/revoke",
  fields: { lease_id: optional(leaseId), agent_id: optional(agentId), resource_prefix: optional(resource), reason },
  exactlyOne: ["lease_id", "agent_id", "resource_prefix"],
  roles: above,
  summary: "Takes leases away",
  description:
    "One lease, all of an agent, or all under a prefix. Their holders learn of it, and why, at once (L14, G10).",
  example: { resource_prefix: "FILE:/src/legacy", reason: "the folder is being deleted" },
  replies: [ok(record({ revoked: integer() }), "How many were taken away.")],
  errors: ["lease_unknown", "agent_unknown", "invalid_resource", "invalid_reason"],
  decode: (input, { tenant, actor, entropy }) => ({
    type: "revoke",
    tenant,
    actor,
    entropy,
    target: targetOf(input),
    reason: input.reason,
  }),
});

function targetOf({ lease_id, agent_id, resource_prefix }: Targets): Revoke["target"] {
  if (typeof lease_id === "string") return { leaseId: lease_id };
  if (typeof agent_id === "string") return { agentId: agent_id };
  return { resourcePrefix: resource_prefix ?? "" };
}
