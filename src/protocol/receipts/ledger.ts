/** What follows from the ledger: who answers for what, and how far it has come (R5, R6). */

import { choice, optional, text } from "../../kernel/contract/field.ts";
import { limits } from "../../kernel/contract/limits.ts";
import { taskCommands } from "../../kernel/contract/task-commands.ts";
import { obligationStates } from "../../kernel/contract/task-records.ts";
import { page } from "../leases/shapes.ts";
import { above, following } from "../operating/roles.ts";
import { ok, operationsOf } from "../operation.ts";
import { paging } from "../schema/fields.ts";
import { inputs } from "../schema/from-fields.ts";
import { taskAnswer } from "../tasks/task-json.ts";
import * as shapes from "./receipt-shapes.ts";

const { command, query } = operationsOf("Receipts");

export const recoverObligation = command({
  name: "recover_obligation",
  path: "/v1/obligations/{obligation_id}/recover",
  fields: inputs(taskCommands.recover_obligation, {
    obligation_id: "An overdue obligation.",
    custodian: "Who answers for it from now on.",
    reason: "Why; it is in the ledger.",
  }),
  roles: above,
  summary: "Gives an overdue obligation to a new custodian",
  description:
    "It is OPEN again. An `escalate` receipt of class `owner` names the new custodian, who may complete the task (R5).",
  example: {
    obligation_id: "obl_01jcs8qm5t6w8y0a2b4d6f-1",
    custodian: "worker.reviewer",
    reason: "the worker is gone",
  },
  replies: [ok(shapes.obligation, "The obligation as it is now.")],
  errors: ["obligation_unknown", "obligation_not_overdue"],
  encode: taskAnswer,
});

const custodian = text({ min: 1, max: limits.keyLengthMax });

export const listObligations = query({
  name: "list_obligations",
  path: "/v1/obligations",
  fields: {
    ...inputs(
      { state: optional(choice(obligationStates)), custodian: optional(custodian) },
      { state: "Only obligations in this state.", custodian: "Who answers for it." },
    ),
    ...paging,
  },
  roles: following,
  summary: "Lists obligations",
  description:
    "OPEN since an `accepted` receipt, OVERDUE once the lease was lost, CLOSED by a `complete` one. Without a `state` " +
    "those that are not closed.",
  example: { state: "OVERDUE", limit: 50 },
  replies: [ok(page("obligations", shapes.obligation), "One page.")],
});

export const getInbox = query({
  name: "get_inbox",
  path: "/v1/inbox/{recipient_ai}",
  fields: { ...inputs({ recipientAi: custodian }, { recipient_ai: "Who answers for it." }), ...paging },
  roles: following,
  summary: "Shows a principal's inbox",
  description:
    "All that it answers for and that is not closed: its own tasks, and those that were escalated to it (R5).",
  example: { recipient_ai: "delegate.root", limit: 50 },
  replies: [ok(page("obligations", shapes.obligation), "One page.")],
});

export const getLedgerHead = query({
  name: "get_ledger_head",
  path: "/v1/ledger/head",
  roles: following,
  summary: "Shows the ledger's signed head",
  description:
    "Kept elsewhere, it proves later that nothing was changed or cut off: `leasehold ledger verify --anchor`.",
  replies: [ok(shapes.ledgerHead, "How far the tenant's ledger has come.")],
});
