/**
 * Ready tasks stand in lanes by type and required capabilities. Rank is age less the priority's worth in time: the order
 * of two tasks never changes while they wait, and an old task of low priority in the end comes before a young one of
 * high priority.
 */

import { limits } from "../contract/limits.ts";
import type { Task, TaskSpec } from "../contract/task-records.ts";
import { firstOf, rankIn } from "../index/heap.ts";
import type { TenantEntry, Turn } from "../memory/state.ts";
import { createLane, createListed, type Lane, type TaskEntry } from "../memory/task-state.ts";
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

export function makeReady(turn: Turn, task: TaskEntry): void {
  const { tenant } = turn;
  const { record, lane } = task;
  task.place = "ready";
  tenant.book.readyCount++;
  rankIn(lane.ready, task, rankOf(record), record.timestamp);
  const last = record.lastWorker === null ? undefined : tenant.book.workers.get(record.lastWorker);
  if (last !== undefined) {
    task.affinity = createListed("affinity", task, last.affine);
    rankIn(last.affine, task.affinity, rankOf(record), record.timestamp);
  }
  announce(turn, task);
}

export function announce({ state }: Turn, { record, lane }: TaskEntry): void {
  const { tenant, lastWorker } = record;
  state.ready.push({ tenant, taskType: lane.taskType, requires: lane.requires, lastWorker });
}

/** Announces the next task of each lane, so that held polls are tried again. */
export function announceAll(turn: Turn): void {
  for (const { ready } of turn.tenant.book.lanes.values()) {
    const first = firstOf(ready);
    if (first !== undefined) announce(turn, first);
  }
}
