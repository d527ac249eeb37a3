/**
 * Conflict-aware scheduling (T10): before a task is offered, all that its manifest names is granted to it, or nothing
 * is. A task that does not fit is parked on what stands in its way. Passed over a few times, it queues for its resources
 * under W2 with its own age, so that younger work no longer slips past it; it keeps that place until a worker comes.
 */

import { requestIdWith, suffixOf } from "../contract/ids.ts";
import { limits } from "../contract/limits.ts";
import type { Millis, Request } from "../contract/records.ts";
import {
  addObstacles,
  createObstacles,
  findObstacle,
  findResource,
  lastPlace,
  type Obstacles,
} from "../deciding/conflicts.ts";
import { displacesUnits } from "../deciding/decide.ts";
import { findOverKind } from "../deciding/quotas.ts";
import { planWounds } from "../deciding/wound.ts";
import { endLeases } from "../leases/holding.ts";
import { taskPrefix } from "../leases/lease-life.ts";
import { changed, createRequestEntry, type RequestEntry, type State, type TenantEntry } from "../memory/state.ts";
import type { Obstacle, TaskEntry } from "../memory/task-state.ts";
import { fits } from "../requests/queue.ts";
import {
  endWait,
  enqueue,
  type LinkedWish,
  needsCells,
  placeOf,
  unitsWished,
  wishesOf,
} from "../requests/request-life.ts";
import { park } from "./task-parking.ts";
import { bar, isKeyFull } from "./task-queue.ts";

/** The manifest's wishes if they can be granted now; null if the task was put aside. */
export function claimManifest(
  state: State,
  tenant: TenantEntry,
  task: TaskEntry,
  now: Millis,
): readonly LinkedWish[] | null {
  const wishes = wishesOf(tenant, task.record.spec.intents);
  if (isBarred(tenant, task, wishes)) {
    giveUpPlace(state, tenant, task, now);
    bar(tenant, task);
    return null;
  }
  const [request] = task.open;
  if (request !== undefined) return takeTurn(state, tenant, task, request, wishes, now);
  const obstacle = obstacleTo(tenant, task, wishes);
  if (obstacle === null) return wishes;
  task.passedOver++;
  if (task.passedOver > limits.taskPassedOverMax && insist(state, tenant, task, wishes, now)) return wishes;
  park(task, task.open.size === 0 ? obstacle : null);
  return null;
}

function obstacleTo(tenant: TenantEntry, task: TaskEntry, wishes: readonly LinkedWish[]): Obstacle | null {
  // Under Wound-Wait it goes ahead of younger waiters (W7); of those for units only where nobody must be wounded for it.
  const goesAhead = tenant.record.settings.strategy === "wound_wait" && !displacesUnits({ wishes });
  const place = goesAhead ? placeOf(tenant, task.priority, Number.POSITIVE_INFINITY) : lastPlace;
  for (const { wish } of wishes) {
    const obstacle = findObstacle(tenant, wish, task, place, unitsWished(wishes, wish));
    if (obstacle !== null) return obstacle;
  }
  return null;
}

/** Whether a worker that asked now would get it; nothing is changed by asking. */
export function canRunNow(tenant: TenantEntry, task: TaskEntry): boolean {
  if (isKeyFull(task)) return false;
  const wishes = wishesOf(tenant, task.record.spec.intents);
  if (isBarred(tenant, task, wishes)) return false;
  const [request] = task.open;
  return request === undefined ? obstacleTo(tenant, task, wishes) === null : fits(tenant, request);
}

/**
 * Neither waiting nor trying again helps: fenced, withdrawn or bound by now, more units than there are, or than the
 * tenant may have (W9, C6, G2).
 */
function isBarred(tenant: TenantEntry, task: TaskEntry, wishes: readonly LinkedWish[]): boolean {
  if (findOverKind(tenant, wishes, task.open) !== null) return true;
  if (tenant.resources.size === 0) return false;
  if (needsCells(tenant, wishes)) return true;
  return wishes.some(({ wish }) => {
    if (wish.counted !== null && unitsWished(wishes, wish) > (wish.counted.record.capacity ?? 0)) return true;
    return findResource(tenant, wish.name, ({ record }) => record.fenced || record.withdrawn) !== undefined;
  });
}

function takeTurn(
  state: State,
  tenant: TenantEntry,
  task: TaskEntry,
  request: RequestEntry,
  wishes: readonly LinkedWish[],
  now: Millis,
): readonly LinkedWish[] | null {
  if (!fits(tenant, request)) {
    park(task, null);
    return null;
  }
  giveUpPlace(state, tenant, task, now);
  return wishes;
}

/** Others may have stood behind it: they are served once the task has what it wants, or something else. */
export function giveUpPlace(state: State, tenant: TenantEntry, task: TaskEntry, now: Millis): void {
  for (const request of task.open) {
    state.unserved.push({ tenant, names: endWait(state, tenant, request, "CANCELED", null, now) });
  }
}

/** Queues for the resources, if W2 lets a request of this age wait. True: they are its own at once (W7). */
function insist(
  state: State,
  tenant: TenantEntry,
  task: TaskEntry,
  wishes: readonly LinkedWish[],
  now: Millis,
): boolean {
  if (tenant.waitingCount >= tenant.record.quotas.waitersMax) return false;
  if (tenant.record.settings.strategy === "wait_die") {
    if (obstaclesOf(tenant, task, wishes).oldest < task.priority) return false;
  } else {
    const place = placeOf(tenant, task.priority, Number.POSITIVE_INFINITY);
    const { wounds, mustWait } = planWounds(tenant, { wishes }, task, task.priority, place);
    const names = endLeases(state, tenant, wounds, "REVOKED", "wounded", now);
    if (names.length > 0) state.unserved.push({ tenant, names });
    if (!mustWait) return true;
  }
  queueFor(state, tenant, task, now);
  return false;
}

export function obstaclesOf(tenant: TenantEntry, task: TaskEntry, wishes: readonly LinkedWish[]): Obstacles {
  const obstacles = createObstacles();
  for (const { wish } of wishes) {
    addObstacles(obstacles, tenant, wish, task, lastPlace, unitsWished(wishes, wish), Number.NEGATIVE_INFINITY);
  }
  return obstacles;
}

function queueFor(state: State, tenant: TenantEntry, task: TaskEntry, now: Millis): void {
  const { counters } = tenant;
  counters.record = { ...counters.record, arrival: counters.record.arrival + 1 };
  changed(state, counters);
  const { record } = task;
  const request: Request = {
    tenant: tenant.record.id,
    id: `${requestIdWith(suffixOf(`req_${record.id.slice(2)}`))}-${counters.record.arrival}`,
    agentId: taskPrefix + record.id,
    holder: record.id,
    key: null,
    fingerprint: "",
    state: "WAITING",
    intents: record.spec.intents,
    picked: [],
    ttl: record.spec.leaseDuration,
    idleTimeout: null,
    purpose: record.spec.taskSummary,
    tokens: false,
    arrival: counters.record.arrival,
    submittedAt: now,
    waitTimeout: limits.taskWaitMs,
    timeoutAt: now + limits.taskWaitMs,
    observeSince: null,
    warnings: [],
    leaseIds: [],
    ended: [],
    fateReason: null,
    forgetAt: null,
  };
  const entry = createRequestEntry(request, task);
  tenant.requests.set(request.id, entry);
  changed(state, entry);
  enqueue(state, tenant, entry);
}
