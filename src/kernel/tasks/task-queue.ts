/** Where a task is found by others, where it stands while it is queued (see memory/task-state.ts), and what moves it. */
import type { Task, TaskSpec } from "../contract/task-records.ts";
import { createHeap, firstOf, rankIn, removeFrom } from "../index/heap.ts";
import type { TenantEntry, Turn } from "../memory/state.ts";
import type { ConcurrencyKey, Lane, TaskEntry } from "../memory/task-state.ts";
import { createTaskEntry, laneFor, leaveReady, makeReady, rankOf } from "../memory/task-state.ts";
import { unpark, wakeNext } from "./task-parking.ts";
import { openToSecond } from "./task-speculation.ts";
import { moveTask } from "./task-states.ts";

/** Puts a queued task, new, restored or back from an attempt, where it belongs. */
export function enterQueue(turn: Turn, task: TaskEntry): void {
  const { record } = task;
  if (record.waitingOn.length > 0) {
    task.place = "dependent";
  } else if (record.notBefore !== null) {
    task.place = "delayed";
    rankIn(turn.state.ends, task, record.notBefore, record.timestamp);
  } else makeReady(turn, task);
}

/** A delay is over, or an attempt has taken long enough for a second worker to try (T8). */
export function settleTask(turn: Turn, task: TaskEntry): void {
  if (task.place !== "delayed") return openToSecond(turn, task);
  removeFrom(turn.state.ends, task);
  moveTask(turn, task, "ready", { notBefore: null, queuedAt: turn.now });
  makeReady(turn, task);
}

/** Out of wherever it stands, to be offered or ended. */
export function leaveQueue(turn: Turn, task: TaskEntry): void {
  const { state, tenant } = turn;
  const { book } = tenant;
  switch (task.place) {
    case "ready":
      leaveReady(turn, task);
      leaveParking(turn, task);
      break;
    case "delayed":
      removeFrom(state.ends, task);
      break;
    case "keyed": {
      const waiting = task.key?.waiting.get(keyedAs(task));
      if (waiting !== undefined) removeFrom(waiting, task);
      break;
    }
    case "barred":
      book.barred.delete(task);
      break;
    case "parked": {
      const obstacle = task.parking?.obstacle ?? null;
      unpark(task);
      if (obstacle?.kind === "choice" && obstacle.parked?.oldest.heap.length === 0) book.choices.delete(obstacle.id);
      break;
    }
    case "binding":
    case "dependent":
    case "none":
      break;
  }
  task.place = "none";
}

/** Woken from among others, it leaves before it was looked at: the next one is woken instead. */
function leaveParking(turn: Turn, task: TaskEntry): void {
  const { parking } = task;
  task.parking = null;
  if (parking !== null) wakeNext(turn, parking, task.lane);
}

/** Its turn in the queue for its resources has come (W3, T10). */
export function wakeWaitingTask(turn: Turn, task: TaskEntry): void {
  if (task.place === "parked") makeReady(turn, task);
}

/** It no longer queues for its resources; it is tried as any other. */
export function wakeUnqueued(turn: Turn, task: TaskEntry): void {
  if (task.place === "parked" && task.parking === null && task.open.size === 0) makeReady(turn, task);
}

/** Somebody must act before it can run; whatever they do, all such tasks are looked at again. */
export function bar(tenant: TenantEntry, task: TaskEntry): void {
  task.place = "barred";
  tenant.book.barred.add(task);
}

export function unbarAll(turn: Turn): void {
  const barred = [...turn.tenant.book.barred];
  turn.tenant.book.barred.clear();
  for (const task of barred) makeReady(turn, task);
}

export function keyFor({ book }: TenantEntry, { concurrencyKey }: TaskSpec): ConcurrencyKey | null {
  if (concurrencyKey === null) return null;
  const known = book.keys.get(concurrencyKey);
  if (known !== undefined) return known;
  const key: ConcurrencyKey = { name: concurrencyKey, running: 0, count: 0, waiting: new Map() };
  book.keys.set(concurrencyKey, key);
  return key;
}

export function isKeyFull({ key, record }: TaskEntry): boolean {
  return key !== null && key.running >= record.spec.concurrencyLimit;
}

export function waitForKey(task: TaskEntry): void {
  const { key } = task;
  if (key === null) return;
  task.place = "keyed";
  const group = keyedAs(task);
  let waiting = key.waiting.get(group);
  if (waiting === undefined) {
    waiting = createHeap();
    key.waiting.set(group, waiting);
  }
  rankIn(waiting, task, rankOf(task.record), task.record.timestamp);
}

/** A worker id has no line break in it, and no lane's id ends with one. */
function keyedAs({ lane, record }: TaskEntry): string {
  return record.lastWorker === null ? lane.id : `${lane.id}\n\n\n${record.lastWorker}`;
}

/**
 * As long as there is a slot, one of each group is ready: which of the lanes has workers, and which worker asks, is not
 * known here. Called whenever a slot became free, or a task of the key was put aside for another reason.
 */
export function offerSlots(turn: Turn, key: ConcurrencyKey): void {
  for (const [group, waiting] of key.waiting) {
    const next = firstOf(waiting);
    if (next === undefined) key.waiting.delete(group);
    else if (!isKeyFull(next)) {
      removeFrom(waiting, next);
      makeReady(turn, next);
    }
  }
}

/** Enters a task, new or restored, where it is found by others; the queue is another matter. */
export function placeTask(tenant: TenantEntry, given: Task): TaskEntry {
  const lane = laneFor(tenant, given.spec);
  lane.count++;
  const spec = shared(lane, given.spec);
  const record = spec === given.spec ? given : { ...given, spec };
  const task = createTaskEntry(record, lane);
  tenant.tasks.set(record.id, task);
  tenant.payloadBytes += record.payloadBytes;
  task.key = keyFor(tenant, record.spec);
  if (task.key !== null) task.key.count++;
  if (spec.idempotencyKey !== null) tenant.book.created.set(spec.idempotencyKey, task);
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
