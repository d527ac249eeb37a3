/**
 * The server's history from its events, checked as they arrive: sequence numbers have no gap, time and fences only
 * grow, and no lease is granted on what another agent holds.
 */
import type { TortureEvent } from "./follow.ts";
import type { Violations } from "./violations.ts";
import { conflict, millisOf } from "./wire.ts";

export interface EventLease {
  readonly id: string;
  readonly agentId: string;
  readonly resource: string;
  readonly predicate: string;
  readonly acquiredAt: number;
  fence: number;
  end: { readonly state: string; readonly at: number } | null;
}

export interface ToldHistory {
  /** Live leases, and those that ended since the last clean-up. */
  readonly leases: Map<string, EventLease>;
  /** Numbers of the events that the filtered follower must get, in order. */
  readonly wanted: number[];
  readonly agents: Set<string>;
  readonly lastSeq: number;
  readonly count: number;
  take(seq: number, event: TortureEvent): void;
  forgetEnded(isKept: (id: string) => boolean): void;
}

/** The types that the second follower subscribes to; it must get exactly these. */
export const wantedTypes: readonly string[] = ["lease.granted", "agent.registered"];

export function createHistory(violations: Violations): ToldHistory {
  const leases = new Map<string, EventLease>();
  const holders = new Map<string, Set<EventLease>>();
  const wanted: number[] = [];
  const agents = new Set<string>();
  let [lastSeq, count, lastFence, lastAt] = [0, 0, 0, 0];

  function grant(lease: NonNullable<TortureEvent["lease"]>, event: TortureEvent): void {
    const { id, resource, predicate, agent_id: agentId, fence } = lease;
    const acquiredAt = millisOf(lease.acquired_at);
    const seen: EventLease = { id, agentId, resource, predicate, acquiredAt, fence, end: null };
    const others = holders.get(resource) ?? new Set();
    for (const other of others) {
      if (other.agentId === agentId) violations.add("W10", "an agent was granted the same twice", { other, event });
      else if (conflict(other.predicate, predicate)) violations.add("C1", "conflicting leases", { other, event });
    }
    if (leases.has(id)) violations.add("L12", "a lease began twice", event);
    holders.set(resource, others.add(seen));
    leases.set(id, seen);
  }

  function end({ id }: NonNullable<TortureEvent["lease"]>, state: string, at: number, event: TortureEvent): void {
    const seen = leases.get(id);
    if (seen === undefined || seen.end !== null) {
      return violations.add("L12", "a lease ended that was not live", { seen, event });
    }
    seen.end = { state, at };
    holders.get(seen.resource)?.delete(seen);
  }

  function takeLease(lease: NonNullable<TortureEvent["lease"]>, event: TortureEvent, at: number): void {
    const { type, reason } = event;
    switch (type) {
      case "lease.granted":
      case "lease.renewed": {
        if (lease.fence <= lastFence) violations.add("L11", `a fence is not above ${lastFence}`, event);
        lastFence = lease.fence;
        const seen = leases.get(lease.id);
        if (type === "lease.granted") grant(lease, event);
        else if (seen !== undefined) seen.fence = lease.fence;
        break;
      }
      case "lease.released":
        end(lease, "RELEASED", at, event);
        break;
      case "lease.expired":
        if (at < millisOf(lease.expires_at) && reason !== "unclaimed") violations.add("L3", "ended early", event);
        end(lease, "EXPIRED", at, event);
        break;
      default:
        violations.add("L12", `no client caused ${type}`, event);
    }
  }

  return {
    leases,
    wanted,
    agents,
    get lastSeq() {
      return lastSeq;
    },
    get count() {
      return count;
    },
    take(seq, event) {
      if (seq !== lastSeq + 1) violations.add("S1", `event ${seq} came after ${lastSeq}`, event);
      lastSeq = seq;
      count++;
      const at = millisOf(event.at);
      if (at < lastAt) violations.add("L7", "time ran backwards", { event, before: new Date(lastAt).toISOString() });
      lastAt = at;
      if (wantedTypes.includes(event.type)) wanted.push(seq);
      if (event.agent !== undefined) agents.add(event.agent.agent_id);
      if (event.lease !== undefined) takeLease(event.lease, event, at);
    },
    forgetEnded(isKept) {
      for (const [id, { end: ended }] of leases) if (ended !== null && !isKept(id)) leases.delete(id);
      for (const [resource, { size }] of holders) if (size === 0) holders.delete(resource);
    },
  };
}
