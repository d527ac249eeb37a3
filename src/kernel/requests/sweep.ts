/**
 * Ending very many leases and requests at once (L14): a few in the same step, as every other end; more of them as a job,
 * slice by slice (memory/state.ts). Others may act in between: what a sweep covers is ended before they see it, and what
 * begins after the sweep is not covered by it.
 */
import { pauseWounded } from "../agents/agent-life.ts";
import { type Job, type LeaseEnd, type RequestEnd, type Sweep, sweepOver, woundedReason } from "../memory/jobs.ts";
import type { LeaseEntry, RequestEntry, TenantEntry, Turn } from "../memory/state.ts";
import { withLinked } from "../memory/state.ts";
import { endLeases, endRequest } from "./request-life.ts";
import { isOpen } from "./request-states.ts";

export interface Targets {
  /** All of them, in the order in which they end; null: there are more than `most`. */
  find(most: number): { readonly requests: readonly RequestEntry[]; readonly leases: readonly LeaseEntry[] } | null;
  leaseEnd(lease: LeaseEntry): LeaseEnd | null;
  requestEnd(request: RequestEntry): RequestEnd | null;
}

export const noRequestEnd = (): RequestEnd | null => null;

/** Very many leases that were found already, both halves of a rename. */
export function these({ tenant }: Turn, leases: readonly LeaseEntry[], end: LeaseEnd): Targets {
  const meant = new Set(leases.flatMap((lease) => withLinked(tenant, lease)));
  return { find: () => null, leaseEnd: (lease) => (meant.has(lease) ? end : null), requestEnd: noRequestEnd };
}

const suspendedLease: LeaseEnd = { as: "REVOKED", reason: "tenant_suspended" };
const suspendedRequest: RequestEnd = { fate: "PAUSED", reason: "tenant_suspended" };
/** All that a suspended tenant has. */
export const suspension = { leaseEnd: () => suspendedLease, requestEnd: () => suspendedRequest };

/** Begins to end them, and is done at once unless they are very many. */
export function sweep(turn: Turn, targets: Targets): Sweep {
  const { state, tenant } = turn;
  const begun = new SlicedSweep(turn, targets);
  const few = targets.find(state.sliceMax);
  if (few !== null) {
    for (const request of few.requests) begun.endRequest(turn, request);
    begun.endLeases(turn, few.leases);
    begun.isDone = true;
    return begun;
  }
  tenant.sweeps.push(begun);
  state.jobs.push(begun);
  return begun;
}

/** Of one that a restart cut short, which ends on its own. */
export function resumeSweep(turn: Turn, targets: Omit<Targets, "find">): void {
  const { state, tenant } = turn;
  const begun = new SlicedSweep(turn, targets);
  tenant.sweeps.push(begun);
  state.jobs.push(begun);
}

/** True: a sweep was about to end the lease, and it has ended now, or is closing. */
export function endIfSwept(turn: Turn, lease: LeaseEntry): boolean {
  const { sweeps } = turn.tenant;
  const over = sweeps.length === 0 ? null : sweepOver(turn.tenant, lease);
  if (over === null) return false;
  (over as SlicedSweep).endLeases(turn, [lease]);
  return true;
}

/** The same for a request that waits or binds. */
export function endRequestIfSwept(turn: Turn, request: RequestEntry): boolean {
  const over = turn.tenant.sweeps.find((one) => one.requestEnd(request) !== null);
  if (over === undefined) return false;
  (over as SlicedSweep).endRequest(turn, request);
  return true;
}

/** How many records are looked at for the price of one that is ended. */
const lookedAtPerEnd = 16;

class SlicedSweep implements Sweep {
  readonly tenant: TenantEntry;
  count = 0;
  isDone = false;
  private readonly targets: Omit<Targets, "find">;
  /** What is newer than these began after the sweep. */
  private readonly fence: number;
  private readonly arrival: number;
  /** See each item once, whatever comes and goes between two slices. */
  private readonly requests: Iterator<RequestEntry>;
  private readonly leases: Iterator<LeaseEntry>;

  constructor({ tenant }: Turn, targets: Omit<Targets, "find">) {
    this.tenant = tenant;
    this.targets = targets;
    this.fence = tenant.counters.record.fence;
    this.arrival = tenant.counters.record.arrival;
    this.requests = tenant.requests.values();
    this.leases = tenant.leases.values();
  }

  leaseEnd(lease: LeaseEntry): LeaseEnd | null {
    if (lease.record.state === "CLOSING" || lease.order > this.fence) return null;
    return this.targets.leaseEnd(lease);
  }

  requestEnd(request: RequestEntry): RequestEnd | null {
    if (!isOpen(request.record) || request.record.arrival > this.arrival) return null;
    return this.targets.requestEnd(request);
  }

  run(turn: Turn, limit: number): void {
    for (let left = limit * lookedAtPerEnd; left > 0; left--) {
      const { value: request } = this.requests.next();
      if (request !== undefined) {
        if (this.requestEnd(request) === null) continue;
        this.endRequest(turn, request);
        left -= lookedAtPerEnd;
        continue;
      }
      const { value: lease } = this.leases.next();
      if (lease === undefined) return this.end();
      if (this.leaseEnd(lease) === null) continue;
      this.endLeases(turn, [lease]);
      left -= lookedAtPerEnd;
    }
  }

  endRequest(turn: Turn, request: RequestEntry): void {
    const end = this.requestEnd(request);
    if (end !== null) endRequest(turn, request, end.fate, end.reason);
  }

  endLeases(turn: Turn, leases: readonly LeaseEntry[]): void {
    const counted = new Set<LeaseEntry>();
    for (const lease of leases) {
      if (this.leaseEnd(lease) === null) continue;
      for (const half of withLinked(this.tenant, lease)) if (half.record.state !== "CLOSING") counted.add(half);
    }
    this.count += counted.size;
    for (const lease of leases) {
      const end = this.leaseEnd(lease);
      if (end === null) continue;
      endLeases(turn, [lease], end.as, end.reason, end.versionOf);
      if (end.reason === woundedReason) pauseWounded(turn, lease);
    }
  }

  private end(): void {
    const { sweeps } = this.tenant;
    this.isDone = true;
    sweeps.splice(sweeps.indexOf(this), 1);
  }
}

/** An answer that is given when a job is done. It may still act: nothing else happens between. */
export interface Later<Reply> {
  readonly type: "later";
  readonly job: Job;
  readonly reply: (turn: Turn) => Reply;
}

export function answerAfter<Reply>(turn: Turn, job: Job | null, reply: (turn: Turn) => Reply): Reply | Later<Reply> {
  return job === null || job.isDone ? reply(turn) : { type: "later", job, reply };
}
