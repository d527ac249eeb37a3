/**
 * Preemption (T8). A worker with a preemptible task is asked, through its heartbeat, to make room for a more urgent one
 * that it could do. It has a grace time: until then its lease is not extended any further, and at its end the lease is
 * revoked, unless the urgent task no longer needs the room. One worker is asked for one urgent task.
 */
import { limits } from "../contract/limits.ts";
import type { Millis } from "../contract/records.ts";
import type { TaskAttempt } from "../contract/task-records.ts";
import { firstOf } from "../index/heap.ts";
import { extensionFor, updateLease } from "../leases/lease-life.ts";
import type { LeaseEntry, TenantEntry, Turn } from "../memory/state.ts";
import { attemptOf, type Lane, leasesOfAttempt, rankOf, type TaskEntry, updateTask } from "../memory/task-state.ts";
import { endLeases } from "../requests/request-life.ts";
import { renew } from "./task-binding.ts";
import { canRunNow, setTaskAside } from "./task-manifest.ts";
import { covers } from "./workers.ts";

/** Whether the worker is to make room, asked now or before. */
export function askToMakeRoom(turn: Turn, task: TaskEntry, lease: LeaseEntry): boolean {
  const { tenant, now } = turn;
  const attempt = attemptOf(task, lease);
  if (!task.record.spec.preemptible || attempt === undefined) return false;
  if (attempt.preemptFor !== null) {
    if (needsRoom(tenant, attempt.preemptFor)) return true;
    setPreemption(turn, task, attempt, null, null);
  }
  const urgent = mostUrgent(turn, task, lease);
  if (urgent === null) return false;
  const by = now + limits.taskPreemptGraceMs;
  updateTask(turn, urgent, { roomRequest: { leaseId: attempt.leaseId, workerId: attempt.workerId, by } });
  setPreemption(turn, task, attempt, urgent.record.id, by);
  return true;
}

/** Decided by what is stored, so that a restored kernel does the same. */
function needsRoom(tenant: TenantEntry, taskId: string): boolean {
  const urgent = tenant.tasks.get(taskId);
  return urgent !== undefined && urgent.record.status === "queued" && canRunNow(tenant, urgent);
}

function setPreemption(
  turn: Turn,
  task: TaskEntry,
  { leaseId }: TaskAttempt,
  preemptFor: string | null,
  preemptBy: Millis | null,
): void {
  const live = task.record.live.map((one) => (one.leaseId === leaseId ? { ...one, preemptFor, preemptBy } : one));
  updateTask(turn, task, { live });
}

/**
 * What has been queued for a while, that this worker could do, and that no other was asked to make room for. Only the
 * next one of each lane that can run is looked at, so that a heartbeat stays cheap.
 */
function mostUrgent(turn: Turn, task: TaskEntry, lease: LeaseEntry): TaskEntry | null {
  const { book } = turn.tenant;
  const worker = book.workers.get(lease.record.agentId);
  if (worker === undefined || book.readyCount === 0) return null;
  let urgent: TaskEntry | null = null;
  for (const lane of book.lanes.values()) {
    if (!covers(worker, lane)) continue;
    const next = nextToRun(turn, lane);
    if (next === null || next.record.spec.taskPriority <= task.record.spec.taskPriority) continue;
    if (turn.now - (next.record.queuedAt ?? next.record.createdAt) < limits.taskPreemptAfterMs) continue;
    if (isAnotherAsked(next, lease, turn.now)) continue;
    if (urgent === null || isAhead(next, urgent)) urgent = next;
  }
  return urgent;
}

/** Most tasks that one heartbeat puts aside in a lane. Each is put aside once, until what it waits for has gone. */
const putAsideMax = 64;

/** Which tasks a poll has tried already must not matter here: after a restart all are to be tried again. */
function nextToRun(turn: Turn, { ready }: Lane): TaskEntry | null {
  for (let putAside = 0; putAside < putAsideMax; putAside++) {
    const next = firstOf(ready);
    if (next === undefined) return null;
    if (canRunNow(turn.tenant, next)) return next;
    setTaskAside(turn, next);
  }
  return null;
}

/** One that was asked and has made room gets the rest of its time to poll. */
function isAnotherAsked({ record: { roomRequest } }: TaskEntry, { record }: LeaseEntry, now: Millis): boolean {
  return roomRequest !== null && roomRequest.leaseId !== record.id && now < roomRequest.by;
}

function isAhead(task: TaskEntry, other: TaskEntry): boolean {
  const [rank, otherRank] = [rankOf(task.record), rankOf(other.record)];
  return rank !== otherRank ? rank < otherRank : task.priority < other.priority;
}

/** The end of a grace time. False: the lease ends for another reason. */
export function settlePreemption(turn: Turn, task: TaskEntry, lease: LeaseEntry): boolean {
  const { tenant, now } = turn;
  const attempt = attemptOf(task, lease);
  if (attempt === undefined || attempt.preemptFor === null || attempt.preemptBy === null) return false;
  if (attempt.preemptBy > now) return false;
  if (needsRoom(tenant, attempt.preemptFor)) {
    endLeases(turn, [lease], "REVOKED", "preempted");
    return true;
  }
  setPreemption(turn, task, attempt, null, null);
  if (extensionFor(tenant, lease, lease.record.activeAt) <= now) return false;
  for (const one of leasesOfAttempt(tenant, task, lease)) {
    const record = { ...one.record, expiresAt: extensionFor(tenant, one, one.record.activeAt) };
    if (record.cell === null) updateLease(turn, one, record);
    else renew(turn, one, record);
  }
  return true;
}
