/**
 * Conflict-aware scheduling (T10): before a task is offered, all that its manifest names is granted to it, or nothing
 * is. A task that does not fit is parked on what stands in its way. Passed over a few times, it queues for its resources
 * under W2 with its own age, so that younger work no longer slips past it; it keeps that place until a worker comes.
 */
import { limits } from "../contract/limits.ts";
import type { Intent } from "../contract/records.ts";
import { barOn, findOverKind } from "../deciding/admission.ts";
import { displacesUnits, planWounds } from "../deciding/decide.ts";
import { claimsOf, type LinkedClaim, lastPlace, leavesChoice, placeOf, unitsClaimed } from "../deciding/manifest.ts";
import { addObstacles, createObstacles, findObstacle, type Obstacles } from "../deciding/obstacles.ts";
import { findOthers, patternsOf, pickFor } from "../deciding/picking.ts";
import { isEldest } from "../deciding/seniority.ts";
import {
  type LeaseEntry,
  nameOf,
  type RequestEntry,
  type TenantEntry,
  type Turn,
  taskPrefix,
} from "../memory/state.ts";
import type { ChoiceEntry, Obstacle, TaskEntry } from "../memory/task-state.ts";
import { namesOverlap } from "../names/pattern.ts";
import { canonicalName } from "../names/resource-name.ts";
import { fits } from "../requests/queue.ts";
import { addRequest, endWait, enqueue, woundLeases } from "../requests/request-life.ts";
import { woundMany } from "../requests/wounding.ts";
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
  const claims = claimsFor(tenant, task);
  if (claims === null || isBarred(tenant, task, claims)) {
    giveUpPlace(turn, task);
    bar(tenant, task);
    return null;
  }
  const over = findOverKind(tenant, claims, task.open);
  if (over !== null) {
    giveUpPlace(turn, task);
    park(tenant, task, over.entry);
    return null;
  }
  const [request] = task.open;
  if (request !== undefined) return takeTurn(turn, task, request, claims);
  const obstacle = obstacleTo(tenant, task, claims);
  if (obstacle === null) return claims;
  // For its own teardown it only waits: nobody passes it over, and there is nothing to queue for (G6).
  const isPassedOver = isPoll && !(obstacle.kind === "lease" && obstacle.holder === task);
  if (isPassedOver) task.passedOver++;
  if (isPassedOver && task.passedOver > limits.taskPassedOverMax && insist(turn, task, claims)) return claims;
  park(tenant, task, task.open.size === 0 ? obstacle : null);
  return null;
}

/** With a name for each intent that leaves the choice open: one that is free, or that it waits for. Null: there is none. */
export function claimsFor(tenant: TenantEntry, task: TaskEntry): readonly LinkedClaim[] | null {
  const { intents } = task.record.spec;
  if (!leavesChoice(intents)) return claimsOf(tenant, intents);
  const [request] = task.open;
  if (request !== undefined) return claimsInTurn(tenant, request);
  const picked = pickFor(tenant, task, intents, task.priority);
  return picked.type === "picked" ? picked.claims : null;
}

/** What it waits for, or, where that is taken, others that could be had at once. */
function claimsInTurn(tenant: TenantEntry, request: RequestEntry): readonly LinkedClaim[] {
  const { intents, picked } = request.record;
  const patterns = patternsOf(intents);
  const others = fits(tenant, request) ? null : findOthers(tenant, request, patterns, patterns);
  return claimsOf(tenant, intents, others ?? picked);
}

function obstacleTo(tenant: TenantEntry, task: TaskEntry, claims: readonly LinkedClaim[]): Obstacle | null {
  const closing = task.leaseCount === 0 ? null : findClosing(task, claims);
  if (closing !== null) return closing;
  // Under Wound-Wait it goes ahead of younger waiters (W7); of those for units only where nobody must be wounded for it.
  const goesAhead = tenant.record.settings.strategy === "wound_wait" && !displacesUnits({ claims });
  const place = goesAhead ? placeOf(tenant, task.priority, Number.POSITIVE_INFINITY) : lastPlace;
  for (const { claim } of claims) {
    const obstacle = findObstacle(tenant, claim, task, place, unitsClaimed(claims, claim));
    if (obstacle !== null) return claim.intent.pick === null ? obstacle : choiceOf(tenant, claim.intent);
  }
  return null;
}

/** G6: what an earlier attempt of its own had is set up again only when the cell has torn it down. */
export function findClosing(task: TaskEntry, claims: readonly LinkedClaim[]): LeaseEntry | null {
  for (let lease = task.leases; lease !== null; lease = lease.nextOfHolder) {
    if (lease.record.state !== "CLOSING") continue;
    const name = nameOf(lease);
    if (claims.some(({ claim }) => namesOverlap(claim.name, name))) return lease;
  }
  return null;
}

/** While nobody is parked on it, it is nowhere. */
function choiceOf({ book }: TenantEntry, { predicate, resource }: Intent): ChoiceEntry {
  const id = `${predicate} ${resource}`;
  return book.choices.get(id) ?? { kind: "choice", id, pattern: canonicalName(resource), parked: null };
}

/** Whether a worker that asked now would get it; nothing is changed by asking. */
export function canRunNow(tenant: TenantEntry, task: TaskEntry): boolean {
  // Its resources are its own already, or are being set up for it.
  if (task.preparedFor !== null) return true;
  if (isKeyFull(task)) return false;
  const claims = claimsFor(tenant, task);
  if (claims === null || isBarred(tenant, task, claims) || findOverKind(tenant, claims, task.open) !== null)
    return false;
  const [request] = task.open;
  return request === undefined ? obstacleTo(tenant, task, claims) === null : isTurnOf(tenant, task, request, claims);
}

/**
 * Neither waiting nor trying again helps: fenced, withdrawn, or on a cell that is not ready; more units than there are, or
 * than the tenant may have (W9, C6, G2).
 */
function isBarred(tenant: TenantEntry, task: TaskEntry, claims: readonly LinkedClaim[]): boolean {
  const over = findOverKind(tenant, claims, task.open);
  if (over !== null && over.wanted > over.most) return true;
  if (tenant.resources.size === 0) return false;
  return claims.some(({ claim }) => {
    if (claim.counted !== null && unitsClaimed(claims, claim) > (claim.counted.record.capacity ?? 0)) return true;
    return barOn(tenant, claim.name) !== null;
  });
}

function takeTurn(
  turn: Turn,
  task: TaskEntry,
  request: RequestEntry,
  claims: readonly LinkedClaim[],
): readonly LinkedClaim[] | null {
  if (!isTurnOf(turn.tenant, task, request, claims)) {
    park(turn.tenant, task, null);
    return null;
  }
  giveUpPlace(turn, task);
  return claims;
}

function isTurnOf(
  tenant: TenantEntry,
  task: TaskEntry,
  request: RequestEntry,
  claims: readonly LinkedClaim[],
): boolean {
  if (task.leaseCount > 0 && findClosing(task, claims) !== null) return false;
  return fits(tenant, request) || (request.record.picked.length > 0 && isPickedElsewhere(request, claims));
}

/** It may have others than those it waits for. */
function isPickedElsewhere({ record: { picked } }: RequestEntry, claims: readonly LinkedClaim[]): boolean {
  const names = new Set(picked);
  return claims.some(({ claim }) => claim.intent.to === null && !names.has(claim.name.text));
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
    const { sliceMax } = turn.state;
    const { wounds, mustWait, isMany } = planWounds(tenant, { claims }, task, task.priority, place, sliceMax);
    if (isMany) woundMany(turn, task, claims, task.priority, wounds);
    else woundLeases(turn, wounds);
    if (!mustWait) return true;
  }
  queueFor(turn, task, claims);
  return false;
}

export function obstaclesOf(tenant: TenantEntry, task: TaskEntry, claims: readonly LinkedClaim[]): Obstacles {
  const obstacles = createObstacles();
  for (const { claim } of claims) {
    addObstacles(obstacles, tenant, claim, task, lastPlace, unitsClaimed(claims, claim), task.priority);
  }
  return obstacles;
}

/** The names that the claims have for the intents, where one leaves the choice open. */
export function pickedOf(intents: readonly Intent[], claims: readonly LinkedClaim[]): readonly string[] {
  if (!leavesChoice(intents)) return nothingPicked;
  const firsts = claims.filter(({ claim }, at) => claims[at - 1]?.claim.intent !== claim.intent);
  return firsts.map(({ claim }) => claim.name.text);
}

const nothingPicked: readonly string[] = [];

function queueFor(turn: Turn, task: TaskEntry, claims: readonly LinkedClaim[]): void {
  const { id, spec } = task.record;
  const number = turn.tenant.counters.record.arrival + 1;
  const request = addRequest(turn, task, {
    id: `req_${id.slice(2)}-${number}`,
    agentId: taskPrefix + id,
    key: null,
    fingerprint: "",
    intents: spec.intents,
    picked: pickedOf(spec.intents, claims),
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
