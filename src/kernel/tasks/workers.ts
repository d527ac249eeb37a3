/** Workers: their ids, whose they are, how well they do (T1, T8, T9). A worker is known from its first poll on. */

import type { Actor } from "../contract/commands.ts";
import { limits } from "../contract/limits.ts";
import type { Millis } from "../contract/records.ts";
import { deny, type Refusal, refuse } from "../contract/refusals.ts";
import type { Worker } from "../contract/task-records.ts";
import { whyNoMemory } from "../deciding/admission.ts";
import { rankIn, removeFrom } from "../index/heap.ts";
import { isOpenTo, ownerOf, whyNotAnyWorker, whyNotWorker } from "../memory/actors.ts";
import { createWorkerEntry } from "../memory/entries.ts";
import { changed, type TenantEntry, type Turn } from "../memory/state.ts";
import type { Lane, WorkerEntry } from "../memory/task-state.ts";
import { question } from "../policies/matching.ts";
import { whyNotPermitted } from "../policies/permissions.ts";

/** `{type}.{instance}`: two parts of visible characters around the first dot. */
const workerIdPattern = /^[A-Za-z0-9_-]+\.[\x21-\x7e]+$/;

export function isWorkerId(text: string): boolean {
  return text.length <= limits.idLengthMax && workerIdPattern.test(text);
}

/** The worker who polls, known or new; its id belongs to the key that used it first. */
export function meetWorker(
  turn: Turn,
  actor: Actor,
  workerId: string,
  capabilities: readonly string[] | null,
): WorkerEntry | Refusal {
  const { tenant, now } = turn;
  if (!isWorkerId(workerId)) {
    return refuse("invalid_worker_id", "must match pattern {type}.{instance}", { field: "worker_id" });
  }
  const known = tenant.book.workers.get(workerId);
  const denied = isOpenTo(tenant, actor, "work")
    ? null
    : whyNotPermitted(turn, actor, { ...question, action: "work", id: workerId }, "worker_id");
  if (known === undefined) {
    const refusal = whyNotAnyWorker(actor) ?? denied;
    if (refusal !== null) return refusal;
    if (tenant.book.workers.size >= limits.workersMax) {
      return deny("quota", `The tenant may have ${limits.workersMax} workers.`);
    }
    const noMemory = hasMore(capabilities, null) ? whyNoMemory(tenant) : null;
    if (noMemory !== null) return noMemory;
    return addWorker(turn, newWorker(tenant, actor, workerId, capabilities ?? [], now));
  }
  const refusal = whyNotWorker(actor, known) ?? denied;
  if (refusal !== null) return refusal;
  const { record } = known;
  const isOther = capabilities !== null && !isSame(capabilities, record.capabilities);
  const noMemory = isOther && hasMore(capabilities, record) ? whyNoMemory(tenant) : null;
  if (noMemory !== null) return noMemory;
  if (isOther || now - record.seenAt >= limits.workerSeenMs) {
    updateWorker(turn, known, {
      capabilities: isOther ? capabilities : record.capabilities,
      seenAt: now,
    });
  }
  return known;
}

/** S4: more than any one task can require; with fewer a worker is met also where memory is used up, so that work gets done. */
function hasMore(capabilities: readonly string[] | null, before: Worker | null): boolean {
  if (capabilities === null || capabilities.length <= limits.taskRequiresMax) return false;
  return capabilities.length > (before?.capabilities.length ?? 0);
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
    keyId: ownerOf(actor),
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

function addWorker(turn: Turn, record: Worker): WorkerEntry {
  const worker = placeWorker(turn, record);
  changed(turn, worker);
  return worker;
}

/** New, or restored. */
export function placeWorker({ state, tenant }: Turn, record: Worker): WorkerEntry {
  const worker = createWorkerEntry(record);
  tenant.book.workers.set(record.id, worker);
  rankIn(state.ends, worker, record.seenAt + limits.workerIdleMs, record.firstSeenAt);
  return worker;
}

function isSame(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((one, index) => one === b[index]);
}

export function updateWorker(turn: Turn, worker: WorkerEntry, change: Partial<Worker>): void {
  worker.record = { ...worker.record, ...change };
  changed(turn, worker);
}

export function forgetWorkerIfIdle(turn: Turn, worker: WorkerEntry): void {
  const { state, tenant, now } = turn;
  const idleAt = worker.record.seenAt + limits.workerIdleMs;
  if (worker.leases.size > 0 || idleAt > now) {
    rankIn(state.ends, worker, Math.max(idleAt, now + limits.workerSeenMs), worker.record.firstSeenAt);
    return;
  }
  removeFrom(state.ends, worker);
  tenant.book.workers.delete(worker.record.id);
  worker.alive = false;
  changed(turn, worker);
}

export type Outcome = "completed" | "failed" | "lost";
const worth: Readonly<Record<Outcome, number>> = { completed: 1, failed: 0.7, lost: 0 };
/** How much the newest outcome weighs in a worker's health. */
const healthShare = 0.2;
/** Below this a worker is given one task at a time. */
const healthyFrom = 0.5;

/** T8: completion rates shape what is given to whom. */
export function noteOutcome(turn: Turn, workerId: string, outcome: Outcome): void {
  const worker = turn.tenant.book.workers.get(workerId);
  if (worker === undefined) return;
  const { record } = worker;
  const health = record.health + (worth[outcome] - record.health) * healthShare;
  updateWorker(turn, worker, { health, [outcome]: record[outcome] + 1 });
}

export function tasksFor({ record }: WorkerEntry, wanted: number): number {
  return record.health < healthyFrom ? Math.min(wanted, 1) : wanted;
}

export function covers({ record }: WorkerEntry, { requires }: Lane): boolean {
  return requires.every((tag) => record.capabilities.includes(tag));
}
