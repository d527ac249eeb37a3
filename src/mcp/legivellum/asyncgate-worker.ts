/** `asyncgate.*` for those who do the work, and what the server says of itself. */

import type { Input } from "../../protocol/operation.ts";
import { receipt } from "../../protocol/receipts/receipt-shapes.ts";
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
import { taskId, taskLeaseId, workerId } from "../../protocol/tasks/task-fields.ts";
import { taskLease } from "../../protocol/tasks/task-shapes.ts";
import { counted, listIn, textIn } from "../sentences.ts";
import type { Tool } from "../tool.ts";
import { offersOf, saidOnce } from "../tools/tasks.ts";
import { type Asking, asItIs, type GateAnswer, gateTool, passed } from "./gate-tool.ts";

const held = { worker_id: workerId, task_id: optional(taskId), lease_id: taskLeaseId };

export const workerTools: readonly Tool[] = [
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
    run: async ({ worker_id, capabilities, accept_types, max_tasks }, { ask }) => {
      const answered = await ask("poll_tasks", { worker_id, capabilities, accept_types, max_tasks });
      return passed(
        answered,
        () => ({ tasks: listIn<Offer>(offersOf(answered), "offers").map(claimed) }),
        (body) => counted(body, "tasks", "task", "There is no work now; ask again later."),
      );
    },
  }),
  gateTool({
    name: "asyncgate.renew_lease",
    title: "Keep a task",
    description: "Extends a task's lease by its duration from now. An error means that it is no longer yours: stop.",
    operations: ["heartbeat_task"],
    fields: { ...held, extend_by_seconds: optional(integer({ description: "Taken, and not used." })) },
    shape: taskLease,
    run: async ({ lease_id }, { ask }) => passed(await ask("heartbeat_task", { lease_id }), asItIs, leaseSentence),
  }),
  gateTool({
    name: "asyncgate.report_progress",
    title: "Report progress",
    description: "Tells how far you are, and extends the lease. `directives` may ask you to stop.",
    operations: ["heartbeat_task"],
    fields: { ...held, progress: anything({ description: "Any JSON." }) },
    shape: taskLease,
    run: async ({ lease_id, progress }, { ask }) =>
      passed(await ask("heartbeat_task", { lease_id, progress }), asItIs, leaseSentence),
  }),
  gateTool({
    name: "asyncgate.start_task",
    title: "Accept a task",
    description: "Accepts an offered task: from now on you answer for it. Call it before you begin.",
    operations: ["submit_receipt"],
    fields: held,
    shape: receipt,
    run: async ({ lease_id }, { ask }) =>
      passed(await ask("submit_receipt", accepted(lease_id)), asItIs, receiptSentence),
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
    run: ({ lease_id, result, artifacts }, asking) =>
      completed(asking, { lease_id, status: "success", ...outcomeOf(result), artifact_refs: artifacts }),
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
    run: ({ lease_id, error, retryable }, asking) =>
      completed(asking, { lease_id, status: "failure", ...outcomeOf(error), retry_requested: retryable === true }),
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
    run: async (_args, { ask }) =>
      passed(
        await ask("list_task_types", {}),
        ({ task_types }) => ({
          receipt_schema_version: "1.0",
          max_tasks_per_lease: limits.taskPollMax,
          task_body_bytes_max: limits.taskBodyBytesMax,
          task_types,
        }),
        () => "The structured content has it.",
      ),
  }),
  health("asyncgate.health", "AsyncGate"),
];

/** It answers, so it is; what a load balancer asks is at /readyz. */
export function health(name: string, service: string): Tool {
  return gateTool({
    name,
    title: "Is it there?",
    description: "Says whether the service answers.",
    operations: ["get_ledger_head"],
    fields: {},
    shape: record({ status: choice(["healthy"]), service: text() }),
    run: async (_args, { ask }) =>
      passed(
        await ask("get_ledger_head", {}),
        () => ({ status: "healthy", service }),
        () => "It is well.",
      ),
  });
}

interface Offer {
  readonly lease_id: string;
  readonly lease_expires_at: string;
  readonly fence: number;
  readonly attempt: number;
  readonly task: Input;
}

function claimed({ lease_id, lease_expires_at, fence, attempt, task }: Offer) {
  const { task_id, task_type: type, inputs: payload, ...rest } = task;
  return { task_id, lease_id, lease_expires_at, fence, attempt, type, payload, ...rest };
}

function accepted(leaseId: unknown): Input {
  return saidOnce({ phase: "accepted", lease_id: leaseId });
}

function outcomeOf(result: unknown): Input {
  if (result === undefined || result === null) return { outcome_kind: "none" };
  return { outcome_kind: "response_text", outcome_text: typeof result === "string" ? result : JSON.stringify(result) };
}

/** Their workers may complete what they never accepted; here a promise comes first (T3), so it is made for them. */
async function completed({ ask }: Asking, receiptFields: Input): Promise<GateAnswer> {
  const { lease_id: leaseId } = receiptFields;
  const complete = saidOnce({ phase: "complete", ...receiptFields });
  let answered = await ask("submit_receipt", complete);
  const { error } = answered.body;
  if (error === "complete_without_accept") {
    const promised = await ask("submit_receipt", accepted(leaseId));
    if (promised.status >= 400) return { refusal: promised.body };
    answered = await ask("submit_receipt", complete);
  }
  return passed(answered, asItIs, receiptSentence);
}

function leaseSentence(body: Input): string {
  const orders = listIn<string>(body, "directives");
  const left = `the lease lasts until ${textIn(body, "lease_expires_at")}`;
  return orders.length === 0 ? `Noted; ${left}.` : `You are asked to ${orders.join(" and ")}; ${left}.`;
}

function receiptSentence(body: Input): string {
  return `Receipt ${textIn(body, "receipt_id")} (${textIn(body, "phase")}) of task ${textIn(body, "task_id")} is stored.`;
}
