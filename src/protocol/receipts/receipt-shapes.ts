/** What replies about receipts, obligations and the ledger look like. */
import { only } from "../../kernel/contract/field.ts";
import {
  obligation as obligationFields,
  receipt as receiptRecord,
  taskStatuses,
} from "../../kernel/contract/task-records.ts";
import { outputs } from "../schema/from-fields.ts";
import { choice, flag, integer, list, nullable, record, text, time } from "../schema/schema.ts";
import { obligationWords } from "../tasks/task-shapes.ts";
import { receiptWords } from "./receipt-fields.ts";

const properties = outputs(receiptRecord, receiptWords);
const chained = {
  hash: text({ description: "SHA-256 over the receipt and the hash before (R6)." }),
  previous_hash: text({ description: "The hash of the receipt before." }),
};

/** The answer to one of many: the sender knows the rest. */
export const receiptMark = record(
  { ...outputs(only(receiptRecord, "id", "taskId", "phase", "sequence", "storedAt"), receiptWords), ...chained },
  { title: "ReceiptMark" },
);

/** LegiVellum's receipt, version 1, in full: "NA", "TBD", null, {}, [], 0 and false stand for what is absent. */
export const receipt = record({ ...properties, schema_version: text(), ...chained }, { title: "Receipt" });

export const chain = record(
  {
    receipt_id: text(),
    causes: list(receipt, { description: "What led to it, the first cause first." }),
    receipt,
    effects: list(receipt, { description: "What it led to, in order." }),
    truncated: flag({ description: "The chain goes on; only so much of it is followed." }),
  },
  { title: "ReceiptChain" },
);

export const obligation = record(
  {
    ...outputs(obligationFields, obligationWords),
    closed_at: nullable(time()),
    task_id: text(),
    task_type: text(),
    task_summary: nullable(text()),
    principal_ai: text(),
    status: choice(taskStatuses, { description: "The task's." }),
    last_receipt_id: nullable(text()),
  },
  { title: "Obligation" },
);

export const ledgerHead = record(
  {
    tenant_id: text(),
    sequence: integer({ description: "Of the last receipt; 0 while there is none." }),
    hash: text(),
    signature: text({ description: "Ed25519, over what `ledger verify` describes." }),
    key_id: text(),
    public_key: text(),
    at: time(),
  },
  { title: "LedgerHead" },
);
