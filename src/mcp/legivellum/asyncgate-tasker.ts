/** `asyncgate.*` for those who give work: create, look, cancel, and read what came of it. */

import { findOperation } from "../../protocol/operations.ts";
import * as receiptShapes from "../../protocol/receipts/receipt-shapes.ts";
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
import { createdTask, task } from "../../protocol/tasks/task-shapes.ts";
import { counted, textIn } from "../sentences.ts";
import type { Tool } from "../tool.ts";
import { type Asking, asItIs, type GateAnswer, gateTool, inMs, passed } from "./gate-tool.ts";

export const words = (description: string) => optional(text({ maxLength: limits.keyLengthMax, description }));
export const many = (description: string) => optional(integer({ minimum: 1, maximum: limits.pageMax, description }));
const whole = (description: string) => optional(integer({ maximum: 31_622_400, description }));
export const receiptId = text({ minLength: 1, maxLength: limits.idLengthMax, description: "The receipt's id." });

const shownTask = findOperation("get_task")?.replies[0]?.schema ?? anything();

export const taskerTools: readonly Tool[] = [
  gateTool({
    name: "asyncgate.bootstrap",
    title: "Open a session",
    description: "Says who you are to the server, and lists what is open for you. Call it first.",
    operations: ["get_inbox"],
    fields: {
      agent_id: text({ minLength: 1, maxLength: limits.keyLengthMax, description: "The principal whose inbox it is." }),
      agent_instance_id: words("Taken, and repeated."),
      agent_version: words("Taken, and not used."),
      since_receipt_id: words("Taken, and not used: all that is open is listed."),
      max_items: many("At most this many."),
    },
    shape: record({
      server: record({ name: text(), version: text() }),
      relationship: record({ principal_kind: text(), principal_id: text(), principal_instance_id: nullable(text()) }),
      open_obligations: list(receiptShapes.obligation),
      cursor: nullable(text()),
    }),
    run: async ({ agent_id: agent, agent_instance_id: instance, max_items: limit }, { ask }) =>
      passed(
        await ask("get_inbox", { recipient_ai: agent, limit }),
        ({ obligations, next_cursor: cursor }) => ({
          server: { name: "Leasehold", version: "1" },
          relationship: {
            principal_kind: "agent",
            principal_id: agent,
            principal_instance_id: typeof instance === "string" ? instance : null,
          },
          open_obligations: obligations,
          cursor,
        }),
        (body) => counted(body, "open_obligations", "open obligation", "Nothing is open."),
      ),
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
    run: async (args, { ask, keyFor }) => {
      const { type, payload, principal_ai: principal, agent_id: creator, requirements, ...rest } = args;
      const { priority, retry_backoff_seconds: backoff, delay_seconds: delay, idempotency_key: given, ...same } = rest;
      const { capabilities } = (requirements ?? {}) as { readonly capabilities?: unknown };
      const input = {
        ...same,
        task_type: type,
        principal_ai: principal ?? creator,
        inputs: payload,
        requires: capabilities,
        task_priority: priority,
        requeue_delay_ms: inMs(backoff),
        delay_ms: inMs(delay),
      };
      const key = given ?? keyFor(input);
      return passed(await ask("create_task", { ...input, idempotency_key: key }), asItIs, statusSentence);
    },
  }),
  gateTool({
    name: "asyncgate.get_task",
    title: "Show a task",
    description: "Shows a task, with its result once it has ended.",
    operations: ["get_task"],
    fields: { task_id: taskId },
    shape: shownTask,
    run: async ({ task_id }, { ask }) => passed(await ask("get_task", { task_id }), asItIs, statusSentence),
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
      cursor: optional(text({ maxLength: limits.cursorLengthMax })),
    },
    shape: record({ tasks: list(task), cursor: nullable(text()) }),
    run: async ({ status, type, limit, cursor }, { ask }) =>
      passed(
        await ask("list_tasks", { status, task_type: type, limit, cursor }),
        ({ tasks, next_cursor: next }) => ({ tasks, cursor: next }),
        (body) => counted(body, "tasks", "task", "No task matches."),
      ),
  }),
  gateTool({
    name: "asyncgate.cancel_task",
    title: "Cancel a task",
    effect: "ends",
    description: "Cancels a task; its worker is asked to stop.",
    operations: ["cancel_task"],
    fields: {
      task_id: taskId,
      reason: optional(text({ minLength: 1, maxLength: limits.reasonLengthMax })),
      agent_id: words("Who cancels it."),
    },
    shape: task,
    run: async ({ task_id, reason }, { ask }) =>
      passed(await ask("cancel_task", { task_id, reason }), asItIs, statusSentence),
  }),
  gateTool({
    name: "asyncgate.list_receipts",
    title: "List receipts for somebody",
    description: "Lists the receipts that are for a principal, the oldest first; with since_receipt_id those after it.",
    operations: ["list_receipts", "get_receipt"],
    fields: {
      to_kind: words("agent, worker or service; taken, and not used."),
      to_id: text({ minLength: 1, maxLength: limits.keyLengthMax, description: "The principal." }),
      since_receipt_id: optional(receiptId),
      limit: many("At most this many."),
    },
    shape: record({ receipts: list(receiptShapes.receipt), cursor: nullable(text()) }),
    run: ({ to_id: recipient, since_receipt_id: since, limit }, asking) =>
      receiptsAfter(asking, since, { recipient_ai: recipient, limit }),
  }),
  gateTool({
    name: "asyncgate.ack_receipt",
    title: "Acknowledge a receipt",
    description: "Says that a receipt was read. Receipts never change here, so nothing is marked; it must exist.",
    operations: ["get_receipt"],
    fields: { receipt_id: receiptId, agent_id: words("Who has read it.") },
    shape: record({ receipt_id: text(), acknowledged: flag() }),
    run: async ({ receipt_id }, { ask }) =>
      passed(
        await ask("get_receipt", { receipt_id }),
        () => ({ receipt_id, acknowledged: true }),
        () => "Noted; the receipt itself never changes.",
      ),
  }),
];

function statusSentence(body: Readonly<Record<string, unknown>>): string {
  return `Task ${textIn(body, "task_id")} is ${textIn(body, "status")}.`;
}

interface Numbered {
  readonly receipt_id: string;
  readonly sequence: number;
}

/** By time first, which the ledger can search, and then by number, which is exact. */
async function receiptsAfter(
  { ask }: Asking,
  since: unknown,
  filter: Readonly<Record<string, unknown>>,
): Promise<GateAnswer> {
  const last = typeof since === "string" ? await ask("get_receipt", { receipt_id: since }) : null;
  if (last !== null && last.status >= 400) return { refusal: last.body };
  const { stored_at: at, sequence = 0 } = (last?.body ?? {}) as { stored_at?: string; sequence?: number };
  return passed(
    await ask("list_receipts", { ...filter, since: at }),
    ({ receipts }) => {
      const later = (receipts as readonly Numbered[]).filter((one) => one.sequence > sequence);
      return { receipts: later, cursor: later.at(-1)?.receipt_id ?? null };
    },
    (body) => counted(body, "receipts", "receipt", "No receipt since."),
  );
}
