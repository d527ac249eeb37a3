/**
 * Conflict-aware scheduling (T10): before a task is offered, all that its manifest names is granted to it, or nothing
 * is. A task that does not fit is parked on what stands in its way. Passed over a few times, it queues for its resources
 * under W2 with its own age, so that younger work no longer slips past it; it keeps that place until a worker comes.
 */
import { limits } from "../contract/limits.ts";
import { findOverKind, findResource } from "../deciding/admission.ts";
import { displacesUnits, planWounds } from "../deciding/decide.ts";
import { claimsOf, type LinkedClaim, lastPlace, needsCells, placeOf, unitsClaimed } from "../deciding/manifest.ts";
import { addObstacles, createObstacles, findObstacle, type Obstacles } from "../deciding/obstacles.ts";
import { isEldest } from "../deciding/seniority.ts";
import { type RequestEntry, type TenantEntry, type Turn, taskPrefix } from "../memory/state.ts";
import type { Obstacle, TaskEntry } from "../memory/task-state.ts";
import { fits } from "../requests/queue.ts";
import { addRequest, endWait, enqueue, woundLeases } from "../requests/request-life.ts";
import { afterTry, park } from "./task-parking.ts";
import { bar, isKeyFull, leaveQueue, offerSlots, waitForKey } from "./task-queue.ts";

/** Puts a ready task that cannot run now where it is brought back from. That is not a poll that passes it over. */
export function setTaskAside(turn: Turn, task: TaskEntry): void {
  const { parking } = task;
  task.parking = null;
  leaveQueue(turn, task);
  const claims = claimTask(turn, task, false);
  if (claims !== null) throw new Error(`A task can run and was put aside: ${task.record.id}`);
  if (parking !== null) afterTry(turn, task, parking);
  if (task.key !== null) offerSlots(turn, task.key);
}

const noClaims: readonly LinkedClaim[] = [];

/** All that the task takes besides itself, or null if it cannot run now and was put aside. */
export function claimTask(turn: Turn, task: TaskEntry, isPoll: boolean): readonly LinkedClaim[] | null {
  if (isKeyFull(task)) {
    waitForKey(task);
    return null;
  }
  return task.record.spec.intents.length === 0 ? noClaims : claimManifest(turn, task, isPoll);
}

/** The manifest's claims if they can be granted now; null if the task was put aside. */
function claimManifest(turn: Turn, task: TaskEntry, isPoll: boolean): readonly LinkedClaim[] | null {
  const { tenant } = turn;
  const claims = claimsOf(tenant, task.record.spec.intents);
  if (isBarred(tenant, task, claims)) {
    giveUpPlace(turn, task);
    bar(tenant, task);
    return null;
  }
  const over = findOverKind(tenant, claims, task.open);
  if (over !== null) {
    giveUpPlace(turn, task);
    park(task, over.entry);
    return null;
  }
  const [request] = task.open;
  if (request !== undefined) return takeTurn(turn, task, request, claims);
  const obstacle = obstacleTo(tenant, task, claims);
  if (obstacle === null) return claims;
  if (isPoll) task.passedOver++;
  if (isPoll && task.passedOver > limits.taskPassedOverMax && insist(turn, task, claims)) return claims;
  park(task, task.open.size === 0 ? obstacle : null);
  return null;
}

function obstacleTo(tenant: TenantEntry, task: TaskEntry, claims: readonly LinkedClaim[]): Obstacle | null {
  // Under Wound-Wait it goes ahead of younger waiters (W7); of those for units only where nobody must be wounded for it.
  const goesAhead = tenant.record.settings.strategy === "wound_wait" && !displacesUnits({ claims });
  const place = goesAhead ? placeOf(tenant, task.priority, Number.POSITIVE_INFINITY) : lastPlace;
  for (const { claim } of claims) {
    const obstacle = findObstacle(tenant, claim, task, place, unitsClaimed(claims, claim));
    if (obstacle !== null) return obstacle;
  }
  return null;
}

/** Whether a worker that asked now would get it; nothing is changed by asking. */
export function canRunNow(tenant: TenantEntry, task: TaskEntry): boolean {
  if (isKeyFull(task)) return false;
  const claims = claimsOf(tenant, task.record.spec.intents);
  if (isBarred(tenant, task, claims) || findOverKind(tenant, claims, task.open) !== null) return false;
  const [request] = task.open;
  return request === undefined ? obstacleTo(tenant, task, claims) === null : fits(tenant, request);
}

/**
 * Neither waiting nor trying again helps: fenced, withdrawn or bound by now, more units than there are, or than the
 * tenant may have (W9, C6, G2).
 */
function isBarred(tenant: TenantEntry, task: TaskEntry, claims: readonly LinkedClaim[]): boolean {
  const over = findOverKind(tenant, claims, task.open);
  if (over !== null && over.wanted > over.most) return true;
  if (tenant.resources.size === 0) return false;
  if (needsCells(tenant, claims)) return true;
  return claims.some(({ claim }) => {
    if (claim.counted !== null && unitsClaimed(claims, claim) > (claim.counted.record.capacity ?? 0)) return true;
    return findResource(tenant, claim.name, ({ record }) => record.fenced || record.withdrawn) !== undefined;
  });
}

function takeTurn(
  turn: Turn,
  task: TaskEntry,
  request: RequestEntry,
  claims: readonly LinkedClaim[],
): readonly LinkedClaim[] | null {
  if (!fits(turn.tenant, request)) {
    park(task, null);
    return null;
  }
  giveUpPlace(turn, task);
  return claims;
}

/** Others may have stood behind it: they are served once the task has what it wants, or something else. */
export function giveUpPlace(turn: Turn, task: TaskEntry): void {
  for (const request of task.open) endWait(turn, request, "CANCELED", null);
}

/** Queues for the resources, if W2 lets a request of this age wait. True: they are its own at once (W7). */
function insist(turn: Turn, task: TaskEntry, claims: readonly LinkedClaim[]): boolean {
  const { tenant } = turn;
  if (tenant.waitingCount + tenant.standby.count >= tenant.record.quotas.waitersMax) return false;
  if (tenant.record.settings.strategy === "wait_die") {
    const isOldest = isEldest(tenant, claims, task, task.priority, lastPlace);
    if (!isOldest && obstaclesOf(tenant, task, claims).oldest < task.priority) return false;
  } else {
    const place = placeOf(tenant, task.priority, Number.POSITIVE_INFINITY);
    const { wounds, mustWait } = planWounds(tenant, { claims }, task, task.priority, place);
    woundLeases(turn, wounds);
    if (!mustWait) return true;
  }
  queueFor(turn, task);
  return false;
}

export function obstaclesOf(tenant: TenantEntry, task: TaskEntry, claims: readonly LinkedClaim[]): Obstacles {
  const obstacles = createObstacles();
  for (const { claim } of claims) {
    addObstacles(obstacles, tenant, claim, task, lastPlace, unitsClaimed(claims, claim), task.priority);
  }
  return obstacles;
}

function queueFor(turn: Turn, task: TaskEntry): void {
  const { id, spec } = task.record;
  const number = turn.tenant.counters.record.arrival + 1;
  const request = addRequest(turn, task, {
    id: `req_${id.slice(2)}-${number}`,
    agentId: taskPrefix + id,
    key: null,
    fingerprint: "",
    intents: spec.intents,
    picked: [],
    ttl: spec.leaseDurationMs,
    idleTimeout: null,
    purpose: spec.taskSummary,
    tokens: false,
    waitTimeout: limits.taskWaitMs,
    observeSince: null,
    warnings: [],
  });
  enqueue(turn, request);
}
