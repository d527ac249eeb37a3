/** Wound-Wait's half of the decision (W7): who is revoked for an older requester, and whether it must wait all the same. */

import { each, type Place } from "../index/placed-lists.ts";
import { type Holder, type LeaseEntry, type ResourceEntry, type TenantEntry, withLinked } from "../memory/state.ts";
import { unitsClaimed } from "./claims.ts";
import type { Manifest } from "./manifest.ts";
import { addOverlapping, createObstacles } from "./obstacles.ts";
import { unitsAhead } from "./units.ts";

export interface Wounds {
  readonly wounds: readonly LeaseEntry[];
  readonly mustWait: boolean;
}

/**
 * Every younger holder in the way is revoked, even if the requester then waits for an older one: otherwise an older
 * holder would wait for a younger.
 */
export function planWounds(
  tenant: TenantEntry,
  { claims }: Pick<Manifest, "claims">,
  holder: Holder,
  priority: number,
  place: Place,
): Wounds {
  const wounds = new Set<LeaseEntry>();
  const obstacles = createObstacles();
  const counted = new Map<ResourceEntry, number>();
  for (const { claim } of claims) {
    addOverlapping(obstacles, tenant, claim, holder, place, Number.NEGATIVE_INFINITY);
    if (claim.counted !== null) counted.set(claim.counted, unitsClaimed(claims, claim));
  }
  let mustWait = obstacles.claims.size > 0;
  for (const lease of obstacles.leases) {
    if (canWound(lease, priority)) wounds.add(lease);
    else mustWait = true;
  }
  for (const [resource, units] of counted) {
    if (!makeRoom(wounds, resource, units, holder, priority, place)) mustWait = true;
  }
  // What a cell must tear down first is not free with the wound; if it is in the way, it is waited for.
  for (const lease of [...wounds].flatMap((wounded) => withLinked(tenant, wounded))) {
    if (lease.record.cell !== null && (wounds.has(lease) || obstacles.leases.has(lease))) mustWait = true;
  }
  return { wounds: [...wounds].sort((a, b) => a.order - b.order), mustWait };
}

/** Of those who hold units only as many as needed are wounded, the youngest first. True: there is room then. */
function makeRoom(
  wounds: Set<LeaseEntry>,
  resource: ResourceEntry,
  units: number,
  holder: Holder,
  priority: number,
  place: Place,
): boolean {
  const capacity = resource.record.capacity ?? 0;
  const holders: LeaseEntry[] = [];
  each(resource.node.exclusive, (lease) => holders.push(lease as LeaseEntry));
  // A lease that is wounded already, or whose other half is, frees its units anyway (C7).
  const isGone = (lease: LeaseEntry): boolean => {
    if (lease.record.cell !== null) return false;
    return wounds.has(lease) || [...wounds].some(({ record }) => record.linkedTo === lease.record.id);
  };
  const younger = holders.filter((lease) => lease.holder !== holder && canWound(lease, priority) && !isGone(lease));
  let held = resource.heldUnits;
  for (const lease of holders) if (isGone(lease)) held -= lease.record.units;
  for (const lease of younger.sort((a, b) => b.holder.priority - a.holder.priority || b.order - a.order)) {
    // A waiter that is older than this holder must not be left waiting for it once the requester has gone ahead.
    const reserved = unitsAhead(resource, { order: lease.holder.priority, suborder: 0 });
    if (held + reserved + units <= capacity) continue;
    wounds.add(lease);
    held -= lease.record.units;
  }
  return held + unitsAhead(resource, place) + units <= capacity;
}

/** A lease that is closing already cannot be revoked again; it is waited for. */
function canWound(lease: LeaseEntry, priority: number): boolean {
  return lease.holder.priority > priority && lease.record.state !== "CLOSING";
}
