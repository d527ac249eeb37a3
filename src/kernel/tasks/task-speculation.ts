/**
 * Speculative execution (T8): a task without a manifest that one worker has may be offered to a second one, at once if
 * it was asked for, or past a share of what such tasks usually take. From when on is `notBefore` in the record: it is
 * decided at acceptance and does not change with the type's usual duration, so that a restored kernel does the same.
 */
import { limits } from "../contract/limits.ts";
import type { Millis } from "../contract/records.ts";
import type { TaskSpec, TaskType } from "../contract/task-records.ts";
import { firstOf, rankIn, removeFrom } from "../index/heap.ts";
import { createEntry } from "../memory/entries.ts";
import { changed, type TenantEntry, type Turn } from "../memory/state.ts";
import type { Lane, TaskEntry, TaskTypeEntry, WorkerEntry } from "../memory/task-state.ts";
import { announce } from "../memory/task-state.ts";

/** When a second worker may try a task that is accepted now; null: never, or at any time. */
export function speculateAt({ book }: TenantEntry, spec: TaskSpec, now: Millis): Millis | null {
  if (spec.intents.length > 0 || spec.speculative) return null;
  const type = book.types.get(spec.taskType)?.record;
  if (type === undefined || type.speculateShare === null || type.usualDuration === null) return null;
  if (type.samples < limits.taskSamplesMin) return null;
  return now + Math.ceil(type.usualDuration * type.speculateShare);
}

/** For a task of which one attempt runs, new, restored or left over of two. */
export function resumeSpeculation(turn: Turn, task: TaskEntry): void {
  endSpeculation(turn, task);
  const { live, notBefore, spec, timestamp } = task.record;
  const [first, second] = live;
  if (first === undefined || second !== undefined || first.canceled) return;
  if (spec.speculative) openToSecond(turn, task);
  else if (notBefore !== null && first.acceptedAt !== null) {
    task.second = "timed";
    rankIn(turn.state.ends, task, notBefore, timestamp);
  }
}

/** The attempt has taken long enough. */
export function openToSecond(turn: Turn, task: TaskEntry): void {
  endSpeculation(turn, task);
  task.second = "open";
  const { timestamp } = task.record;
  rankIn(task.lane.second, task, timestamp, timestamp);
  announce(turn, task);
}

export function endSpeculation({ state }: Turn, task: TaskEntry): void {
  if (task.second === "timed") removeFrom(state.ends, task);
  else if (task.second === "open") removeFrom(task.lane.second, task);
  task.second = "no";
}

/** The oldest of these lanes' tasks that may have a second worker, and that is not this worker's own. */
export function secondFor(lanes: readonly Lane[], worker: WorkerEntry): TaskEntry | null {
  let best: TaskEntry | null = null;
  for (const lane of lanes) {
    const task = firstOfOthers(lane, worker);
    if (task !== null && (best === null || task.priority < best.priority)) best = task;
  }
  return best;
}

/** A worker's own tasks are few among many; who has more than this at the front is not asked to help the others. */
const ownSkippedMax = 64;

function firstOfOthers({ second }: Lane, worker: WorkerEntry): TaskEntry | null {
  const own: TaskEntry[] = [];
  let found: TaskEntry | null = null;
  for (let task = firstOf(second); task !== undefined && own.length < ownSkippedMax; task = firstOf(second)) {
    if (task.record.live[0]?.workerId !== worker.record.id) {
      found = task;
      break;
    }
    removeFrom(second, task);
    own.push(task);
  }
  for (const task of own) rankIn(second, task, task.rank, task.tie);
  return found;
}

export function placeTaskType({ book }: TenantEntry, record: TaskType): TaskTypeEntry {
  const entry = createEntry("task_type", record);
  book.types.set(record.taskType, entry);
  return entry;
}

/** How much the newest duration weighs. */
const durationShare = 0.1;

/** Kept only for types that have settings, because each change is a row: who wants speculation sets its share. */
export function noteDuration(turn: Turn, { book }: TenantEntry, taskType: string, ms: number): void {
  const entry = book.types.get(taskType);
  if (entry === undefined || entry.record.speculateShare === null) return;
  const { usualDuration, samples } = entry.record;
  const usual = usualDuration === null ? ms : usualDuration + (ms - usualDuration) * durationShare;
  entry.record = { ...entry.record, usualDuration: usual, samples: samples + 1 };
  changed(turn, entry);
}
