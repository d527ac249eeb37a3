/** What follows from the ledger: who answers for what, and how far it has come (R5, R6). */

import { page } from "../leases/shapes.ts";
import { following } from "../operating/roles.ts";
import { ok, query } from "../operation.ts";
import { pageOf, paging } from "../schema/fields.ts";
import { limits } from "../schema/limits.ts";
import { choice, optional, text } from "../schema/schema.ts";
import { obligationStates } from "../schema/vocabulary.ts";
import * as shapes from "./receipt-shapes.ts";

const custodian = text({ minLength: 1, maxLength: limits.keyLengthMax, description: "Who answers for it." });

export const listObligations = query({
  name: "list_obligations",
  tag: "Receipts",
  method: "GET",
  path: "/v1/obligations",
  fields: { state: optional(choice(obligationStates)), custodian: optional(custodian), ...paging },
  roles: following,
  summary: "Lists obligations",
  description:
    "OPEN since an `accepted` receipt, OVERDUE once the lease was lost, CLOSED by a `complete` one. Without a `state` " +
    "those that are not closed.",
  example: { state: "OVERDUE", limit: 50 },
  replies: [ok(page("obligations", shapes.obligation), "One page.")],
  decode: (input, { tenant, actor }) => ({
    type: "list_obligations",
    tenant,
    actor,
    state: input.state ?? null,
    custodian: input.custodian ?? null,
    ...pageOf(input),
  }),
});

export const getInbox = query({
  name: "get_inbox",
  tag: "Receipts",
  method: "GET",
  path: "/v1/inbox/{recipient_ai}",
  fields: { recipient_ai: custodian, ...paging },
  roles: following,
  summary: "Shows a principal's inbox",
  description:
    "All that it answers for and that is not closed: its own tasks, and those that were escalated to it (R5).",
  example: { recipient_ai: "delegate.root", limit: 50 },
  replies: [ok(page("obligations", shapes.obligation), "One page.")],
  decode: (input, { tenant, actor }) => ({
    type: "get_inbox",
    tenant,
    actor,
    recipientAi: input.recipient_ai,
    ...pageOf(input),
  }),
});

export const getLedgerHead = query({
  name: "get_ledger_head",
  tag: "Receipts",
  method: "GET",
  path: "/v1/ledger/head",
  fields: {},
  roles: following,
  summary: "Shows the ledger's signed head",
  description:
    "Kept elsewhere, it proves later that nothing was changed or cut off: `leasehold ledger verify --anchor`.",
  example: {},
  replies: [ok(shapes.ledgerHead, "How far the tenant's ledger has come.")],
  decode: (_input, { tenant, actor }) => ({ type: "get_ledger_head", tenant, actor }),
});
