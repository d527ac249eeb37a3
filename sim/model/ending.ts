/** How leases and requests end. The caller serves the waiters once everything that ends has ended (L6). */
import { rememberedMs, rememberedPerTenant } from "./numbers.ts";
import { addConcerns, noteEnd, pause, pauseIfBare } from "./observing.ts";
import {
  agentOf,
  type Fate,
  hasSomething,
  leasesOf,
  type ModelLease,
  type ModelRequest,
  type ModelTenant,
  standbyOf,
  waitingOf,
} from "./world.ts";

/** How a lease ends: its holder gives it up, with the version of what it left behind (A6), or loses it. */
export type End = { readonly version: string | null } | "expired" | "revoked";

function isLoss(end: End): end is "expired" | "revoked" {
  return typeof end === "string";
}

/** Both halves of a rename end together (C7). */
export function endLease(tenant: ModelTenant, lease: ModelLease, now: number, end: End): void {
  for (const half of lease.pair === null ? [lease] : [lease, lease.pair]) {
    if (!tenant.leases.includes(half)) continue;
    tenant.leases = tenant.leases.filter((one) => one !== half);
    noteEnd(tenant, half, now, isLoss(end) ? null : end.version);
    if (isLoss(end)) {
      const agent = agentOf(tenant, half.agentId);
      // Nobody saw anything of a grant that was never collected.
      const since = half.claimBy === null ? now : (half.request?.observeSince ?? now);
      addConcerns(agent, [half.resource], since);
      pauseIfBare(tenant, agent, now);
    }
    noteIdle(tenant, half.agentId, now);
    leaveRequest(tenant, half, isLoss(end) ? end : "released", now);
  }
}

export function endRequest(tenant: ModelTenant, request: ModelRequest, fate: Fate, now: number): void {
  request.state = fate;
  noteIdle(tenant, request.agentId, now);
  remember(tenant, request, now);
}

/** The request that it was granted to has one lease less: it ended or was transferred. */
export function leaveRequest(
  tenant: ModelTenant,
  lease: ModelLease,
  as: ModelRequest["ends"][number],
  now: number,
): void {
  const { request } = lease;
  lease.request = null;
  if (request === null) return;
  request.live--;
  request.ends.push(as);
  if (request.live === 0) remember(tenant, request, now);
}

/** PLANNING, COMPLETED and ABORTED hold no lease and no open request: going there ends them (A1). */
export function endAllOf(tenant: ModelTenant, agentId: string, now: number): void {
  cancelStandby(tenant, agentId, now);
  for (const request of waitingOf(tenant, agentId)) endRequest(tenant, request, "CANCELED", now);
  for (const lease of leasesOf(tenant, agentId)) endLease(tenant, lease, now, { version: null });
}

export function cancelStandby(tenant: ModelTenant, agentId: string, now: number): void {
  const request = standbyOf(tenant, agentId);
  if (request !== undefined) endRequest(tenant, request, "CANCELED", now);
}

/** W14: its time is over, or its agent has something else. It is one more death of its unit of work. */
export function dieStandby(tenant: ModelTenant, agentId: string, now: number): void {
  const request = standbyOf(tenant, agentId);
  if (request === undefined) return;
  const agent = agentOf(tenant, agentId);
  pause(
    agent,
    request.claims.map((claim) => claim.resource),
    now,
  );
  agent.attempts++;
  endRequest(tenant, request, "DIED", now);
}

/** W10: ten minutes, or until that many newer ones of the tenant have ended. */
function remember(tenant: ModelTenant, request: ModelRequest, now: number): void {
  if (request.passing) {
    tenant.requests = tenant.requests.filter((one) => one !== request);
    return;
  }
  request.forgetAt = now + rememberedMs;
  request.endedInOrder = ++tenant.lastEnded;
  const ended = tenant.requests.filter((one) => one.forgetAt !== null).sort((a, b) => b.endedInOrder - a.endedInOrder);
  const forgotten = ended.slice(rememberedPerTenant);
  tenant.requests = tenant.requests.filter((one) => !forgotten.includes(one));
}

/** S4: the week after which an agent is forgotten begins when it has nothing left. */
export function noteIdle(tenant: ModelTenant, agentId: string, now: number): void {
  if (hasSomething(tenant, agentId)) return;
  agentOf(tenant, agentId).idleSince = now;
}
