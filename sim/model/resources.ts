/** Operators' commands on resources and their leases (C6, G7, G12, L14). */
import { inTheWay } from "./conflicts.ts";
import { endLease, endRequest } from "./ending.ts";
import { isPattern, isUnder, overlap } from "./names.ts";
import { aheadOf, queue, serve, standbys } from "./waiting.ts";
import {
  agentOf,
  fieldOf,
  type ModelLease,
  type ModelResource,
  type ModelTenant,
  type Prediction,
  refused,
} from "./world.ts";

export function declare(
  tenant: ModelTenant,
  name: string,
  { capacity, refillMs }: { readonly capacity: number | null; readonly refillMs: number | null },
  now: number,
  step: number,
): Prediction {
  if (isPattern(name)) return refused("invalid_resource");
  const resource = known(tenant, name);
  const inUse =
    tenant.leases.some((lease) => overlap(lease.resource, name)) ||
    queue(tenant).some((request) => request.claims.some((claim) => overlap(claim.resource, name)));
  const isOtherKind =
    (resource.capacity === null) !== (capacity === null) || (resource.refillMs === null) !== (refillMs === null);
  if (isOtherKind && inUse) return refused("resource_in_use");
  const smaller = resource.capacity !== null && capacity !== null && capacity < resource.capacity;
  resource.capacity = capacity;
  resource.refillMs = refillMs;
  if (refillMs === null) resource.spent = [];
  resource.withdrawn = false;
  if (smaller && queue(tenant).some((request) => waitsWrongly(tenant, request.id))) return refused("resource_in_use");
  serve(tenant, now, step);
  return { type: "resource" };
}

/** G7: its live leases are revoked, its waiters are PAUSED, and nothing is leased on it until it is reset. */
export function fence(tenant: ModelTenant, name: string, now: number, step: number): Prediction {
  const resource = known(tenant, name);
  if (resource.fenced) return { type: "resource" };
  resource.fenced = true;
  clear(tenant, name, now);
  dismissWaiters(tenant, name, "resource_fenced", now);
  serve(tenant, now, step);
  return { type: "resource" };
}

export function reset(tenant: ModelTenant, name: string): Prediction {
  const resource = tenant.resources.find((one) => one.name === name);
  if (resource === undefined) return refused("resource_unknown");
  if (!resource.fenced) return { type: "resource" };
  resource.fenced = false;
  // A resource that was never declared, only fenced, has no record after its reset.
  const bare = !resource.withdrawn && resource.capacity === null;
  if (bare) tenant.resources = tenant.resources.filter((one) => one !== resource);
  return { type: "resource" };
}

export function withdraw(tenant: ModelTenant, name: string, revokes: boolean, now: number, step: number): Prediction {
  known(tenant, name).withdrawn = true;
  if (revokes) clear(tenant, name, now);
  dismissWaiters(tenant, name, "resource_withdrawn", now);
  serve(tenant, now, step);
  return { type: "resource" };
}

export function revoke(
  tenant: ModelTenant,
  applies: (lease: ModelLease) => boolean,
  now: number,
  step: number,
): Prediction {
  const before = tenant.leases.length;
  for (const lease of tenant.leases.filter(applies)) endLease(tenant, lease, now, "revoked");
  const count = before - tenant.leases.length;
  serve(tenant, now, step);
  return { type: "revoked", count };
}

export function isUnderPrefix(prefix: string): (lease: ModelLease) => boolean {
  const bare = prefix.replace(/(\/\*\*|\/)$/, "");
  const top = bare.endsWith(":") ? `${bare}/` : bare;
  return (lease) => isUnder(lease.resource, top);
}

function known(tenant: ModelTenant, name: string): ModelResource {
  const before = tenant.resources.find((one) => one.name === name);
  if (before !== undefined) return before;
  const fresh: ModelResource = { name, capacity: null, refillMs: null, spent: [], fenced: false, withdrawn: false };
  tenant.resources.push(fresh);
  return fresh;
}

function clear(tenant: ModelTenant, name: string, now: number): void {
  for (const lease of tenant.leases.filter((one) => overlap(one.resource, name)))
    endLease(tenant, lease, now, "revoked");
}

function dismissWaiters(tenant: ModelTenant, name: string, why: string, now: number): void {
  for (const request of [...queue(tenant), ...standbys(tenant)]) {
    if (!request.claims.some((claim) => overlap(claim.resource, name))) continue;
    request.pausedBecause = why;
    endRequest(tenant, request, "PAUSED", now);
  }
}

/** Whether a waiter now waits in the direction that the strategy forbids (W2, W7). */
function waitsWrongly(tenant: ModelTenant, requestId: string): boolean {
  return queue(tenant)
    .filter((request) => request.id === requestId)
    .some((request) => {
      const age = agentOf(tenant, request.agentId).priority;
      const { leases, requests } = inTheWay(fieldOf(tenant), request.agentId, request.claims, aheadOf(tenant, request));
      return [...leases, ...requests].some((other) => {
        const otherAge = agentOf(tenant, other.agentId).priority;
        return tenant.settings.strategy === "wait_die" ? age > otherAge : age < otherAge;
      });
    });
}
