/** What replies about receipts, obligations and the ledger look like. */
import { only } from "../../kernel/contract/field.ts";
import { receipt as receiptRecord } from "../../kernel/contract/task-records.ts";
import { outputs, parts } from "../schema/from-fields.ts";
import { flag, list, record, text } from "../schema/schema.ts";
import { ledgerHead as ledgerHeadFields, taskObligation } from "../schema/views.ts";
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
  parts(taskObligation, {
    ...obligationWords,
    status: "The task's; `accepted` where the task is another system's.",
    foreign: "The task is not this system's: what is known of it is what its receipts say (R1).",
    deadline_at: "When the custodian's lease ends, unless it is extended; null where it holds none.",
  }),
  {
    title: "Obligation",
  },
);

export const ledgerHead = record(
  parts(ledgerHeadFields, {
    sequence: "Of the last receipt; 0 while there is none.",
    signature: "Ed25519, over what `ledger verify` describes.",
  }),
  { title: "LedgerHead" },
);
