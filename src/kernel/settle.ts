/**
 * What is due by now. Waits whose timeout has passed end before anything is granted (L3); then everything else is
 * settled in the order of its deadline, each end together with the grants that it makes possible (L6).
 */
import { conclude, followUp, serveWaiters, takeFreed } from "./aftermath.ts";
import { forgetIfIdle } from "./agents/agent-life.ts";
import type { Millis } from "./contract/records.ts";
import { firstOf, removeFrom } from "./index/heap.ts";
import { dueOf, emitLease, heldLease, mayBeHeld, updateLease } from "./leases/lease-life.ts";
import { visitIfWalked } from "./leases/lease-walk.ts";
import { settleRefill } from "./memory/refill.ts";
import {
  type EndEntry,
  type LeaseEntry,
  nextDeadline,
  type RequestEntry,
  type State,
  type Turn,
} from "./memory/state.ts";
import type { ResourceName } from "./names/resource-name.ts";
import { serve } from "./requests/queue.ts";
import { endOneLease, endWait, forget } from "./requests/request-life.ts";
import { endStandby, serveStandby } from "./requests/standby.ts";
import { endIfSwept } from "./requests/sweep.ts";
import { bindFailed, settleCell, teardownFailed } from "./resources/cell-life.ts";
import { settlePreemption } from "./tasks/task-preemption.ts";
import { settleTask } from "./tasks/task-queue.ts";
import { forgetWorkerIfIdle } from "./tasks/workers.ts";

/** Settles at most `limit` items. True: more is due. */
export function settleDue(state: State, now: Millis, limit: number): boolean {
  for (let settled = 0; ; settled++) {
    if (nextDeadline(state) > now) return false;
    if (settled >= limit) return true;
    const item = nextItem(state, now);
    try {
      settleOne(state, now);
    } catch (cause) {
      throw new SettleFault(item, cause);
    }
  }
}

function settleOne(state: State, now: Millis): void {
  const wait = firstOf(state.waits);
  if (wait !== undefined && wait.rank <= now) return endWaitDue(turnOf(state, wait.tenantId, now), wait);
  if (state.unserved.length > 0) return serveOne(state, now);
  const end = firstOf(state.ends);
  if (end === undefined) return;
  const turn = turnOf(state, end.tenantId, now);
  settleEnd(turn, end);
  conclude(turn);
}

/** What was to be settled when the kernel threw: a bug, and after a restart it would throw again. */
export interface DueItem {
  readonly tenant: string;
  readonly kind: EndEntry["kind"];
  readonly id: string;
}

export class SettleFault extends Error {
  readonly item: DueItem | null;

  constructor(item: DueItem | null, cause: unknown) {
    super(item === null ? "serving waiters failed" : `settling ${item.kind} ${item.id} failed`, { cause });
    this.name = "SettleFault";
    this.item = item;
  }
}

/** What `settleOne` does next; null: it serves waiters. */
function nextItem(state: State, now: Millis): DueItem | null {
  const wait = firstOf(state.waits);
  const isWaitDue = wait !== undefined && wait.rank <= now;
  if (!isWaitDue && state.unserved.length > 0) return null;
  const entry = isWaitDue ? wait : firstOf(state.ends);
  return entry === undefined ? null : { tenant: entry.tenantId, kind: entry.kind, id: idOf(entry) };
}

/** S2: takes a deadline that cannot be settled out of the order, so that all others can be. False: it is not there. */
export function setAside({ waits, ends }: State, { tenant, kind, id }: DueItem): boolean {
  const isMeant = (entry: EndEntry): boolean => entry.kind === kind && entry.tenantId === tenant && idOf(entry) === id;
  const wait = waits.heap.find(isMeant);
  if (wait !== undefined) removeFrom(waits, wait);
  const end = ends.heap.find(isMeant);
  if (end !== undefined) removeFrom(ends, end);
  return wait !== undefined || end !== undefined;
}

function idOf(entry: EndEntry): string {
  return entry.kind === "resource" ? entry.record.name : entry.record.id;
}

/** Others may have stood behind it; they are served when all due waits have ended. */
function endWaitDue(turn: Turn, wait: RequestEntry): void {
  const { state, tenant } = turn;
  if (wait.record.state === "STANDBY" && wait.holder.kind === "agent") return endStandby(turn, wait, wait.holder);
  endWait(turn, wait, "TIMED_OUT", null);
  followUp(turn);
  if (state.freed.length > 0) state.unserved.push({ tenant, names: takeFreed(state), to: "waiters" });
}

function serveOne(state: State, now: Millis): void {
  const freed = state.unserved[state.servedCount++];
  if (state.servedCount >= state.unserved.length) {
    state.unserved.length = 0;
    state.servedCount = 0;
  }
  if (freed === undefined) return;
  const turn = { state, tenant: freed.tenant, now };
  if (freed.to === "standby") {
    turn.tenant.standby.freed = [];
    serveStandby(turn, freed.names);
    return conclude(turn);
  }
  serve(turn, freed.names);
  if (turn.tenant.standby.count === 0) return conclude(turn);
  deferToStandby(turn, freed.names);
  deferToStandby(turn, serveWaiters(turn));
}

/** What stands by comes after all waiters of its tenant (W14), so its names are collected until they were served. */
function deferToStandby({ state, tenant }: Turn, names: readonly ResourceName[]): void {
  const { freed } = tenant.standby;
  if (freed.length === 0 && names.length > 0) state.unserved.push({ tenant, names: freed, to: "standby" });
  for (const name of names) freed.push(name);
}

function turnOf(state: State, tenantId: string, now: Millis): Turn {
  const tenant = state.tenants.get(tenantId);
  if (tenant === undefined) throw new Error(`A deadline belongs to an unknown tenant: ${tenantId}`);
  return { state, tenant, now };
}

function settleEnd(turn: Turn, end: EndEntry): void {
  switch (end.kind) {
    case "lease":
      return settleLease(turn, end);
    case "request":
      return forget(turn, end);
    case "agent":
      return forgetIfIdle(turn, end);
    case "task":
      return settleTask(turn, end);
    case "worker":
      return forgetWorkerIfIdle(turn, end);
    case "cell":
      return settleCell(turn, end);
    case "resource":
      return settleRefill(turn, end);
  }
}

function settleLease(turn: Turn, lease: LeaseEntry): void {
  if (endIfSwept(turn, lease)) return;
  if (turn.tenant.walks.length > 0) {
    visitIfWalked(turn, lease);
    if (lease.rank > turn.now) return;
  }
  const { record } = lease;
  switch (dueOf(record).cause) {
    case "bind":
      return bindFailed(turn, lease, "bind_timeout");
    case "teardown":
      return teardownFailed(turn, lease, "teardown_timeout");
    case "unclaimed":
      return endOneLease(turn, lease, "EXPIRED", "unclaimed", null);
    case "idle":
      return endOneLease(turn, lease, "REVOKED", "idle", null);
    case "expired":
      if (mayBeHeld(lease)) return hold(turn, lease);
      if (lease.holder.kind === "task" && settlePreemption(turn, lease.holder, lease)) return;
      return endOneLease(turn, lease, "EXPIRED", null, null);
    case "ended":
      throw new Error(`An ended lease is still scheduled: ${record.id}`);
  }
}

/** L9: nobody else gets it for a while, but it is not honoured. */
function hold(turn: Turn, lease: LeaseEntry): void {
  const held = heldLease(lease.record, false);
  if ((held.heldUntil ?? 0) <= turn.now) return endOneLease(turn, lease, "EXPIRED", null, null);
  updateLease(turn, lease, held);
  emitLease(turn, lease, "lease.held", null);
}
