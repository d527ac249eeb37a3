/** Operating: keys. The server draws the secret and its hash; only the hash goes further. */

import { commands, keyInput } from "../../kernel/contract/commands.ts";
import { choice, optional, without } from "../../kernel/contract/field.ts";
import { tenantId } from "../../kernel/contract/inputs.ts";
import { roles } from "../../kernel/contract/records.ts";
import { deletedKeyAnswer } from "../answers/reply-json.ts";
import * as shapes from "../leases/shapes.ts";
import { ok, operationsOf } from "../operation.ts";
import { paging } from "../schema/fields.ts";
import { inputs } from "../schema/from-fields.ts";
import { optional as optionalSchema } from "../schema/schema.ts";
import { scopes } from "./policy-shapes.ts";
import { operating } from "./roles.ts";

const { command, query } = operationsOf("Operating");

export const createKey = command({
  name: "create_key",
  path: "/v1/keys",
  fields: {
    ...inputs(without(keyInput, "scopes"), { role: "What the key allows.", label: "What it is for." }),
    scopes: optionalSchema(scopes),
  },
  roles: operating,
  locksOut: true,
  summary: "Creates a key",
  description:
    "For the caller's own tenant if none is named. The secret is in this answer and nowhere else; only its hash is stored.",
  example: {
    role: "agent",
    tenant_id: "acme",
    label: "acme's CI",
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
  roles: operating,
  locksOut: true,
  summary: "Deletes a key",
  description: "From then on it is refused.",
  example: { key_id: "key_01jcs8qp7x9z1c3e" },
  replies: [ok(shapes.key, "The deleted key.")],
  errors: ["key_unknown"],
  encode: deletedKeyAnswer,
});
