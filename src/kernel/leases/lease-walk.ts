/**
 * What is done to very many leases of one agent that live on (L14): heartbeats, a check, the re-issue of a take-up. It concerns
 * the leases that the agent had when it was decided, and is done slice by slice; a lease whose time runs out before its
 * slice is visited first, because the command came in time (L4).
 */
import { limits } from "../contract/limits.ts";
import { isSwept, type Walk } from "../memory/jobs.ts";
import {
  type AgentEntry,
  type Holder,
  type LeaseEntry,
  leasesOf,
  type TenantEntry,
  type Turn,
} from "../memory/state.ts";

/** How many leases of others are passed over for the price of one that is visited. */
const passedPerVisit = 16;

export function walkLeases(turn: Turn, agent: AgentEntry, visit: (turn: Turn, lease: LeaseEntry) => void): Walk {
  const walk = new LeaseWalk(turn, agent, visit);
  turn.tenant.walks.push(walk);
  turn.state.jobs.push(walk);
  return walk;
}

/** Before the lease ends by itself: what a walk is about to do to it is done now. */
export function visitIfWalked(turn: Turn, lease: LeaseEntry): void {
  for (const walk of turn.tenant.walks) walk.visitEarly(turn, lease);
}

/** As many of a holder's leases as an answer lists; the youngest, where it cannot list all. */
export function listedLeasesOf(holder: Holder): LeaseEntry[] {
  if (holder.leaseCount <= limits.leasesListedMax) return leasesOf(holder);
  const leases: LeaseEntry[] = [];
  for (let lease = holder.leases; lease !== null && leases.length < limits.leasesListedMax; lease = lease.nextOfHolder)
    leases.push(lease);
  return leases.sort((a, b) => a.order - b.order);
}

class LeaseWalk implements Walk {
  readonly tenant: TenantEntry;
  isDone = false;
  private readonly agent: AgentEntry;
  private readonly visit: (turn: Turn, lease: LeaseEntry) => void;
  /** What has a newer one was granted, renewed or handed over since. */
  private readonly fence: number;
  /** Sees each lease once, whatever comes and goes between two slices. */
  private readonly leases: Iterator<LeaseEntry>;
  private readonly visitedEarly = new Set<LeaseEntry>();

  constructor({ tenant }: Turn, agent: AgentEntry, visit: (turn: Turn, lease: LeaseEntry) => void) {
    this.tenant = tenant;
    this.agent = agent;
    this.visit = visit;
    this.fence = tenant.counters.record.fence;
    this.leases = tenant.leases.values();
  }

  run(turn: Turn, limit: number): void {
    for (let left = limit * passedPerVisit; left > 0; left--) {
      const { value: lease } = this.leases.next();
      if (lease === undefined) return this.end();
      if (!this.covers(lease)) continue;
      this.visit(turn, lease);
      left -= passedPerVisit;
    }
  }

  visitEarly(turn: Turn, lease: LeaseEntry): void {
    if (!this.covers(lease)) return;
    this.visitedEarly.add(lease);
    this.visit(turn, lease);
  }

  private covers(lease: LeaseEntry): boolean {
    if (lease.holder !== this.agent || lease.order > this.fence || this.visitedEarly.has(lease)) return false;
    return !isSwept(this.tenant, lease);
  }

  private end(): void {
    const { walks } = this.tenant;
    this.isDone = true;
    walks.splice(walks.indexOf(this), 1);
  }
}
