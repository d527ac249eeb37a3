/** Ending leases: released by their holder (L5), or revoked (L14). */
import { commands, revokeTarget } from "../../kernel/contract/commands.ts";
import { releasedAnswer } from "../answers/reply-json.ts";
import { above, acting } from "../operating/roles.ts";
import { ok, operationsOf } from "../operation.ts";
import { inputs } from "../schema/from-fields.ts";
import { integer, list, record } from "../schema/schema.ts";
import * as shapes from "./shapes.ts";

const { command } = operationsOf("Holding");

const example = { lease_id: "lse_01jcs8qm5t6w8y0a" };
const agentExample = { agent_id: "agt_01jcs8qk2m9x4n7r" };

export const releaseLease = command({
  name: "release_lease",
  path: "/v1/leases/{lease_id}/release",
  also: [{ method: "DELETE", path: "/v1/leases/{lease_id}" }],
  roles: acting,
  summary: "Releases a lease",
  description: "Releasing what has ended already answers 200 and changes nothing (L5).",
  example: { ...example, version: "sha256:9f2c" },
  replies: [ok(shapes.leaseEnd, "How the lease ended.")],
  errors: ["lease_unknown", "not_lease_holder", "stale_epoch"],
  encode: releasedAnswer,
});

export const releaseAll = command({
  name: "release_all",
  path: "/v1/release",
  fields: inputs(commands.release_all, { versions: "What the resources are now, by lease id or by resource." }),
  roles: acting,
  summary: "Releases an agent's leases at once",
  description: "All of them where none is named.",
  example: { ...agentExample, lease_ids: [example.lease_id], versions: { [example.lease_id]: "sha256:9f2c" } },
  replies: [ok(record({ leases: list(shapes.leaseEnd), ...shapes.leasesTotal }), "How each of them ended.")],
  errors: ["agent_unknown", "stale_epoch"],
  encode: releasedAnswer,
});

export const revoke = command({
  name: "revoke",
  path: "/v1/revoke",
  fields: inputs(
    { ...revokeTarget, reason: commands.revoke.reason },
    { resource_prefix: "All leases on resources whose names begin so." },
  ),
  exactlyOne: ["lease_id", "agent_id", "resource_prefix"],
  roles: above,
  summary: "Revokes leases",
  description:
    "One lease, all of an agent, or all under a prefix. Their holders learn of it, and why, at once (L14, G10).",
  example: { resource_prefix: "FILE:/shop/src/legacy", reason: "the folder is being deleted" },
  replies: [ok(record({ revoked: integer() }), "How many were revoked.")],
  errors: ["lease_unknown", "agent_unknown"],
});
