/** What is due (L3, L9, L10, W4, W8, S4), found by checking every deadline. */
import { dieStandby, endLease, endRequest } from "./ending.ts";
import { agentIdleMs, heldMs } from "./numbers.ts";
import { serve } from "./waiting.ts";
import { agentOf, hasSomething, type ModelLease, type ModelRequest, type ModelTenant } from "./world.ts";

interface Due {
  readonly at: number;
  readonly happen: () => void;
}

/** Waits end before anything is granted; then the rest in order of its deadline, each with the grants it allows. */
export function settleTenant(tenant: ModelTenant, now: number, step: number): void {
  for (const request of tenant.requests.filter((one) => one.state === "WAITING" && one.timeoutAt <= now)) {
    endRequest(tenant, request, "TIMED_OUT", now);
  }
  for (const request of tenant.requests.filter((one) => one.state === "STANDBY" && one.timeoutAt <= now)) {
    dieStandby(tenant, request.agentId, now);
  }
  serve(tenant, now, step);
  for (;;) {
    const [first] = dueItems(tenant, now)
      .filter((due) => due.at <= now)
      .sort((a, b) => a.at - b.at);
    if (first === undefined) return;
    first.happen();
    serve(tenant, now, step);
  }
}

/** The tenant's next deadline. */
export function nextDue(tenant: ModelTenant): number {
  const waits = tenant.requests
    .filter((one) => one.state === "WAITING" || one.state === "STANDBY")
    .map((request) => request.timeoutAt);
  return Math.min(...waits, ...dueItems(tenant, 0).map((due) => due.at));
}

function dueItems(tenant: ModelTenant, now: number): Due[] {
  const items: Due[] = [];
  // By fence: of leases that end in the same millisecond, the older grant ends first.
  for (const lease of [...tenant.leases].sort((a, b) => a.fence - b.fence)) {
    items.push(endOf(tenant, lease, now));
    // W8: the grant was not collected. Its leases have the same deadline and end one after the other.
    const { claimBy } = lease;
    if (claimBy !== null) items.push({ at: claimBy, happen: () => endLease(tenant, lease, now, "expired") });
    if (lease.idleTimeout !== null && lease.state === "ACTIVE") {
      items.push({ at: lease.activeAt + lease.idleTimeout, happen: () => endLease(tenant, lease, now, "revoked") });
    }
  }
  for (const request of tenant.requests) {
    if (request.forgetAt === null || request.carried) continue;
    items.push({ at: request.forgetAt, happen: () => forget(tenant, request) });
  }
  for (const agent of tenant.agents) {
    if (hasSomething(tenant, agent.id)) continue;
    items.push({
      at: agent.idleSince + agentIdleMs,
      happen: () => {
        tenant.agents = tenant.agents.filter((one) => one !== agent);
        tenant.epochFloor = Math.max(tenant.epochFloor, agent.epoch);
        tenant.requests = tenant.requests.filter((one) => one.agentId !== agent.id);
      },
    });
  }
  for (const resource of tenant.resources) {
    for (const back of resource.spent) {
      items.push({
        at: back.at,
        happen: () => {
          resource.spent = resource.spent.filter((one) => one.at !== back.at);
        },
      });
    }
  }
  return items;
}

/** W10: its key is free again. Agents with only remembered requests already count as idle. */
function forget(tenant: ModelTenant, request: ModelRequest): void {
  tenant.requests = tenant.requests.filter((one) => one !== request);
}

/** L3 or L9: a lease of a restarting agent is held once before it expires. */
function endOf(tenant: ModelTenant, lease: ModelLease, now: number): Due {
  if (lease.state === "HELD")
    return { at: lease.heldUntil ?? 0, happen: () => endLease(tenant, lease, now, "expired") };
  return {
    at: lease.expiresAt,
    happen: () => {
      const mayBeHeld = agentOf(tenant, lease.agentId).restarting && lease.heldUntil === null;
      if (!mayBeHeld) return endLease(tenant, lease, now, "expired");
      for (const half of lease.pair === null ? [lease] : [lease, lease.pair]) {
        half.state = "HELD";
        half.claimBy = null;
        half.heldUntil = half.expiresAt + heldMs;
        half.verified = false;
      }
    },
  };
}
