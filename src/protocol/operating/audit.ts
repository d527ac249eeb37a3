/** Operating: the audit log (S7). */
import { auditEntry } from "../../kernel/contract/audit-records.ts";
import { flag, optional, text } from "../../kernel/contract/field.ts";
import { page } from "../leases/shapes.ts";
import { ok, operationsOf } from "../operation.ts";
import { paging } from "../schema/fields.ts";
import { inputs, outputs } from "../schema/from-fields.ts";
import { limits } from "../schema/limits.ts";
import { integer, record, text as shownText } from "../schema/schema.ts";
import { above } from "./roles.ts";

const { query } = operationsOf("Operating");

const shape = record(
  {
    sequence: integer({ description: "Its place in the tenant's log, from 1 on without a gap." }),
    previous_hash: shownText({ description: "The hash of the entry before; zeros in the first." }),
    tenant_id: shownText({ description: "The tenant that was changed." }),
    ...outputs(auditEntry, {
      at: "When.",
      actor: "The id of the key that was shown; `keyless` where none was needed.",
      role: "The role of that key.",
      address: "Where the request came from.",
      action: "The name of the operation.",
      target: "What it was done to.",
      detail: "What was asked for, field by field.",
    }),
    hash: shownText({ description: "SHA-256 over the entry's members above, as JSON in ASCII, in this order." }),
  },
  { title: "AuditEntry" },
);

export const listAudit = query({
  name: "list_audit",
  path: "/v1/audit",
  fields: {
    ...inputs(
      {
        since: optional(text({ max: limits.labelLengthMax })),
        actor: optional(text({ max: limits.idLengthMax })),
        action: optional(text({ max: limits.idLengthMax })),
        directory: optional(flag()),
      },
      {
        since: "Made at this time or later; ISO 8601.",
        actor: "Only changes by this key.",
        action: "Only this operation.",
        directory:
          "On a cluster with several shards: the log of its directory, where keys, policies and the creation of tenants are.",
      },
    ),
    ...paging,
  },
  roles: above,
  summary: "Lists what operators and supervisors changed",
  description:
    "Oldest first, of one tenant. Every entry holds the hash of the one before, so that no change, gap or swap goes unnoticed " +
    "(S7).",
  example: { action: "revoke", limit: 50 },
  replies: [ok(page("entries", shape), "One page.")],
  refine: ({ since }) =>
    since === undefined || since === null || !Number.isNaN(Date.parse(since))
      ? null
      : { code: "invalid_request", field: "since", detail: "since is not a time; send one in ISO 8601." },
  decode: (input, { tenant, actor }) => ({
    type: "list_audit",
    tenant,
    actor,
    since: input.since === undefined || input.since === null ? null : Date.parse(input.since),
    by: input.actor ?? null,
    action: input.action ?? null,
    limit: input.limit ?? limits.pageDefault,
    cursor: input.cursor ?? null,
  }),
});
