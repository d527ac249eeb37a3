/** Units of counted resources (C6): held, reserved by waiters, and claimed. */

import { isBefore, type Place, some } from "../index/placed-lists.ts";
import type { Holder, ResourceEntry, WaitingClaim } from "../memory/state.ts";
/** C6: units of all holders, of waiters ahead, and those wanted, within the capacity. */
export function unitsFit(resource: ResourceEntry, place: Place, unitsClaimed: number): boolean {
  return resource.heldUnits + unitsAhead(resource, place) + unitsClaimed <= (resource.record.capacity ?? 0);
}

export function unitsAhead(resource: ResourceEntry, place: Place): number {
  if (place.order === Number.POSITIVE_INFINITY) return resource.waitingUnits;
  let units = 0;
  some(resource.node.waiting?.exclusive ?? null, (item) => {
    if (!isBefore(item, place)) return undefined;
    units += (item as WaitingClaim).intent.units;
    return false;
  });
  return units;
}

/** Units that the holder itself holds or waits for; waiting for those would be waiting for oneself (C6). */
export function ownUnits(resource: ResourceEntry, holder: Holder): number {
  let units = 0;
  for (let lease = holder.leases; lease !== null; lease = lease.nextOfHolder) {
    if (lease.node === resource.node) units += lease.record.units;
  }
  for (const request of holder.open) {
    for (const claim of request.claims) if (claim.node === resource.node) units += claim.intent.units;
  }
  return units;
}
