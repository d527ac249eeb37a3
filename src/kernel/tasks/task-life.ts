/** What becomes of a task (T2-T5, T13): attempts that end, requeueing, retries, dead letters, and the end for good. */

import type { TaskEvent } from "../contract/events.ts";
import { limits } from "../contract/limits.ts";
import type { EndedLeaseState } from "../contract/records.ts";
import type { FinalTaskStatus, Task, TaskAttempt } from "../contract/task-records.ts";
import { awaitLateResult, dropLateResult } from "../leases/late-results.ts";
import { endLease, updateLease } from "../leases/lease-life.ts";
import type { Job } from "../memory/jobs.ts";
import {
  changed,
  emit,
  isTaskLease,
  type LeaseEntry,
  leasesOf,
  leaveSeniors,
  type TenantEntry,
  type Turn,
} from "../memory/state.ts";
import { openLeasesOf, type TaskEntry, updateTask } from "../memory/task-state.ts";
import { forgetMarks } from "../receipts/marks.ts";
import { custodianOf, supervisorOf } from "../receipts/principals.ts";
import { policyReceipt } from "../receipts/receipts.ts";
import { endWait } from "../requests/request-life.ts";
import { cancelPreparation, preparationLost } from "./task-binding.ts";
import { leaveKeyToHistory } from "./task-keys.ts";
import { enterQueue, leaveQueue, offerSlots } from "./task-queue.ts";
import { endSpeculation, resumeSpeculation } from "./task-speculation.ts";
import { closeObligation, moveObligation, moveTask, type ObligationMove, openObligation } from "./task-states.ts";
import { noteOutcome } from "./workers.ts";

export function emitTask(
  turn: Turn,
  { record }: TaskEntry,
  type: TaskEvent["type"],
  attempt: Pick<TaskAttempt, "workerId" | "leaseId"> | null,
  reason: string | null,
): void {
  const { workerId, leaseId } = attempt ?? { workerId: null, leaseId: null };
  emit(turn, { type, tenant: record.tenant, at: turn.now, task: record, workerId, leaseId, reason });
}

/** After a renewal the task's fences are those of its leases again. */
export function noteReissued(turn: Turn, task: TaskEntry): void {
  const live = task.record.live.map((attempt) => {
    const lease = turn.tenant.leases.get(attempt.leaseId);
    return lease === undefined ? attempt : { ...attempt, fence: lease.record.fence };
  });
  updateTask(turn, task, { live });
}

/**
 * Called by whatever ended one of a task's leases from outside, or had its cell begin to (G6); what is ended here has left
 * `live` before. Of one that was closing, this is the second time, and nothing depends on it any more.
 */
export function taskLeaseEnded(turn: Turn, lease: LeaseEntry): void {
  const { state, closingAs, endReason } = lease.record;
  const { holder: task } = lease;
  if (task.kind !== "task") return;
  turn.tenant.book.workers.get(lease.record.agentId)?.leases.delete(lease);
  const isFirst = closingAs === null || state === "CLOSING";
  const as = closingAs ?? (state as EndedLeaseState);
  const attempt = isFirst ? (isTaskLease(lease.record) ? ownAttempt(task, lease) : task.record.live[0]) : undefined;
  if (attempt !== undefined) {
    dropAttempt(turn, task, attempt, as, endReason);
    return afterLoss(turn, task, attempt, as, endReason);
  }
  if (isFirst && task.preparedFor !== null && task.place === "ready") preparationLost(turn, task, as, endReason);
  leaveIfOver(turn, task);
}

function ownAttempt({ record }: TaskEntry, { record: { id } }: LeaseEntry): TaskAttempt | undefined {
  return record.live.find(({ leaseId }) => leaseId === id);
}

/** Takes the attempt off the task and ends all its leases; what they free is served before the step is over. */
export function dropAttempt(
  turn: Turn,
  task: TaskEntry,
  attempt: TaskAttempt,
  as: EndedLeaseState,
  reason: string | null,
): void {
  const live = task.record.live.filter((one) => one !== attempt);
  updateTask(turn, task, { live });
  const rest = task.record.spec.intents.length > 0 ? leasesOf(task) : [turn.tenant.leases.get(attempt.leaseId)];
  for (const lease of rest) {
    if (lease?.alive && lease.record.state !== "CLOSING") endLease(turn, lease, as, reason, null);
  }
  endSpeculation(turn, task);
  if (live.length > 0) return;
  if (task.key !== null) {
    task.key.running--;
    offerSlots(turn, task.key);
  }
}

/** What becomes of the task when an attempt ended without a word of its worker (T2, T5, T13). */
function afterLoss(
  turn: Turn,
  task: TaskEntry,
  attempt: TaskAttempt,
  as: EndedLeaseState,
  reason: string | null,
): void {
  if (isFinal(task.record)) return leaveIfOver(turn, task);
  remember(turn, task, attempt);
  const isAccepted = attempt.acceptedAt !== null;
  if (isAccepted && as === "EXPIRED") noteOutcome(turn, attempt.workerId, "lost");
  if (isAccepted) {
    const why = as === "EXPIRED" ? "lease_expired" : as === "RELEASED" ? "released" : (reason ?? "revoked");
    policyReceipt(turn, task, why, attempt, successorOf(turn, task));
    emitTask(turn, task, "task.escalated", attempt, why);
  }
  const isLost = isAccepted && as === "EXPIRED";
  // Given back or taken away: not the attempt's fault, so it does not count.
  if (isAccepted && !isLost && acceptedElsewhere(task) === undefined) {
    updateTask(turn, task, { attempts: Math.max(task.record.attempts - 1, 0) });
  }
  if (isAccepted) passOn(turn, task, isLost ? "lapse" : "hand_over", successorOf(turn, task));
  if (task.record.live.length > 0) return followLive(turn, task, isLost || !isAccepted ? attempt.receiptId : null);
  if (!isAccepted) {
    // A revocation is nobody's refusal of the task.
    updateTask(turn, task, { offers: task.record.offers + (as === "REVOKED" ? 0 : 1) });
    const why = reason ?? (as === "EXPIRED" ? "offer_expired" : "given_back");
    return requeueOffer(turn, task, attempt, why);
  }
  if (isLost) return retryOrDie(turn, task, attempt, "lease_expired");
  requeue(turn, task, attempt, as === "RELEASED" ? "released" : (reason ?? "revoked"));
}

/**
 * With one of two attempts gone, the task stands as the other one does. If the gone one's acceptance counts (T5), the
 * other takes its receipt over and does not count as another attempt: the two were one.
 */
export function followLive(turn: Turn, task: TaskEntry, countedReceiptId: string | null): void {
  const isAccepted = acceptedElsewhere(task) !== undefined;
  const live = task.record.live.map((one) => ({ ...one, receiptId: one.receiptId ?? countedReceiptId }));
  moveTask(turn, task, isAccepted ? "accept" : "unaccept", { live });
  resumeSpeculation(turn, task);
}

/** R5: if another worker has accepted it too, the obligation is that one's; otherwise it moves as given. */
export function passOn(turn: Turn, task: TaskEntry, move: ObligationMove, custodian: string): void {
  const other = acceptedElsewhere(task);
  if (other === undefined) moveObligation(turn, task, move, custodian);
  else moveObligation(turn, task, "hand_over", custodianOf(other));
}

/** Who answers for the task after an attempt without a word: the other of two workers, or its supervisor (T5, T8). */
function successorOf({ tenant }: Turn, task: TaskEntry): string {
  const other = acceptedElsewhere(task);
  return other === undefined ? supervisorOf(tenant, task.record.spec) : custodianOf(other);
}

function acceptedElsewhere({ record }: TaskEntry): TaskAttempt | undefined {
  return record.live.find(({ acceptedAt }) => acceptedAt !== null);
}

function remember(turn: Turn, task: TaskEntry, attempt: TaskAttempt): void {
  const { leaseId, fence, workerId, acceptedAt, receiptId } = attempt;
  const past = [...task.record.past, { leaseId, fence, workerId, acceptedAt, receiptId, contested: false }];
  // T7: a worker that only declined it has no claim to see it first again.
  const lastWorker = acceptedAt === null ? task.record.lastWorker : workerId;
  updateTask(turn, task, { past: past.slice(-limits.taskPastMax), lastWorker });
  if (acceptedAt !== null && task.record.spec.intents.length > 0) awaitLateResult(turn, task);
}

/** An offer came to nothing (T2). The attempt beside it, if there was one, may have been the last (T8). */
export function requeueOffer(turn: Turn, task: TaskEntry, attempt: TaskAttempt, reason: string): void {
  const { attempts, offers, spec } = task.record;
  if (attempts >= spec.maxAttempts) return die(turn, task, "max_retries_exceeded");
  if (offers >= spec.maxOffers) return die(turn, task, "never_accepted");
  requeue(turn, task, attempt, reason);
}

function requeue(turn: Turn, task: TaskEntry, attempt: TaskAttempt | null, reason: string): void {
  moveTask(turn, task, "requeue", { notBefore: null, progress: null, queuedAt: turn.now });
  emitTask(turn, task, "task.requeued", attempt, reason);
  enterQueue(turn, task);
}

/** Again after a pause, while attempts are left (T5). */
export function retryOrDie(turn: Turn, task: TaskEntry, attempt: TaskAttempt, reason: string): void {
  const { attempts, spec } = task.record;
  if (attempts >= spec.maxAttempts) return die(turn, task, "max_retries_exceeded");
  moveTask(turn, task, "retry", { notBefore: turn.now + spec.requeueDelayMs, progress: null });
  emitTask(turn, task, "task.requeued", attempt, reason);
  enterQueue(turn, task);
}

/** To the dead letters, from where it can be sent again. `reason` null: a receipt has said why already. */
export function die(turn: Turn, task: TaskEntry, reason: "never_accepted" | "max_retries_exceeded" | null): void {
  if (reason !== null) bindSupervisor(turn, task, reason);
  moveTask(turn, task, "die", { endReason: reason ?? "escalated", notBefore: null, progress: null });
  emitTask(turn, task, "task.escalated", null, task.record.endReason);
}

/** T2, T5: whatever is escalated is in an inbox, so a task that nobody is bound to binds its supervisor. */
function bindSupervisor(turn: Turn, task: TaskEntry, reason: string): void {
  const supervisor = supervisorOf(turn.tenant, task.record.spec);
  const { obligation } = task.record;
  const isOpen = obligation !== null && obligation.state !== "CLOSED";
  if (!isOpen) openObligation(turn, task, supervisor);
  policyReceipt(turn, task, reason, null, supervisor);
  if (isOpen) moveObligation(turn, task, "reassign", supervisor);
}

/** What a complete receipt makes of its task. */
export const statusAfter = { success: "succeeded", failure: "failed", canceled: "canceled" } as const;

const finalMoves = { succeeded: "succeed", failed: "fail", canceled: "cancel" } as const;

export function isFinal({ status }: Task): boolean {
  return status === "succeeded" || status === "failed" || status === "canceled";
}

/**
 * Ends the task for good. Attempts that still run are called off: their workers learn it with the next heartbeat, and
 * until then, or for a while, nobody else gets what they may be working on.
 */
export function finish(
  turn: Turn,
  task: TaskEntry,
  status: FinalTaskStatus,
  winningReceiptId: string | null,
  reason: string | null,
): void {
  end(turn, task, status, winningReceiptId, reason);
  if (task.dependents === null) return;
  const job = new SettleDependents(turn, task);
  job.run(turn, turn.state.sliceMax);
  if (!job.isDone) turn.state.jobs.push(job);
}

function end(
  turn: Turn,
  task: TaskEntry,
  status: FinalTaskStatus,
  winningReceiptId: string | null,
  reason: string | null,
): void {
  const { tenant, now } = turn;
  const wasReady = task.place === "ready";
  if (task.preparedFor !== null) cancelPreparation(turn, task);
  leaveQueue(turn, task);
  for (const request of task.open) endWait(turn, request, "CANCELED", null);
  // It may have been the one of its key that was ready for the next slot (T12).
  if (wasReady && task.key !== null) offerSlots(turn, task.key);
  if (tenant.book.lateResults.size > 0) dropLateResult(tenant, task);
  endSpeculation(turn, task);
  closeObligation(turn, task);
  moveTask(turn, task, finalMoves[status], { winningReceiptId, endedAt: now, endReason: reason, notBefore: null });
  callOff(turn, task);
  forgetMarks(tenant, task, task.record.dedupes);
  leaveIfOver(turn, task);
}

function callOff(turn: Turn, task: TaskEntry): void {
  for (const attempt of task.record.live) {
    if (attempt.acceptedAt === null) dropAttempt(turn, task, attempt, "REVOKED", "canceled");
  }
  if (task.record.live.length === 0) return;
  updateTask(turn, task, { live: task.record.live.map((attempt) => ({ ...attempt, canceled: true })) });
  for (const lease of openLeasesOf(task)) {
    const expiresAt = Math.min(lease.record.expiresAt, turn.now + limits.taskCancelMs);
    updateLease(turn, lease, { ...lease.record, expiresAt });
  }
}

/** To history, once nothing of it is alive and its dependents know how it ended. */
function leaveIfOver(turn: Turn, task: TaskEntry): void {
  const { tenant } = turn;
  if (!task.alive || !isFinal(task.record) || task.leaseCount > 0 || task.dependents !== null) return;
  task.alive = false;
  changed(turn, task);
  if (task.payload !== null) {
    task.payload.alive = false;
    changed(turn, task.payload);
  }
  tenant.tasks.delete(task.record.id);
  tenant.payloadBytes -= task.record.payloadBytes;
  leaveSeniors(tenant, task);
  const { lane, key } = task;
  if (--lane.count === 0) tenant.book.lanes.delete(lane.id);
  if (key !== null && --key.count === 0) tenant.book.keys.delete(key.name);
  const { idempotencyKey } = task.record.spec;
  if (idempotencyKey === null || tenant.book.created.get(idempotencyKey) !== task) return;
  tenant.book.created.delete(idempotencyKey);
  leaveKeyToHistory(turn, idempotencyKey);
}

/**
 * T12: dependents of a task that succeeded go on; those of one that did not are canceled, and theirs with them. They may
 * be very many (L14). Until all know of it the task stays, so that a restored kernel can go on with them.
 */
export class SettleDependents implements Job {
  readonly tenant: TenantEntry;
  isDone = false;
  /** Tasks that have ended and whose dependents are to be settled. */
  private readonly ended: TaskEntry[];
  private settled = 0;

  constructor({ tenant }: Turn, task: TaskEntry) {
    this.tenant = tenant;
    this.ended = [task];
  }

  run(turn: Turn, limit: number): void {
    for (let left = limit; this.settled < this.ended.length; this.settled++) {
      const task = this.ended[this.settled];
      // In the order of their creation, which is that of their priority.
      for (const dependent of task?.dependents ?? []) {
        if (left-- <= 0) return;
        task?.dependents?.delete(dependent);
        if (task !== undefined) this.settle(turn, task, dependent);
      }
      if (task === undefined) continue;
      task.dependents = null;
      leaveIfOver(turn, task);
    }
    this.isDone = true;
  }

  private settle(turn: Turn, task: TaskEntry, dependent: TaskEntry): void {
    if (isFinal(dependent.record)) return;
    if (task.record.status !== "succeeded") {
      end(turn, dependent, "canceled", null, "dependency_failed");
      emitTask(turn, dependent, "task.canceled", null, "dependency_failed");
      if (dependent.dependents !== null) this.ended.push(dependent);
      return;
    }
    const waitingOn = dependent.record.waitingOn.filter((id) => id !== task.record.id);
    updateTask(turn, dependent, { waitingOn, queuedAt: turn.now });
    if (waitingOn.length > 0 || dependent.place !== "dependent") return;
    dependent.place = "none";
    if (dependent.record.notBefore !== null && dependent.record.notBefore <= turn.now)
      updateTask(turn, dependent, { notBefore: null });
    enterQueue(turn, dependent);
  }
}
