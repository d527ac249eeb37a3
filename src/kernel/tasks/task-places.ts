/** Where a task is found by others: by its id, its lane, its keys and the tasks that it waits for. */

import type { Task, TaskKey, TaskSpec } from "../contract/task-records.ts";
import { rankIn, removeFrom } from "../index/heap.ts";
import { createTaskEntry, createTaskKeyEntry } from "../memory/entries.ts";
import { changed, type TenantEntry, type Turn } from "../memory/state.ts";
import type { Lane, TaskEntry, TaskKeyEntry } from "../memory/task-state.ts";
import { laneFor } from "./lanes.ts";
import { keyFor } from "./task-queue.ts";
/** Enters a task, new or restored, where it is found by others; the queue is another matter. */
export function placeTask(tenant: TenantEntry, given: Task): TaskEntry {
  const lane = laneFor(tenant, given.spec);
  lane.count++;
  const spec = shared(lane, given.spec);
  const record = spec === given.spec ? given : { ...given, spec };
  const task = createTaskEntry(record, lane);
  tenant.tasks.set(record.id, task);
  task.key = keyFor(tenant, record.spec);
  if (task.key !== null) task.key.count++;
  for (const id of record.waitingOn) awaitTask(tenant, id, task);
  return task;
}

/** Tasks that come together are mostly asked for in the same words; a long queue of them then keeps those once. */
function shared(lane: Lane, spec: TaskSpec): TaskSpec {
  const { lastSpec } = lane;
  if (lastSpec !== null && isSame(lastSpec, spec)) return lastSpec;
  lane.lastSpec = spec;
  return spec;
}

function isSame(a: TaskSpec, b: TaskSpec): boolean {
  for (const key in a) {
    const one = a[key as keyof TaskSpec];
    const other = b[key as keyof TaskSpec];
    if (one === other) continue;
    if (!(Array.isArray(one) && Array.isArray(other) && one.length === 0 && other.length === 0)) return false;
  }
  return true;
}

/** When tasks are restored, one may come before what it depends on; restore.ts calls again for those. */
export function awaitTask({ tasks }: TenantEntry, id: string, dependent: TaskEntry): void {
  const awaited = tasks.get(id);
  if (awaited === undefined) return;
  awaited.dependents ??= new Set();
  awaited.dependents.add(dependent);
}

export function placeTaskKey({ state, tenant: { book } }: Turn, record: TaskKey): TaskKeyEntry {
  const entry = createTaskKeyEntry(record);
  book.created.set(record.key, entry);
  rankIn(state.ends, entry, record.forgetAt, 0);
  return entry;
}

export function forgetTaskKey(turn: Turn, entry: TaskKeyEntry): void {
  const { book } = turn.tenant;
  removeFrom(turn.state.ends, entry);
  if (book.created.get(entry.record.key) === entry) book.created.delete(entry.record.key);
  entry.alive = false;
  changed(turn, entry);
}
