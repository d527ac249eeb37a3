/**
 * Whether a requester is older than everybody in its way (W2), without looking at each of them: of a million leases under
 * a broad pattern none needs to be looked at if only few holders of the tenant are older, and have none of them (C5).
 */
import { strengthsConflict } from "../contract/predicates.ts";
import type { Heap } from "../index/heap.ts";
import { isBefore, type Place } from "../index/placed-lists.ts";
import { type Holder, nameOf, refreshSenior, type Senior, type TenantEntry } from "../memory/state.ts";
import { namesOverlap } from "../names/pattern.ts";
import { type LinkedClaim, unitsClaimed, unitsFit } from "./manifest.ts";

/** Leases and waiting intents of older holders that are compared; with more the obstacles themselves are looked at. */
const comparedMax = 1_024;

/** True: nobody older than `priority` is in the way. False: somebody is, or it is not known. */
export function isEldest(
  tenant: TenantEntry,
  claims: readonly LinkedClaim[],
  holder: Holder,
  priority: number,
  place: Place,
): boolean {
  let left = comparedMax;
  for (const older of olderThan(tenant.seniors, priority)) {
    if (--left < 0) return false;
    if (refreshSenior(tenant, older) || older.holder === holder || older.rank >= priority) continue;
    left -= older.holder.leaseCount;
    for (const { claims: waiting } of older.holder.open) left -= waiting.length;
    if (left < 0 || obstructs(older.holder, claims, place)) return false;
  }
  return true;
}

/** As far as they are compared. Below one that is not older nobody is. */
function olderThan({ heap }: Heap<Senior>, priority: number): Senior[] {
  const found: Senior[] = [];
  const slots = [0];
  for (let slot = slots.pop(); slot !== undefined && found.length <= comparedMax; slot = slots.pop()) {
    const senior = heap[slot];
    if (senior === undefined || senior.rank >= priority) continue;
    found.push(senior);
    slots.push(2 * slot + 1, 2 * slot + 2);
  }
  return found;
}

function obstructs(older: Holder, claims: readonly LinkedClaim[], place: Place): boolean {
  return claims.some(({ claim }) => {
    const { name, strength, counted } = claim;
    const noUnits = counted !== null && !unitsFit(counted, place, unitsClaimed(claims, claim));
    const isMet = (node: object | null, other: Parameters<typeof namesOverlap>[1], otherStrength: typeof strength) => {
      if (counted !== null && node === counted.node) return noUnits;
      return strengthsConflict(strength, otherStrength) && namesOverlap(name, other);
    };
    for (let lease = older.leases; lease !== null; lease = lease.nextOfHolder) {
      if (isMet(lease.node, nameOf(lease), lease.strength)) return true;
    }
    for (const request of older.open) {
      for (const one of request.claims) {
        if (isBefore(one, place) && isMet(one.node, one.name, one.strength)) return true;
      }
    }
    return false;
  });
}
