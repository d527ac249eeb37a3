/**
 * Standby (W14): a request that would DIE stands by. It holds, reserves and blocks nothing, so nobody ever waits for it
 * and no cycle can close through it. It is granted when a request that arrived now would be granted: `decide` says so.
 * Waiters were served before (W3); of what stands by, the oldest comes first.
 */
import { becomePaused, noteRetry } from "../agents/agent-life.ts";
import { resourcesOf } from "../agents/observing.ts";
import type { Acquire } from "../contract/commands.ts";
import { EXCLUSIVE, PROVIDING, SHARED, type Strength } from "../contract/predicates.ts";
import { decide } from "../deciding/decide.ts";
import { claimsOf, lastPlace, leavesChoice, type Manifest, makeClaim, unitsClaimed } from "../deciding/manifest.ts";
import { addObstacles, createObstacles, isObstructed, type Obstacles } from "../deciding/obstacles.ts";
import { pickNames } from "../deciding/picking.ts";
import { retryAfter } from "../deciding/verdicts.ts";
import { createHeap, firstOf, type Heap, type Ranked, rankIn, removeFrom } from "../index/heap.ts";
import type { Placed } from "../index/placed-lists.ts";
import { headOf, type Node } from "../index/resource-tree.ts";
import { isRequestSwept } from "../memory/jobs.ts";
import {
  type AgentEntry,
  emit,
  type RequestEntry,
  type TenantEntry,
  type Turn,
  type WaitingClaim,
} from "../memory/state.ts";
import { type ResourceName, textHash } from "../names/resource-name.ts";
import { grantRequest, rememberEnd } from "./request-life.ts";
import { moveRequest } from "./request-states.ts";
import { eachStandbyNode, leaveStandby } from "./standby-index.ts";

/** Whether a request that would DIE stands by instead. Under Wound-Wait nothing dies, and the question does not come up. */
export function mayStandBy({ tenant }: Turn, agent: AgentEntry, { standbyMs }: Acquire): boolean {
  if (standbyMs === 0 || agent.leaseCount > 0 || agent.open.size > 0 || agent.standby !== null) return false;
  return tenant.waitingCount + tenant.standby.count < tenant.record.quotas.waitersMax;
}

/** Its time is over, or its agent has something else: a lease, or a request that waits. */
export function endStandby(turn: Turn, request: RequestEntry, agent: AgentEntry): void {
  const { tenant, now } = turn;
  const obstacles = obstaclesOf(turn, request, agent);
  leaveStandby(turn, request);
  becomePaused(turn, agent, "die", resourcesOf(request.record.intents));
  const { attempts: attempt } = agent.record;
  // Nobody draws a number when a deadline passes; the id is as random.
  const retryAfterMs = retryAfter(tenant, attempt, obstacles, now, textHash(request.record.id) >>> 0);
  noteRetry(turn, agent, retryAfterMs);
  const { intents, id: requestId } = request.record;
  const resources = claimsOf(tenant, intents).map(({ claim }) => claim.name.text);
  moveRequest(turn, request, "die", { attempt, retryAfterMs });
  emit(turn, {
    type: "request.died",
    tenant: tenant.record.id,
    at: now,
    agentId: agent.record.id,
    attempt,
    resources,
    requestId,
  });
  rememberEnd(turn, agent, request);
}

/** What is in its way now. */
export function obstaclesOf({ tenant, now }: Turn, { record }: RequestEntry, agent: AgentEntry): Obstacles {
  const obstacles = createObstacles();
  const manifest = manifestOf(tenant, record);
  const picked = leavesChoice(manifest.intents) ? pickNames(tenant, agent, manifest, now) : manifest;
  if (picked.type !== "manifest") return obstacles;
  for (const { claim } of picked.claims) {
    const units = unitsClaimed(picked.claims, claim);
    if (isObstructed(tenant, claim, agent, lastPlace, units))
      addObstacles(obstacles, tenant, claim, agent, lastPlace, units, agent.priority);
  }
  return obstacles;
}

function manifestOf(tenant: TenantEntry, record: RequestEntry["record"]): Manifest {
  const { intents, ttl, waitTimeout, warnings, fingerprint } = record;
  return {
    type: "manifest",
    intents,
    claims: claimsOf(tenant, intents),
    picked: [],
    ttl,
    waitTimeout,
    warnings,
    fingerprint,
  };
}

/** A list of what stands by at one node with one strength, the oldest first, and the one that is next. */
interface Cursor extends Ranked {
  readonly kind: "cursor";
  readonly node: Node;
  readonly strength: Strength;
  next: WaitingClaim;
}

/** Grants what fits of that which stands by for these names. */
export function serveStandby(turn: Turn, names: readonly ResourceName[]): void {
  const { tenant } = turn;
  if (tenant.standby.count === 0) return;
  const cursors = createHeap<Cursor>();
  const seen = new Set<Node>();
  for (const name of names) {
    eachStandbyNode(tenant, name, (node) => {
      if (seen.has(node)) return;
      seen.add(node);
      addCursors(cursors, node, tenant.record.id);
    });
  }
  for (let cursor = firstOf(cursors); cursor !== undefined; cursor = firstOf(cursors)) {
    const claim = cursor.next;
    const isClosed = isClosedFor(tenant, claim);
    // Nothing is freed meanwhile: what stands behind it at the same name does not fit either.
    if (isClosed && tenant.standby.picks === 0) {
      removeFrom(cursors, cursor);
      continue;
    }
    if (!isClosed && claim.node !== null) grantIfFree(turn, claim.request);
    advance(cursors, cursor, claim);
  }
}

function addCursors(cursors: Heap<Cursor>, node: Node, tenantId: string): void {
  for (const strength of [SHARED, PROVIDING, EXCLUSIVE] as const) {
    const head = node.waiting === null ? null : headOf(node.waiting, strength);
    if (head === null) continue;
    const next = head as WaitingClaim;
    rankIn(
      cursors,
      { kind: "cursor", node, strength, next, rank: 0, tie: 0, tenantId, slot: -1 },
      next.order,
      next.suborder,
    );
  }
}

/** To the next of its list. One that was granted has left, and the list is searched for where it stood. */
function advance(cursors: Heap<Cursor>, cursor: Cursor, after: WaitingClaim): void {
  const { node, strength } = cursor;
  const head = node.waiting === null ? null : headOf(node.waiting, strength);
  let next: Placed | null = after.node === null ? head : after.next === head ? null : after.next;
  while (next !== null && after.node === null && next.order <= after.order)
    next = next.next === head ? null : next.next;
  if (next === null) return removeFrom(cursors, cursor);
  cursor.next = next as WaitingClaim;
  rankIn(cursors, cursor, next.order, next.suborder);
}

/** What stands by holds nothing, so what obstructs one of those at a name obstructs all of its strength. Units differ. */
function isClosedFor(tenant: TenantEntry, { intent, name, request }: WaitingClaim): boolean {
  if (intent.pick !== null) return false;
  const claim = makeClaim(tenant, intent, name);
  return claim.counted === null && isObstructed(tenant, claim, request.holder, lastPlace, 0);
}

function grantIfFree(turn: Turn, request: RequestEntry): void {
  const { tenant, now } = turn;
  const { holder } = request;
  if (holder.kind !== "agent" || isRequestSwept(tenant, request)) return;
  const manifest = manifestOf(tenant, request.record);
  const picked = leavesChoice(manifest.intents) ? pickNames(tenant, holder, manifest, now) : manifest;
  if (picked.type !== "manifest") return;
  if (decide(tenant, holder, picked, now, turn.state.sliceMax).type !== "grant") return;
  leaveStandby(turn, request);
  grantRequest(turn, request, picked.picked);
}
