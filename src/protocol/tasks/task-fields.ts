/** The fields of tasks and of the worker protocol, each with its bounds and its words (T1–T12). */
import type { TaskInput } from "../../kernel/contract/task-commands.ts";
import { decodeIntents } from "../leases/acquiring.ts";
import type { Fault } from "../schema/explain.ts";
import { intent } from "../schema/fields.ts";
import { findJsonFault } from "../schema/free-json.ts";
import { limits } from "../schema/limits.ts";
import { anything, flag, integer, list, optional, record, type Static, text } from "../schema/schema.ts";

export const taskId = text({ minLength: 1, maxLength: limits.idLengthMax, description: "The task's id." });

export const taskLeaseId = text({
  minLength: 1,
  maxLength: limits.idLengthMax,
  description: "The `lease_id` of the offer.",
});

export const taskType = text({
  minLength: 1,
  maxLength: limits.idLengthMax,
  description: "The kind of work, such as `code.generate`.",
  "x-error": "invalid_task",
});

export const workerId = text({
  minLength: 1,
  maxLength: limits.idLengthMax,
  description: "`{type}.{instance}`; the same across restarts for whoever wants its leases back.",
  "x-error": "invalid_worker_id",
});

export const capability = text({ minLength: 1, maxLength: limits.idLengthMax, "x-error": "invalid_task" });

const principal = (description: string) =>
  text({ minLength: 1, maxLength: limits.idLengthMax, description, "x-error": "invalid_task" });

const some = (description: string, maximum: number, minimum = 1) =>
  integer({ minimum, maximum, description, "x-error": "invalid_task" });

export const taskFields = {
  task_type: taskType,
  principal_ai: principal("Whose task it is: who may cancel it, and who is told when it cannot be done."),
  task_summary: optional(
    text({ maxLength: limits.receiptTextMax, description: "In a line, for people.", "x-error": "invalid_task" }),
  ),
  task_body: optional(
    text({ maxLength: limits.taskBodyBytesMax, description: "All there is to say.", "x-error": "invalid_task" }),
  ),
  payload_pointer: optional(
    text({
      maxLength: limits.receiptTextMax,
      description: "Where more of it lies, such as `leasehold://artifacts/<sha256>`; carried as given.",
      "x-error": "invalid_task",
    }),
  ),
  inputs: optional(anything({ description: "Any JSON, up to 64 KiB." })),
  expected_outcome_kind: optional(
    text({
      maxLength: limits.keyLengthMax,
      description: "none, response_text, artifact_pointer or mixed.",
      "x-error": "invalid_task",
    }),
  ),
  expected_artifact_mime: optional(text({ maxLength: limits.keyLengthMax, "x-error": "invalid_task" })),
  task_priority: optional(
    integer({
      minimum: -limits.taskPriorityMax,
      maximum: limits.taskPriorityMax,
      description: "Larger is more urgent; a task gains a level over younger ones with each minute. 0 if left out.",
      "x-error": "invalid_task",
    }),
  ),
  requires: optional(
    list(capability, {
      maxItems: limits.taskRequiresMax,
      description: "Only a worker with all of these capabilities is offered it.",
      "x-error": "invalid_task",
    }),
  ),
  intents: optional(
    list(intent, {
      maxItems: limits.intentsMax,
      description: "What it needs: offered only when all of it can be granted, to the task as holder (T10).",
      "x-error": { maxItems: "manifest_too_large" },
    }),
  ),
  delay_ms: optional(some("Not to be offered before.", limits.taskDelayMsMax, 0)),
  max_attempts: optional(some("Accepted attempts before it is dead; 3 if left out.", limits.taskAttemptsMax)),
  max_offers: optional(some("Offers in a row that nobody accepts before it is dead; 10.", limits.taskOffersMax)),
  lease_duration_ms: optional(
    some("How long a worker has without a heartbeat; 900000.", limits.taskLeaseMsMax, limits.ttlMsMin),
  ),
  requeue_delay_ms: optional(some("The pause before a retry; 30000.", limits.taskDelayMsMax, 0)),
  depends_on: optional(
    list(taskId, {
      maxItems: limits.taskDependsOnMax,
      description: "Tasks that must have succeeded first.",
      "x-error": "invalid_task",
    }),
  ),
  concurrency_key: optional(
    text({
      minLength: 1,
      maxLength: limits.keyLengthMax,
      description: "Tasks with this key share a limit.",
      "x-error": "invalid_task",
    }),
  ),
  concurrency_limit: optional(some("How many of them may run at once; 1.", limits.taskConcurrencyMax)),
  speculative: optional(flag({ description: "Give it to two workers at once; the first to complete wins (T8)." })),
  preemptible: optional(flag({ description: "May be asked to make room for a more urgent one (T8)." })),
  parent_task_id: optional(taskId),
  idempotency_key: optional(
    text({
      minLength: 1,
      maxLength: limits.keyLengthMax,
      description: "Sent again within a day, the first task is the answer (T12).",
      "x-error": "invalid_task",
    }),
  ),
};

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
  intents: [{ predicate: "MUTATES", resource: "FILE:/src/csv.py" }],
  max_attempts: 3,
  idempotency_key: "csv-parser-1",
} satisfies NewTask;

export function taskFault({ inputs }: NewTask): Fault | null {
  return inputs === undefined || inputs === null ? null : findJsonFault(inputs, "inputs");
}

/** By hand, field for field: a batch brings thousands of them. */
export function decodeTask(input: NewTask): TaskInput {
  const { intents } = input;
  return {
    taskType: input.task_type,
    principalAi: input.principal_ai,
    taskSummary: input.task_summary ?? null,
    taskBody: input.task_body ?? null,
    payloadPointer: input.payload_pointer ?? null,
    inputs: input.inputs ?? null,
    expectedOutcomeKind: input.expected_outcome_kind ?? null,
    expectedArtifactMime: input.expected_artifact_mime ?? null,
    taskPriority: input.task_priority ?? null,
    requires: input.requires ?? null,
    intents: intents === undefined || intents === null ? null : decodeIntents(intents),
    delayMs: input.delay_ms ?? null,
    maxAttempts: input.max_attempts ?? null,
    maxOffers: input.max_offers ?? null,
    leaseDurationMs: input.lease_duration_ms ?? null,
    requeueDelayMs: input.requeue_delay_ms ?? null,
    dependsOn: input.depends_on ?? null,
    concurrencyKey: input.concurrency_key ?? null,
    concurrencyLimit: input.concurrency_limit ?? null,
    speculative: input.speculative ?? null,
    preemptible: input.preemptible ?? null,
    parentTaskId: input.parent_task_id ?? null,
    idempotencyKey: input.idempotency_key ?? null,
  };
}
