/** Compares acknowledgements with events: each must contain all of the other. */
import type { ToldHistory } from "./history.ts";
import type { AckedLease, Model } from "./model.ts";
import type { Violations } from "./violations.ts";
import { conflict } from "./wire.ts";

export function compareHistory({ leases }: Model, history: ToldHistory, violations: Violations): void {
  for (const known of leases.values()) {
    const seen = history.leases.get(known.id);
    const evidence = { known, seen };
    if (seen === undefined) {
      violations.add("S1", "an acknowledged grant has no event", evidence);
      continue;
    }
    const isSame =
      seen.fence === known.fence && seen.acquiredAt === known.acquiredAt && seen.resource === known.resource;
    if (!isSame) violations.add("L11", "the events show another grant", evidence);
    const end = seen.end?.state ?? null;
    // A lease that expires between the two readings is expired in the events and was live a moment before.
    if (end !== known.end && !(end === "EXPIRED" && known.end === null)) {
      violations.add("S1", `the events say ${end ?? "alive"}, the answers ${known.end ?? "alive"}`, evidence);
    }
  }
}

interface Interval {
  readonly known: AckedLease;
  readonly from: number;
  readonly until: number;
}

/**
 * No two conflicting leases for overlapping times, by the server's own clock. Each lease counts from acquired_at to
 * the time its end was announced with, or to the expiry that was acknowledged, whichever is first (L3).
 */
export function checkOverlaps({ leases }: Model, history: ToldHistory, violations: Violations): void {
  const byResource = Map.groupBy(leases.values(), ({ resource }) => resource);
  for (const ofResource of byResource.values()) {
    const intervals = ofResource.map((known): Interval => {
      const at = history.leases.get(known.id)?.end?.at ?? Number.POSITIVE_INFINITY;
      return { known, from: known.acquiredAt, until: Math.min(at, known.expiresAt) };
    });
    intervals.sort((a, b) => a.from - b.from);
    for (const [index, one] of intervals.entries()) {
      for (const other of intervals.slice(index + 1)) {
        if (other.from >= one.until) break;
        if (other.known.agentId === one.known.agentId || !conflict(one.known.predicate, other.known.predicate))
          continue;
        violations.add("C1", "two conflicting leases were acknowledged for the same time", { one, other });
      }
    }
  }
}
