/** `asyncgate.*`, under the names of AsyncGate: for those who give work, for those who do it, and what the server says of itself. */

import type { Input } from "../../protocol/operation.ts";
import { obligation, receipt } from "../../protocol/receipts/receipt-shapes.ts";
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
  time,
} from "../../protocol/schema/schema.ts";
import { taskStatuses } from "../../protocol/schema/vocabulary.ts";
import { taskId, taskLeaseId, workerId } from "../../protocol/tasks/task-fields.ts";
import { createdTask, task, taskLease } from "../../protocol/tasks/task-shapes.ts";
import type { Offer, Receipt } from "../../sdk/wire.ts";
import type { Reply } from "../control-plane.ts";
import { counted, directivesSentence, listIn, offersIn } from "../sentences.ts";
import { operationNamed, type Tool } from "../tool.ts";
import { saidOnce } from "../tools/tasks.ts";
import { type Ask, gateTool, health, many, principal, receiptId, words } from "./gate-tool.ts";

const whole = (description: string) => optional(integer({ maximum: 31_622_400, description }));
const held = { worker_id: workerId, task_id: optional(taskId), lease_id: taskLeaseId };
const statusSentence = "Task {task_id} is {status}.";
const receiptSentence = "Receipt {receipt_id} ({phase}) of task {task_id} is stored.";

export const asyncgateTools: readonly Tool[] = [
  gateTool({
    name: "asyncgate.bootstrap",
    title: "Open a session",
    description: "Says who you are to the server, and lists what is open for you. Call it first.",
    operations: ["get_inbox"],
    fields: {
      agent_id: principal("The principal whose inbox it is."),
      agent_instance_id: words("Taken, and repeated."),
      agent_version: words("Taken, and not used."),
      since_receipt_id: words("Taken, and not used: all that is open is listed."),
      max_items: many("At most this many."),
    },
    shape: record({
      server: record({ name: text(), version: text() }),
      relationship: record({ principal_kind: text(), principal_id: text(), principal_instance_id: nullable(text()) }),
      open_obligations: list(obligation),
      cursor: nullable(text()),
    }),
    input: ({ agent_id: agent, max_items: limit }) => ({ recipient_ai: agent, limit }),
    output: ({ obligations, next_cursor: cursor }, { agent_id: agent, agent_instance_id: instance }) => ({
      server: { name: "Leasehold", version: "1" },
      relationship: { principal_kind: "agent", principal_id: agent, principal_instance_id: instance ?? null },
      open_obligations: obligations,
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
    shape: operationNamed("get_task").replies[0]?.schema ?? anything(),
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
      cursor: optional(text({ maxLength: limits.cursorLengthMax })),
    },
    shape: record({ tasks: list(task), cursor: nullable(text()) }),
    input: ({ type, ...same }) => ({ ...same, task_type: type }),
    output: ({ tasks, next_cursor: cursor }) => ({ tasks, cursor }),
    sentence: (body) => counted(body, "tasks", "task", "No task matches."),
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
    input: ({ task_id, reason }) => ({ task_id, reason }),
    sentence: statusSentence,
  }),
  gateTool({
    name: "asyncgate.list_receipts",
    title: "List receipts for somebody",
    description: "Lists the receipts that are for a principal, the oldest first; with since_receipt_id those after it.",
    operations: ["list_receipts", "get_receipt"],
    fields: {
      to_kind: words("agent, worker or service; taken, and not used."),
      to_id: principal("The principal."),
      since_receipt_id: optional(receiptId),
      limit: many("At most this many."),
    },
    shape: record({ receipts: list(receipt), cursor: nullable(text()) }),
    input: ({ to_id: recipient_ai, since_receipt_id, limit }) => ({ recipient_ai, since_receipt_id, limit }),
    ask: receiptsAfter,
    sentence: (body) => counted(body, "receipts", "receipt", "No receipt since."),
  }),
  gateTool({
    name: "asyncgate.ack_receipt",
    title: "Acknowledge a receipt",
    description: "Says that a receipt was read. Receipts never change here, so nothing is marked; it must exist.",
    operations: ["get_receipt"],
    fields: { receipt_id: receiptId, agent_id: words("Who has read it.") },
    shape: record({ receipt_id: text(), acknowledged: flag() }),
    input: ({ receipt_id }) => ({ receipt_id }),
    output: (_body, { receipt_id }) => ({ receipt_id, acknowledged: true }),
    sentence: "Noted; the receipt itself never changes.",
  }),
  gateTool({
    name: "asyncgate.lease_next",
    title: "Take work",
    effect: "adds",
    description:
      "Asks for work. What comes is offered, and yours for a while: asyncgate.start_task accepts it. With " +
      "accept_types, only tasks of these types are offered. How long a lease lasts is the task's affair.",
    operations: ["poll_tasks"],
    fields: {
      worker_id: workerId,
      capabilities: optional(list(text({ minLength: 1, maxLength: limits.idLengthMax }), { maxItems: 32 })),
      accept_types: optional(list(text({ minLength: 1, maxLength: limits.idLengthMax }), { maxItems: 32 })),
      max_tasks: optional(integer({ minimum: 1, maximum: limits.taskPollMax })),
      lease_ttl_seconds: optional(integer({ description: "Taken, and not used: see lease_expires_at." })),
    },
    shape: record({
      tasks: list(
        record({
          task_id: text(),
          lease_id: text(),
          lease_expires_at: time(),
          fence: integer(),
          attempt: integer(),
          type: text(),
          principal_ai: text(),
          payload: anything(),
          payload_pointer: nullable(text()),
          task_summary: nullable(text()),
          task_body: nullable(text()),
          expected_outcome_kind: nullable(text()),
          expected_artifact_mime: nullable(text()),
        }),
      ),
    }),
    input: ({ lease_ttl_seconds: _unused, ...same }) => same,
    output: (body) => ({ tasks: listIn<Offer>(offersIn(body), "offers").map(claimed) }),
    sentence: (body) => counted(body, "tasks", "task", "There is no work now; ask again later."),
  }),
  gateTool({
    name: "asyncgate.renew_lease",
    title: "Keep a task",
    description: "Extends a task's lease by its duration from now. An error means that it is no longer yours: stop.",
    operations: ["heartbeat_task"],
    fields: { ...held, extend_by_seconds: optional(integer({ description: "Taken, and not used." })) },
    shape: taskLease,
    input: ({ lease_id }) => ({ lease_id }),
    sentence: directivesSentence,
  }),
  gateTool({
    name: "asyncgate.report_progress",
    title: "Report progress",
    description: "Tells how far you are, and extends the lease. `directives` may ask you to stop.",
    operations: ["heartbeat_task"],
    fields: { ...held, progress: anything({ description: "Any JSON." }) },
    shape: taskLease,
    input: ({ lease_id, progress }) => ({ lease_id, progress }),
    sentence: directivesSentence,
  }),
  gateTool({
    name: "asyncgate.start_task",
    title: "Accept a task",
    description: "Accepts an offered task: from now on you answer for it. Call it before you begin.",
    operations: ["submit_receipt"],
    fields: held,
    shape: receipt,
    input: accepted,
    sentence: receiptSentence,
  }),
  gateTool({
    name: "asyncgate.complete",
    title: "Complete a task",
    description: "Ends a task with success, exactly once. One that was not accepted yet is accepted with it.",
    operations: ["submit_receipt"],
    fields: {
      ...held,
      result: anything({ description: "Any JSON; it becomes the receipt's outcome_text." }),
      artifacts: optional(anything({ description: "Any JSON; it becomes the receipt's artifact_refs." })),
    },
    shape: receipt,
    input: ({ lease_id, result, artifacts }) => ({
      lease_id,
      status: "success",
      ...outcomeOf(result),
      artifact_refs: artifacts,
    }),
    ask: complete,
    sentence: receiptSentence,
  }),
  gateTool({
    name: "asyncgate.fail",
    title: "Fail a task",
    description: "Ends an attempt with failure; with retryable it is tried again, if attempts are left.",
    operations: ["submit_receipt"],
    fields: {
      ...held,
      error: anything({ description: "Any JSON; it becomes the receipt's outcome_text." }),
      retryable: optional(flag({ description: "Whether to try again." })),
    },
    shape: receipt,
    input: ({ lease_id, error, retryable }) => ({
      lease_id,
      status: "failure",
      ...outcomeOf(error),
      retry_requested: retryable === true,
    }),
    ask: complete,
    sentence: receiptSentence,
  }),
  gateTool({
    name: "asyncgate.get_config",
    title: "Show the configuration",
    description: "Shows the limits and defaults that tasks and receipts are held to.",
    operations: ["list_task_types"],
    fields: {},
    shape: record({
      receipt_schema_version: text(),
      max_tasks_per_lease: integer(),
      task_body_bytes_max: integer(),
      task_types: list(anything()),
    }),
    output: ({ task_types }) => ({
      receipt_schema_version: "1.0",
      max_tasks_per_lease: limits.taskPollMax,
      task_body_bytes_max: limits.taskBodyBytesMax,
      task_types,
    }),
    sentence: "The structured content has it.",
  }),
  health("asyncgate.health", "AsyncGate"),
];

function inMs(seconds: unknown): number | undefined {
  return typeof seconds === "number" ? seconds * 1_000 : undefined;
}

/** By time first, which the ledger can search, and then by number, which is exact. */
async function receiptsAfter(ask: Ask, { since_receipt_id: since, ...filter }: Input): Promise<Reply> {
  const last = typeof since === "string" ? await ask("get_receipt", { receipt_id: since }) : null;
  if (last !== null && last.status >= 400) return last;
  const { stored_at: at, sequence = 0 } = (last?.body ?? {}) as Partial<Receipt>;
  const listed = await ask("list_receipts", { ...filter, since: at });
  if (listed.status >= 400) return listed;
  const receipts = listIn<Receipt>(listed.body, "receipts").filter((one) => one.sequence > sequence);
  return { ...listed, body: { receipts, cursor: receipts.at(-1)?.receipt_id ?? null } };
}

function claimed({ lease_id, lease_expires_at, fence, attempt, task: offered }: Offer) {
  const { task_id, task_type: type, inputs: payload, ...rest } = offered;
  return { task_id, lease_id, lease_expires_at, fence, attempt, type, payload, ...rest };
}

function accepted({ lease_id }: Input): Input {
  return saidOnce({ phase: "accepted", lease_id });
}

function outcomeOf(result: unknown): Input {
  if (result === undefined || result === null) return { outcome_kind: "none" };
  return { outcome_kind: "response_text", outcome_text: typeof result === "string" ? result : JSON.stringify(result) };
}

/** Their workers may complete what they never accepted; here a promise comes first (T3), so it is made for them. */
async function complete(ask: Ask, fields: Input): Promise<Reply> {
  const receiptOf = saidOnce({ phase: "complete", ...fields });
  const answered = await ask("submit_receipt", receiptOf);
  const { error } = answered.body;
  if (error !== "complete_without_accept") return answered;
  const promised = await ask("submit_receipt", accepted(fields));
  return promised.status >= 400 ? promised : ask("submit_receipt", receiptOf);
}
