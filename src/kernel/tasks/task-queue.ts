/**
 * Where a queued task stands (see task-state.ts) and what moves it. Ready tasks stand in lanes by type and required
 * capabilities; rank is age less the priority's worth in time, so that order never changes while they wait, and an old
 * task of low priority comes before a young one of high priority in the end.
 */

import { limits } from "../contract/limits.ts";
import type { Task, TaskSpec } from "../contract/task-records.ts";
import { createDeadlines, earliest, schedule, unschedule } from "../index/heap.ts";
import type { State, TenantEntry } from "../memory/state.ts";
import { type ConcurrencyKey, createLane, createListed, type Lane, type TaskEntry } from "../memory/task-state.ts";
import { updateTask } from "./task-life.ts";
import { unpark, wakeNext } from "./task-parking.ts";
import { openToSecond } from "./task-speculation.ts";

export function rankOf({ timestamp, spec }: Task): number {
  return timestamp - spec.taskPriority * limits.taskAgeingMsPerLevel;
}

/**
 * Neither types nor capabilities have line breaks in them, and none is empty. Tasks of one key with different limits are
 * apart, so that one whose limit is reached does not hide another whose is not (T12).
 */
export function laneIdOf({ taskType, requires, concurrencyLimit }: TaskSpec): string {
  const kind = requires.length === 0 ? taskType : `${taskType}\n${requires.join("\n")}`;
  return concurrencyLimit === 1 ? kind : `${kind}\n\n${concurrencyLimit}`;
}

export function laneFor({ book }: TenantEntry, spec: TaskSpec): Lane {
  const id = laneIdOf(spec);
  const known = book.lanes.get(id);
  if (known !== undefined) return known;
  const lane = createLane(id, spec.taskType, spec.requires);
  book.lanes.set(id, lane);
  return lane;
}

/** Puts a queued task, new, restored or back from an attempt, where it belongs. */
export function enterQueue(state: State, tenant: TenantEntry, task: TaskEntry): void {
  const { record } = task;
  if (record.waitingOn.length > 0) {
    task.place = "dependent";
  } else if (record.notBefore !== null) {
    task.place = "delayed";
    schedule(state.ends, task, record.notBefore, record.timestamp);
  } else makeReady(state, tenant, task);
}

/** A delay is over, or an attempt has taken long enough for a second worker to try (T8). */
export function settleTask(state: State, tenant: TenantEntry, task: TaskEntry): void {
  if (task.place !== "delayed") return openToSecond(state, task);
  unschedule(state.ends, task);
  updateTask(state, task, { status: "queued", notBefore: null });
  makeReady(state, tenant, task);
}

export function makeReady(state: State, tenant: TenantEntry, task: TaskEntry): void {
  const { record, lane } = task;
  task.place = "ready";
  tenant.book.readyCount++;
  schedule(lane.ready, task, rankOf(record), record.timestamp);
  const last = record.lastWorker === null ? undefined : tenant.book.workers.get(record.lastWorker);
  if (last !== undefined) {
    task.affinity = createListed("affinity", task, last.affine);
    schedule(last.affine, task.affinity, rankOf(record), record.timestamp);
  }
  tell(state, task);
}

export function tell(state: State, { record, lane }: TaskEntry): void {
  const { tenant, lastWorker } = record;
  state.ready.push({ tenant, taskType: lane.taskType, requires: lane.requires, lastWorker });
}

/** All that can be offered again, as far as it matters to whoever holds polls open: the next one of each lane. */
export function tellAll(state: State, { book }: TenantEntry): void {
  for (const { ready } of book.lanes.values()) {
    const first = earliest(ready);
    if (first !== undefined) tell(state, first);
  }
}

/** Out of wherever it stands, to be offered or ended. */
export function leaveQueue(state: State, tenant: TenantEntry, task: TaskEntry): void {
  switch (task.place) {
    case "ready":
      unschedule(task.lane.ready, task);
      tenant.book.readyCount--;
      if (task.affinity !== null) unschedule(task.affinity.list, task.affinity);
      task.affinity = null;
      leaveParking(state, tenant, task);
      break;
    case "delayed":
      unschedule(state.ends, task);
      break;
    case "keyed": {
      const waiting = task.key?.waiting.get(task.lane);
      if (waiting !== undefined) unschedule(waiting, task);
      break;
    }
    case "barred":
      tenant.book.barred.delete(task);
      break;
    case "parked":
      unpark(task);
      break;
    case "dependent":
    case "none":
      break;
  }
  task.place = "none";
}

/** Woken from among others, it leaves before it was looked at: the next one is woken instead. */
function leaveParking(state: State, tenant: TenantEntry, task: TaskEntry): void {
  const { parking } = task;
  task.parking = null;
  if (parking !== null) wakeNext(state, tenant, parking, task.lane);
}

/** Its turn in the queue for its resources has come (W3, T10). */
export function wakeWaitingTask(state: State, tenant: TenantEntry, task: TaskEntry): void {
  if (task.place === "parked") makeReady(state, tenant, task);
}

/** Somebody must act before it can run; whatever they do, all such tasks are looked at again. */
export function bar(tenant: TenantEntry, task: TaskEntry): void {
  task.place = "barred";
  tenant.book.barred.add(task);
}

export function unbarAll(state: State, tenant: TenantEntry): void {
  const barred = [...tenant.book.barred];
  tenant.book.barred.clear();
  for (const task of barred) makeReady(state, tenant, task);
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
  const { key, lane } = task;
  if (key === null) return;
  task.place = "keyed";
  let waiting = key.waiting.get(lane);
  if (waiting === undefined) {
    waiting = createDeadlines();
    key.waiting.set(lane, waiting);
  }
  schedule(waiting, task, rankOf(task.record), task.record.timestamp);
}

/**
 * As long as there is a slot, one of each lane is ready: which of the lanes has workers is not known here. Called
 * whenever a slot became free, or a task of the key was put aside for another reason.
 */
export function offerSlots(state: State, tenant: TenantEntry, key: ConcurrencyKey): void {
  for (const [lane, waiting] of key.waiting) {
    const next = earliest(waiting);
    if (next === undefined) key.waiting.delete(lane);
    else if (!isKeyFull(next)) {
      unschedule(waiting, next);
      makeReady(state, tenant, next);
    }
  }
}
