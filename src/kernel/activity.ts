/**
 * What an agent is doing, for those who watch a fleet (contract/activities.ts). It is
 * derived from its record, its leases and its requests whenever they are read; nothing is stored or decided by it.
 */

import { blindSince, lookAround } from "./agents/observing.ts";
import { type Activity, silentMsMax } from "./contract/activities.ts";
import { limits } from "./contract/limits.ts";
import { SHARED } from "./contract/predicates.ts";
import type { Agent, Lease, Millis, Request } from "./contract/records.ts";
import type { Blocker, Observation } from "./contract/replies.ts";
import { leaseBlocker } from "./deciding/verdicts.ts";
import { some } from "./index/placed-lists.ts";
import { search } from "./index/resource-search.ts";
import { heldFrom } from "./index/resource-tree.ts";
import { type AgentEntry, findRoot, type LeaseEntry, type State, type TenantEntry } from "./memory/state.ts";
import { canonicalName } from "./names/resource-name.ts";

export interface AgentActivity {
  readonly agent: Agent;
  readonly activity: Activity;
  /** About since when. */
  readonly since: Millis;
  /** Some of them, the oldest first. */
  readonly leases: readonly Lease[];
  readonly leasesTotal: number;
  /** What it asks for and has not got. */
  readonly requests: readonly Request[];
}

/** Each agent with what it is doing. */
export function* activitiesOf(
  { tenants }: State,
  tenantId: string,
  now: Millis,
): Generator<{ readonly agent: Agent; readonly activity: Activity }> {
  for (const entry of tenants.get(tenantId)?.agents.values() ?? []) {
    if (entry.alive) yield { agent: entry.record, activity: activityOf(entry, now) };
  }
}

/** With what it holds, of which at most `leasesMax` are listed, and what it asks for. */
export function activityOfAgent(
  { tenants }: State,
  tenantId: string,
  agentId: string,
  now: Millis,
  leasesMax: number,
): AgentActivity | null {
  const agent = tenants.get(tenantId)?.agents.get(agentId);
  return agent === undefined ? null : describeAgent(agent, now, leasesMax);
}

/** A4: the update that the agent would get if it went on now. It still gets it. */
export function observationOfAgent(state: State, tenantId: string, agentId: string, now: Millis): Observation | null {
  const tenant = state.tenants.get(tenantId);
  const agent = tenant?.agents.get(agentId);
  if (tenant === undefined || agent === undefined) return null;
  return lookAround({ state, tenant, now }, agent, blindSince(agent, []) ?? now, []);
}

/** The leases of others on what an agent without a request died for or lost. */
export function inTheWayOf(
  { tenants }: State,
  tenantId: string,
  agentId: string,
): { readonly blockers: readonly Blocker[]; readonly total: number } {
  const tenant = tenants.get(tenantId);
  const agent = tenant?.agents.get(agentId);
  return tenant === undefined || agent === undefined ? { blockers: [], total: 0 } : holdersInTheWay(tenant, agent);
}

function describeAgent(agent: AgentEntry, now: Millis, leasesMax: number): AgentActivity {
  const activity = activityOf(agent, now);
  const leases = someLeasesOf(agent);
  const requests = openRequestsOf(agent);
  const since = sinceWhen(agent.record, activity, leases, requests);
  return {
    agent: agent.record,
    activity,
    since,
    leases: leases.slice(0, leasesMax),
    leasesTotal: agent.leaseCount,
    requests,
  };
}

function activityOf({ record, leaseCount, open, standby }: AgentEntry, now: Millis): Activity {
  const { restarting, pausedByOperator, pausedFor, retryAt, idleSince, state } = record;
  if (restarting) return "lost";
  if (pausedByOperator) return "waiting_for_person";
  if (open.size > 0 || standby !== null) return "blocked";
  if (state !== "PAUSED") return leaseCount > 0 ? "working" : "idle";
  if (pausedFor === "paused") return "waiting_for_person";
  if (leaseCount > 0) return pausedFor === null ? "working" : "blocked";
  if (pausedFor === "lost") return "lost";
  return now - Math.max(idleSince, retryAt ?? 0) > silentMsMax ? "lost" : "blocked";
}

/** Of an agent with very many leases only these are examined. */
const leasesExaminedMax = 1_000;

function someLeasesOf(agent: AgentEntry): Lease[] {
  const leases: LeaseEntry[] = [];
  for (let lease = agent.leases; lease !== null && leases.length < leasesExaminedMax; lease = lease.nextOfHolder)
    leases.push(lease);
  return leases.sort((a, b) => a.order - b.order).map(({ record }) => record);
}

function openRequestsOf({ open, standby }: AgentEntry): Request[] {
  const requests = [...open].slice(0, limits.blockersListedMax).map(({ record }) => record);
  if (standby !== null) requests.push(standby.record);
  return requests;
}

function sinceWhen(agent: Agent, activity: Activity, leases: readonly Lease[], requests: readonly Request[]): Millis {
  const { pausedAt, idleSince } = agent;
  switch (activity) {
    case "working":
      return leases.reduce((first, { acquiredAt }) => Math.min(first, acquiredAt), Number.POSITIVE_INFINITY);
    case "blocked":
      return requests.reduce((first, { submittedAt }) => Math.min(first, submittedAt), pausedAt ?? idleSince);
    case "waiting_for_person":
    case "lost":
      return pausedAt ?? idleSince;
    case "idle":
      return idleSince;
  }
}

/**
 * What is in the way of an agent that died or lost what it had: it has no request, so these are the leases of others on
 * what concerns it. Whether they conflict with what it will ask for next, nobody can know.
 */
function holdersInTheWay(tenant: TenantEntry, agent: AgentEntry): { blockers: Blocker[]; total: number } {
  const found = new Set<LeaseEntry>();
  for (const { resource } of agent.record.concerns.slice(0, limits.blockersListedMax)) {
    const name = canonicalName(resource);
    const root = findRoot(tenant, name.type);
    if (root === undefined) continue;
    search(root, name, {
      visit: ({ shared, providing, exclusive }) =>
        [exclusive, providing, shared].some((head) =>
          some(head, (item) => {
            const lease = item as LeaseEntry;
            if (lease.holder !== agent) found.add(lease);
            return found.size >= limits.obstaclesExaminedMax;
          }),
        ),
      below: (_node, branch) => (heldFrom(branch, SHARED) > 0 ? "enter" : "skip"),
    });
  }
  const blockers = [...found].slice(0, limits.blockersListedMax).map(({ record }) => leaseBlocker(record));
  return { blockers, total: found.size };
}
