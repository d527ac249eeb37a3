/**
 * Creating tasks (T12): once per idempotency key, delayed, or after others; and what holds for a type of task (T6). Each
 * fault in a description names its field and what is wrong with it, and nothing is guessed (S3).
 */
import { checkValue, invalid, utf8Length } from "../contract/bounds.ts";
import { taskIdFrom } from "../contract/ids.ts";
import { checkTask, checkTaskType, checkTaskTypeSettings, taskSpecOf } from "../contract/inputs.gen.ts";
import { taskInput } from "../contract/inputs.ts";
import { limits } from "../contract/limits.ts";
import { deny, type Refusal, refuse } from "../contract/refusals.ts";
import type { Reply } from "../contract/replies.ts";
import type { CreateTask, SetTaskType, TaskInput } from "../contract/task-commands.ts";
import type { Task, TaskSpec } from "../contract/task-records.ts";
import { quotaExceeded, whyNoMemory } from "../deciding/admission.ts";
import { leavesChoice, readIntents } from "../deciding/manifest.ts";
import { permitTask, taskQuestion } from "../deciding/permit.ts";
import { pickWarnings } from "../deciding/picking.ts";
import { agentOf, isOpenTo, requireAbove, submitterOf } from "../memory/actors.ts";
import { createEntry } from "../memory/entries.ts";
import { changed, type TenantEntry, type Turn, takePriority } from "../memory/state.ts";
import type { TaskEntry, TaskTypeEntry } from "../memory/task-state.ts";
import { laneIdOf } from "../memory/task-state.ts";
import { isSameTask, taskFingerprint } from "../names/fingerprint.ts";
import { whyNotPermitted } from "../policies/permissions.ts";
import { mayHaveEnded } from "../tasks/task-keys.ts";
import { emitTask, finish } from "../tasks/task-life.ts";
import { enterQueue, placeTask } from "../tasks/task-queue.ts";
import { placeTaskType } from "../tasks/task-speculation.ts";
import { firstTaskStatus } from "../tasks/task-states.ts";

export function createTask(turn: Turn, command: CreateTask): Reply {
  const { tenant } = turn;
  const { actor } = command;
  if (actor.role === "reader") return refuse("forbidden", "A reader may not create tasks.");
  // An instance that was taken over speaks for its agent no more (A3).
  const { role, agentId } = actor;
  const agent = role === "agent" && agentId !== null ? agentOf(turn, { actor, agentId }) : null;
  if (agent !== null && "code" in agent) return agent;
  // First of all, because what was right then need not be so any more: its resources may be bound by now.
  const repeated = findRepeated(turn, command);
  if (repeated !== null) return repeated;
  const read = readTask(tenant, command.task);
  if ("code" in read) return read;
  const isFree = read.intents.length === 0 || isOpenTo(tenant, actor, "lease");
  const isOpen = isFree && isOpenTo(tenant, actor, "create_task");
  const permitted = isOpen ? { spec: read, warnings: none } : permitTask(turn, actor, read);
  if ("code" in permitted) return permitted;
  const { spec, warnings: capped } = permitted;
  const payloadBytes = payloadSize(command.task);
  const refusal = whyNotAdmitted(tenant, spec, payloadBytes);
  if (refusal !== null) return refusal;
  const waitingOn = readDependencies(tenant, spec, command);
  if ("code" in waitingOn) return waitingOn;
  const task = addTask(turn, spec, command, waitingOn.ids, payloadBytes);
  if (waitingOn.failed) {
    finish(turn, task, "canceled", null, "dependency_failed");
    emitTask(turn, task, "task.canceled", null, "dependency_failed");
  } else enterQueue(turn, task);
  const picks = leavesChoice(spec.intents) ? pickWarnings(tenant, spec.intents) : none;
  const warnings = [...leaseWarnings(command.task.leaseDurationMs), ...capped, ...picks];
  return { type: "task", task: task.record, created: true, warnings };
}

function findRepeated(turn: Turn, { task: input, asksHistory }: CreateTask): Reply | null {
  const key = input.idempotencyKey;
  if (key === null) return null;
  const task = turn.tenant.book.created.get(key);
  if (task !== undefined) return answerForRepeated(input, task.record);
  return asksHistory === true && mayHaveEnded(turn, key) ? { type: "task_key_unknown", key } : null;
}

/** T12: for a task, alive or ended, that was created with the same key. */
export function answerForRepeated(input: TaskInput, task: Task): Reply {
  if (isSameTask(task.fingerprint, input)) return { type: "task", task, created: false, warnings: [] };
  return refuse("idempotency_key_reused", "This idempotency_key was used for another task; take a new one.", {
    field: "idempotency_key",
    taskId: task.id,
  });
}

function whyNotAdmitted(tenant: TenantEntry, spec: TaskSpec, payloadBytes: number): Refusal | null {
  if (tenant.record.suspended) {
    return refuse("tenant_suspended", "The tenant is suspended; its operator can resume it.");
  }
  const { tasksMax, payloadBytesMax } = tenant.record.quotas;
  if (tenant.tasks.size >= tasksMax) {
    return deny("quota", `The tenant may have ${tasksMax} tasks that are not done.`);
  }
  if (payloadBytes > 0 && tenant.payloadBytes + payloadBytes > payloadBytesMax)
    return quotaExceeded("payload_bytes_max", tenant.payloadBytes, payloadBytesMax);
  const noMemory = whyNoMemory(tenant);
  if (noMemory !== null) return noMemory;
  const { lanes } = tenant.book;
  if (lanes.size >= limits.taskLanesMax && !lanes.has(laneIdOf(spec))) {
    return deny(
      "quota",
      `The tenant may have ${limits.taskLanesMax} kinds of tasks (types with required capabilities) in its queue.`,
    );
  }
  return null;
}

/** What its body and inputs take as they are stored (S4). */
export function payloadSize({ taskBody, inputs }: Pick<TaskInput, "taskBody" | "inputs">): number {
  const body = taskBody === null ? 0 : utf8Length(taskBody);
  return body + (inputs === null || inputs === undefined ? 0 : utf8Length(JSON.stringify(inputs)));
}

/** One for all: of a million tasks most have none of these. */
const none: readonly never[] = [];
const noDependencies = { ids: none, failed: false } as const;

/** What it has to wait for. What the kernel does not know has ended, or never was: the caller looks it up and says. */
function readDependencies(
  { tasks }: TenantEntry,
  { dependsOn }: TaskSpec,
  { endedDependencies }: CreateTask,
): { readonly ids: readonly string[]; readonly failed: boolean } | Refusal {
  if (dependsOn.length === 0) return noDependencies;
  const ids: string[] = [];
  const missing: string[] = [];
  let failed = false;
  for (const id of dependsOn) {
    const task = tasks.get(id);
    const known =
      endedDependencies !== null && Object.hasOwn(endedDependencies, id) ? endedDependencies[id] : undefined;
    const status = task?.record.status ?? known;
    if (status === undefined) missing.push(id);
    else if (status === "failed" || status === "canceled") failed = true;
    else if (status !== "succeeded") ids.push(id);
  }
  if (missing.length > 0) {
    return refuse("dependency_unknown", `There is no task ${missing[0]} to depend on.`, {
      field: "depends_on",
      missing,
    });
  }
  return { ids, failed };
}

function addTask(
  turn: Turn,
  spec: TaskSpec,
  { task: input, actor, entropy }: CreateTask,
  waitingOn: readonly string[],
  payloadBytes: number,
): TaskEntry {
  const { tenant, now } = turn;
  const record: Task = {
    tenant: tenant.record.id,
    id: taskIdFrom(now, entropy),
    spec,
    status: firstTaskStatus,
    timestamp: takePriority(turn),
    createdAt: now,
    createdBy: submitterOf(actor),
    notBefore: input.delayMs === null || input.delayMs === 0 ? null : now + input.delayMs,
    attempts: 0,
    offers: 0,
    live: none,
    past: none,
    waitingOn,
    obligation: null,
    lastWorker: null,
    lastReceiptId: null,
    dedupes: none,
    progress: null,
    queuedAt: null,
    roomRequest: null,
    picked: none,
    bindFailures: 0,
    bindFailure: null,
    winningReceiptId: null,
    endedAt: null,
    endReason: null,
    fingerprint: spec.idempotencyKey === null ? null : taskFingerprint(input),
    payloadBytes,
  };
  const task = placeTask(tenant, record);
  const { taskBody, inputs } = input;
  if (taskBody !== null || (inputs !== null && inputs !== undefined)) {
    const payload = { tenant: tenant.record.id, taskId: record.id, taskBody, inputs: inputs ?? null };
    task.payload = { ...createEntry("payload", payload), task };
    changed(turn, task.payload);
  }
  changed(turn, task);
  emitTask(turn, task, "task.created", null, null);
  return task;
}

export function setTaskType(turn: Turn, command: SetTaskType): Reply {
  const { tenant } = turn;
  const refusal =
    requireAbove(command.actor) ??
    checkTaskType(command) ??
    checkTaskTypeSettings(command.settings) ??
    whyNotPermitted(turn, command.actor, taskQuestion(command.taskType), "task_type");
  if (refusal !== null) return refusal;
  const known = tenant.book.types.get(command.taskType);
  if (known === undefined && tenant.book.types.size >= limits.taskTypesMax) {
    return deny("quota", `The tenant may have settings for ${limits.taskTypesMax} types of tasks.`);
  }
  const noMemory = known === undefined ? whyNoMemory(tenant) : null;
  if (noMemory !== null) return noMemory;
  const entry = known ?? addType(tenant, command.taskType);
  const { settings } = command;
  const pick = <T>(wanted: T | undefined, before: T): T => (wanted === undefined ? before : wanted);
  const { record } = entry;
  entry.record = {
    ...record,
    leaseDuration: pick(cappedLease(settings.leaseDurationMs), record.leaseDuration),
    maxAttempts: pick(settings.maxAttempts, record.maxAttempts),
    maxOffers: pick(settings.maxOffers, record.maxOffers),
    requeueDelay: pick(settings.requeueDelayMs, record.requeueDelay),
    speculateShare: pick(settings.speculateShare, record.speculateShare),
    supervisor: pick(settings.supervisor, record.supervisor),
  };
  changed(turn, entry);
  return { type: "task_type", taskType: entry.record, warnings: leaseWarnings(settings.leaseDurationMs) };
}

function addType(tenant: TenantEntry, taskType: string): TaskTypeEntry {
  return placeTaskType(tenant, {
    tenant: tenant.record.id,
    taskType,
    leaseDuration: null,
    maxAttempts: null,
    maxOffers: null,
    requeueDelay: null,
    speculateShare: null,
    usualDuration: null,
    samples: 0,
    supervisor: null,
  });
}

export function readTask(tenant: TenantEntry, input: TaskInput): TaskSpec | Refusal {
  const problem = checkTask(input);
  if (problem !== null) return problem;
  const { traceparent = null } = input;
  const untraceable = traceparent === null ? null : checkValue("traceparent", taskInput.traceparent, traceparent);
  if (untraceable !== null) return untraceable;
  if (input.concurrencyLimit !== null && input.concurrencyKey === null) {
    return invalid("invalid_task", "concurrency_limit", "needs a concurrency_key");
  }
  const read = input.intents === null || input.intents.length === 0 ? noIntents : readIntents(tenant, input.intents);
  if ("code" in read) return read;
  if (input.speculative === true && read.intents.length > 0) {
    return invalid("invalid_task", "speculative", "must be left out where there are intents (T8)");
  }
  const type = tenant.book.types.get(input.taskType)?.record;
  return taskSpecOf(input, {
    requires: input.requires === null ? none : [...new Set(input.requires)].sort(),
    intents: read.intents,
    maxAttempts: input.maxAttempts ?? type?.maxAttempts ?? limits.taskAttemptsDefault,
    maxOffers: input.maxOffers ?? type?.maxOffers ?? limits.taskOffersDefault,
    leaseDurationMs: cappedLease(input.leaseDurationMs ?? type?.leaseDuration ?? limits.taskLeaseMsDefault),
    requeueDelayMs: input.requeueDelayMs ?? type?.requeueDelay ?? limits.taskRequeueMsDefault,
    dependsOn: input.dependsOn === null ? none : [...new Set(input.dependsOn)],
  });
}

const noIntents = { intents: [], claims: [] } as const;

/** L2: a longer duration is capped, and the reply says so. */
export function cappedLease<T extends number | null | undefined>(ms: T): T | number {
  return typeof ms === "number" ? Math.min(ms, limits.taskLeaseMsMax) : ms;
}

export function leaseWarnings(ms: number | null | undefined): readonly string[] {
  return ms === cappedLease(ms) ? none : [`lease_duration_ms was capped at ${limits.taskLeaseMsMax}.`];
}
