/** `receiptgate.*`: the ledger, under the names of ReceiptGate. */

import { chain, obligation, receipt } from "../../protocol/receipts/receipt-shapes.ts";
import { limits } from "../../protocol/schema/limits.ts";
import { anything, choice, flag, list, nullable, optional, record, text } from "../../protocol/schema/schema.ts";
import { taskId } from "../../protocol/tasks/task-fields.ts";
import type { Body } from "../control-plane.ts";
import { counted, textIn } from "../sentences.ts";
import type { Tool } from "../tool.ts";
import { many, receiptId, words } from "./asyncgate-tasker.ts";
import { health } from "./asyncgate-worker.ts";
import { asItIs, gateTool, passed } from "./gate-tool.ts";

const recipient = text({ minLength: 1, maxLength: limits.keyLengthMax, description: "The principal." });
const receiptPage = record({ receipts: list(anything()), cursor: nullable(text()) });

export const receiptTools: readonly Tool[] = [
  gateTool({
    name: "receiptgate.submit_receipt",
    title: "Submit a receipt",
    effect: "adds",
    description:
      "Stores a LegiVellum receipt, version 1, full or short. The same dedupe_key and content is stored once.",
    operations: ["submit_receipt"],
    fields: { receipt: anything({ description: "The receipt, an object." }) },
    shape: receipt,
    run: async ({ receipt: sent }, { ask }) =>
      passed(
        await ask("submit_receipt", isObject(sent) ? sent : { phase: sent }),
        asItIs,
        (body) => `Receipt ${textIn(body, "receipt_id")} is stored.`,
      ),
  }),
  gateTool({
    name: "receiptgate.list_inbox",
    title: "Show an inbox",
    description: "Lists what a principal answers for and is not done.",
    operations: ["get_inbox"],
    fields: { recipient_ai: recipient, limit: many("At most this many.") },
    shape: record({ recipient_ai: text(), obligations: list(obligation), cursor: nullable(text()) }),
    run: async ({ recipient_ai, limit }, { ask }) =>
      passed(
        await ask("get_inbox", { recipient_ai, limit }),
        ({ obligations, next_cursor: cursor }) => ({ recipient_ai, obligations, cursor }),
        (body) => counted(body, "obligations", "open obligation", "Nothing is open."),
      ),
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
    run: async ({ agent_name, session_id }, { ask }) =>
      passed(
        await ask("get_inbox", { recipient_ai: agent_name }),
        ({ obligations }) => ({
          agent_name,
          session_id: session_id ?? null,
          config: { receipt_schema_version: "1.0", capabilities: ["receipts", "audit"] },
          inbox: obligations,
        }),
        (body) => counted(body, "inbox", "open obligation", "Nothing is open."),
      ),
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
    run: async ({ task_id, sort, include_payload: whole, limit }, { ask }) =>
      passed(
        await ask("list_receipts", { task_id, limit }),
        ({ receipts, next_cursor: cursor }) => {
          const found = (receipts as readonly Body[]).map((one) =>
            whole === true ? { ...headOf(one), payload: one } : headOf(one),
          );
          return { task_id, receipts: sort === "desc" ? found.reverse() : found, cursor };
        },
        (body) => counted(body, "receipts", "receipt", "The task has no receipts."),
      ),
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
    shape: receiptPage,
    run: async ({ root_task_id: task, phase, recipient_ai, since, limit }, { ask }) =>
      passed(
        await ask("list_receipts", { task_id: task, phase, recipient_ai, since, limit }),
        ({ receipts, next_cursor: cursor }) => ({ receipts: (receipts as readonly Body[]).map(headOf), cursor }),
        (body) => counted(body, "receipts", "receipt", "No receipt matches."),
      ),
  }),
  gateTool({
    name: "receiptgate.get_receipt_chain",
    title: "Follow a receipt",
    description: "Shows what led to a receipt, and what followed from it.",
    operations: ["get_receipt_chain"],
    fields: { receipt_id: receiptId },
    shape: chain,
    run: async ({ receipt_id }, { ask }) =>
      passed(await ask("get_receipt_chain", { receipt_id }), asItIs, (body) => {
        return `${counted(body, "causes", "cause", "No cause.")} ${counted(body, "effects", "effect", "No effect.")}`;
      }),
  }),
  gateTool({
    name: "receiptgate.get_receipt",
    title: "Show a receipt",
    description: "Shows a receipt as it was stored.",
    operations: ["get_receipt"],
    fields: { receipt_id: receiptId },
    shape: receipt,
    run: async ({ receipt_id }, { ask }) =>
      passed(await ask("get_receipt", { receipt_id }), asItIs, (body) => {
        return `Receipt ${textIn(body, "receipt_id")}: ${textIn(body, "phase")} of task ${textIn(body, "task_id")}.`;
      }),
  }),
  health("receiptgate.health", "ReceiptGate"),
];

const heads = [
  "receipt_id",
  "task_id",
  "phase",
  "status",
  "from_principal",
  "recipient_ai",
  "source_system",
  "stored_at",
  "hash",
];

function headOf(whole: Body): Body {
  return Object.fromEntries(heads.map((name) => [name, whole[name]]));
}

function isObject(value: unknown): value is Body {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
