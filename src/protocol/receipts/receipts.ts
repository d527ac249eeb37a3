/** Receipts: promises and results, written once (R1–R3). */

import { choice, optional, text } from "../../kernel/contract/field.ts";
import { taskId } from "../../kernel/contract/inputs.ts";
import { receiptPhases } from "../../kernel/contract/task-records.ts";
import { page } from "../leases/shapes.ts";
import { delegating, following } from "../operating/roles.ts";
import { ok, operationsOf } from "../operation.ts";
import { checkOf } from "../schema/check.ts";
import { paging } from "../schema/fields.ts";
import { inputs } from "../schema/from-fields.ts";
import { limits } from "../schema/limits.ts";
import { anything, list } from "../schema/schema.ts";
import { receiptAnswer } from "../tasks/task-json.ts";
import { results } from "../tasks/task-shapes.ts";
import { decodeReceipt, newReceipt, receiptFault, receiptFields } from "./receipt-fields.ts";
import * as shapes from "./receipt-shapes.ts";

const { command, query } = operationsOf("Receipts");

const receiptId = text({ min: 1, max: limits.idLengthMax });
const receiptIdWords = { receipt_id: "The receipt's id." };

const receiptExample = {
  phase: "complete",
  task_id: "T-01jcs8qm5t6w8y0a2b4d6f",
  source_system: "worker.codegen-123",
  status: "success",
  outcome_kind: "artifact_pointer",
  artifact_location: "s3://bucket/result.py",
  dedupe_key: "csv-parser-1-done",
} as const;

const receiptErrors = [
  "invalid_receipt",
  "invalid_worker_id",
  "tenant_mismatch",
  "tenant_suspended",
  "task_unknown",
  "receipt_unknown",
  "lease_unknown",
  "not_lease_holder",
  "lease_expired",
  "lease_released",
  "lease_revoked",
  "dedupe_conflict",
  "complete_without_accept",
  "already_completed",
  "stale_fence",
  "quota_exceeded",
] as const;

export const submitReceipt = command({
  name: "submit_receipt",
  path: "/v1/receipts",
  fields: receiptFields,
  faultCode: "invalid_receipt",
  roles: delegating,
  summary: "Adds a receipt to the ledger",
  description:
    "`accepted` makes an offer an obligation, `complete` ends it, exactly once; `escalate` passes it on, `progress` tells " +
    'how it goes. Short receipts and LegiVellum\'s full ones are taken as they stand: "NA", "TBD", null, {} and 0 are ' +
    "read as left out, and what is left out is filled from the task and its lease (R2). While nobody has the task, the " +
    "custodian of its obligation may complete or escalate it without a lease, with its name in `source_system` (T13).",
  example: receiptExample,
  replies: [ok(shapes.receipt, "Stored.", 201), ok(shapes.receipt, "Sent before: the receipt of then (R3).")],
  errors: receiptErrors,
  refine: receiptFault,
  decode: (input, { tenant, actor, entropy }) => ({
    type: "submit_receipt",
    tenant,
    actor,
    entropy,
    receipt: decodeReceipt(input),
  }),
  encode: receiptAnswer,
});

export const submitReceipts = command({
  name: "submit_receipts",
  path: "/v1/receipts/batch",
  counted: "receipts",
  fields: {
    receipts: list(newReceipt, {
      minItems: 1,
      maxItems: limits.batchMax,
      description: "Each as for one, decided in this order; as many as fit into a body.",
      "x-apart": true,
    }),
  },
  roles: delegating,
  summary: "Adds many receipts",
  description:
    "Each has a status and a body of its own. Of a stored one the body says where it stands in the ledger; the whole of " +
    "it is at `/v1/receipts/{receipt_id}`.",
  example: { receipts: [receiptExample] },
  replies: [
    ok(results(anything(), "StoredReceipts"), "What became of each: 201 or 200 with a ReceiptMark, or an error."),
  ],
  errors: receiptErrors,
  decode: ({ receipts }, { tenant, actor }) => ({
    type: "submit_receipts",
    tenant,
    actor,
    items: receipts.map((receipt) => {
      const checked = checkOf(newReceipt)(receipt);
      const fault = checked.ok ? receiptFault(checked.value) : checked;
      if (checked.ok && fault === null) return { ok: true, value: decodeReceipt(checked.value) };
      const { field, detail } = fault ?? { field: "", detail: "The receipt is not well-formed; send another." };
      return { ok: false, fault: { code: "invalid_receipt", field, detail } };
    }),
  }),
});

export const getReceipt = query({
  name: "get_receipt",
  path: "/v1/receipts/{receipt_id}",
  fields: inputs({ receiptId }, receiptIdWords),
  roles: following,
  summary: "Shows a receipt",
  description: "As it was stored: receipts never change (R1).",
  example: { receipt_id: "rcp_7" },
  replies: [ok(shapes.receipt, "The receipt.")],
  errors: ["receipt_unknown"],
});

export const getReceiptChain = query({
  name: "get_receipt_chain",
  path: "/v1/receipts/{receipt_id}/chain",
  fields: inputs({ receiptId }, receiptIdWords),
  roles: following,
  summary: "Follows a receipt's causes and effects",
  description: "By `caused_by_receipt_id`: what led to it, from task to task, and what followed within its task (R5).",
  example: { receipt_id: "rcp_7" },
  replies: [ok(shapes.chain, "The chain around it.")],
  errors: ["receipt_unknown"],
});

const name = optional(text({ max: limits.keyLengthMax }));

export const listReceipts = query({
  name: "list_receipts",
  path: "/v1/receipts",
  fields: {
    ...inputs(
      {
        taskId: optional(taskId),
        phase: optional(choice(receiptPhases)),
        recipientAi: name,
        sourceSystem: name,
        since: optional(text({ max: limits.timeLengthMax })),
        afterReceiptId: optional(receiptId),
        sort: optional(choice(["asc", "desc"])),
      },
      {
        phase: "Only receipts of this phase.",
        recipient_ai: "Only receipts for this principal.",
        source_system: "Only receipts of this worker.",
        since: "Stored at this time or later; ISO 8601.",
        after_receipt_id: "Only receipts that were stored after this one.",
        sort: "asc, the oldest first, unless desc is sent: the newest first. A cursor is of one order.",
      },
    ),
    ...paging,
  },
  roles: following,
  summary: "Searches the ledger",
  description: "The oldest first, or the newest. A page may be short where few match, and still have a next one.",
  example: { task_id: "T-01jcs8qm5t6w8y0a2b4d6f", phase: "complete", limit: 50 },
  replies: [ok(page("receipts", shapes.receipt), "One page.")],
  errors: ["receipt_unknown"],
  refine: ({ since }) =>
    since === undefined || since === null || !Number.isNaN(Date.parse(since))
      ? null
      : { code: "invalid_request", field: "since", detail: "since is not a time; send one in ISO 8601." },
  decode: (input, { tenant, actor }) => ({
    type: "list_receipts",
    tenant,
    actor,
    taskId: input.task_id ?? null,
    phase: input.phase ?? null,
    recipientAi: input.recipient_ai ?? null,
    sourceSystem: input.source_system ?? null,
    since: input.since === undefined || input.since === null ? null : Date.parse(input.since),
    limit: input.limit ?? limits.pageDefault,
    cursor: input.cursor ?? null,
    afterReceiptId: input.after_receipt_id ?? null,
    sort: input.sort ?? null,
  }),
});
