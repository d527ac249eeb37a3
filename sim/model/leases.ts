/** Commands on a held lease (L4, L5, L13 to L15, G8). */
import type { RenewLease } from "../../src/kernel/contract/commands.ts";
import { type Predicate, predicates } from "../../src/kernel/contract/predicates.ts";
import { claimsConflict, inTheWay, unitsIn } from "./conflicts.ts";
import { dieStandby, endLease, leaveRequest, noteIdle } from "./ending.ts";
import { overlap } from "./names.ts";
import { noteEnd, observe, type PredictedObservation, pauseIfBare } from "./observing.ts";
import { aheadOf, queue, serve } from "./waiting.ts";
import {
  agentOf,
  beginUnit,
  capacityOf,
  fenceAnew,
  fieldOf,
  leasesOf,
  type ModelLease,
  type ModelRequest,
  type ModelTenant,
  type Prediction,
  refilledOf,
  refused,
  waitingOf,
} from "./world.ts";

export function halvesOf(lease: ModelLease): ModelLease[] {
  return lease.pair === null ? [lease] : [lease, lease.pair];
}

/** The live leases that were granted with it. */
function grantOf(tenant: ModelTenant, lease: ModelLease): ModelLease[] {
  return tenant.leases.filter((one) => one === lease || (one.request !== null && one.request === lease.request));
}

/** W8: any sign of life collects the grant that the lease belongs to. The request, if that was not collected before. */
export function collect(tenant: ModelTenant, lease: ModelLease): ModelRequest | null {
  const collected = lease.claimBy === null ? null : lease.request;
  for (const one of grantOf(tenant, lease)) one.claimBy = null;
  return collected;
}

/** A4: the update for the agent that collects these requests. */
export function toldWith(
  tenant: ModelTenant,
  requests: readonly (ModelRequest | null)[],
): { readonly observation?: PredictedObservation } {
  const blind = requests.filter((one) => one !== null).filter((one) => one.observeSince !== null);
  const [first] = blind;
  if (first === undefined) return {};
  const since = Math.min(...blind.map((one) => one.observeSince ?? 0));
  const asked = blind.flatMap((one) => one.claims.map((claim) => claim.resource));
  return { observation: observe(tenant, agentOf(tenant, first.agentId), since, asked) };
}

export function heartbeat(tenant: ModelTenant, lease: ModelLease, activity: boolean, now: number): Prediction {
  if (lease.state === "HELD" && !lease.verified) return refused("verify_required");
  if (isWithdrawn(tenant, lease)) {
    // A sign of life all the same.
    if (lease.state === "ACTIVE") collect(tenant, lease);
    if (lease.state === "ACTIVE" && activity) for (const half of halvesOf(lease)) half.activeAt = now;
    return { ...refused("resource_withdrawn"), changes: true };
  }
  for (const half of halvesOf(lease)) {
    // Its holder was restarting, so it does not count as idle.
    if (activity || half.state === "HELD") half.activeAt = now;
    half.state = "ACTIVE";
    half.expiresAt = now + half.ttl;
  }
  return { type: "lease", leaseIds: [lease.id], ...toldWith(tenant, [collect(tenant, lease)]) };
}

/** G12: it covers something that was withdrawn. */
function isWithdrawn(tenant: ModelTenant, lease: ModelLease): boolean {
  const withdrawn = tenant.resources.filter((resource) => resource.withdrawn);
  return halvesOf(lease).some((half) => withdrawn.some(({ name }) => overlap(half.resource, name)));
}

export function renew(
  tenant: ModelTenant,
  lease: ModelLease,
  { generation, activity }: RenewLease,
  now: number,
  step: number,
): Prediction {
  if (lease.state === "HELD" && !lease.verified) return refused("verify_required");
  if (isWithdrawn(tenant, lease)) return refused("resource_withdrawn");
  if (generation !== null && generation !== lease.generation) return refused("stale_generation");
  for (const half of halvesOf(lease)) {
    if (activity || half.state === "HELD") half.activeAt = now;
    half.state = "ACTIVE";
    half.expiresAt = now + half.ttl;
    half.generation++;
    fenceAnew(tenant, half, step);
  }
  return { type: "lease", leaseIds: [lease.id], ...toldWith(tenant, [collect(tenant, lease)]) };
}

/** W1: an agent at work that releases its last lease, with no request open, ends its unit of work. */
export function release(
  tenant: ModelTenant,
  leases: readonly ModelLease[],
  versionOf: (lease: ModelLease) => string | null,
  now: number,
  step: number,
): void {
  for (const lease of leases) {
    if (!tenant.leases.includes(lease)) continue;
    // Both halves of a rename, each with its own version.
    for (const half of halvesOf(lease)) {
      half.pair = null;
      endLease(tenant, half, now, { version: versionOf(half) });
    }
    completeIfDone(tenant, lease.agentId, now);
  }
  serve(tenant, now, step);
}

/** W1: with no request open the unit of work is over; with one, the agent waits for it. */
function completeIfDone(tenant: ModelTenant, agentId: string, now: number): void {
  const agent = agentOf(tenant, agentId);
  if (leasesOf(tenant, agent.id).length > 0) return;
  if (waitingOf(tenant, agent.id).length > 0) return pauseIfBare(tenant, agent, now);
  if (agent.state !== "EXECUTING" && agent.state !== "VERIFYING") return;
  agent.state = "COMPLETED";
  agent.pausedAt = null;
  agent.concerns = [];
}

export function downgrade(
  tenant: ModelTenant,
  lease: ModelLease,
  { predicate: wish, version }: { readonly predicate: string; readonly version: string | null },
  now: number,
  step: number,
): Prediction {
  const predicate = predicates.find((one) => one === wish);
  if (predicate === undefined) return refused("invalid_predicate");
  const order: readonly Predicate[][] = [["CONSUMES", "DEPENDS_ON"], ["PROVIDES"], ["MUTATES", "DELETES", "RENAMES"]];
  const strength = (one: Predicate) => order.findIndex((equals) => equals.includes(one));
  if (lease.state === "HELD") return refused("verify_required");
  if (predicate === lease.predicate) return { type: "lease", leaseIds: [lease.id] };
  if (strength(predicate) >= strength(lease.predicate)) return refused("not_weaker");
  for (const half of halvesOf(lease)) {
    noteEnd(tenant, { ...half, claimBy: null }, now, version);
    half.predicate = predicate;
  }
  serve(tenant, now, step);
  return { type: "lease", leaseIds: [lease.id] };
}

/** L15: a transfer must not cause a conflict, nor make a waiter wait in the forbidden direction (W2, W7). */
export function transfer(
  tenant: ModelTenant,
  lease: ModelLease,
  { toAgentId: receiverId, version }: { readonly toAgentId: string; readonly version: string | null },
  now: number,
  step: number,
): Prediction {
  if (lease.state === "HELD") return refused("verify_required");
  const receiver = tenant.agents.find((agent) => agent.id === receiverId);
  if (receiver === undefined) return refused("agent_unknown");
  if (receiver.id === lease.agentId) return { type: "lease", leaseIds: [lease.id] };
  if (receiver.state === "COMPLETED" || receiver.state === "ABORTED") beginUnit(tenant, receiver, now);
  const giver = lease.agentId;
  for (const half of halvesOf(lease)) half.agentId = receiver.id;
  const clashes = halvesOf(lease).some((half) =>
    tenant.leases.some((other) => other.agentId !== receiver.id && claimsConflict(fieldOf(tenant), half, other)),
  );
  if (waitsForItself(tenant, receiver.id, halvesOf(lease))) return refused("transfer_refused");
  if (clashes || someWaitIsTurned(tenant, halvesOf(lease))) return refused("transfer_refused");
  dieStandby(tenant, receiver.id, now);
  for (const half of halvesOf(lease)) {
    noteEnd(tenant, { ...half, agentId: giver, claimBy: null }, now, version);
    fenceAnew(tenant, half, step);
    half.generation++;
    half.claimBy = null;
    // Its key stays with the giver, so the request needs a record of its own.
    if (half.request !== null) half.request.carried = false;
    leaveRequest(tenant, half, "released", now);
  }
  noteIdle(tenant, giver, now);
  completeIfDone(tenant, giver, now);
  // A receiver that is at work or PAUSED keeps its state.
  const stays = receiver.state === "PAUSED" || receiver.state === "EXECUTING" || receiver.state === "VERIFYING";
  if (!stays) receiver.state = "EXECUTING";
  serve(tenant, now, step);
  return { type: "lease", leaseIds: [lease.id] };
}

/** C6: an agent never waits for its own units. */
function waitsForItself(tenant: ModelTenant, agentId: string, leases: readonly ModelLease[]): boolean {
  const wanted = waitingOf(tenant, agentId).flatMap((request) => request.claims);
  return leases.some(({ resource }) => {
    const capacity = capacityOf(tenant, resource);
    if (refilledOf(tenant, resource) !== undefined) return false;
    if (capacity === null || unitsIn(wanted, resource) === 0) return false;
    return unitsIn(leasesOf(tenant, agentId), resource) + unitsIn(wanted, resource) > capacity;
  });
}

/** Whether a waiter now waits for one of these leases in the direction that the strategy forbids (W2, W7). */
export function someWaitIsTurned(tenant: ModelTenant, leases: readonly ModelLease[]): boolean {
  return queue(tenant).some((request) => {
    const age = agentOf(tenant, request.agentId).priority;
    const blocking = inTheWay(fieldOf(tenant), request.agentId, request.claims, aheadOf(tenant, request)).leases;
    return blocking
      .filter((lease) => leases.includes(lease))
      .some((lease) => {
        const other = agentOf(tenant, lease.agentId).priority;
        return tenant.settings.strategy === "wait_die" ? age > other : age < other;
      });
  });
}
