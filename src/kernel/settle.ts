/**
 * What is due by now. Waits whose timeout has passed end before anything is granted (L3); then everything else is
 * settled in the order of its deadline, each end together with the grants that it makes possible (L6).
 */
import { forgetIfIdle } from "./agents/agent-life.ts";
import { limits } from "./contract/limits.ts";
import type { Lease, Millis } from "./contract/records.ts";
import { earliest } from "./index/heap.ts";
import { endLeases } from "./leases/holding.ts";
import { emitLease, updateLease } from "./leases/lease-life.ts";
import type { LeaseEntry, State, TenantEntry } from "./memory/state.ts";
import { serve } from "./requests/queue.ts";
import { endWait, forget } from "./requests/request-life.ts";
import { settleCell } from "./resources/cell-life.ts";
import { bindFailed, teardownFailed } from "./resources/cells.ts";
import { forgetTaskKey } from "./tasks/task-create.ts";
import { settleTask } from "./tasks/task-queue.ts";
import { forgetWorkerIfIdle } from "./tasks/workers.ts";

/** Settles at most `limit` items. True: more is due. */
export function settleDue(state: State, now: Millis, limit: number): boolean {
  for (let settled = 0; ; settled++) {
    if (!isDue(state, now)) return false;
    if (settled >= limit) return true;
    settleOne(state, now);
  }
}

export function isDue(state: State, now: Millis): boolean {
  const wait = earliest(state.waits);
  if (wait !== undefined && wait.dueAt <= now) return true;
  if (state.unserved.length > 0) return true;
  const end = earliest(state.ends);
  return end !== undefined && end.dueAt <= now;
}

function settleOne(state: State, now: Millis): void {
  const wait = earliest(state.waits);
  if (wait !== undefined && wait.dueAt <= now) {
    const tenant = tenantOf(state, wait.tenantId);
    state.unserved.push({ tenant, names: endWait(state, tenant, wait, "TIMED_OUT", null, now) });
    return;
  }
  if (state.unserved.length > 0) return serveOne(state, now);
  const end = earliest(state.ends);
  if (end === undefined) return;
  const tenant = tenantOf(state, end.tenantId);
  switch (end.kind) {
    case "lease":
      return settleLease(state, tenant, end, now);
    case "request":
      return forget(state, tenant, end);
    case "agent":
      return forgetIfIdle(state, tenant, end, now);
    case "task":
      return settleTask(state, tenant, end);
    case "task_key":
      return forgetTaskKey(state, tenant, end);
    case "worker":
      return forgetWorkerIfIdle(state, tenant, end, now);
    case "cell":
      return settleCell(state, tenant, end, now);
  }
}

/** What a command freed besides what it serves itself: the rest of a task's leases (T10), served before it is over. */
export function serveFreed(state: State, now: Millis): void {
  while (state.unserved.length > 0) serveOne(state, now);
}

function serveOne(state: State, now: Millis): void {
  const freed = state.unserved[state.servedCount++];
  if (freed !== undefined) serve(state, freed.tenant, freed.names, now);
  if (state.servedCount < state.unserved.length) return;
  state.unserved.length = 0;
  state.servedCount = 0;
}

function tenantOf(state: State, id: string): TenantEntry {
  const tenant = state.tenants.get(id);
  if (tenant === undefined) throw new Error(`A deadline belongs to no tenant: ${id}`);
  return tenant;
}

function settleLease(state: State, tenant: TenantEntry, lease: LeaseEntry, now: Millis): void {
  const { record } = lease;
  switch (record.state) {
    case "BINDING":
      return bindFailed(state, tenant, lease, "bind_timeout", now);
    case "CLOSING":
      return teardownFailed(state, tenant, lease, "teardown_timeout", now);
    case "HELD":
      return end(state, tenant, lease, "EXPIRED", null, now);
    case "ACTIVE":
      break;
    case "RELEASED":
    case "EXPIRED":
    case "REVOKED":
      throw new Error(`An ended lease is still scheduled: ${record.id}`);
  }
  const cause = causeOf(record);
  if (cause === "unclaimed") return end(state, tenant, lease, "EXPIRED", "unclaimed", now);
  if (cause === "idle") return end(state, tenant, lease, "REVOKED", "idle", now);
  if (lease.party.kind === "agent" && lease.party.record.restarting && record.heldUntil === null)
    return hold(state, tenant, lease, now);
  end(state, tenant, lease, "EXPIRED", null, now);
}

/** Which of its deadlines came first. */
function causeOf({ expiresAt, claimBy, idleTimeout, activeAt }: Lease): "expired" | "unclaimed" | "idle" {
  const idleAt = idleTimeout === null ? expiresAt : activeAt + idleTimeout;
  if (claimBy !== null && claimBy < expiresAt && claimBy <= idleAt) return "unclaimed";
  return idleAt < expiresAt ? "idle" : "expired";
}

/** L9: nobody else gets it for a while, but it is not honoured. */
function hold(state: State, tenant: TenantEntry, lease: LeaseEntry, now: Millis): void {
  const heldUntil = lease.record.expiresAt + limits.heldMs;
  if (heldUntil <= now) return end(state, tenant, lease, "EXPIRED", null, now);
  updateLease(state, lease, { ...lease.record, state: "HELD", heldUntil, claimBy: null });
  emitLease(state, lease, "lease.held", null, now);
}

function end(
  state: State,
  tenant: TenantEntry,
  lease: LeaseEntry,
  as: "EXPIRED" | "REVOKED",
  reason: string | null,
  now: Millis,
): void {
  serve(state, tenant, endLeases(state, tenant, [lease], as, reason, now), now);
}
