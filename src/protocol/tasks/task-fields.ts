/** A new task: its words, its example, and how it is decoded (T1–T12). */
import { leaseId, taskId as taskIdField, taskInput } from "../../kernel/contract/inputs.ts";
import { type TaskInput, taskCommands } from "../../kernel/contract/task-commands.ts";
import { partDecoderOf } from "../schema/convert.ts";
import type { Fault } from "../schema/explain.ts";
import { findJsonFault } from "../schema/free-json.ts";
import { inputs, type Words } from "../schema/from-fields.ts";
import { record, type Static } from "../schema/schema.ts";

export const leaseWords = { lease_id: "The `lease_id` of the offer." };
export const workerIdWords = "`{type}.{instance}`; the same across restarts for a worker that wants its leases back.";

export const taskWords: Words<typeof taskInput> = {
  principal_ai: "Whose task it is: who may cancel it, and who is notified when it cannot be done.",
  task_summary: "In a line, for people.",
  task_body: "The whole description, up to 100 KiB.",
  payload_pointer: "Where more of it lies, such as `leasehold://artifacts/<sha256>`; carried as given.",
  inputs: "Any JSON, up to 64 KiB.",
  expected_outcome_kind: "none, response_text, artifact_pointer or mixed.",
  expected_artifact_mime: "The media type of the artifact.",
  task_priority: "Larger is more urgent; a task gains a level over younger ones with each minute. 0 if left out.",
  requires: "Only a worker with all of these capabilities is offered it.",
  intents: "What it needs: offered only when all of it can be granted, to the task as holder (T10).",
  delay_ms: "Not to be offered before.",
  max_attempts: "Accepted attempts before it is dead; 3 if left out.",
  max_offers: "Offers in a row that nobody accepts before it is dead; 10.",
  lease_duration_ms: "How long a worker has without a heartbeat; 900000, capped at a day with a warning (L2).",
  requeue_delay_ms: "The pause before a retry; 30000.",
  depends_on: "Tasks that must have succeeded first.",
  concurrency_key: "Tasks with this key share a limit.",
  concurrency_limit: "How many of them may run at once; 1.",
  speculative: "Give it to two workers at once; the first to complete wins (T8).",
  preemptible: "May be asked to make room for a more urgent one (T8).",
  parent_task_id: "The task that this one is a part of.",
  idempotency_key:
    "Sent again while the task is alive, or can be looked up after its end, the first task is the answer (T12). " +
    "One that begins with `once_` is remembered for ten minutes after the task's end, which is enough for a call that is sent again.",
  supervisor: "Who gets its policy escalations (T5); its type's, the tenant's or its principal if left out.",
  traceparent: "The trace that it belongs to (W3C Trace Context); the header of the same name if left out.",
};

/** For tools that describe their input themselves. */
export const { task_id: taskId, worker_id: workerId } = inputs(
  { taskId: taskIdField, workerId: taskCommands.poll_tasks.workerId },
  { worker_id: workerIdWords },
);
export const { lease_id: taskLeaseId } = inputs({ leaseId }, leaseWords);

export const taskFields = inputs(taskInput, taskWords);

export const newTask = record(taskFields, { title: "NewTask" });
export type NewTask = Static<typeof newTask>;

export const taskExample = {
  task_type: "code.generate",
  principal_ai: "delegate.root",
  task_summary: "Generate Python function for CSV parsing",
  task_body: "Create a function that reads CSV…",
  payload_pointer: "depotgate://artifact/01HTZQ8S3C8Y8Y1QJQ5Y8Z9F6G",
  inputs: { language: "python", framework: "pandas" },
  expected_outcome_kind: "artifact_pointer",
  expected_artifact_mime: "text/x-python",
  task_priority: 5,
  requires: ["python"],
  intents: [{ predicate: "MUTATES", resource: "FILE:/shop/src/csv.py" }],
  max_attempts: 3,
  idempotency_key: "csv-parser-1",
} satisfies NewTask;

export function taskFault({ inputs }: NewTask): Fault | null {
  return inputs === undefined || inputs === null ? null : findJsonFault(inputs, "inputs");
}

export const decodeTask = partDecoderOf<TaskInput>(taskInput);
