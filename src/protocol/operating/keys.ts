/** Operating: keys. The server draws the secret and its hash; only the hash goes further. */

import { commands, keyInput, ownedNames } from "../../kernel/contract/commands.ts";
import { choice, optional, without } from "../../kernel/contract/field.ts";
import { keyId, tenantId } from "../../kernel/contract/inputs.ts";
import { roles } from "../../kernel/contract/records.ts";
import { changedKeyAnswer, rotatedKeyAnswer } from "../answers/reply-json.ts";
import * as shapes from "../leases/shapes.ts";
import { ok, operationsOf } from "../operation.ts";
import type { Fault } from "../schema/explain.ts";
import { paging } from "../schema/fields.ts";
import { inputs } from "../schema/from-fields.ts";
import { limits } from "../schema/limits.ts";
import { optional as optionalSchema, text } from "../schema/schema.ts";
import { readIsoTime } from "../schema/text.ts";
import { scopes } from "./policy-shapes.ts";
import { operating } from "./roles.ts";

const { command, query } = operationsOf("Operating");

const expiryWords = "ISO 8601. The key is refused from then on, and with it the agents' tokens drawn with it.";
const expiry = (words: string) => ({
  expires_at: optionalSchema(text({ maxLength: limits.timeLengthMax, description: words, "x-error": "invalid_key" })),
});

function badExpiry({ expires_at: at }: { readonly expires_at?: string | null | undefined }): Fault | null {
  if (at === undefined || at === null || !Number.isNaN(readIsoTime(at))) return null;
  const detail = "expires_at is not a time in ISO 8601 with a zone; send one such as 2027-01-04T15:45:00Z.";
  return { code: "invalid_key", field: "expires_at", detail };
}

export const createKey = command({
  name: "create_key",
  path: "/v1/keys",
  fields: {
    ...inputs(without(keyInput, "expiresAt", "scopes"), { role: "What the key allows.", label: "What it is for." }),
    ...expiry(expiryWords),
    scopes: optionalSchema(scopes),
  },
  refine: badExpiry,
  locksOut: true,
  roles: operating,
  summary: "Creates a key",
  description:
    "For the caller's own tenant if none is named. The secret is in this answer and nowhere else; only its hash is stored. " +
    "The first key ends the keyless time: every request needs a credential from then on, and `warnings` says so.",
  example: {
    role: "agent",
    tenant_id: "acme",
    label: "acme's CI",
    expires_at: "2099-01-01T00:00:00Z",
    scopes: { resources: ["FILE:/shop/**"], ids: ["ci-*"] },
  },
  replies: [ok(shapes.newKey, "The key, with its secret.", 201)],
  errors: ["tenant_unknown", "key_exists"],
});

export const listKeys = query({
  name: "list_keys",
  path: "/v1/keys",
  fields: {
    ...inputs({ tenantId: optional(tenantId), role: optional(choice(roles)) }, { role: "Only keys of this role." }),
    ...paging,
  },
  roles: operating,
  summary: "Lists keys",
  description: "Without their secrets, which are not stored.",
  example: { tenant_id: "acme" },
  replies: [ok(shapes.page("keys", shapes.key), "One page.")],
});

export const deleteKey = command({
  name: "delete_key",
  method: "DELETE",
  path: "/v1/keys/{key_id}",
  also: [{ method: "DELETE", path: "/v1/keys" }],
  fields: inputs(commands.delete_key, { key_id: "The key's id, not its secret." }),
  locksOut: true,
  roles: operating,
  summary: "Deletes a key",
  description:
    "From then on it is refused, and so are the agents' tokens drawn with it; WebSockets end at once. What it owned is for " +
    "operators and supervisors until it is assigned (L13). The last operator's key cannot be deleted.",
  example: { key_id: "key_01jcs8qp7x9z1c3e" },
  replies: [ok(shapes.key, "The deleted key.")],
  errors: ["key_unknown", "last_operator_key"],
  encode: changedKeyAnswer,
});

export const rotateKey = command({
  name: "rotate_key",
  path: "/v1/keys/{key_id}/rotate",
  fields: {
    ...inputs(without(commands.rotate_key, "expiresAt"), {
      key_id: "The key's id, not its secret.",
      overlap_ms: "How long the secret before stays good; a day if left out, 0 ends it at once.",
    }),
    ...expiry(`${expiryWords} Stays as it is if left out.`),
  },
  refine: badExpiry,
  locksOut: true,
  roles: operating,
  summary: "Gives a key another secret",
  description:
    "It stays the same key, with its id, role and all that it owns. The secret before, and the agents' tokens drawn with " +
    "it, are good until `former_until`. Rotating again ends an overlap.",
  example: { key_id: "key_01jcs8qp7x9z1c3e", overlap_ms: 3_600_000 },
  replies: [ok(shapes.newKey, "The key, with its new secret.")],
  errors: ["key_unknown"],
  encode: rotatedKeyAnswer,
});

export const assignName = command({
  name: "assign_name",
  path: "/v1/keys/{key_id}/assign",
  fields: {
    ...inputs({ keyId }, { key_id: "The key's id, not its secret." }),
    ...inputs(ownedNames, { agent_id: "An agent.", worker_id: "A worker.", cell: "A cell." }),
  },
  exactlyOne: ["agent_id", "worker_id", "cell"],
  locksOut: true,
  roles: operating,
  summary: "Gives a name to a key",
  description:
    "An agent, a worker_id or a cell of the key's tenant belongs to this key from then on, and to no other (L13): for names " +
    "whose key was deleted, or that were first used by somebody above or before there were keys.",
  example: { key_id: "key_01jcs8qp7x9z1c3e", agent_id: "refactorer-7" },
  replies: [ok(shapes.key, "The key that it belongs to now.")],
  errors: ["key_unknown", "invalid_key", "agent_unknown", "worker_unknown", "cell_unknown"],
  encode: changedKeyAnswer,
});
