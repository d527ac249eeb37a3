/** Observation updates and assumptions (A4, A5), from a list of everything that ever ended. */
import type { Assumption } from "../../src/kernel/contract/commands.ts";
import type { Predicate } from "../../src/kernel/contract/predicates.ts";
import { covers, overlap } from "./names.ts";
import { leasesOf, type ModelAgent, type ModelEnd, type ModelLease, type ModelTenant } from "./world.ts";

export interface PredictedObservation {
  readonly since: number;
  readonly changes: readonly string[];
}

/** A lease ended, was downgraded or was transferred. */
export function noteEnd(tenant: ModelTenant, lease: ModelLease, now: number, version: string | null): void {
  const { resource, predicate, agentId, fence } = lease;
  tenant.ends.push({ resource, predicate, agentId, fence, at: now, version, looked: lease.claimBy === null });
}

export function isWrite(predicate: Predicate): boolean {
  return predicate !== "CONSUMES" && predicate !== "DEPENDS_ON";
}

export function addConcerns(agent: ModelAgent, resources: readonly string[], since: number): void {
  for (const resource of resources) {
    if (!agent.concerns.some((one) => one.resource === resource)) agent.concerns.push({ resource, since });
  }
}

/** A1: an agent at work that has lost its last lease is PAUSED. */
export function pauseIfBare(tenant: ModelTenant, agent: ModelAgent, now: number): void {
  if (agent.state !== "EXECUTING" && agent.state !== "VERIFYING") return;
  if (leasesOf(tenant, agent.id).length > 0) return;
  agent.state = "PAUSED";
  agent.pausedAt ??= now;
  agent.idleSince = now;
}

export function pause(agent: ModelAgent, over: readonly string[], now: number): void {
  agent.state = "PAUSED";
  agent.pausedAt ??= now;
  agent.idleSince = now;
  addConcerns(agent, over, agent.pausedAt ?? now);
}

/** Since when the agent could not see these resources; null if it sees them. */
export function blindSince(agent: ModelAgent, resources: readonly string[]): number | null {
  const concerned = agent.concerns.filter((one) => resources.some((resource) => overlap(resource, one.resource)));
  const times = [...concerned.map((one) => one.since), ...(agent.pausedAt === null ? [] : [agent.pausedAt])];
  return times.length === 0 ? null : Math.min(...times);
}

export function observe(
  tenant: ModelTenant,
  agent: ModelAgent,
  since: number,
  asked: readonly string[],
): PredictedObservation {
  const fallback = Math.min(since, agent.digest?.savedAt ?? since);
  const reasons = [
    ...asked.map((resource) => ({ resource, from: fallback })),
    ...agent.concerns.map((one) => ({ resource: one.resource, from: Math.min(one.since, since) })),
    ...(agent.digest?.backlog ?? []).map((resource) => ({ resource, from: fallback })),
  ];
  const held = leasesOf(tenant, agent.id);
  const news = new Set<ModelEnd>();
  let earliest = since;
  const gather = (resource: string, from: number, look: ModelEnd | null): void => {
    earliest = Math.min(earliest, look?.at ?? from);
    for (const end of tenant.ends) {
      if (!isWrite(end.predicate) || end.agentId === agent.id || !overlap(end.resource, resource)) continue;
      if (look === null ? end.at >= from : isAfter(end, look)) news.add(end);
    }
  };
  for (const resource of new Set(reasons.map((one) => one.resource))) {
    const from = Math.min(...reasons.filter((one) => one.resource === resource).map((one) => one.from));
    gather(resource, from, lastLook(tenant, agent, resource));
  }
  for (const { resource } of held) {
    if (!reasons.some((one) => one.resource === resource)) gather(resource, since, null);
  }
  const seen = held.filter((lease) => lease.state === "ACTIVE");
  agent.concerns = agent.concerns.filter((one) => !seen.some((lease) => covers(lease.resource, one.resource)));
  const changes = tenant.ends.filter((end) => news.has(end)).sort(inOrder);
  return { since: earliest, changes: changes.map(changeText) };
}

export function changeText(change: Omit<ModelEnd, "fence" | "looked">): string {
  return `${change.agentId} ${change.predicate} ${change.resource} at ${change.at} ${change.version}`;
}

/** A5: the newest write decides. */
export function judge(tenant: ModelTenant, agent: ModelAgent, { resource, version }: Assumption): string {
  const writes = tenant.ends.filter((end) => isWrite(end.predicate) && overlap(end.resource, resource));
  const last = writes.sort(inOrder).at(-1);
  if (last === undefined) return "unverified";
  if (last.version === version) return "holds";
  if (last.version !== null && last.resource === resource) return "failed";
  if (last.agentId === agent.id) return "unverified";
  const sees = leasesOf(tenant, agent.id).some(
    (lease) => lease.state === "ACTIVE" && lease.acquiredAt >= last.at && covers(lease.resource, resource),
  );
  if (sees) return "unverified";
  const look = lastLook(tenant, agent, resource);
  const isNews = look === null ? last.at >= (agent.digest?.savedAt ?? 0) : isAfter(last, look);
  return isNews ? "failed" : "unverified";
}

/** The agent's own last lease on all of the resource. */
function lastLook(tenant: ModelTenant, agent: ModelAgent, resource: string): ModelEnd | null {
  const own = tenant.ends.filter((end) => end.looked && end.agentId === agent.id && covers(end.resource, resource));
  return own.sort(inOrder).at(-1) ?? null;
}

/** Equals stay in the order in which they happened. */
function inOrder(a: ModelEnd, b: ModelEnd): number {
  return a.at - b.at || a.fence - b.fence;
}

function isAfter(a: ModelEnd, b: ModelEnd): boolean {
  return a.at > b.at || (a.at === b.at && a.fence > b.fence);
}
