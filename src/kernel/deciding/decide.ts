/**
 * What becomes of a manifest, decided before anything is changed: bars (W9), denials (G2), then everything that stands
 * in its way, by Wait-Die or Wound-Wait (W2, W7).
 */
import { decidingPriority } from "../agents/agent-life.ts";
import type { Millis } from "../contract/records.ts";
import { deny, type Refusal, refuse } from "../contract/refusals.ts";
import { each, type Place } from "../index/placed-lists.ts";
import { isRefilled } from "../memory/refill.ts";
import {
  type AgentEntry,
  type Holder,
  type LeaseEntry,
  type ResourceEntry,
  type TenantEntry,
  withLinked,
} from "../memory/state.ts";
import { type Bar, findBar, findOverKind, isLeaseTimeUsedUp, whyNoMemory } from "./admission.ts";
import {
  type Claim,
  lastPlace,
  type Manifest,
  ownUnits,
  placeOf,
  unitsAhead,
  unitsClaimed,
  unitsFit,
} from "./manifest.ts";
import {
  addObstacles,
  addOverlapping,
  createObstacles,
  isCovered,
  isObstructed,
  type Obstacles,
  obstaclesTotal,
} from "./obstacles.ts";
import { isEldest } from "./seniority.ts";
import { blockersOf } from "./verdicts.ts";

export type Decision =
  | Refusal
  | Bar
  | { readonly type: "die"; readonly obstacles: Obstacles }
  | { readonly type: "wait"; readonly obstacles: Obstacles; readonly wounds: readonly LeaseEntry[] }
  | { readonly type: "grant"; readonly wounds: readonly LeaseEntry[] }
  /** W7: more are in the way than one step can find; `wounds` are those chosen for their units. */
  | { readonly type: "wound_many"; readonly obstacles: Obstacles; readonly wounds: readonly LeaseEntry[] };

const noWounds: readonly LeaseEntry[] = [];
const noWoundsPlanned: Wounds = { wounds: noWounds, mustWait: true, isMany: false };
const plainGrant: Decision = { type: "grant", wounds: noWounds };

/** `most`: how many leases may be looked at one by one, to be wounded. */
export function decide(
  tenant: TenantEntry,
  agent: AgentEntry,
  manifest: Manifest,
  now: Millis,
  most: number,
): Decision {
  const barred = findBar(tenant, agent, manifest.claims) ?? findDenial(tenant, agent, manifest, now);
  if (barred !== null) return barred;
  const { claims } = manifest;
  const isWaitDie = tenant.record.settings.strategy === "wait_die";
  const place = isWaitDie ? lastPlace : placeOf(tenant, decidingPriority(tenant, agent, now), Number.POSITIVE_INFINITY);
  const obstructed: Claim[] = [];
  let isClear = true;
  for (const { claim } of claims) {
    const units = claim.counted === null ? 0 : unitsClaimed(claims, claim);
    if (!isObstructed(tenant, claim, agent, place, units)) continue;
    obstructed.push(claim);
    isClear &&= isCovered(tenant, claim, agent);
  }
  if (isClear && (isWaitDie || !displacesUnits(manifest))) return plainGrant;
  const priority = decidingPriority(tenant, agent, now);
  // What is covered now may not be when the wait ends, so a requester that has to wait collects all that stands in its way.
  const { wounds, mustWait, isMany } = isWaitDie
    ? noWoundsPlanned
    : planWounds(tenant, manifest, agent, priority, place, most);
  if (!mustWait) return { type: "grant", wounds };
  const isOldest = (isWaitDie || isMany) && isEldest(tenant, claims, agent, priority, place);
  const obstacles = createObstacles();
  for (const claim of obstructed) {
    // The verdict is decided as soon as somebody older is met, or before, where nobody is.
    const enough = isWaitDie && !isOldest ? priority : isWaitDie || isMany ? all : Number.NEGATIVE_INFINITY;
    addObstacles(obstacles, tenant, claim, agent, place, unitsClaimed(claims, claim), enough);
  }
  if (isWaitDie && !isOldest && obstacles.oldest < priority) return { type: "die", obstacles };
  // Nobody older is in the way: then it does not wait for anybody, though it may take a while.
  const isRefused = isMany && isOldest ? null : whyNotWait(tenant, manifest, obstacles, now);
  return isRefused ?? { type: isMany ? "wound_many" : "wait", obstacles, wounds };
}

/** Above every priority: the verdict is decided by any obstacle. */
const all = Number.POSITIVE_INFINITY;

/** Under Wound-Wait a requester may go ahead of others who wait for units, even where there is room for itself (C6). */
export function displacesUnits({ claims }: Pick<Manifest, "claims">): boolean {
  return claims.some(({ claim }) => claim.counted !== null && claim.counted.waitingUnits > 0);
}

/** G2: first the tenant's quota, then the resource's capacity. */
function findDenial(tenant: TenantEntry, agent: AgentEntry, { claims }: Manifest, now: Millis): Refusal | null {
  const { quotas } = tenant.record;
  if (tenant.leases.size + tenant.waitingClaims + claims.length > quotas.leasesMax)
    return deny("quota", `The tenant may hold ${quotas.leasesMax} leases, those that requests wait for included.`);
  if (tenant.memoryBytes >= quotas.memoryBytesMax) return whyNoMemory(tenant);
  let patterns = tenant.patternCount;
  for (const { claim } of claims) if (claim.name.wild) patterns++;
  if (patterns > quotas.patternsMax && patterns > tenant.patternCount) {
    return deny("quota", `The tenant may hold ${quotas.patternsMax} patterns.`);
  }
  if (isLeaseTimeUsedUp(tenant, now)) return deny("quota", "The tenant's lease time for today is used up.");
  const over = findOverKind(tenant, claims);
  if (over !== null) return deny("quota", `The tenant may hold ${over.most} units of ${over.kind}, waiting ones too.`);
  for (const { claim } of claims) {
    if (claim.counted === null) continue;
    const capacity = claim.counted.record.capacity ?? 0;
    const units = unitsClaimed(claims, claim);
    if (units > capacity) return deny("capacity", `${claim.name.text} has ${capacity} units in all.`);
    // Units that come back with time are nobody's, and can be waited for by who has spent them (G15).
    if (isRefilled(claim.counted)) continue;
    if (units + ownUnits(claim.counted, agent) > capacity && !isCovered(tenant, claim, agent)) {
      return deny(
        "self_blocked",
        `The agent's own leases and requests leave no room on ${claim.name.text}; release some first.`,
      );
    }
  }
  return null;
}

function whyNotWait(tenant: TenantEntry, manifest: Manifest, obstacles: Obstacles, now: Millis): Refusal | null {
  if (manifest.waitTimeout === 0) {
    const { backAt } = obstacles;
    const taken =
      backAt === null
        ? "The resources are taken"
        : `The units are used up, until some come back in ${backAt - now} ms,`;
    return refuse("would_wait", `${taken} and wait_timeout_ms is 0; ask again later or allow a wait.`, {
      blockers: blockersOf(obstacles),
      blockersTotal: obstaclesTotal(obstacles),
    });
  }
  if (tenant.waitingCount + tenant.standby.count >= tenant.record.quotas.waitersMax) {
    return deny("quota", `The tenant may have ${tenant.record.quotas.waitersMax} requests waiting.`);
  }
  return null;
}

export interface Wounds {
  readonly wounds: readonly LeaseEntry[];
  readonly mustWait: boolean;
  /** More conflict by their names than may be looked at; they are not among the wounds. */
  readonly isMany: boolean;
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
  most: number,
): Wounds {
  const wounds = new Set<LeaseEntry>();
  const obstacles = createObstacles();
  const counted = new Map<ResourceEntry, number>();
  for (const { claim } of claims) {
    addOverlapping(obstacles, tenant, claim, holder, place, Number.NEGATIVE_INFINITY, most);
    if (claim.counted !== null) counted.set(claim.counted, unitsClaimed(claims, claim));
  }
  const isMany = obstacles.leases.size > most;
  let mustWait = isMany || obstacles.claims.size > 0;
  for (const lease of isMany ? noWounds : obstacles.leases) {
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
  return { wounds: [...wounds].sort((a, b) => a.order - b.order), mustWait, isMany };
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
  // Nobody's end brings units back that come back with time (G15).
  if (isRefilled(resource)) return unitsFit(resource, place, units);
  const capacity = resource.record.capacity ?? 0;
  const holders: LeaseEntry[] = [];
  each(resource.node.exclusive, (lease) => holders.push(lease as LeaseEntry));
  // A lease that is wounded already, or whose other half is, frees its units anyway (C7).
  const otherHalves = new Set<string | null>();
  for (const { record } of wounds) otherHalves.add(record.linkedTo);
  const isGone = (lease: LeaseEntry): boolean => {
    return lease.record.cell === null && (wounds.has(lease) || otherHalves.has(lease.record.id));
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
