/** Intents on their way to leases (C6, C7): names parsed, where they stand in the queue, and units of counted resources. */
import { EXCLUSIVE, type Strength, strengthOf } from "../contract/predicates.ts";
import type { Intent, Lease } from "../contract/records.ts";
import { isBefore, type Place, some } from "../index/placed-lists.ts";
import type { Holder, ResourceEntry, TenantEntry, WaitingClaim } from "../memory/state.ts";
import { canonicalName, type ResourceName } from "../names/resource-name.ts";

/** An intent on its way to a lease: its name parsed, its strength where it will stand. */
export interface Claim {
  readonly intent: Intent;
  readonly name: ResourceName;
  readonly strength: Strength;
  /** The counted resource of exactly this name, where units are what conflicts. */
  readonly counted: ResourceEntry | null;
}

/** A place after every waiter. */
export const lastPlace: Place = { order: Number.POSITIVE_INFINITY, suborder: 0 };

export function makeClaim(tenant: TenantEntry, intent: Intent, name: ResourceName): Claim {
  const resource = tenant.resources.size === 0 ? undefined : tenant.resources.get(name.text);
  const counted = resource !== undefined && resource.record.capacity !== null ? resource : null;
  return { intent, name, strength: counted === null ? strengthOf(intent.predicate) : EXCLUSIVE, counted };
}

/** What the lease would be asked for with. */
export function claimOfLease(tenant: TenantEntry, { predicate, resource, units }: Lease, name: ResourceName): Claim {
  return makeClaim(tenant, { predicate, resource, units, to: null, pick: null }, name);
}

/** One claim per name: a rename is two, each linked to the other (C7). */
export interface LinkedClaim {
  readonly claim: Claim;
  readonly linkedIndex: number | null;
}

export function claimsOf(
  tenant: TenantEntry,
  intents: readonly Intent[],
  picked: readonly string[] = nothingPicked,
): LinkedClaim[] {
  const claims: LinkedClaim[] = [];
  let at = 0;
  for (const intent of intents) {
    const claim = makeClaim(tenant, intent, canonicalName(picked[at++] ?? intent.resource));
    if (intent.to === null) claims.push({ claim, linkedIndex: null });
    else {
      claims.push({ claim, linkedIndex: claims.length + 1 });
      claims.push({ claim: makeClaim(tenant, intent, canonicalName(intent.to)), linkedIndex: claims.length - 1 });
    }
  }
  return claims;
}

const nothingPicked: readonly string[] = [];

/** C6: what the manifest takes of the claim's counted resource altogether. */
export function unitsClaimed(claims: readonly { readonly claim: Claim }[], { counted }: Claim): number {
  if (counted === null) return 0;
  let units = 0;
  for (const { claim } of claims) if (claim.counted === counted) units += claim.intent.units;
  return units;
}

/** Where the request stands in the queue: by arrival, or under Wound-Wait by age (W3, W7). */
export function placeOf(tenant: TenantEntry, priority: number, arrival: number): Place {
  return tenant.record.settings.strategy === "wait_die"
    ? { order: arrival, suborder: 0 }
    : { order: priority, suborder: arrival };
}

export function needsCells(tenant: TenantEntry, claims: readonly LinkedClaim[]): boolean {
  return tenant.resources.size > 0 && claims.some(({ claim }) => cellOf(tenant, claim) !== null);
}

/** The cell that hosts the resource, if it is bound (G6). */
export function cellOf(tenant: TenantEntry, { name }: Claim): string | null {
  return tenant.resources.size === 0 ? null : (tenant.resources.get(name.text)?.record.cell ?? null);
}

export function leavesChoice(intents: readonly Intent[]): boolean {
  for (const { pick } of intents) if (pick === "any") return true;
  return false;
}

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
