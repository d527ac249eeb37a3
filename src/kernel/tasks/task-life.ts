/**
 * The one place where a task changes its status (T13): offered, accepted, lost, sent back, ended. A task that has ended
 * leaves for history as soon as none of its leases is alive.
 *
 *   queued ─offer─► leased ─accept─► accepted ─complete─► succeeded | failed | canceled
 *     ▲               │                 │
 *     └── came to nothing (T2)          ├─ lost, or failed with attempts left ─► retry_pending ─delay─► queued
 *     └──────────── redrive ── dead ◄───┴─ no attempts left
 */
import type { TaskEvent } from "../contract/events.ts";
import { limits } from "../contract/limits.ts";
import type { EndedLeaseState, Millis } from "../contract/records.ts";
import type { FinalTaskStatus, Obligation, Task, TaskAttempt } from "../contract/task-records.ts";
import { endLease, isTaskLease, nameOf, updateLease } from "../leases/lease-life.ts";
import { changed, emit, type LeaseEntry, leasesOf, type State, type TenantEntry } from "../memory/state.ts";
import type { TaskEntry } from "../memory/task-state.ts";
import type { ResourceName } from "../names/resource-name.ts";
import { closeObligation, policyReceipt } from "../receipts/append-receipt.ts";
import { endWait } from "../requests/request-life.ts";
import { haunt, unhaunt } from "./task-contest.ts";
import { enterQueue, leaveQueue, offerSlots } from "./task-queue.ts";
import { endSpeculation, resumeSpeculation } from "./task-speculation.ts";
import { noteOutcome } from "./workers.ts";

export function updateTask(state: State, task: TaskEntry, change: Partial<Task>): void {
  task.record = { ...task.record, ...change };
  changed(state, task);
}

export function emitTask(
  state: State,
  { record }: TaskEntry,
  type: TaskEvent["type"],
  attempt: Pick<TaskAttempt, "workerId" | "leaseId"> | null,
  reason: string | null,
  now: Millis,
): void {
  const { workerId, leaseId } = attempt ?? { workerId: null, leaseId: null };
  emit(state, { type, tenant: record.tenant, at: now, task: record, workerId, leaseId, reason });
}

/** The task's lease and those of its manifest; a speculative attempt has its own lease and no others. */
export function leasesOfAttempt(tenant: TenantEntry, task: TaskEntry, lease: LeaseEntry): LeaseEntry[] {
  const attempt = attemptOf(task, lease);
  if (attempt === undefined || attempt.canceled) return [];
  if (task.record.spec.intents.length > 0) return leasesOf(task);
  const own = tenant.leases.get(attempt.leaseId);
  return own === undefined ? [] : [own];
}

/** Which of the task's attempts a lease belongs to: only a task without a manifest has more than one. */
export function attemptOf({ record }: TaskEntry, { record: lease }: LeaseEntry): TaskAttempt | undefined {
  return isTaskLease(lease) ? record.live.find(({ leaseId }) => leaseId === lease.id) : record.live[0];
}

/** After a renewal the task's fences are those of its leases again. */
export function noteReissued(state: State, tenant: TenantEntry, task: TaskEntry): void {
  const live = task.record.live.map((attempt) => {
    const lease = tenant.leases.get(attempt.leaseId);
    return lease === undefined ? attempt : { ...attempt, fence: lease.record.fence };
  });
  updateTask(state, task, { live });
}

/** Called by whatever ended one of a task's leases from outside; what is ended here has left `live` before. */
export function taskLeaseEnded(
  state: State,
  tenant: TenantEntry,
  task: TaskEntry,
  lease: LeaseEntry,
  now: Millis,
): void {
  tenant.book.workers.get(lease.record.agentId)?.leases.delete(lease);
  const attempt = attemptOf(task, lease);
  if (attempt === undefined) return leaveIfOver(state, tenant, task);
  const { state: as, endReason } = lease.record;
  dropAttempt(state, tenant, task, attempt, as as EndedLeaseState, endReason, now);
  afterLoss(state, tenant, task, attempt, as as EndedLeaseState, endReason, now);
}

/** Takes the attempt off the task and ends all its leases; what they free is served before the step is over. */
export function dropAttempt(
  state: State,
  tenant: TenantEntry,
  task: TaskEntry,
  attempt: TaskAttempt,
  as: EndedLeaseState,
  reason: string | null,
  now: Millis,
): void {
  const live = task.record.live.filter((one) => one !== attempt);
  updateTask(state, task, { live });
  const rest = task.record.spec.intents.length > 0 ? leasesOf(task) : [tenant.leases.get(attempt.leaseId)];
  const freed: ResourceName[] = [];
  for (const lease of rest) {
    if (lease === undefined || !lease.alive || lease.record.state === "CLOSING") continue;
    if (endLease(state, tenant, lease, as, reason, null, now) && !isTaskLease(lease.record)) freed.push(nameOf(lease));
  }
  if (freed.length > 0) state.unserved.push({ tenant, names: freed });
  endSpeculation(state, task);
  if (live.length > 0) return;
  if (task.key !== null) {
    task.key.running--;
    offerSlots(state, tenant, task.key);
  }
}

/** What becomes of the task when an attempt ended without a word of its worker (T2, T5, T13). */
function afterLoss(
  state: State,
  tenant: TenantEntry,
  task: TaskEntry,
  attempt: TaskAttempt,
  as: EndedLeaseState,
  reason: string | null,
  now: Millis,
): void {
  if (isFinal(task.record)) return leaveIfOver(state, tenant, task);
  remember(state, tenant, task, attempt);
  const isAccepted = attempt.acceptedAt !== null;
  if (isAccepted && as === "EXPIRED") noteOutcome(state, tenant, attempt.workerId, "lost");
  if (isAccepted) {
    const why = as === "EXPIRED" ? "lease_expired" : as === "RELEASED" ? "released" : (reason ?? "revoked");
    policyReceipt(state, tenant, task, why, attempt, now);
    emitTask(state, task, "task.escalated", attempt, why, now);
  }
  const isLost = isAccepted && as === "EXPIRED";
  // Given back or taken away: not the attempt's fault, so it does not count.
  if (isAccepted && !isLost && !isAcceptedByAnother(task)) {
    updateTask(state, task, { attempts: Math.max(task.record.attempts - 1, 0) });
  }
  if (isAccepted) passOn(state, tenant, task, isLost ? "OVERDUE" : "OPEN", task.record.spec.principalAi);
  if (task.record.live.length > 0) return followLive(state, task, isLost || !isAccepted ? attempt.receiptId : null);
  if (!isAccepted) {
    // A revocation is nobody's refusal of the task.
    updateTask(state, task, { offers: task.record.offers + (as === "REVOKED" ? 0 : 1) });
    const why = reason ?? (as === "EXPIRED" ? "offer_expired" : "given_back");
    return requeueOffer(state, tenant, task, attempt, why, now);
  }
  if (isLost) return retryOrDie(state, tenant, task, attempt, "lease_expired", now);
  requeue(state, tenant, task, attempt, as === "RELEASED" ? "released" : (reason ?? "revoked"), now);
}

/**
 * With one of two attempts gone, the task stands as the other one does. If the gone one's acceptance counts (T5), the
 * other takes its receipt over, and is no attempt of its own: the two were one.
 */
export function followLive(state: State, task: TaskEntry, countedReceiptId: string | null): void {
  const isAccepted = isAcceptedByAnother(task);
  const live = task.record.live.map((one) => ({ ...one, receiptId: one.receiptId ?? countedReceiptId }));
  updateTask(state, task, { status: isAccepted ? "accepted" : "leased", live });
  resumeSpeculation(state, task);
}

function isAcceptedByAnother({ record }: TaskEntry): boolean {
  return record.live.some(({ acceptedAt }) => acceptedAt !== null);
}

/** R5: whoever is left of two who accepted owes it alone; where nobody is, it is as said. */
export function passOn(
  state: State,
  tenant: TenantEntry,
  task: TaskEntry,
  as: Obligation["state"],
  custodian: string,
): void {
  const other = task.record.live.find(({ acceptedAt }) => acceptedAt !== null);
  if (other === undefined) setObligation(state, tenant, task, { state: as, custodian });
  else setObligation(state, tenant, task, { state: "OPEN", custodian: other.workerId });
}

function remember(state: State, tenant: TenantEntry, task: TaskEntry, attempt: TaskAttempt): void {
  const { leaseId, fence, workerId, acceptedAt, receiptId } = attempt;
  const past = [...task.record.past, { leaseId, fence, workerId, acceptedAt, receiptId, contested: false }];
  updateTask(state, task, { past: past.slice(-limits.taskPastMax), lastWorker: workerId });
  if (acceptedAt !== null && task.record.spec.intents.length > 0) haunt(state, tenant, task);
}

/** An offer came to nothing (T2). The attempt beside it, if there was one, may have been the last (T8). */
export function requeueOffer(
  state: State,
  tenant: TenantEntry,
  task: TaskEntry,
  attempt: TaskAttempt,
  reason: string,
  now: Millis,
): void {
  const { attempts, offers, spec } = task.record;
  if (attempts >= spec.maxAttempts) return die(state, tenant, task, "max_retries_exceeded", now);
  if (offers >= spec.maxOffers) return die(state, tenant, task, "never_accepted", now);
  requeue(state, tenant, task, attempt, reason, now);
}

function requeue(
  state: State,
  tenant: TenantEntry,
  task: TaskEntry,
  attempt: TaskAttempt | null,
  reason: string,
  now: Millis,
): void {
  updateTask(state, task, { status: "queued", notBefore: null, progress: null });
  emitTask(state, task, "task.requeued", attempt, reason, now);
  enterQueue(state, tenant, task);
}

/** Again after a pause, while attempts are left (T5). */
export function retryOrDie(
  state: State,
  tenant: TenantEntry,
  task: TaskEntry,
  attempt: TaskAttempt,
  reason: string,
  now: Millis,
): void {
  const { attempts, spec } = task.record;
  if (attempts >= spec.maxAttempts) return die(state, tenant, task, "max_retries_exceeded", now);
  updateTask(state, task, { status: "retry_pending", notBefore: now + spec.requeueDelay, progress: null });
  emitTask(state, task, "task.requeued", attempt, reason, now);
  enterQueue(state, tenant, task);
}

/** To the dead letters, from where it can be sent again. `reason` null: a receipt has said why already. */
export function die(
  state: State,
  tenant: TenantEntry,
  task: TaskEntry,
  reason: "never_accepted" | "max_retries_exceeded" | null,
  now: Millis,
): void {
  if (reason !== null) {
    policyReceipt(state, tenant, task, reason, null, now);
    if (task.record.obligation !== null)
      setObligation(state, tenant, task, {
        state: task.record.obligation.state,
        custodian: task.record.spec.principalAi,
      });
  }
  updateTask(state, task, { status: "dead", endReason: reason ?? "escalated", notBefore: null, progress: null });
  emitTask(state, task, "task.escalated", null, task.record.endReason, now);
}

export function isFinal({ status }: Task): boolean {
  return status === "succeeded" || status === "failed" || status === "canceled";
}

/**
 * Ends the task for good. Attempts that still run are called off: their workers are told with the next heartbeat, and
 * until then, or for a while, nobody else gets what they may be working on.
 */
export function finish(
  state: State,
  tenant: TenantEntry,
  task: TaskEntry,
  status: FinalTaskStatus,
  winningReceiptId: string | null,
  reason: string | null,
  now: Millis,
): void {
  const ended = [task];
  end(state, tenant, task, status, winningReceiptId, reason, now);
  for (const one of ended) ended.push(...settleDependents(state, tenant, one, now));
}

function end(
  state: State,
  tenant: TenantEntry,
  task: TaskEntry,
  status: FinalTaskStatus,
  winningReceiptId: string | null,
  reason: string | null,
  now: Millis,
): void {
  const wasReady = task.place === "ready";
  leaveQueue(state, tenant, task);
  for (const request of task.open)
    state.unserved.push({ tenant, names: endWait(state, tenant, request, "CANCELED", null, now) });
  // It may have been the one of its key that was ready for the next slot (T12).
  if (wasReady && task.key !== null) offerSlots(state, tenant, task.key);
  unhaunt(tenant, task);
  endSpeculation(state, task);
  closeObligation(state, tenant, task);
  updateTask(state, task, { status, winningReceiptId, endedAt: now, endReason: reason, notBefore: null });
  callOff(state, tenant, task, now);
  for (const { key } of task.record.dedupes) tenant.book.dedupes.delete(key);
  leaveIfOver(state, tenant, task);
}

function callOff(state: State, tenant: TenantEntry, task: TaskEntry, now: Millis): void {
  for (const attempt of task.record.live) {
    if (attempt.acceptedAt === null) dropAttempt(state, tenant, task, attempt, "REVOKED", "canceled", now);
  }
  if (task.record.live.length === 0) return;
  updateTask(state, task, { live: task.record.live.map((attempt) => ({ ...attempt, canceled: true })) });
  for (const lease of leasesOf(task)) {
    const expiresAt = Math.min(lease.record.expiresAt, now + limits.taskCancelMs);
    updateLease(state, lease, { ...lease.record, expiresAt });
  }
}

/** To history, once nothing of it is alive. */
function leaveIfOver(state: State, tenant: TenantEntry, task: TaskEntry): void {
  if (!task.alive || !isFinal(task.record) || task.leaseCount > 0) return;
  task.alive = false;
  changed(state, task);
  if (task.payload !== null) {
    task.payload.alive = false;
    changed(state, task.payload);
  }
  tenant.tasks.delete(task.record.id);
  const { lane, key } = task;
  if (--lane.count === 0) tenant.book.lanes.delete(lane.id);
  if (key !== null && --key.count === 0) tenant.book.keys.delete(key.name);
}

/** T12: who waited for it goes on. Who waited for what will never be is called off too; those are returned. */
function settleDependents(state: State, tenant: TenantEntry, task: TaskEntry, now: Millis): TaskEntry[] {
  const calledOff: TaskEntry[] = [];
  const dependents = [...(task.dependents ?? [])].sort((a, b) => a.priority - b.priority);
  task.dependents = null;
  for (const dependent of dependents) {
    if (isFinal(dependent.record)) continue;
    if (task.record.status !== "succeeded") {
      end(state, tenant, dependent, "canceled", null, "dependency_failed", now);
      emitTask(state, dependent, "task.canceled", null, "dependency_failed", now);
      calledOff.push(dependent);
      continue;
    }
    const waitingOn = dependent.record.waitingOn.filter((id) => id !== task.record.id);
    updateTask(state, dependent, { waitingOn });
    if (waitingOn.length === 0 && dependent.place === "dependent") {
      dependent.place = "none";
      if (dependent.record.notBefore !== null && dependent.record.notBefore <= now)
        updateTask(state, dependent, { notBefore: null });
      enterQueue(state, tenant, dependent);
    }
  }
  return calledOff;
}

/** R5: one custodian at a time; the index by custodian is what inboxes are read from. */
export function setObligation(
  state: State,
  tenant: TenantEntry,
  task: TaskEntry,
  change: Pick<Obligation, "state" | "custodian">,
): void {
  const before = task.record.obligation;
  if (before === null) return;
  const obligation: Obligation = { ...before, ...change };
  unlistObligation(tenant, task);
  updateTask(state, task, { obligation });
  listObligation(tenant, task);
}

/** Enters the task among its custodian's, new or restored. */
export function listObligation({ book }: TenantEntry, task: TaskEntry): void {
  const { obligation } = task.record;
  if (obligation === null || obligation.state === "CLOSED") return;
  const listed = book.custodians.get(obligation.custodian);
  if (listed === undefined) book.custodians.set(obligation.custodian, new Set([task]));
  else listed.add(task);
}

export function unlistObligation({ book }: TenantEntry, task: TaskEntry): void {
  const { obligation } = task.record;
  if (obligation === null) return;
  const listed = book.custodians.get(obligation.custodian);
  listed?.delete(task);
  if (listed?.size === 0) book.custodians.delete(obligation.custodian);
}
