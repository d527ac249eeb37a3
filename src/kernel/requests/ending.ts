/** Ends leases from outside: by their holder, by time, or by a revocation. */
import type { EndedLeaseState } from "../contract/records.ts";
import { endLease } from "../leases/lease-life.ts";
import type { LeaseEntry, RequestEntry, Turn } from "../memory/state.ts";
import { endWait, liveLeasesOf } from "./request-life.ts";

/** Ends leases, each with the other half of its rename, and a request that was still binding as a whole. */
export function endLeases(
  turn: Turn,
  leases: readonly LeaseEntry[],
  as: EndedLeaseState,
  reason: string | null,
  versionOf: ((lease: LeaseEntry) => string | null) | null = null,
): void {
  for (const lease of leases) {
    const { linkedTo } = lease.record;
    endOne(turn, lease, as, reason, versionOf);
    // What is left of a task's manifest ends with the attempt (T10).
    if (linkedTo === null || lease.holder.kind === "task") continue;
    const other = turn.tenant.leases.get(linkedTo);
    if (other !== undefined) endOne(turn, other, as, reason, versionOf);
  }
}

function endOne(
  turn: Turn,
  lease: LeaseEntry,
  as: EndedLeaseState,
  reason: string | null,
  versionOf: ((lease: LeaseEntry) => string | null) | null,
): void {
  if (!lease.alive || lease.record.state === "CLOSING") return;
  if (lease.request?.record.state === "BINDING") {
    return endBinding(turn, lease.request, "CANCELED", reason ?? as.toLowerCase());
  }
  endLease(turn, lease, as, reason, versionOf === null ? null : versionOf(lease));
}

/** One failed or abandoned bind undoes the whole manifest. */
export function endBinding(
  turn: Turn,
  request: RequestEntry,
  fate: "CANCELED" | "PAUSED" | "BIND_FAILED",
  reason: string,
): void {
  const leases = liveLeasesOf(turn.tenant, request);
  endWait(turn, request, fate, reason);
  for (const lease of leases) {
    if (lease.record.state !== "CLOSING") endLease(turn, lease, "REVOKED", reason, null);
  }
}

/** Ends what a request waits for or binds. */
export function endRequest(turn: Turn, request: RequestEntry, fate: "CANCELED" | "PAUSED", reason: string): void {
  if (request.record.state === "WAITING") endWait(turn, request, fate, reason);
  else if (request.record.state === "BINDING") endBinding(turn, request, fate, reason);
}
