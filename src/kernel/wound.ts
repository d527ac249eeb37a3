/** Wound-Wait's half of the decision (W7): who is revoked for an older requester, and whether it must wait all the same. */
import { type Obstacles, unitsAhead } from "./conflicts.ts";
import type { Manifest } from "./manifest.ts";
import { unitsWished } from "./request-life.ts";
import type { Place } from "./resource-index.ts";
import type { LeaseEntry, Party, ResourceEntry } from "./state.ts";

export interface Wounds {
  readonly wounds: readonly LeaseEntry[];
  readonly mustWait: boolean;
}

/**
 * Every younger holder in the way is revoked, even if the requester then waits for an older one: otherwise an older
 * party would wait for a younger. Of those who hold units, only as many as make room are, the youngest first.
 */
export function planWounds(
  manifest: Manifest,
  obstacles: Obstacles,
  party: Party,
  priority: number,
  place: Place,
): Wounds {
  const wounds: LeaseEntry[] = [];
  let mustWait = obstacles.claims.size > 0;
  const counted = new Map<ResourceEntry, number>();
  for (const { wish } of manifest.wishes)
    if (wish.counted !== null) counted.set(wish.counted, unitsWished(manifest.wishes, wish));
  const unitHolders = new Set<LeaseEntry>();
  for (const [resource, units] of counted) {
    const holders = [...obstacles.leases].filter((lease) => lease.node === resource.node);
    for (const lease of holders) unitHolders.add(lease);
    let missing = resource.heldUnits + unitsAhead(resource, place) + units - (resource.record.capacity ?? 0);
    const younger = holders
      .filter((lease) => canWound(lease, priority))
      .sort((a, b) => b.party.priority - a.party.priority || b.order - a.order);
    for (const lease of younger) {
      if (missing <= 0) break;
      wounds.push(lease);
      missing -= lease.record.units;
    }
    if (missing > 0) mustWait = true;
  }
  for (const lease of obstacles.leases) {
    if (unitHolders.has(lease) || lease.party === party) continue;
    if (canWound(lease, priority)) wounds.push(lease);
    else mustWait = true;
  }
  wounds.sort((a, b) => a.order - b.order);
  return { wounds, mustWait };
}

/** A lease that is closing already cannot be revoked again; it is waited for. */
function canWound(lease: LeaseEntry, priority: number): boolean {
  return lease.party.priority > priority && lease.record.state !== "CLOSING";
}
