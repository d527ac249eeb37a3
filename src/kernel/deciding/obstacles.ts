/** What stands in the way of an intent (C1, C6, W2): leases of other holders, and waiting intents ahead of it. */

import { limits } from "../contract/limits.ts";
import { EXCLUSIVE, type Strength, strengths, strengthsConflict, weakestConflicting } from "../contract/predicates.ts";
import type { Millis } from "../contract/records.ts";
import { each, isBefore, type Place, type Placed, some } from "../index/placed-lists.ts";
import { type Probe, search } from "../index/resource-search.ts";
import { type Branch, eachWaitingBelow, headOf, heldFrom, type Node, waitingFrom } from "../index/resource-tree.ts";
import { isSwept } from "../memory/jobs.ts";
import { isRefilled, unitsBackAt } from "../memory/refill.ts";
import {
  findRoot,
  type Holder,
  type LeaseEntry,
  nameOf,
  type RequestEntry,
  type ResourceEntry,
  type TenantEntry,
  type WaitingClaim,
} from "../memory/state.ts";
import type { Obstacle } from "../memory/task-state.ts";
import { nameCovers, namesOverlap } from "../names/pattern.ts";
import { canonicalName } from "../names/resource-name.ts";
import { type Claim, unitsAhead, unitsFit } from "./manifest.ts";

/** The claim stands free at this place of the queue: nothing conflicts, or the holder holds it already (W6). */
export function isFree(tenant: TenantEntry, claim: Claim, holder: Holder, place: Place, unitsClaimed: number): boolean {
  if (!isObstructed(tenant, claim, holder, place, unitsClaimed)) return true;
  return isCovered(tenant, claim, holder);
}

/** Stops at the first obstacle. */
export function isObstructed(
  tenant: TenantEntry,
  claim: Claim,
  holder: Holder,
  place: Place,
  unitsClaimed: number,
): boolean {
  const { counted } = claim;
  if (counted !== null && !unitsFit(counted, place, unitsClaimed)) return true;
  const root = findRoot(tenant, claim.name.type);
  if (root === undefined) return false;
  return search(root, claim.name, new FirstObstacle(claim, holder, place, false));
}

/** One thing that stands in the way, for a task to be parked on (T10): while it is there, the claim cannot be granted. */
export function findObstacle(
  tenant: TenantEntry,
  claim: Claim,
  holder: Holder,
  place: Place,
  unitsClaimed: number,
): Obstacle | null {
  const { counted } = claim;
  if (counted !== null && !unitsFit(counted, place, unitsClaimed)) return counted;
  const root = findRoot(tenant, claim.name.type);
  if (root === undefined) return null;
  const probe = new FirstObstacle(claim, holder, place, true);
  search(root, claim.name, probe);
  return probe.found;
}

class FirstObstacle implements Probe {
  found: Obstacle | null;
  private readonly weakest: Strength;
  private readonly skip: Node | null;
  private readonly holder: Holder;
  private readonly place: Place;
  /** Whether a count does not do, because the obstacle itself is wanted. */
  private readonly named: boolean;

  constructor(claim: Claim, holder: Holder, place: Place, named: boolean) {
    this.found = null;
    this.weakest = weakestConflicting[claim.strength];
    this.skip = claim.counted?.node ?? null;
    this.holder = holder;
    this.place = place;
    this.named = named;
  }

  visit(node: Node): boolean {
    if (node === this.skip) return false;
    for (let strength: number = EXCLUSIVE; strength >= this.weakest && this.found === null; strength--) {
      this.found = firstOther(headOf(node, strength as Strength), this.holder);
      if (this.found !== null || node.waiting === null) continue;
      this.found = firstOtherAhead(headOf(node.waiting, strength as Strength), this.holder, this.place);
    }
    return this.found !== null;
  }

  below(_node: Node, branch: Branch): "enter" | "skip" | "stop" {
    const held = heldFrom(branch, this.weakest);
    if (held > 0 && this.holder.leaseCount === 0 && !this.named) return "stop";
    return held > 0 || waitingFrom(branch, this.weakest) > 0 ? "enter" : "skip";
  }
}

function firstOther(head: Placed | null, holder: Holder): LeaseEntry | null {
  for (let item = head; item !== null; item = item.next === head ? null : item.next) {
    if ((item as LeaseEntry).holder !== holder) return item as LeaseEntry;
  }
  return null;
}

function firstOtherAhead(head: Placed | null, holder: Holder, place: Place): RequestEntry | null {
  for (let item = head; item !== null && isBefore(item, place); item = item.next === head ? null : item.next) {
    const { request } = item as WaitingClaim;
    if (request.holder !== holder) return request;
  }
  return null;
}

/** W6: one of the holder's own honoured leases covers the claim, so nothing new is taken. */
export function isCovered(tenant: TenantEntry, claim: Claim, holder: Holder): boolean {
  // Units are added up: what is held of a counted resource covers nothing more of it (C6).
  if (claim.counted !== null) return false;
  for (let lease = holder.leases; lease !== null; lease = lease.nextOfHolder) {
    const { record } = lease;
    if (record.state !== "ACTIVE" || strengths[record.predicate] < strengths[claim.intent.predicate]) continue;
    if (nameCovers(canonicalName(record.resource), claim.name) && !isSwept(tenant, lease)) return true;
  }
  return false;
}

/** Whether the lease is in the way of the claim by its name; units are another matter (C6). */
export function meets({ name, strength, counted }: Claim, lease: LeaseEntry): boolean {
  if (counted !== null && lease.node === counted.node) return false;
  return strengthsConflict(strength, lease.strength) && namesOverlap(name, nameOf(lease));
}

/** Everything in the way of a manifest, as far as the verdict and the reply need it (W2, W11). */
export interface Obstacles {
  readonly leases: Set<LeaseEntry>;
  readonly claims: Map<RequestEntry, WaitingClaim>;
  /** Obstacles that were counted without being looked at, by the node that they stand below. */
  readonly counted: Map<Node, number>;
  /** How many of `leases`, and of the nodes in `counted`, stand below each node; null until something is counted. */
  tallies: { readonly leases: Tally; readonly counted: Tally } | null;
  oldest: number;
  /** G15: when the units that are used up can be back; null where it is not units that are waited for. */
  backAt: Millis | null;
}

type Tally = Map<Node, number>;

export function createObstacles(): Obstacles {
  return {
    leases: new Set(),
    claims: new Map(),
    counted: new Map(),
    tallies: null,
    oldest: Number.POSITIVE_INFINITY,
    backAt: null,
  };
}

export function obstaclesTotal(obstacles: Obstacles): number {
  let total = obstacles.leases.size + obstacles.claims.size;
  for (const count of obstacles.counted.values()) total += count;
  return total;
}

/**
 * Adds what obstructs this claim. `enough` is the priority below which the verdict is decided: once something older was
 * met and thousands were looked at, the rest below a broad pattern is only counted (C5). Pass -Infinity to see it all.
 */
export function addObstacles(
  obstacles: Obstacles,
  tenant: TenantEntry,
  claim: Claim,
  holder: Holder,
  place: Place,
  unitsClaimed: number,
  enough: number,
): void {
  const { counted } = claim;
  if (counted !== null && !unitsFit(counted, place, unitsClaimed))
    addHolders(obstacles, counted, holder, place, unitsClaimed);
  addOverlapping(obstacles, tenant, claim, holder, place, enough);
}

/** C6: all who hold units are in the way. Those that come back with time nobody holds: only who waits ahead is (G15). */
function addHolders(
  obstacles: Obstacles,
  resource: ResourceEntry,
  holder: Holder,
  place: Place,
  unitsClaimed: number,
): void {
  if (!isRefilled(resource)) return addAt(obstacles, resource.node, EXCLUSIVE, holder, place);
  addWaitingAt(obstacles, resource.node, EXCLUSIVE, holder, place);
  const lacking = resource.heldUnits + unitsAhead(resource, place) + unitsClaimed - (resource.record.capacity ?? 0);
  const backAt = unitsBackAt(resource, lacking);
  if (backAt !== null) obstacles.backAt = Math.max(obstacles.backAt ?? 0, backAt);
}

/** Of those, the ones that overlap by name. The search ends once there are more than `most`. */
export function addOverlapping(
  obstacles: Obstacles,
  tenant: TenantEntry,
  claim: Claim,
  holder: Holder,
  place: Place,
  enough: number,
  most = Number.POSITIVE_INFINITY,
): void {
  const weakest = weakestConflicting[claim.strength];
  const root = findRoot(tenant, claim.name.type);
  if (root === undefined) return;
  const hasEnough = (): boolean => {
    const examined = obstacles.leases.size + obstacles.claims.size;
    return obstacles.oldest < enough && examined >= limits.obstaclesExaminedMax;
  };
  let own: Tally | null = null;
  search(root, claim.name, {
    hasEnough,
    visit(node) {
      if (node !== claim.counted?.node) addAt(obstacles, node, weakest, holder, place);
      return obstacles.leases.size > most;
    },
    below(node, branch, countable) {
      const held = heldFrom(branch, weakest);
      const waiting = waitingFrom(branch, weakest);
      if (held + waiting === 0) return "skip";
      if (!hasEnough()) return "enter";
      // The verdict is decided. What cannot be counted is left out of the number of obstacles, not looked at.
      if (!countable) return "stop";
      own ??= tallyOwn(holder, weakest);
      if (held > 0) countBelow(obstacles, node, held - (own.get(node) ?? 0));
      if (waiting > 0) eachWaitingBelow(branch, (one) => addWaitingAt(obstacles, one, weakest, holder, place));
      return "skip";
    },
  });
}

/**
 * Each obstacle counts once, also where it was looked at before or stands below a node that was counted. A broad pattern
 * counts at very many nodes, so what stands below each of them is tallied and not searched for.
 */
function countBelow(obstacles: Obstacles, node: Node, held: number): void {
  const { counted } = obstacles;
  if (counted.has(node) || isBelowCounted(obstacles, node)) return;
  obstacles.tallies ??= { leases: tallyLeases(obstacles.leases), counted: new Map() };
  const { tallies } = obstacles;
  const count = held - (tallies.leases.get(node) ?? 0);
  if (tallies.counted.has(node)) {
    // They are part of the greater count now.
    for (const known of counted.keys()) {
      if (!isBelow(known, node)) continue;
      counted.delete(known);
      tallyAbove(tallies.counted, known, -1);
    }
  }
  counted.set(node, count);
  tallyAbove(tallies.counted, node, 1);
}

function isBelowCounted({ counted }: Obstacles, node: Node | null): boolean {
  for (let above = node?.parent ?? null; above !== null; above = above.parent) if (counted.has(above)) return true;
  return false;
}

function tallyAbove(tally: Tally, node: Node | null, by: 1 | -1): void {
  for (let above = node?.parent ?? null; above !== null; above = above.parent) {
    const count = (tally.get(above) ?? 0) + by;
    if (count === 0) tally.delete(above);
    else tally.set(above, count);
  }
}

function tallyLeases(leases: Iterable<LeaseEntry>): Tally {
  const tally: Tally = new Map();
  for (const { node } of leases) tallyAbove(tally, node, 1);
  return tally;
}

function tallyOwn(holder: Holder, weakest: Strength): Tally {
  const tally: Tally = new Map();
  for (let lease = holder.leases; lease !== null; lease = lease.nextOfHolder) {
    if (lease.strength >= weakest) tallyAbove(tally, lease.node, 1);
  }
  return tally;
}

function addAt(obstacles: Obstacles, node: Node, weakest: Strength, holder: Holder, place: Place): void {
  for (let strength: number = EXCLUSIVE; strength >= weakest; strength--) {
    each(headOf(node, strength as Strength), (item) => addLease(obstacles, item as LeaseEntry, holder));
  }
  addWaitingAt(obstacles, node, weakest, holder, place);
}

function addWaitingAt(obstacles: Obstacles, node: Node, weakest: Strength, holder: Holder, place: Place): void {
  if (node.waiting === null) return;
  for (let strength: number = EXCLUSIVE; strength >= weakest; strength--) {
    some(headOf(node.waiting, strength as Strength), (item) => {
      if (!isBefore(item, place)) return undefined;
      addClaim(obstacles, item as WaitingClaim, holder);
      return false;
    });
  }
}

function addLease(obstacles: Obstacles, lease: LeaseEntry, holder: Holder): void {
  if (lease.holder === holder) return;
  if (obstacles.tallies !== null) {
    if (isBelowCounted(obstacles, lease.node)) return;
    if (!obstacles.leases.has(lease)) tallyAbove(obstacles.tallies.leases, lease.node, 1);
  }
  obstacles.leases.add(lease);
  obstacles.oldest = Math.min(obstacles.oldest, lease.holder.priority);
}

function addClaim(obstacles: Obstacles, claim: WaitingClaim, holder: Holder): void {
  if (claim.request.holder === holder) return;
  // Keep the claim that comes first in the manifest, so that replies do not depend on search order.
  const known = obstacles.claims.get(claim.request);
  const { claims } = claim.request;
  if (known === undefined || claims.indexOf(claim) < claims.indexOf(known)) obstacles.claims.set(claim.request, claim);
  obstacles.oldest = Math.min(obstacles.oldest, claim.request.holder.priority);
}

function isBelow(node: Node | null, top: Node): boolean {
  for (let above = node?.parent ?? null; above !== null; above = above.parent) if (above === top) return true;
  return false;
}
