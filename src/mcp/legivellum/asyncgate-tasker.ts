/** `asyncgate.*` for those who give work and follow it. */
import type { Input } from "../../protocol/operation.ts";
import { limits } from "../../protocol/schema/limits.ts";
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
import { taskStatuses } from "../../protocol/schema/vocabulary.ts";
import { taskId } from "../../protocol/tasks/task-fields.ts";
import { createdTask } from "../../protocol/tasks/task-shapes.ts";
import type { Obligation, Receipt, Task, TaskWithReceipts } from "../../sdk/wire.ts";
import type { Body, Reply } from "../control-plane.ts";
import { counted, listIn } from "../sentences.ts";
import type { Tool } from "../tool.ts";
import { type Ask, cursorField, gateTool, many, principal, receiptId, words } from "./gate-tool.ts";
import { receiptsAfter } from "./receipt-pages.ts";
import {
  gateObligation,
  gateReceipt,
  gateTask,
  gateTaskWithResult,
  obligationIn,
  phaseOf,
  type ReceiptType,
  receiptIn,
  receiptTypeOf,
  receiptTypes,
  taskIn,
  taskWithResultIn,
} from "./vocabulary.ts";

const whole = (description: string) => optional(integer({ maximum: 31_622_400, description }));
export const statusSentence = "Task {task_id} is {status}.";
const since = optional(
  text({
    minLength: 1,
    maxLength: limits.cursorLengthMax,
    description: "The last receipt that you know, or a cursor.",
  }),
);
const cursors = { next_cursor: nullable(text()), cursor: nullable(text()) };

export const taskerTools: readonly Tool[] = [
  gateTool({
    name: "asyncgate.bootstrap",
    title: "Open a session",
    description: "Says who you are to the server, and lists what is open for you. Call it first.",
    operations: ["get_inbox"],
    fields: {
      agent_id: principal("The principal whose inbox it is."),
      agent_instance_id: words("Taken, and repeated."),
      agent_version: words("Taken, and not used."),
      since_receipt_id: cursorField,
      max_items: many("At most this many."),
    },
    shape: record({
      server: record({ name: text(), version: text() }),
      relationship: record({ principal_kind: text(), principal_id: text(), principal_instance_id: nullable(text()) }),
      open_obligations: list(gateObligation),
      ...cursors,
    }),
    input: ({ agent_id: agent, max_items: limit, since_receipt_id: cursor }) => ({
      recipient_ai: agent,
      limit,
      cursor,
    }),
    output: ({ obligations, next_cursor: cursor }, { agent_id: agent, agent_instance_id: instance }) => ({
      server: { name: "Leasehold", version: "1" },
      relationship: { principal_kind: "agent", principal_id: agent, principal_instance_id: instance ?? null },
      open_obligations: (obligations as readonly Obligation[]).map(obligationIn),
      next_cursor: cursor,
      cursor,
    }),
    sentence: (body) => counted(body, "open_obligations", "open obligation", "Nothing is open."),
  }),
  gateTool({
    name: "asyncgate.create_task",
    title: "Create a task",
    effect: "adds",
    description:
      "Gives work to a worker that can do it, and returns at once. Send an idempotency_key to be safe twice.",
    operations: ["create_task"],
    fields: {
      type: text({ minLength: 1, maxLength: limits.idLengthMax, description: "The kind of work." }),
      payload: optional(anything({ description: "Any JSON, up to 64 KiB." })),
      payload_pointer: optional(text({ maxLength: limits.receiptTextMax, description: "Where more of it lies." })),
      principal_ai: words("Whose task it is; agent_id if left out."),
      requirements: optional(anything({ description: "`{capabilities: […]}`: who lacks one is not offered it." })),
      expected_outcome_kind: words("none, response_text, artifact_pointer or mixed."),
      expected_artifact_mime: words("Of the artifact."),
      priority: optional(integer({ minimum: -limits.taskPriorityMax, maximum: limits.taskPriorityMax })),
      idempotency_key: words("Sent again with it, the first task is the answer."),
      max_attempts: many("Accepted attempts before it is dead."),
      retry_backoff_seconds: whole("The pause before a retry."),
      delay_seconds: whole("Not to be offered before."),
      agent_id: words("Who creates it."),
    },
    shape: createdTask,
    input: ({ type, payload, principal_ai, agent_id: creator, requirements, ...rest }) => {
      const { priority, retry_backoff_seconds: backoff, delay_seconds: delay, ...same } = rest;
      const { capabilities } = (requirements ?? {}) as { readonly capabilities?: unknown };
      return {
        ...same,
        task_type: type,
        principal_ai: principal_ai ?? creator,
        inputs: payload,
        requires: capabilities,
        task_priority: priority,
        requeue_delay_ms: inMs(backoff),
        delay_ms: inMs(delay),
      };
    },
    keyField: "idempotency_key",
    sentence: statusSentence,
  }),
  gateTool({
    name: "asyncgate.get_task",
    title: "Show a task",
    description: "Shows a task, with its result once it has ended.",
    operations: ["get_task"],
    fields: { task_id: taskId },
    shape: gateTaskWithResult,
    output: (body) => taskWithResultIn(body as unknown as TaskWithReceipts),
    sentence: statusSentence,
  }),
  gateTool({
    name: "asyncgate.list_tasks",
    title: "List tasks",
    description: "Lists tasks, narrowed by status or type.",
    operations: ["list_tasks"],
    fields: {
      status: optional(choice(taskStatuses)),
      type: words("The kind of work."),
      limit: many("At most this many."),
      cursor: cursorField,
    },
    shape: record({ tasks: list(gateTask), ...cursors }),
    input: ({ type, ...same }) => ({ ...same, task_type: type }),
    output: ({ tasks, next_cursor: cursor }) => ({
      tasks: (tasks as readonly Task[]).map(taskIn),
      next_cursor: cursor,
      cursor,
    }),
    sentence: (body) => counted(body, "tasks", "task", "No task matches."),
  }),
  gateTool({
    name: "asyncgate.cancel_task",
    title: "Cancel a task",
    effect: "ends",
    description: "Cancels a task; its worker is asked to stop. `ok` is false where it had ended already.",
    operations: ["cancel_task"],
    fields: {
      task_id: taskId,
      reason: optional(text({ minLength: 1, maxLength: limits.reasonLengthMax })),
      agent_id: words("Who cancels it."),
    },
    shape: record({ ok: flag(), ...gateTask.properties }),
    input: ({ task_id, reason }) => ({ task_id, reason }),
    output: (body) => {
      const task = body as unknown as Task;
      return { ok: task.status === "canceled", ...taskIn(task) };
    },
    sentence: statusSentence,
  }),
  gateTool({
    name: "asyncgate.list_receipts",
    title: "List receipts for somebody",
    description: "Lists the receipts that are for a principal, the oldest first; with since_receipt_id those after it.",
    operations: ["list_receipts"],
    fields: {
      to_kind: words("agent, worker or service; taken, and not used."),
      to_id: principal("The principal."),
      since_receipt_id: since,
      limit: many("At most this many."),
    },
    shape: record({ receipts: list(gateReceipt), ...cursors }),
    ask: (ask, { to_id: recipient_ai, since_receipt_id, limit }) =>
      receiptsAfter(ask, { filter: { recipient_ai }, since: since_receipt_id, limit }),
    output: receiptsIn,
    sentence: (body) => counted(body, "receipts", "receipt", "No receipt since."),
  }),
  gateTool({
    name: "asyncgate.list_receipts_ledger",
    title: "Search the ledger",
    description:
      "Lists receipts of all principals, the oldest first, narrowed by task, type, or the present status of their tasks.",
    operations: ["list_receipts", "get_task"],
    fields: {
      task_id: optional(taskId),
      receipt_type: optional(choice(receiptTypes)),
      task_status: optional(choice(taskStatuses)),
      since_receipt_id: since,
      limit: optional(integer({ minimum: 1, maximum: 200, description: "At most this many." })),
    },
    shape: record({ receipts: list(gateReceipt), ...cursors }),
    ask: searchLedger,
    output: receiptsIn,
    sentence: (body) => counted(body, "receipts", "receipt", "No receipt matches."),
  }),
  gateTool({
    name: "asyncgate.check_terminator",
    title: "Is it closed?",
    description: "Says whether the obligation that a receipt is about was closed by a later one.",
    operations: ["get_receipt", "list_receipts"],
    fields: { parent_receipt_id: receiptId },
    shape: record({ parent_receipt_id: text(), has_terminator: flag() }),
    ask: findTerminator,
    sentence: ({ has_terminator: has }) => (has === true ? "It is closed." : "It is still open."),
  }),
  gateTool({
    name: "asyncgate.ack_receipt",
    title: "Acknowledge a receipt",
    description: "Says that a receipt was read. Receipts never change here, so nothing is marked; it must exist.",
    operations: ["get_receipt"],
    fields: { receipt_id: receiptId, agent_id: words("Who has read it.") },
    shape: record({ ok: flag(), receipt_id: text(), acknowledged: flag() }),
    input: ({ receipt_id }) => ({ receipt_id }),
    output: (_body, { receipt_id }) => ({ ok: true, receipt_id, acknowledged: true }),
    sentence: "Noted; the receipt itself never changes.",
  }),
];

function inMs(seconds: unknown): number | undefined {
  return typeof seconds === "number" ? seconds * 1_000 : undefined;
}

function receiptsIn({ receipts, ...pages }: Body): Body {
  return { receipts: (receipts as readonly Receipt[]).map(receiptIn), ...pages };
}

function searchLedger(
  ask: Ask,
  { task_id, receipt_type, task_status, since_receipt_id, limit }: Input,
): Promise<Reply> {
  const type = receipt_type as ReceiptType | null | undefined;
  const statuses = new Map<string, unknown>();
  const statusOf = async (id: string): Promise<unknown> => {
    if (!statuses.has(id)) {
      const { status } = (await ask("get_task", { task_id: id })).body;
      statuses.set(id, status);
    }
    return statuses.get(id);
  };
  const keep = async (receipt: Receipt): Promise<boolean> => {
    if (typeof type === "string" && receiptTypeOf(receipt) !== type) return false;
    return typeof task_status !== "string" || (await statusOf(receipt.task_id)) === task_status;
  };
  const filter = { task_id, ...(typeof type === "string" && { phase: phaseOf[type] }) };
  return receiptsAfter(ask, { filter, since: since_receipt_id, limit, keep });
}

/** By the obligation; by its cause where the receipt is about none. */
async function findTerminator(ask: Ask, { parent_receipt_id }: Input): Promise<Reply> {
  const parent = await ask("get_receipt", { receipt_id: parent_receipt_id });
  if (parent.status >= 400) return parent;
  const { task_id, receipt_id, obligation_id } = parent.body as unknown as Receipt;
  const found = await receiptsAfter(ask, {
    filter: { task_id, phase: "complete" },
    since: receipt_id,
    limit: 1,
    keep: (one) =>
      obligation_id === "NA" ? one.caused_by_receipt_id === receipt_id : one.obligation_id === obligation_id,
  });
  if (found.status >= 400) return found;
  return { status: 200, body: { parent_receipt_id, has_terminator: listIn(found.body, "receipts").length > 0 } };
}
