/** `receiptgate.*`: the ledger, under the names of ReceiptGate. */

import { chain, receipt } from "../../protocol/receipts/receipt-shapes.ts";
import {
  anything,
  choice,
  flag,
  integer,
  list,
  nullable,
  optional,
  record,
  text,
} from "../../protocol/schema/schema.ts";
import { taskId } from "../../protocol/tasks/task-fields.ts";
import type { Obligation, ReceiptChain } from "../../sdk/wire.ts";
import type { Body } from "../control-plane.ts";
import { counted } from "../sentences.ts";
import type { Tool } from "../tool.ts";
import { cursorField, gateTool, health, many, principal, receiptId, words } from "./gate-tool.ts";
import { gateObligation, obligationIn } from "./vocabulary.ts";

const recipient = principal("The principal.");
const cursors = { next_cursor: nullable(text()), cursor: nullable(text()) };
const inbox = {
  tenant_id: text(),
  recipient_ai: text(),
  count: integer(),
  receipts: list(gateObligation, { description: "The obligations, as ReceiptGate names them." }),
  obligations: list(gateObligation),
  ...cursors,
};

export const receiptgateTools: readonly Tool[] = [
  gateTool({
    name: "receiptgate.submit_receipt",
    title: "Submit a receipt",
    effect: "adds",
    description:
      "Stores a LegiVellum receipt, version 1, full or short. The same dedupe_key and content is stored once.",
    operations: ["submit_receipt"],
    fields: { receipt: anything({ description: "The receipt, an object." }) },
    shape: record({ ...receipt.properties, canonical_hash: text(), idempotent_replay: flag() }),
    input: ({ receipt: sent }) => (isObject(sent) ? sent : { phase: sent }),
    output: (body, _args, { status }) => {
      const { hash } = body;
      return { ...body, canonical_hash: hash, idempotent_replay: status === 200 };
    },
    sentence: "Receipt {receipt_id} is stored.",
  }),
  gateTool({
    name: "receiptgate.list_inbox",
    title: "Show an inbox",
    description: "Lists what a principal answers for and is not done.",
    operations: ["get_inbox"],
    fields: { recipient_ai: recipient, limit: many("At most this many."), cursor: cursorField },
    shape: record(inbox),
    output: (body, { recipient_ai }, { tenant }) => inboxIn(body, recipient_ai, tenant),
    sentence: (body) => counted(body, "obligations", "open obligation", "Nothing is open."),
  }),
  gateTool({
    name: "receiptgate.bootstrap",
    title: "Open a session",
    description: "Gives an agent its inbox and what it must know of the ledger. Call it first.",
    operations: ["get_inbox"],
    fields: { agent_name: recipient, session_id: words("Taken, and repeated.") },
    shape: record({
      tenant_id: text(),
      agent_name: text(),
      session_id: nullable(text()),
      config: record({ receipt_schema_version: text(), capabilities: list(text()) }),
      inbox: record(inbox),
    }),
    input: ({ agent_name }) => ({ recipient_ai: agent_name }),
    output: (body, { agent_name, session_id }, { tenant }) => ({
      tenant_id: tenant,
      agent_name,
      session_id: session_id ?? null,
      config: { receipt_schema_version: "1.0", capabilities: ["receipts", "audit"] },
      inbox: inboxIn(body, agent_name, tenant),
    }),
    sentence: ({ inbox: open }) => counted(open as Body, "obligations", "open obligation", "Nothing is open."),
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
      cursor: cursorField,
    },
    shape: record({ tenant_id: text(), task_id: text(), receipts: list(anything()), ...cursors }),
    input: ({ include_payload: _shown, ...same }) => same,
    output: ({ receipts, next_cursor: cursor }, { task_id, include_payload: whole }, { tenant }) => ({
      tenant_id: tenant,
      task_id,
      receipts: (receipts as Body[]).map((one) => (whole === true ? { ...headOf(one), payload: one } : headOf(one))),
      next_cursor: cursor,
      cursor,
    }),
    sentence: (body) => counted(body, "receipts", "receipt", "The task has no receipts."),
  }),
  gateTool({
    name: "receiptgate.search_receipts",
    title: "Search receipts",
    description: "Lists the heads of receipts of a task, the newest first, narrowed by phase, recipient or time.",
    operations: ["list_receipts"],
    fields: {
      root_task_id: taskId,
      phase: words("accepted, complete, escalate or progress."),
      recipient_ai: words("Whom they are for."),
      since: words("Stored at this time or later; ISO 8601."),
      limit: many("At most this many."),
      cursor: cursorField,
    },
    shape: record({ tenant_id: text(), root_task_id: text(), receipts: list(anything()), ...cursors }),
    input: ({ root_task_id: task, ...same }) => ({ ...same, task_id: task, sort: "desc" }),
    output: ({ receipts, next_cursor: cursor }, { root_task_id }, { tenant }) => ({
      tenant_id: tenant,
      root_task_id,
      receipts: (receipts as Body[]).map(headOf),
      next_cursor: cursor,
      cursor,
    }),
    sentence: (body) => counted(body, "receipts", "receipt", "No receipt matches."),
  }),
  gateTool({
    name: "receiptgate.get_receipt_chain",
    title: "Follow a receipt",
    description: "Shows what led to a receipt, and what followed from it.",
    operations: ["get_receipt_chain"],
    fields: { receipt_id: receiptId },
    shape: record({
      root_receipt_id: text(),
      chain: list(anything(), { description: "It, and each receipt's cause in turn." }),
      ...chain.properties,
    }),
    output: (body) => {
      const { receipt_id } = body;
      return { root_receipt_id: receipt_id, chain: chainIn(body as unknown as ReceiptChain), ...body };
    },
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

function inboxIn({ obligations, next_cursor: cursor }: Body, recipientAi: unknown, tenant: string): Body {
  const open = (obligations as readonly Obligation[]).map(obligationIn);
  const receipts = { count: open.length, receipts: open, obligations: open };
  return { tenant_id: tenant, recipient_ai: recipientAi, ...receipts, next_cursor: cursor, cursor };
}

function chainIn({ receipt: own, causes }: ReceiptChain): readonly Body[] {
  return [own, ...causes.toReversed()].map(({ receipt_id, caused_by_receipt_id, stored_at }) => {
    return { receipt_id, caused_by_receipt_id, stored_at };
  });
}

const heads =
  "tenant_id receipt_id task_id phase status from_principal recipient_ai source_system created_at stored_at hash".split(
    " ",
  );

function headOf(whole: Body): Body {
  return Object.fromEntries(heads.map((name) => [name, whole[name]]));
}

function isObject(value: unknown): value is Body {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
