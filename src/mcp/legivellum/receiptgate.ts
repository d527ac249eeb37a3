/** `receiptgate.*`: the ledger, under the names of ReceiptGate. */

import { chain, obligation, receipt } from "../../protocol/receipts/receipt-shapes.ts";
import { anything, choice, flag, list, nullable, optional, record, text } from "../../protocol/schema/schema.ts";
import { taskId } from "../../protocol/tasks/task-fields.ts";
import type { Body } from "../control-plane.ts";
import { counted } from "../sentences.ts";
import type { Tool } from "../tool.ts";
import { gateTool, health, many, principal, receiptId, words } from "./gate-tool.ts";

const recipient = principal("The principal.");

export const receiptgateTools: readonly Tool[] = [
  gateTool({
    name: "receiptgate.submit_receipt",
    title: "Submit a receipt",
    effect: "adds",
    description:
      "Stores a LegiVellum receipt, version 1, full or short. The same dedupe_key and content is stored once.",
    operations: ["submit_receipt"],
    fields: { receipt: anything({ description: "The receipt, an object." }) },
    shape: receipt,
    input: ({ receipt: sent }) => (isObject(sent) ? sent : { phase: sent }),
    sentence: "Receipt {receipt_id} is stored.",
  }),
  gateTool({
    name: "receiptgate.list_inbox",
    title: "Show an inbox",
    description: "Lists what a principal answers for and is not done.",
    operations: ["get_inbox"],
    fields: { recipient_ai: recipient, limit: many("At most this many.") },
    shape: record({ recipient_ai: text(), obligations: list(obligation), cursor: nullable(text()) }),
    output: ({ obligations, next_cursor: cursor }, { recipient_ai }) => ({
      recipient_ai,
      obligations,
      cursor,
    }),
    sentence: (body) => counted(body, "obligations", "open obligation", "Nothing is open."),
  }),
  gateTool({
    name: "receiptgate.bootstrap",
    title: "Open a session",
    description: "Gives an agent its inbox and what it must know of the ledger. Call it first.",
    operations: ["get_inbox"],
    fields: { agent_name: recipient, session_id: words("Taken, and repeated.") },
    shape: record({
      agent_name: text(),
      session_id: nullable(text()),
      config: record({ receipt_schema_version: text(), capabilities: list(text()) }),
      inbox: list(obligation),
    }),
    input: ({ agent_name }) => ({ recipient_ai: agent_name }),
    output: ({ obligations }, { agent_name, session_id }) => ({
      agent_name,
      session_id: session_id ?? null,
      config: { receipt_schema_version: "1.0", capabilities: ["receipts", "audit"] },
      inbox: obligations,
    }),
    sentence: (body) => counted(body, "inbox", "open obligation", "Nothing is open."),
  }),
  gateTool({
    name: "receiptgate.list_task_receipts",
    title: "List a task's receipts",
    description: "Lists the receipts of a task, the oldest first unless sort is desc; whole with include_payload.",
    operations: ["list_receipts"],
    fields: {
      task_id: taskId,
      sort: optional(choice(["asc", "desc"])),
      include_payload: optional(flag({ description: "Left out: only their heads." })),
      limit: many("At most this many."),
    },
    shape: record({ task_id: text(), receipts: list(anything()), cursor: nullable(text()) }),
    input: ({ task_id, limit }) => ({ task_id, limit }),
    output: ({ receipts, next_cursor: cursor }, { task_id, sort, include_payload: whole }) => {
      const found = (receipts as Body[]).map((one) =>
        whole === true ? { ...headOf(one), payload: one } : headOf(one),
      );
      return { task_id, receipts: sort === "desc" ? found.reverse() : found, cursor };
    },
    sentence: (body) => counted(body, "receipts", "receipt", "The task has no receipts."),
  }),
  gateTool({
    name: "receiptgate.search_receipts",
    title: "Search receipts",
    description: "Lists the heads of receipts of a task, narrowed by phase, recipient or time.",
    operations: ["list_receipts"],
    fields: {
      root_task_id: taskId,
      phase: words("accepted, complete, escalate or progress."),
      recipient_ai: words("Whom they are for."),
      since: words("Stored at this time or later; ISO 8601."),
      limit: many("At most this many."),
    },
    shape: record({ receipts: list(anything()), cursor: nullable(text()) }),
    input: ({ root_task_id: task, ...same }) => ({ ...same, task_id: task }),
    output: ({ receipts, next_cursor: cursor }) => ({ receipts: (receipts as Body[]).map(headOf), cursor }),
    sentence: (body) => counted(body, "receipts", "receipt", "No receipt matches."),
  }),
  gateTool({
    name: "receiptgate.get_receipt_chain",
    title: "Follow a receipt",
    description: "Shows what led to a receipt, and what followed from it.",
    operations: ["get_receipt_chain"],
    fields: { receipt_id: receiptId },
    shape: chain,
    sentence: (body) =>
      `${counted(body, "causes", "cause", "No cause.")} ${counted(body, "effects", "effect", "No effect.")}`,
  }),
  gateTool({
    name: "receiptgate.get_receipt",
    title: "Show a receipt",
    description: "Shows a receipt as it was stored.",
    operations: ["get_receipt"],
    fields: { receipt_id: receiptId },
    shape: receipt,
    sentence: "Receipt {receipt_id}: {phase} of task {task_id}.",
  }),
  health("receiptgate.health", "ReceiptGate"),
];

const heads = "receipt_id task_id phase status from_principal recipient_ai source_system stored_at hash".split(" ");

function headOf(whole: Body): Body {
  return Object.fromEntries(heads.map((name) => [name, whole[name]]));
}

function isObject(value: unknown): value is Body {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
