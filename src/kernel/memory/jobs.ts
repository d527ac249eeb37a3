/** Work that is done slice by slice (L14), and what it means for the leases and requests that it is about to end. */
import type { EndedLeaseState } from "../contract/records.ts";
import type { LeaseEntry, RequestEntry, TenantEntry, Turn } from "./state.ts";

/**
 * Work on very many records, done slice by slice with other commands in between (L14). It is in memory only: what a crash
 * leaves of it is a legal state, or is found and completed when the kernel is restored.
 */
export interface Job {
  readonly tenant: TenantEntry;
  isDone: boolean;
  /** Does up to `limit` records. */
  run(turn: Turn, limit: number): void;
}

export interface LeaseEnd {
  readonly as: EndedLeaseState;
  readonly reason: string | null;
  /** What the holder reported (A6); absent: nothing. */
  readonly versionOf?: (lease: LeaseEntry) => string | null;
}

export interface RequestEnd {
  readonly fate: "CANCELED" | "PAUSED";
  readonly reason: string;
}

/**
 * Ends very many leases and requests. From its decision on none of them is honoured, extended or granted: whatever comes
 * across one ends it first.
 */
export interface Sweep extends Job {
  /** Leases that it has ended, both halves of a rename. */
  count: number;
  /** How it is to end; null: it is not covered. */
  leaseEnd(lease: LeaseEntry): LeaseEnd | null;
  requestEnd(request: RequestEntry): RequestEnd | null;
}

/** Goes over very many leases of an agent that live on. */
export interface Walk extends Job {
  /** Does to the lease what it is about to do, if it is, ahead of its turn. */
  visitEarly(turn: Turn, lease: LeaseEntry): void;
}

/** W7: of a lease that an older requester took from its holder. */
export const woundedReason = "wounded";

/** The sweep that is about to end the lease. */
export function sweepOver({ sweeps }: TenantEntry, lease: LeaseEntry): Sweep | null {
  for (const sweep of sweeps) if (sweep.leaseEnd(lease) !== null) return sweep;
  return null;
}

export function isSwept(tenant: TenantEntry, lease: LeaseEntry): boolean {
  return tenant.sweeps.length > 0 && sweepOver(tenant, lease) !== null;
}

export function isRequestSwept({ sweeps }: TenantEntry, request: RequestEntry): boolean {
  return sweeps.length > 0 && sweeps.some((sweep) => sweep.requestEnd(request) !== null);
}
