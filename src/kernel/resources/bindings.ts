/** What a cell makes of a lease on what it hosts (G6, G7): bound, failed, torn down, gone. */

import type { EndedLeaseState } from "../contract/records.ts";
import { finishLease, updateLease } from "../leases/lease-life.ts";
import { type LeaseEntry, nameOf, type Turn, withLinked } from "../memory/state.ts";
import { endBinding, endLeases } from "../requests/ending.ts";
import { finishBinding } from "../requests/request-life.ts";
import { fence } from "./resource-life.ts";
export function bound(turn: Turn, lease: LeaseEntry, coordinate: string | null): void {
  updateLease(turn, lease, { ...lease.record, coordinate, cellBy: null });
  if (lease.request !== null) finishBinding(turn, lease.request);
}

export function bindFailed(turn: Turn, lease: LeaseEntry, reason: string): void {
  if (lease.request !== null) endBinding(turn, lease.request, "BIND_FAILED", reason);
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

/** Ends a lease that its cell has already torn down, with the other half of its rename. */
export function finishGone(turn: Turn, lease: LeaseEntry, as: EndedLeaseState, reason: string | null): void {
  const others = withLinked(turn.tenant, lease).slice(1);
  finishLease(turn, lease, as, reason, lease.record.version);
  endLeases(turn, others, as, reason);
}
