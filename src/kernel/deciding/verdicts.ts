/** Verdicts in full: DIE with its hint (W5), a dry run (W12), and who stands in the way (W11). */
import { decidingPriority, isUnitOver } from "../agents/agent-life.ts";
import type { Acquire } from "../contract/commands.ts";
import { limits } from "../contract/limits.ts";
import type { Lease, Millis, Request } from "../contract/records.ts";
import type { Blocker, Reply, Verdict } from "../contract/replies.ts";
import type { AgentEntry, TenantEntry, Turn } from "../memory/state.ts";
import type { Decision } from "./decide.ts";
import type { Manifest } from "./manifest.ts";
import { type Obstacles, obstaclesTotal } from "./obstacles.ts";

export function diedVerdict(
  priority: number,
  attempt: number,
  obstacles: Obstacles,
  retryAfterMs: number,
): Extract<Verdict, { readonly type: "died" }> {
  return {
    type: "died",
    retryAfterMs,
    attempt,
    priority,
    blockers: blockersOf(obstacles),
    blockersTotal: obstaclesTotal(obstacles),
  };
}

/**
 * W5: when to come again: doubled with each attempt, but not beyond what the holders are likely to take. `luck` is a random
 * number, for the jitter.
 */
export function retryAfter(
  tenant: TenantEntry,
  attempt: number,
  obstacles: Obstacles,
  now: Millis,
  luck: number,
): number {
  const { retryMsBase, retryMsCap } = tenant.record.settings;
  const doubled = retryMsBase * 2 ** Math.min(attempt - 1, 40);
  const delay = Math.min(retryMsCap, doubled, Math.max(retryMsBase, likelyMs(obstacles, now)));
  return delay + (luck % (Math.floor(delay / 2) + 1));
}

/**
 * How long all that is in the way is likely to take, one after the other. Met at a random moment, a lease has on average
 * lived for half of its life; so the present ones say how long leases on these resources last, and nothing is kept.
 */
function likelyMs(obstacles: Obstacles, now: Millis): number {
  let longest = 0;
  for (const { record } of obstacles.leases) {
    const lived = now - record.acquiredAt;
    const left = Math.max(record.expiresAt - now, 0);
    longest = Math.max(longest, lived + Math.min(lived, left));
  }
  const { backAt } = obstacles;
  const inTurnMs = longest * obstaclesTotal(obstacles);
  return Math.max(inTurnMs, backAt === null ? 0 : backAt - now);
}

/** W12: the verdict as it would be, from the same decision. */
export function predict(
  { tenant, now }: Turn,
  agent: AgentEntry,
  decision: Decision,
  manifest: Manifest,
  command: Acquire,
  standsBy: boolean,
): Reply {
  switch (decision.type) {
    case "refused":
    case "paused":
      return decision;
    case "die": {
      const { obstacles } = decision;
      if (standsBy) return standbyVerdict(tenant, { ...manifest, id: "", waitTimeout: command.standbyMs }, obstacles);
      const attempt = isUnitOver(agent.record) ? 1 : agent.record.attempts + 1;
      const hint = retryAfter(tenant, attempt, obstacles, now, command.entropy[1]);
      return diedVerdict(decidingPriority(tenant, agent, now), attempt, obstacles, hint);
    }
    case "grant":
      return {
        type: "granted",
        requestId: "",
        leases: [],
        warnings: manifest.warnings,
        observation: null,
        claimBy: null,
      };
    case "wait":
    case "wound_many":
      return waitingVerdict(tenant, { ...manifest, id: "" }, decision.obstacles);
  }
}

export function waitingVerdict(
  tenant: TenantEntry,
  { id, waitTimeout, warnings }: Pick<Request, "id" | "waitTimeout" | "warnings">,
  obstacles: Obstacles,
): Extract<Verdict, { readonly type: "waiting" }> {
  return {
    type: "waiting",
    requestId: id,
    position: 1 + obstacles.claims.size,
    blockers: blockersOf(obstacles),
    blockersTotal: obstaclesTotal(obstacles),
    unitsBackAt: obstacles.backAt,
    waitTimeoutMs: waitTimeout,
    claimWithinMs: tenant.record.settings.claimWithinMs,
    warnings,
  };
}

export function standbyVerdict(
  tenant: TenantEntry,
  terms: Pick<Request, "id" | "waitTimeout" | "warnings">,
  obstacles: Obstacles,
): Extract<Verdict, { readonly type: "standby" }> {
  const { position: _, ...verdict } = waitingVerdict(tenant, terms, obstacles);
  return { ...verdict, type: "standby" };
}

/** W11: up to 16, holders first, each by its number, so that the list does not depend on how the search went. */
export function blockersOf(obstacles: Obstacles): Blocker[] {
  const leases = [...obstacles.leases].sort((a, b) => a.order - b.order);
  const blockers = leases.slice(0, limits.blockersListedMax).map(({ record }) => leaseBlocker(record));
  const claims = [...obstacles.claims].sort(([a], [b]) => a.record.arrival - b.record.arrival);
  for (const [request, claim] of claims.slice(0, limits.blockersListedMax - blockers.length)) {
    const { id: requestId, agentId, holder, purpose } = request.record;
    const { name, intent } = claim;
    const asked = { resource: name.text, predicate: intent.predicate, purpose };
    blockers.push({ agentId, holder, ...asked, leaseId: null, requestId, until: null });
  }
  return blockers;
}

export function leaseBlocker(lease: Lease): Blocker {
  const { id: leaseId, agentId, holder, resource, predicate, purpose } = lease;
  return { agentId, holder, resource, predicate, purpose, leaseId, requestId: null, until: standsUntil(lease) };
}

function standsUntil({ state, expiresAt, heldUntil }: Lease): Millis | null {
  if (state === "CLOSING") return null;
  return state === "HELD" ? (heldUntil ?? expiresAt) : expiresAt;
}
