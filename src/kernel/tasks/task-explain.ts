/** Why a task is not running (T11): everything that it waits for, named so that somebody can do something about it. */
import { limits } from "../contract/limits.ts";
import type { Millis } from "../contract/records.ts";
import type { Blocker } from "../contract/replies.ts";
import { findOverKind, findResource, isLeaseTimeUsedUp, whyNotReady } from "../deciding/admission.ts";
import { unitsClaimed } from "../deciding/manifest.ts";
import { obstaclesTotal } from "../deciding/obstacles.ts";
import { pickFor } from "../deciding/picking.ts";
import { blockersOf } from "../deciding/verdicts.ts";
import { firstOf } from "../index/heap.ts";
import type { TenantEntry } from "../memory/state.ts";
import { openLeasesOf, rankOf, type TaskEntry } from "../memory/task-state.ts";
import { claimsFor, findClosing, obstaclesOf } from "./task-manifest.ts";
import { isKeyFull } from "./task-queue.ts";
import { covers } from "./workers.ts";

/** With a sentence about it. */
export type WaitingFor = { readonly detail: string } & (
  | { readonly kind: "delay"; readonly until: Millis }
  | { readonly kind: "dependency"; readonly taskIds: readonly string[] }
  | { readonly kind: "concurrency_key"; readonly key: string; readonly limit: number; readonly running: number }
  | { readonly kind: "resource"; readonly blockers: readonly Blocker[]; readonly total: number }
  | { readonly kind: "resource_fenced" | "cell_not_ready"; readonly resource: string }
  /** A cell is setting it up for the task (T10, G6). */
  | { readonly kind: "binding"; readonly cell: string; readonly resource: string; readonly until: Millis }
  | { readonly kind: "tenant_suspended" | "quota" | "redrive" }
  /** No worker seen lately has these capabilities. */
  | { readonly kind: "worker"; readonly requires: readonly string[] }
  /** It can run as soon as a worker polls; `ahead` others would be offered first. */
  | { readonly kind: "queue"; readonly ahead: number }
  | { readonly kind: "running"; readonly workerId: string; readonly until: Millis }
);

/** A worker that has not polled for this long is not counted on. */
const workerSeenMs = 2 * limits.workerSeenMs + 60_000;

export function explainTask(tenant: TenantEntry, task: TaskEntry, now: Millis): WaitingFor[] {
  const { record } = task;
  switch (record.status) {
    case "succeeded":
    case "failed":
    case "canceled":
      return [];
    case "dead":
      return [
        { kind: "redrive", detail: `It is among the dead letters (${record.endReason}); redrive sends it again.` },
      ];
    case "leased":
    case "accepted":
      return record.live.map(({ workerId, leaseId, acceptedAt }) => {
        const until = tenant.leases.get(leaseId)?.record.expiresAt ?? now;
        const detail = acceptedAt === null ? `It is offered to ${workerId}.` : `${workerId} is working on it.`;
        return { kind: "running", detail, workerId, until };
      });
    case "queued":
    case "retry_pending":
      return explainQueued(tenant, task, now);
  }
}

function explainQueued(tenant: TenantEntry, task: TaskEntry, now: Millis): WaitingFor[] {
  const { record, key } = task;
  const reasons: WaitingFor[] = [];
  if (tenant.record.suspended) reasons.push({ kind: "tenant_suspended", detail: "The tenant is suspended." });
  if (record.waitingOn.length > 0) {
    const detail = `It runs after ${record.waitingOn.length} other tasks have succeeded.`;
    reasons.push({ kind: "dependency", detail, taskIds: record.waitingOn });
  }
  if (record.notBefore !== null && record.notBefore > now) {
    const ms = record.notBefore - now;
    const detail = whyDelayed(task, ms);
    reasons.push({ kind: "delay", detail, until: record.notBefore });
  }
  if (task.place === "binding") return [...reasons, ...explainBinding(task, now)];
  if (task.preparedFor !== null) {
    const detail = "Its resources are set up; it is offered to the next worker that asks.";
    return [...reasons, { kind: "queue", detail, ahead: 0 }];
  }
  if (key !== null && isKeyFull(task)) {
    const { concurrencyLimit: limit } = record.spec;
    const detail = `${key.running} tasks with the concurrency key ${key.name} are running; ${limit} may.`;
    reasons.push({ kind: "concurrency_key", detail, key: key.name, limit, running: key.running });
  }
  if (tenant.leases.size >= tenant.record.quotas.leasesMax) {
    reasons.push({ kind: "quota", detail: "The tenant holds as many leases as it may." });
  }
  if (isLeaseTimeUsedUp(tenant, now)) {
    reasons.push({ kind: "quota", detail: "The tenant's lease time for today is used up." });
  }
  for (const reason of explainManifest(tenant, task, now)) reasons.push(reason);
  for (const reason of explainWorkers(tenant, task, now)) reasons.push(reason);
  if (reasons.length === 0) {
    const ahead = countAhead(tenant, task);
    reasons.push({
      kind: "queue",
      detail: `It is offered to the next worker that asks; ${ahead} others go first.`,
      ahead,
    });
  }
  return reasons;
}

function whyDelayed({ record: { status, bindFailure } }: TaskEntry, ms: number): string {
  if (status === "retry_pending") return `It is tried again in ${ms} ms.`;
  if (bindFailure === null) return `It is delayed for ${ms} ms.`;
  return `A cell could not set its resources up (${bindFailure}); it is tried again in ${ms} ms.`;
}

function explainBinding(task: TaskEntry, now: Millis): WaitingFor[] {
  const reasons: WaitingFor[] = [];
  for (const { record } of openLeasesOf(task)) {
    const { cell, cellBy, resource } = record;
    if (cell === null || cellBy === null) continue;
    const detail = `The cell ${cell} is setting up ${resource}; it has ${Math.max(0, cellBy - now)} ms left.`;
    reasons.push({ kind: "binding", detail, cell, resource, until: cellBy });
  }
  return reasons;
}

/** Why there is nothing to choose from. */
function explainChoice(tenant: TenantEntry, task: TaskEntry): WaitingFor[] {
  const { intents } = task.record.spec;
  const picked = pickFor(tenant, task, intents, task.priority);
  if (picked.type !== "refused" && picked.type !== "paused") return [];
  const { detail } = picked;
  if (picked.type === "refused" && picked.code === "lease_denied") return [{ kind: "quota", detail }];
  const resource = intents.find(({ pick }) => pick !== null)?.resource ?? "";
  return [{ kind: "cell_not_ready", detail, resource }];
}

function explainManifest(tenant: TenantEntry, task: TaskEntry, now: Millis): WaitingFor[] {
  const { intents } = task.record.spec;
  if (intents.length === 0) return [];
  const claims = claimsFor(tenant, task);
  if (claims === null) return explainChoice(tenant, task);
  const over = findOverKind(tenant, claims, task.open);
  if (over !== null) return [{ kind: "quota", detail: `The tenant may hold ${over.most} units of ${over.kind}.` }];
  for (const { claim } of claims) {
    const fenced = findResource(tenant, claim.name, ({ record }) => record.fenced || record.withdrawn);
    if (fenced !== undefined) {
      const { name, fenced: isFenced } = fenced.record;
      const detail = isFenced
        ? `${name} is fenced; an operator must reset it.`
        : `${name} was withdrawn; declare it again.`;
      return [{ kind: "resource_fenced", detail, resource: name }];
    }
    const capacity = claim.counted?.record.capacity ?? 0;
    if (claim.counted !== null && unitsClaimed(claims, claim) > capacity) {
      return [{ kind: "quota", detail: `${claim.name.text} has ${capacity} units in all, and the task wants more.` }];
    }
  }
  for (const { claim } of claims) {
    const bound = tenant.resources.get(claim.name.text)?.record;
    const detail = bound === undefined ? null : whyNotReady(tenant, bound);
    if (detail !== null) return [{ kind: "cell_not_ready", detail, resource: claim.name.text }];
  }
  const closing = findClosing(task, claims)?.record;
  if (closing !== undefined) {
    const { cell, resource, cellBy, expiresAt } = closing;
    const detail = `The cell ${cell} is tearing down ${resource}, which an earlier attempt had.`;
    return [{ kind: "binding", detail, cell: cell ?? "", resource, until: cellBy ?? expiresAt }];
  }
  const obstacles = obstaclesOf(tenant, task, claims);
  const total = obstaclesTotal(obstacles);
  const blockers = blockersOf(obstacles);
  if (total === 0 && obstacles.backAt !== null) {
    const detail = `Units of what it needs are used up; some come back in ${obstacles.backAt - now} ms.`;
    return [{ kind: "resource", detail, blockers, total }];
  }
  if (total === 0) return [];
  return [
    {
      kind: "resource",
      detail: `${describe(blockers[0])}${total > 1 ? `, and ${total - 1} more` : ""}.`,
      blockers,
      total,
    },
  ];
}

function describe(blocker: Blocker | undefined): string {
  if (blocker === undefined) return "Its resources are taken";
  const { leaseId, requestId, agentId, resource } = blocker;
  if (leaseId !== null) return `Blocked by lease ${leaseId} of ${agentId} on ${resource}`;
  return `Behind request ${requestId} of ${agentId} for ${resource}`;
}

function explainWorkers({ book }: TenantEntry, { lane }: TaskEntry, now: Millis): WaitingFor[] {
  let seen = 0;
  for (const worker of book.workers.values()) {
    if (now - worker.record.seenAt > workerSeenMs && worker.leases.size === 0) continue;
    seen++;
    if (covers(worker, lane)) return [];
  }
  if (seen > 0 && lane.requires.length === 0) return [];
  const wanted = lane.requires.length === 0 ? "" : ` with ${lane.requires.join(", ")}`;
  const detail = `No worker${wanted} has polled lately.`;
  return [{ kind: "worker", detail, requires: lane.requires }];
}

/** Of ready tasks only: those that are put aside may never come. */
function countAhead({ book }: TenantEntry, task: TaskEntry): number {
  const rank = rankOf(task.record);
  let ahead = 0;
  for (const { ready } of book.lanes.values()) {
    const first = firstOf(ready);
    if (first === undefined || rankOf(first.record) > rank) continue;
    for (const one of ready.heap)
      if (one !== task && (one.rank < rank || (one.rank === rank && one.priority < task.priority))) ahead++;
  }
  return ahead;
}
