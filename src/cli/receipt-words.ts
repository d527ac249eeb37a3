/** Receipts and obligations in words. */
import type { Obligation, Receipt } from "../sdk/wire.ts";
import type { Column } from "./table.ts";

export const receiptColumns: readonly Column<Receipt>[] = [
  { title: "NO", cell: ({ sequence }) => String(sequence) },
  { title: "RECEIPT", cell: ({ receipt_id: id }) => id },
  { title: "PHASE", cell: ({ phase }) => phase },
  { title: "STATUS", cell: ({ status, escalation_class: escalated }) => (status === "NA" ? escalated : status) },
  { title: "TASK", cell: ({ task_id: task }) => task },
  { title: "BY", cell: ({ source_system: source }) => source, gives: "end" },
  { title: "STORED", cell: ({ stored_at: at }) => at },
  { title: "HASH", cell: ({ hash }) => hash.slice(0, 12) },
];

export const obligationColumns: readonly Column<Obligation>[] = [
  { title: "STATE", cell: ({ state }) => state, colour: ({ state }) => (state === "OVERDUE" ? "red" : null) },
  { title: "TASK", cell: ({ task_id: task }) => task },
  { title: "TYPE", cell: ({ task_type: type }) => type, gives: "end" },
  { title: "STATUS", cell: ({ status }) => status },
  { title: "SINCE", cell: ({ opened_at: at }) => at },
  { title: "CUSTODIAN", cell: ({ custodian }) => custodian, gives: "end" },
  { title: "SUMMARY", cell: ({ task_summary: summary }) => summary ?? "", gives: "end" },
];
