/**
 * Tasks whose manifests name resources of cells (T10, G6). Between the queue and the offer such a task is prepared: a
 * worker has asked for it, all that it needs is leased to it, and cells set that up.
 *
 *                      a poll                all bound              a poll
 *   queued, ready ───────────────► binding ────────────► prepared ─────────► leased
 *        ▲  ▲                        │                      │
 *        │  │ a pause                │ a cell failed        │ nobody came in time, or a lease was lost
 *        │  └────────────────────────┤                      │
 *        └─── withdrawn, revoked ────┴──────────────────────┘
 *
 * The task's status is `queued` all the while, and neither offers nor attempts are charged. What is stored: the request
 * while it is BINDING, and then the leases; so a restored kernel finds where a task stands.
 */
import { limits } from "../contract/limits.ts";
import type { EndedLeaseState, Intent, Lease, Millis } from "../contract/records.ts";
import { type LinkedClaim, leavesChoice } from "../deciding/manifest.ts";
import { emitLease, endLease, reissue, updateLease } from "../leases/lease-life.ts";
import type { LeaseEntry, TenantEntry, Turn } from "../memory/state.ts";
import { makeReady, openLeasesOf, type TaskEntry, updateTask, type WorkerEntry } from "../memory/task-state.ts";
import { addRequest, attachLeases, beginLeases, endBinding } from "../requests/request-life.ts";
import { pickedOf } from "./task-manifest.ts";
import { enterQueue, leaveQueue, offerSlots } from "./task-queue.ts";

/** Leases all that the manifest names, and has cells set it up. */
export function prepare(turn: Turn, worker: WorkerEntry, task: TaskEntry, claims: readonly LinkedClaim[]): void {
  const { id, spec } = task.record;
  // Leases carry the suffix of their request: a task's id has the length of any other, and arrivals are counted up.
  const suffix = `${id.slice(2)}${turn.tenant.counters.record.arrival + 1}`;
  const terms = {
    ttl: spec.leaseDurationMs,
    idleTimeout: null,
    purpose: spec.taskSummary,
    tokens: false,
    agentId: worker.record.id,
  };
  const request = addRequest(turn, task, {
    ...terms,
    id: `req_${suffix}`,
    key: null,
    fingerprint: "",
    intents: spec.intents,
    picked: pickedOf(spec.intents, claims),
    waitTimeout: 0,
    observeSince: null,
    warnings: [],
  });
  attachLeases(turn, request, beginLeases(turn, task, claims, { ...terms, suffix, claimBy: null, binds: true }));
  begin(turn.tenant, task, worker.record.id);
  task.place = "binding";
}

function begin({ book }: TenantEntry, task: TaskEntry, workerId: string): void {
  task.preparedFor = workerId;
  book.preparing.set(workerId, (book.preparing.get(workerId) ?? 0) + 1);
  // T12: it takes its slot from here on, so that no other is prepared for the same.
  if (task.key !== null) task.key.running++;
}

/** It is offered now, or was prepared in vain. */
function end({ book }: TenantEntry, task: TaskEntry): void {
  const { preparedFor } = task;
  if (preparedFor === null) return;
  task.preparedFor = null;
  if (task.key !== null) task.key.running--;
  const left = (book.preparing.get(preparedFor) ?? 1) - 1;
  if (left === 0) book.preparing.delete(preparedFor);
  else book.preparing.set(preparedFor, left);
}

/** After a restore: true if it is being prepared, or is. */
export function resumePreparation(turn: Turn, task: TaskEntry): boolean {
  const { tenant } = turn;
  for (const { record } of task.open) {
    if (record.state !== "BINDING") continue;
    begin(tenant, task, record.agentId);
    task.place = "binding";
    return true;
  }
  const [lease] = openLeasesOf(task);
  if (lease === undefined) return false;
  begin(tenant, task, lease.record.agentId);
  makeReady(turn, task);
  return true;
}

/** All its cells have set it up: the next worker that asks gets it, first of all the one that asked for it. */
export function taskBound(turn: Turn, task: TaskEntry): void {
  if (task.place === "binding") makeReady(turn, task);
}

/** Back to the queue; after a failure with a pause that doubles, because the cell would most likely fail again at once. */
export function taskUnbound(turn: Turn, task: TaskEntry, failure: string | null): void {
  if (task.place !== "binding") return;
  leavePreparation(turn, task);
  if (failure !== null) {
    const bindFailures = task.record.bindFailures + 1;
    const pause = Math.min(limits.taskBindBackoffMs * 2 ** (bindFailures - 1), limits.taskBindBackoffMsMax);
    updateTask(turn, task, { bindFailures, bindFailure: failure, notBefore: turn.now + pause });
  }
  enterQueue(turn, task);
}

/** One of the leases of a task that was prepared has ended, or is closing: so do the others. */
export function preparationLost(turn: Turn, task: TaskEntry, as: EndedLeaseState, reason: string | null): void {
  leavePreparation(turn, task);
  for (const lease of openLeasesOf(task)) endLease(turn, lease, as, reason, null);
  enterQueue(turn, task);
}

function leavePreparation(turn: Turn, task: TaskEntry): void {
  leaveQueue(turn, task);
  end(turn.tenant, task);
  if (task.key !== null) offerSlots(turn, task.key);
}

/** The task has ended: nobody is to have what was prepared for it. */
export function cancelPreparation(turn: Turn, task: TaskEntry): void {
  for (const request of task.open)
    if (request.record.state === "BINDING") endBinding(turn, request, "CANCELED", "canceled");
  leavePreparation(turn, task);
  for (const lease of openLeasesOf(task)) endLease(turn, lease, "REVOKED", "canceled", null);
}

/** The worker has collected it; from here on the task's own lease and these end together, by the first of their ends. */
export function collectPrepared(turn: Turn, task: TaskEntry, workerId: string): Collected {
  leaveQueue(turn, task);
  end(turn.tenant, task);
  const leases = openLeasesOf(task);
  let expiresAt = Number.POSITIVE_INFINITY;
  let acquiredAt = turn.now;
  for (const lease of leases) {
    updateLease(turn, lease, { ...lease.record, agentId: workerId, claimBy: null });
    expiresAt = Math.min(expiresAt, lease.record.expiresAt);
    acquiredAt = Math.min(acquiredAt, lease.record.acquiredAt);
  }
  return { acquiredAt, expiresAt, picked: pickedAs(task.record.spec.intents, leases) };
}

export interface Collected {
  readonly acquiredAt: Millis;
  readonly expiresAt: Millis;
  readonly picked: readonly string[];
}

/** Leases stand in the order of the intents; a rename has two. */
function pickedAs(intents: readonly Intent[], leases: readonly LeaseEntry[]): readonly string[] {
  if (!leavesChoice(intents)) return [];
  let at = 0;
  return intents.map(({ to }) => {
    const lease = leases[at];
    at += to === null ? 1 : 2;
    return lease?.record.resource ?? "";
  });
}

/** How many tasks are being prepared for a worker, or wait for it. */
export function preparingFor({ book }: TenantEntry, { record }: WorkerEntry): number {
  return book.preparing.get(record.id) ?? 0;
}

/** Of what a task has on a cell: a heartbeat may not extend it (G8). With it every older token and fence is stale. */
export function renew(turn: Turn, entry: LeaseEntry, record: Lease): void {
  reissue(turn, entry, record);
  emitLease(turn, entry, "lease.renewed", null);
}
