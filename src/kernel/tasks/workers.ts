/** Workers: their ids, whose they are, how well they do (T1, T8, T9). A worker is known from its first poll on. */

import type { Actor } from "../contract/commands.ts";
import { limits } from "../contract/limits.ts";
import type { Millis } from "../contract/records.ts";
import { type Refusal, refuse } from "../contract/refusals.ts";
import type { Worker } from "../contract/task-records.ts";
import { schedule, unschedule } from "../index/heap.ts";
import { isAbove } from "../memory/actors.ts";
import { changed, type LeaseEntry, type State, type TenantEntry } from "../memory/state.ts";
import { createWorkerEntry, type WorkerEntry } from "../memory/task-state.ts";

/** `{type}.{instance}`: two parts of visible characters around the first dot. */
const workerIdPattern = /^[A-Za-z0-9_-]+\.[\x21-\x7e]+$/;

export function isWorkerId(text: string): boolean {
  return text.length <= limits.idLengthMax && workerIdPattern.test(text);
}

/** The worker who polls, known or new; its id belongs to the key that used it first. */
export function meetWorker(
  state: State,
  tenant: TenantEntry,
  actor: Actor,
  workerId: string,
  capabilities: readonly string[] | null,
  now: Millis,
): WorkerEntry | Refusal {
  if (!isWorkerId(workerId)) {
    return refuse("invalid_worker_id", "must match pattern {type}.{instance}", { field: "worker_id" });
  }
  if (capabilities !== null && capabilities.length > limits.workerCapabilitiesMax) {
    return refuse("invalid_task", `capabilities are at most ${limits.workerCapabilitiesMax}.`, {
      field: "capabilities",
      problem: "too many",
    });
  }
  const known = tenant.book.workers.get(workerId);
  if (known === undefined) {
    const refusal = whyNotAnyWorker(actor);
    if (refusal !== null) return refusal;
    if (tenant.book.workers.size >= limits.workersMax) {
      return refuse("lease_denied", `The tenant may have ${limits.workersMax} workers.`, { reason: "quota" });
    }
    return addWorker(state, tenant, newWorker(tenant, actor, workerId, capabilities ?? [], now));
  }
  const refusal = whyNotWorker(actor, known);
  if (refusal !== null) return refusal;
  const { record } = known;
  const isOther = capabilities !== null && !isSame(capabilities, record.capabilities);
  const isBound = record.keyId !== null || actor.role !== "worker";
  if (isOther || !isBound || now - record.seenAt >= limits.workerSeenMs) {
    updateWorker(state, known, {
      capabilities: isOther ? capabilities : record.capabilities,
      seenAt: now,
      keyId: isBound ? record.keyId : (actor.keyId ?? null),
    });
  }
  return known;
}

function newWorker(
  tenant: TenantEntry,
  actor: Actor,
  id: string,
  capabilities: readonly string[],
  now: Millis,
): Worker {
  return {
    tenant: tenant.record.id,
    id,
    keyId: actor.role === "worker" ? (actor.keyId ?? null) : null,
    capabilities,
    firstSeenAt: now,
    seenAt: now,
    completed: 0,
    failed: 0,
    lost: 0,
    health: 1,
    polls: [],
  };
}

function addWorker(state: State, tenant: TenantEntry, record: Worker): WorkerEntry {
  const worker = placeWorker(state, tenant, record);
  changed(state, worker);
  return worker;
}

/** New, or restored. */
export function placeWorker(state: State, tenant: TenantEntry, record: Worker): WorkerEntry {
  const worker = createWorkerEntry(record);
  tenant.book.workers.set(record.id, worker);
  schedule(state.ends, worker, record.seenAt + limits.workerIdleMs, record.firstSeenAt);
  return worker;
}

function isSame(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((one, index) => one === b[index]);
}

export function updateWorker(state: State, worker: WorkerEntry, change: Partial<Worker>): void {
  worker.record = { ...worker.record, ...change };
  changed(state, worker);
}

export function forgetWorkerIfIdle(state: State, tenant: TenantEntry, worker: WorkerEntry, now: Millis): void {
  const idleAt = worker.record.seenAt + limits.workerIdleMs;
  if (worker.leases.size > 0 || idleAt > now) {
    schedule(state.ends, worker, Math.max(idleAt, now + limits.workerSeenMs), worker.record.firstSeenAt);
    return;
  }
  unschedule(state.ends, worker);
  tenant.book.workers.delete(worker.record.id);
  worker.alive = false;
  changed(state, worker);
}

function whyNotAnyWorker(actor: Actor): Refusal | null {
  if (isAbove(actor) || actor.role === "worker") return null;
  return refuse("forbidden", "This takes a worker's key, or a supervisor's.");
}

function whyNotWorker(actor: Actor, { record }: WorkerEntry): Refusal | null {
  if (isAbove(actor)) return null;
  const refusal = whyNotAnyWorker(actor);
  if (refusal !== null) return refusal;
  if (record.keyId === null || record.keyId === actor.keyId) return null;
  return refuse("forbidden", "This worker_id belongs to another key; choose another one.", { field: "worker_id" });
}

/** L13 for the leases of tasks: the worker's own key, or somebody above. */
export function whyNotItsWorker(tenant: TenantEntry, actor: Actor, { record }: LeaseEntry): Refusal | null {
  const refusal = whyNotWorkerNamed(tenant, actor, record.agentId);
  if (refusal === null) return null;
  return refuse("not_lease_holder", "The lease belongs to another worker.", { leaseId: record.id });
}

export function whyNotWorkerNamed(tenant: TenantEntry, actor: Actor, workerId: string): Refusal | null {
  if (isAbove(actor)) return null;
  const worker = tenant.book.workers.get(workerId);
  if (worker === undefined) return refuse("forbidden", "This takes the key of the task's worker, or a supervisor's.");
  return whyNotWorker(actor, worker);
}

export type Outcome = "completed" | "failed" | "lost";
const worth: Readonly<Record<Outcome, number>> = { completed: 1, failed: 0.7, lost: 0 };
/** How much the newest outcome weighs in a worker's health. */
const healthShare = 0.2;
/** Below this a worker is given one task at a time. */
const healthyFrom = 0.5;

/** T8: completion rates shape what is given to whom. */
export function noteOutcome(state: State, tenant: TenantEntry, workerId: string, outcome: Outcome): void {
  const worker = tenant.book.workers.get(workerId);
  if (worker === undefined) return;
  const { record } = worker;
  const health = record.health + (worth[outcome] - record.health) * healthShare;
  updateWorker(state, worker, { health, [outcome]: record[outcome] + 1 });
}

export function tasksFor({ record }: WorkerEntry, wished: number): number {
  return record.health < healthyFrom ? Math.min(wished, 1) : wished;
}
