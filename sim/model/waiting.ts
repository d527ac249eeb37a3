/**
 * The queue, and the verdicts of Wait-Die and Wound-Wait (W2, W3, W7), each decided by comparing with every lease and
 * request.
 */
import { claimsConflict, type InTheWay, inTheWay, isFree, unitsIn, unitsLeft } from "./conflicts.ts";
import { endLease } from "./ending.ts";
import { pause } from "./observing.ts";
import {
  agentOf,
  capacityOf,
  fieldOf,
  isOlder,
  type ModelLease,
  type ModelRequest,
  type ModelTenant,
  refilledOf,
} from "./world.ts";

/** The waiting requests, in the order in which they are served. */
export function queue(tenant: ModelTenant): ModelRequest[] {
  const age = (request: ModelRequest) =>
    tenant.settings.strategy === "wait_die" ? 0 : agentOf(tenant, request.agentId).priority;
  return tenant.requests
    .filter((request) => request.state === "WAITING")
    .sort((a, b) => age(a) - age(b) || a.arrival - b.arrival);
}

export function aheadOf(tenant: ModelTenant, request: ModelRequest): ModelRequest[] {
  const order = queue(tenant);
  return order.slice(0, order.indexOf(request));
}

/** W3: passes through the queue from its front, until a pass grants nothing. */
export function serve(tenant: ModelTenant, now: number, step: number): void {
  for (;;) {
    const next = queue(tenant).find((request) => {
      return isFree(inTheWay(fieldOf(tenant), request.agentId, request.claims, aheadOf(tenant, request)));
    });
    if (next === undefined) break;
    grant(tenant, next, now, step, now + tenant.settings.claimWithinMs);
  }
  for (;;) {
    const next = standbys(tenant).find((request) => mayBeGranted(tenant, request));
    if (next === undefined) return;
    grant(tenant, next, now, step, now + tenant.settings.claimWithinMs);
  }
}

/** What stands by, the oldest first (W14). */
export function standbys(tenant: ModelTenant): ModelRequest[] {
  const age = (request: ModelRequest) => agentOf(tenant, request.agentId).priority;
  return tenant.requests.filter((request) => request.state === "STANDBY").sort((a, b) => age(a) - age(b));
}

/** Whether it would be granted if it came now: nobody held or waited for what it wants. */
function mayBeGranted(tenant: ModelTenant, { agentId, claims }: ModelRequest): boolean {
  if (agentOf(tenant, agentId).pausedByOperator) return false;
  const fits = claims.every(({ resource }) => {
    const capacity = capacityOf(tenant, resource);
    return capacity === null || unitsIn(claims, resource) <= capacity;
  });
  return fits && isFree(inTheWay(fieldOf(tenant), agentId, claims, queue(tenant)));
}

/** W6: grants the whole manifest. `claimBy` is set for requests that waited (W8). */
export function grant(
  tenant: ModelTenant,
  request: ModelRequest,
  now: number,
  step: number,
  claimBy: number | null,
): ModelLease[] {
  const leases = request.claims.map(
    (claim, index): ModelLease => ({
      id: `${request.id}.${index}`,
      resource: claim.resource,
      predicate: claim.predicate,
      units: claim.units,
      agentId: request.agentId,
      request,
      pair: null,
      state: "ACTIVE",
      generation: 1,
      fence: ++tenant.lastFence,
      fencedInStep: step,
      acquiredAt: now,
      expiresAt: now + request.ttl,
      ttl: request.ttl,
      idleTimeout: request.idleTimeout,
      activeAt: now,
      claimBy,
      heldUntil: null,
      verified: false,
    }),
  );
  for (const at of request.renames) {
    const [name, target] = [leases[at], leases[at + 1]];
    if (name === undefined || target === undefined) throw new Error("a rename without its target");
    name.pair = target;
    target.pair = name;
  }
  tenant.leases.push(...leases);
  for (const { resource, units } of leases) {
    const refilled = refilledOf(tenant, resource);
    refilled?.spent.push({ at: now + (refilled.refillMs ?? 0), units });
  }
  request.state = "GRANTED";
  request.live = leases.length;
  const agent = agentOf(tenant, request.agentId);
  agent.state = "EXECUTING";
  agent.attempts = 0;
  agent.pausedAt = null;
  return leases;
}

/** W2: WAIT if the requester is older than all obstacles, of which there is at least one. */
export function mayWait(
  tenant: ModelTenant,
  { leases, requests }: InTheWay<ModelLease, ModelRequest>,
  agentId: string,
) {
  return [...leases, ...requests].every((one) => isOlder(tenant, agentId, one));
}

/** W7: revokes the younger holders' leases, before it is decided whether the requester still has to wait. */
export function wound(tenant: ModelTenant, request: ModelRequest, now: number): void {
  const isYounger = (lease: ModelLease) =>
    lease.agentId !== request.agentId && isOlder(tenant, request.agentId, lease) && tenant.leases.includes(lease);
  for (const claim of request.claims) {
    for (const lease of tenant.leases.filter((one) => claimsConflict(fieldOf(tenant), claim, one))) {
      if (isYounger(lease)) woundOne(tenant, lease, now);
    }
  }
  for (const name of new Set(request.claims.map((claim) => claim.resource))) {
    if (refilledOf(tenant, name) !== undefined) continue; // G15: nobody's end brings such units back.
    const youngestFirst = tenant.leases
      .filter((lease) => lease.resource === name)
      .sort((a, b) => agentOf(tenant, b.agentId).priority - agentOf(tenant, a.agentId).priority || b.fence - a.fence);
    for (const lease of youngestFirst) {
      if (isYounger(lease) && isTooMuch(tenant, request, lease)) woundOne(tenant, lease, now);
    }
  }
}

/** A1: its holder is PAUSED, as after DIE. */
function woundOne(tenant: ModelTenant, lease: ModelLease, now: number): void {
  endLease(tenant, lease, now, "revoked");
  const agent = agentOf(tenant, lease.agentId);
  if (agent.state === "EXECUTING" || agent.state === "VERIFYING") pause(agent, [], now);
}

/** Once the requester is ahead in the queue, neither it nor an older waiter may wait for this holder (W7). */
function isTooMuch(tenant: ModelTenant, request: ModelRequest, lease: ModelLease): boolean {
  const older = queue(tenant).filter((other) => other !== request && isOlder(tenant, other.agentId, lease));
  return unitsLeft(fieldOf(tenant), lease.resource, older) < unitsIn(request.claims, lease.resource);
}
