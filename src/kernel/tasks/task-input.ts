/** Decodes what a task is asked to be: each fault names its field and what is wrong with it, and nothing is guessed (S3). */
import { limits } from "../contract/limits.ts";
import { type Refusal, refuse } from "../contract/refusals.ts";
import type { TaskInput } from "../contract/task-commands.ts";
import type { TaskSpec } from "../contract/task-records.ts";
import { leavesChoice, needsCells } from "../deciding/claims.ts";
import { readIntents } from "../deciding/manifest.ts";
import type { TenantEntry } from "../memory/state.ts";
import { exceedsBytes, jsonExceedsBytes } from "../names/text-size.ts";

export function readTask(tenant: TenantEntry, input: TaskInput): TaskSpec | Refusal {
  const problem = findTextProblem(input) ?? findListProblem(input) ?? findNumberProblem(input);
  if (problem !== null) return problem;
  const read = input.intents === null || input.intents.length === 0 ? noIntents : readIntents(tenant, input.intents);
  if ("code" in read) return read;
  if (needsCells(tenant, read.wishes)) {
    return wrong(
      "intents",
      "on bound resources",
      "A task's manifest cannot name bound resources; acquire them as an agent.",
    );
  }
  if (leavesChoice(read.intents)) {
    return wrong("intents", "with pick", "A task's manifest says what it wants; name the resources, without pick.");
  }
  if (input.speculative === true && read.intents.length > 0) {
    return wrong(
      "speculative",
      "not with intents",
      "A task with intents is not run twice; leave speculative out (T8).",
    );
  }
  const type = tenant.book.types.get(input.taskType)?.record;
  return {
    taskType: input.taskType,
    principalAi: input.principalAi,
    taskSummary: input.taskSummary,
    payloadPointer: input.payloadPointer,
    expectedOutcomeKind: input.expectedOutcomeKind,
    expectedArtifactMime: input.expectedArtifactMime,
    taskPriority: input.taskPriority ?? 0,
    requires: input.requires === null ? none : [...new Set(input.requires)].sort(),
    intents: read.intents,
    maxAttempts: input.maxAttempts ?? type?.maxAttempts ?? limits.taskAttemptsDefault,
    maxOffers: input.maxOffers ?? type?.maxOffers ?? limits.taskOffersDefault,
    leaseDuration: Math.min(
      input.leaseDurationMs ?? type?.leaseDuration ?? limits.taskLeaseMsDefault,
      limits.taskLeaseMsMax,
    ),
    requeueDelay: input.requeueDelayMs ?? type?.requeueDelay ?? limits.taskRequeueMsDefault,
    dependsOn: input.dependsOn === null ? none : [...new Set(input.dependsOn)],
    concurrencyKey: input.concurrencyKey,
    concurrencyLimit: input.concurrencyLimit ?? 1,
    speculative: input.speculative ?? false,
    preemptible: input.preemptible ?? false,
    parentTaskId: input.parentTaskId,
    idempotencyKey: input.idempotencyKey,
  };
}

const none: readonly string[] = [];
const noIntents = { intents: [], wishes: [] } as const;

function wrong(field: string, problem: string, detail = `${field}: ${problem}.`): Refusal {
  return refuse("invalid_task", detail, { field, problem });
}

type TextField = { [K in keyof TaskInput]: TaskInput[K] extends string | null ? K : never }[keyof TaskInput];
type NumberField = { [K in keyof TaskInput]: TaskInput[K] extends number | null ? K : never }[keyof TaskInput];

/** The field as callers name it and as it is called here, the least and the most characters. */
const texts: readonly (readonly [string, TextField, number, number])[] = [
  ["task_type", "taskType", 1, limits.idLengthMax],
  ["principal_ai", "principalAi", 1, limits.idLengthMax],
  ["task_summary", "taskSummary", 0, limits.receiptTextMax],
  ["payload_pointer", "payloadPointer", 1, limits.receiptTextMax],
  ["expected_outcome_kind", "expectedOutcomeKind", 1, limits.idLengthMax],
  ["expected_artifact_mime", "expectedArtifactMime", 1, limits.idLengthMax],
  ["concurrency_key", "concurrencyKey", 1, limits.keyLengthMax],
  ["parent_task_id", "parentTaskId", 1, limits.idLengthMax],
  ["idempotency_key", "idempotencyKey", 1, limits.keyLengthMax],
];
/** The same for whole numbers. */
const numbers: readonly (readonly [string, NumberField, number, number])[] = [
  ["task_priority", "taskPriority", -limits.taskPriorityMax, limits.taskPriorityMax],
  ["delay_ms", "delayMs", 0, limits.taskDelayMsMax],
  ["max_attempts", "maxAttempts", 1, limits.taskAttemptsMax],
  ["max_offers", "maxOffers", 1, limits.taskOffersMax],
  ["lease_duration_ms", "leaseDurationMs", limits.ttlMsMin, Number.MAX_SAFE_INTEGER],
  ["requeue_delay_ms", "requeueDelayMs", 0, limits.taskDelayMsMax],
  ["concurrency_limit", "concurrencyLimit", 1, limits.taskConcurrencyMax],
];

function findTextProblem(input: TaskInput): Refusal | null {
  for (const [field, key, least, most] of texts) {
    const text = input[key];
    if (text === null || (text.length >= least && text.length <= most)) continue;
    return wrong(field, `must have ${least} to ${most} characters`);
  }
  if (input.taskType.includes("\n")) return wrong("task_type", "must be one line");
  if (input.taskBody !== null && exceedsBytes(input.taskBody, limits.taskBodyBytesMax)) {
    return wrong("task_body", `must have at most ${limits.taskBodyBytesMax} bytes; put it into an artifact instead`);
  }
  if (jsonExceedsBytes(input.inputs, limits.inputsBytesMax)) {
    return wrong("inputs", `must have at most ${limits.inputsBytesMax} bytes; put them into an artifact instead`);
  }
  return null;
}

function findListProblem({ requires, dependsOn }: TaskInput): Refusal | null {
  if (requires !== null) {
    if (requires.length > limits.taskRequiresMax) return wrong("requires", `at most ${limits.taskRequiresMax} of them`);
    const index = requires.findIndex((tag) => !/^[^\n]{1,128}$/.test(tag));
    if (index >= 0) return wrong(`requires.${index}`, "must have 1 to 128 characters in one line");
  }
  if (dependsOn !== null && dependsOn.length > limits.taskDependsOnMax) {
    return wrong("depends_on", `at most ${limits.taskDependsOnMax} of them`);
  }
  return null;
}

function findNumberProblem(input: TaskInput): Refusal | null {
  for (const [field, key, least, most] of numbers) {
    const value = input[key];
    if (value === null || (Number.isSafeInteger(value) && value >= least && value <= most)) continue;
    return wrong(field, `must be a whole number from ${least} to ${most}`);
  }
  if (input.concurrencyLimit !== null && input.concurrencyKey === null) {
    return wrong("concurrency_limit", "needs a concurrency_key");
  }
  return null;
}
