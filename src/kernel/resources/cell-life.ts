/**
 * The one place where a cell's record changes, what follows for its resources, and what it makes of a lease on one (G6,
 * G7). A cell is READY from when it enrols until it leaves or is not heard of in time; then nothing new is leased on what
 * it hosts, and waiters are paused. What is leased goes on: the cell ends it by its own clock (G11), and an end that
 * nobody confirms is a fence.
 */

import type { CellEvent } from "../contract/events.ts";
import { limits } from "../contract/limits.ts";
import type { Cell, EndedLeaseState } from "../contract/records.ts";
import { whyNotReady } from "../deciding/admission.ts";
import { eachAt } from "../index/placed-lists.ts";
import {
  boundLease,
  emitLease,
  expiryFor,
  finishLease,
  heldLease,
  mayBeHeld,
  updateLease,
} from "../leases/lease-life.ts";
import { createDueEntry } from "../memory/entries.ts";
import type { RequestEnd } from "../memory/jobs.ts";
import {
  type CellEntry,
  emit,
  freeName,
  type LeaseEntry,
  nameOf,
  type RequestEntry,
  type ResourceEntry,
  type TenantEntry,
  type Turn,
  type WaitingClaim,
  withLinked,
} from "../memory/state.ts";
import { endBinding, endLeases, finishBinding } from "../requests/request-life.ts";
import { standbyNodeOf } from "../requests/standby-index.ts";
import { sweep } from "../requests/sweep.ts";
import { moveCell, scheduleSilence } from "./cell-states.ts";
import { fence } from "./resource-life.ts";

/** Enters a cell, new or restored. */
export function placeCell(turn: Turn, record: Cell): CellEntry {
  const entry = createDueEntry("cell", record);
  turn.tenant.cells.set(record.id, entry);
  scheduleSilence(turn, entry);
  return entry;
}

export function emitCell(turn: Turn, { record }: CellEntry, type: CellEvent["type"]): void {
  emit(turn, { type, tenant: record.tenant, at: turn.now, cell: record });
}

/** Its session was heard of. One that was gone is back with it, as long as it is the same that was enrolled. */
export function hear(turn: Turn, cell: CellEntry): void {
  const { now } = turn;
  const isBack = cell.record.state === "GONE";
  const aliveBy = now + limits.cellAliveMs;
  moveCell(turn, cell, "hear", isBack ? { goneReason: null, changedAt: now, aliveBy } : { aliveBy });
  if (isBack) emitCell(turn, cell, "cell.enrolled");
}

/** Nothing was heard of it in time. */
export function settleCell(turn: Turn, cell: CellEntry): void {
  loseCell(turn, cell, "fall_silent", "no heartbeat came in time");
}

export function loseCell(turn: Turn, cell: CellEntry, move: "leave" | "fall_silent", goneReason: string): void {
  // The session of a cell that leaves is over for good; one that fell silent may be heard again.
  const session = move === "leave" ? "" : cell.record.session;
  moveCell(turn, cell, move, { goneReason, session, changedAt: turn.now });
  emitCell(turn, cell, "cell.gone");
  readinessChanged(turn, resourcesOf(turn.tenant, cell));
}

/** By name, which is an order that a restored kernel finds again. */
export function resourcesOf({ resources }: TenantEntry, { record: { id } }: CellEntry): ResourceEntry[] {
  const hosted: ResourceEntry[] = [];
  for (const resource of resources.values()) if (resource.record.cell === id) hosted.push(resource);
  return hosted.sort((a, b) => (a.record.name < b.record.name ? -1 : 1));
}

/** All live leases on what it hosts, by fence: while a resource is in use, it changes neither its cell nor its kind. */
export function leasesOfCell(tenant: TenantEntry, cell: CellEntry): LeaseEntry[] {
  const leases: LeaseEntry[] = [];
  for (const { node } of resourcesOf(tenant, cell)) {
    eachAt(node, (item) => {
      if ((item as LeaseEntry).record.cell === cell.record.id) leases.push(item as LeaseEntry);
    });
  }
  return leases.sort((a, b) => a.order - b.order);
}

/** Pauses requests that wait for resources no longer ready, and frees those that are for their waiters. */
export function readinessChanged(turn: Turn, resources: readonly ResourceEntry[]): void {
  const { tenant } = turn;
  const notReady = new Set<ResourceEntry>();
  let isAnyReady = false;
  for (const resource of resources) {
    if (whyNotReady(tenant, resource.record) !== null) {
      notReady.add(resource);
      continue;
    }
    isAnyReady = true;
    freeName(turn, resource.name);
  }
  if (notReady.size > 0) {
    // Of its very name: who waits for a pattern over it wants nothing from its cell.
    const names = new Set(Array.from(notReady, ({ record }) => record.name));
    const isMeant = ({ name }: WaitingClaim): boolean => names.has(name.text);
    sweep(turn, {
      find: (most) => findWaiters(tenant, notReady, most),
      leaseEnd: () => null,
      requestEnd: ({ claims }) => (claims.some(isMeant) ? notReadyEnd : null),
    });
  }
  if (isAnyReady) turn.state.consequences.push({ type: "readiness_changed" });
}

export const notReadyEnd: RequestEnd = { fate: "PAUSED", reason: "cell_not_ready" };

function findWaiters(
  tenant: TenantEntry,
  resources: Iterable<ResourceEntry>,
  most: number,
): { requests: RequestEntry[]; leases: LeaseEntry[] } | null {
  const waiters = new Set<RequestEntry>();
  for (const { node, name } of resources) {
    for (const heads of [node.waiting, standbyNodeOf(tenant, name)?.waiting ?? null]) {
      eachAt(heads, (claim) => waiters.add((claim as WaitingClaim).request));
    }
    if (waiters.size > most) return null;
  }
  return { requests: [...waiters].sort((a, b) => a.record.arrival - b.record.arrival), leases: [] };
}

export function bound(turn: Turn, lease: LeaseEntry, coordinate: string | null): void {
  updateLease(turn, lease, { ...lease.record, coordinate, cellBy: null });
  if (lease.request?.record.state === "BINDING") return finishBinding(turn, lease.request);
  // It was HELD, and is set up again (L9).
  const { tenant, now } = turn;
  const { acquiredAt, ttl } = lease.record;
  const times = { acquiredAt, expiresAt: expiryFor(tenant, acquiredAt, now, ttl), activeAt: now, claimBy: null };
  updateLease(turn, lease, boundLease(lease.record, times));
  emitLease(turn, lease, "lease.revived", null);
}

export function bindFailed(turn: Turn, lease: LeaseEntry, reason: string): void {
  if (lease.request?.record.state === "BINDING") return endBinding(turn, lease.request, "BIND_FAILED", reason);
  endLeases(turn, [lease], "REVOKED", reason);
}

/** G7: an end that nobody could confirm becomes a hard refusal to lease, not a silent risk. */
export function teardownFailed(turn: Turn, lease: LeaseEntry, reason: string): void {
  tornDown(turn, lease);
  fence(turn, nameOf(lease), reason);
}

export function tornDown(turn: Turn, lease: LeaseEntry): void {
  const { closingAs, endReason, version } = lease.record;
  finishLease(turn, lease, closingAs ?? "REVOKED", endReason, version);
}

/**
 * L9: its cell has torn it down at its expiry, and its agent restarts: nobody else gets the resource for a while. The
 * cell's clock may be a little ahead of ours. False: there is no such reason to hold it.
 */
export function holdTornDown(turn: Turn, lease: LeaseEntry): boolean {
  const { record } = lease;
  if (record.state === "HELD") {
    updateLease(turn, lease, { ...record, coordinate: null, tornDown: true });
    return true;
  }
  if (!mayBeHeld(lease)) return false;
  updateLease(turn, lease, { ...heldLease(record, true), coordinate: null });
  emitLease(turn, lease, "lease.held", null);
  return true;
}

/** Ends a lease that its cell has already torn down, with the other half of its rename. */
export function finishGone(turn: Turn, lease: LeaseEntry, as: EndedLeaseState, reason: string | null): void {
  const others = withLinked(turn.tenant, lease).slice(1);
  finishLease(turn, lease, as, reason, lease.record.version);
  endLeases(turn, others, as, reason);
}
