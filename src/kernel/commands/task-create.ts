/** Creating tasks (T12): once per idempotency key, delayed, or after others. */

import { takePriority } from "../agents/agent-life.ts";
import { taskIdFrom } from "../contract/ids.ts";
import { limits } from "../contract/limits.ts";
import { type Refusal, refuse } from "../contract/refusals.ts";
import type { Reply } from "../contract/replies.ts";
import type { CreateTask, TaskInput } from "../contract/task-commands.ts";
import type { Task, TaskKey, TaskSpec } from "../contract/task-records.ts";
import { findAgent } from "../memory/actors.ts";
import { createPayloadEntry } from "../memory/entries.ts";
import { changed, type TenantEntry, type Turn } from "../memory/state.ts";
import type { TaskEntry } from "../memory/task-state.ts";
import { taskFingerprint } from "../names/fingerprint.ts";
import { laneIdOf } from "../tasks/lanes.ts";
import { leaseWarnings, readTask } from "../tasks/task-input.ts";
import { emitTask, finish } from "../tasks/task-life.ts";
import { placeTask, placeTaskKey } from "../tasks/task-places.ts";
import { enterQueue } from "../tasks/task-queue.ts";
import { firstTaskStatus } from "../tasks/task-states.ts";

export function createTask(turn: Turn, command: CreateTask): Reply {
  const { tenant } = turn;
  const { actor } = command;
  if (actor.role === "reader") return refuse("forbidden", "A reader may not create tasks.");
  // An instance that was taken over speaks for its agent no more (A3).
  const agent = actor.role === "agent" && actor.agentId !== null ? findAgent(tenant, actor, actor.agentId) : null;
  if (agent !== null && "code" in agent) return agent;
  // First of all, because what was right then need not be so any more: its resources may be bound by now.
  const repeated = findRepeated(tenant, command.task);
  if (repeated !== null) return repeated;
  const spec = readTask(tenant, command.task);
  if ("code" in spec) return spec;
  const refusal = whyNotAdmitted(tenant, spec);
  if (refusal !== null) return refusal;
  const waitingOn = readDependencies(tenant, spec, command);
  if ("code" in waitingOn) return waitingOn;
  const task = addTask(turn, spec, command, waitingOn.ids);
  if (waitingOn.failed) {
    finish(turn, task, "canceled", null, "dependency_failed");
    emitTask(turn, task, "task.canceled", null, "dependency_failed");
  } else enterQueue(turn, task);
  const warnings = leaseWarnings(command.task.leaseDurationMs);
  return { type: "task", task: task.record, created: true, warnings };
}

function findRepeated({ book, tasks }: TenantEntry, input: TaskInput): Reply | null {
  const key = input.idempotencyKey === null ? undefined : book.created.get(input.idempotencyKey);
  if (key === undefined) return null;
  if (key.record.fingerprint !== taskFingerprint(input)) {
    return refuse("idempotency_key_reused", "This idempotency_key was used for another task; take a new one.", {
      field: "idempotency_key",
      taskId: key.record.taskId,
    });
  }
  const task = tasks.get(key.record.taskId);
  if (task === undefined) return { type: "task_ended", taskId: key.record.taskId };
  return { type: "task", task: task.record, created: false };
}

function whyNotAdmitted(tenant: TenantEntry, spec: TaskSpec): Refusal | null {
  if (tenant.record.suspended) {
    return refuse("tenant_suspended", "The tenant is suspended; its operator can resume it.");
  }
  const { tasksMax } = tenant.record.quotas;
  if (tenant.tasks.size >= tasksMax) {
    return refuse("lease_denied", `The tenant may have ${tasksMax} tasks that are not done.`, { reason: "quota" });
  }
  const { lanes } = tenant.book;
  if (lanes.size >= limits.taskLanesMax && !lanes.has(laneIdOf(spec))) {
    return refuse(
      "lease_denied",
      `The tenant may have ${limits.taskLanesMax} kinds of tasks (types with required capabilities) in its queue.`,
      { reason: "quota" },
    );
  }
  return null;
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
): TaskEntry {
  const { tenant, now } = turn;
  const record: Task = {
    tenant: tenant.record.id,
    id: taskIdFrom(now, entropy),
    spec,
    status: firstTaskStatus,
    timestamp: takePriority(turn),
    createdAt: now,
    createdBy: actor.keyId ?? actor.agentId ?? null,
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
    winningReceiptId: null,
    endedAt: null,
    endReason: null,
  };
  const task = placeTask(tenant, record);
  const { taskBody, inputs } = input;
  if (taskBody !== null || (inputs !== null && inputs !== undefined)) {
    task.payload = createPayloadEntry({
      tenant: tenant.record.id,
      taskId: record.id,
      taskBody,
      inputs: inputs ?? null,
    });
    changed(turn, task.payload);
  }
  if (spec.idempotencyKey !== null) {
    const key: TaskKey = {
      tenant: tenant.record.id,
      key: spec.idempotencyKey,
      taskId: record.id,
      fingerprint: taskFingerprint(input),
      forgetAt: now + limits.taskKeyMemoryMs,
    };
    changed(turn, placeTaskKey(turn, key));
  }
  changed(turn, task);
  emitTask(turn, task, "task.created", null, null);
  return task;
}
