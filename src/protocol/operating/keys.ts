/** Operating: keys. The server draws the secret and its hash; only the hash goes further. */

import { deletedKeyAnswer } from "../answers/reply-json.ts";
import * as shapes from "../leases/shapes.ts";
import { command, ok, query } from "../operation.ts";
import { pageOf, paging, tenantId } from "../schema/fields.ts";
import { limits } from "../schema/limits.ts";
import { choice, optional, text } from "../schema/schema.ts";
import { roles } from "../schema/vocabulary.ts";
import { operating } from "./roles.ts";

export const createKey = command({
  name: "create_key",
  tag: "Operating",
  method: "POST",
  path: "/v1/keys",
  fields: {
    role: choice(roles, { description: "What the key allows.", "x-error": "invalid_key" }),
    tenant_id: optional(tenantId),
    label: optional(
      text({ maxLength: limits.labelLengthMax, description: "What it is for.", "x-error": "invalid_key" }),
    ),
  },
  roles: operating,
  summary: "Makes a key",
  description:
    "For the caller's own tenant if none is named. The secret is in this answer and nowhere else; only its hash is stored.",
  example: { role: "supervisor", tenant_id: "acme", label: "acme's CI" },
  replies: [ok(shapes.newKey, "The key, with its secret.", 201)],
  errors: ["tenant_unknown", "invalid_tenant_id", "invalid_key", "key_exists"],
  decode: (input, { tenant, actor, entropy, minted }) => {
    if (minted === undefined) throw new TypeError("create_key needs an id and a hash that the server has drawn");
    const { id, hash } = minted;
    const key = { id, hash, role: input.role, tenant: input.tenant_id ?? tenant, label: input.label ?? null };
    return { type: "create_key", tenant, actor, entropy, key };
  },
});

export const listKeys = query({
  name: "list_keys",
  tag: "Operating",
  method: "GET",
  path: "/v1/keys",
  fields: {
    tenant_id: optional(tenantId),
    role: optional(choice(roles, { description: "Only keys of this role." })),
    ...paging,
  },
  roles: operating,
  summary: "Lists keys",
  description: "Without their secrets, which nobody has any more.",
  example: { tenant_id: "acme" },
  replies: [ok(shapes.page("keys", shapes.key), "One page.")],
  decode: (input, { tenant, actor }) => ({
    type: "list_keys",
    tenant,
    actor,
    tenantId: input.tenant_id ?? null,
    role: input.role ?? null,
    ...pageOf(input),
  }),
});

export const deleteKey = command({
  name: "delete_key",
  tag: "Operating",
  method: "DELETE",
  path: "/v1/keys/{key_id}",
  also: [{ method: "DELETE", path: "/v1/keys" }],
  fields: {
    key_id: text({ minLength: 1, maxLength: limits.idLengthMax, description: "The key's id, not its secret." }),
  },
  roles: operating,
  summary: "Deletes a key",
  description: "From then on it opens nothing.",
  example: { key_id: "key_01jcs8qp7x9z1c3e" },
  replies: [ok(shapes.key, "The key that was.")],
  errors: ["key_unknown"],
  decode: (input, { tenant, actor, entropy }) => ({ type: "delete_key", tenant, actor, entropy, keyId: input.key_id }),
  encode: deletedKeyAnswer,
});
