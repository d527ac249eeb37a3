/**
 * Tasks whose manifests one thing stands in the way of (T10). While it is there, nobody looks at them. When it has gone,
 * the first of each lane is ready, and each that leaves wakes the next: never all at once, because a hundred thousand may
 * be parked on one file. Mostly the first one takes what they all want; then they are parked on that as they are. The
 * oldest is looked at each time, whatever its priority, so that it is noticed when it is passed over too often.
 */
import { createHeap, firstOf, rankIn, removeFrom } from "../index/heap.ts";
import { leasesOf, type TenantEntry, type Turn } from "../memory/state.ts";
import {
  createListed,
  type Lane,
  makeReady,
  type Obstacle,
  type Parking,
  rankOf,
  type TaskEntry,
} from "../memory/task-state.ts";

/** On nothing: it queues for its resources, and is woken when its turn has come. */
export function park({ book }: TenantEntry, task: TaskEntry, obstacle: Obstacle | null): void {
  task.place = "parked";
  if (obstacle === null) return;
  obstacle.parked ??= createParking(obstacle);
  if (obstacle.kind === "choice") book.choices.set(obstacle.id, obstacle);
  enter(obstacle.parked, task);
}

function createParking(obstacle: Obstacle): Parking {
  return {
    obstacle,
    origin: originOf(obstacle),
    lanes: new Map(),
    oldest: createHeap(),
    returning: new Set(),
    unitsMin: Infinity,
  };
}

function originOf(obstacle: Obstacle): Parking["origin"] {
  switch (obstacle.kind) {
    case "lease":
      return { kind: "lease", resource: obstacle.record.resource, strength: obstacle.strength };
    case "resource":
      return { kind: "resource", resource: obstacle.record.name };
    case "kind":
      return { kind: "kind", name: obstacle.name };
    case "choice":
      return { kind: "choice", id: obstacle.id, resource: obstacle.pattern.text };
    case "request":
      return null;
  }
}

function enter(parking: Parking, task: TaskEntry): void {
  task.parking = parking;
  task.age = createListed("age", task, parking.oldest);
  rankIn(parking.oldest, task.age, task.priority, 0);
  const { origin } = parking;
  if (origin?.kind === "resource" || origin?.kind === "choice")
    parking.unitsMin = Math.min(parking.unitsMin, unitsOf(task, origin.resource));
  if (origin?.kind === "kind") parking.unitsMin = Math.min(parking.unitsMin, unitsOfKind(task, origin.name));
  // Those that a worker had before are few, and are found by that worker in any lane's place (T7).
  if (task.record.lastWorker !== null) {
    parking.returning.add(task);
    return;
  }
  let lane = parking.lanes.get(task.lane);
  if (lane === undefined) {
    lane = createHeap();
    parking.lanes.set(task.lane, lane);
  }
  rankIn(lane, task, rankOf(task.record), task.record.timestamp);
}

function unitsOf({ record }: TaskEntry, name: string): number {
  let units = 0;
  for (const intent of record.spec.intents) if (intent.resource === name || intent.to === name) units += intent.units;
  return units;
}

function unitsOfKind({ record }: TaskEntry, kind: string): number {
  let units = 0;
  for (const intent of record.spec.intents) {
    for (const name of [intent.resource, intent.to]) if (name?.startsWith(`${kind}:`)) units += intent.units;
  }
  return units;
}

/** Out of where it is parked. */
export function unpark(task: TaskEntry): void {
  if (task.parking !== null) leave(task.parking, task);
  task.parking = null;
}

function leave({ lanes, returning }: Parking, task: TaskEntry): void {
  if (task.age !== null) removeFrom(task.age.list, task.age);
  task.age = null;
  if (returning.delete(task)) return;
  const lane = lanes.get(task.lane);
  if (lane !== undefined) removeFrom(lane, task);
}

/** It has gone, is weaker, or has units to give again. */
export function unparkFrom(turn: Turn, obstacle: Obstacle): void {
  const { parked } = obstacle;
  if (parked === null) return;
  obstacle.parked = null;
  parked.obstacle = null;
  if (obstacle.kind === "choice") turn.tenant.book.choices.delete(obstacle.id);
  for (const task of [...parked.returning]) {
    unpark(task);
    makeReady(turn, task);
  }
  const oldest = firstOf(parked.oldest)?.task;
  for (const lane of [...parked.lanes.keys()]) wakeNext(turn, parked, lane);
  if (oldest?.place === "parked") wake(turn, parked, oldest);
}

/** `task.parking` stays set until it has been tried; `afterTry` needs it. */
function wake(turn: Turn, parking: Parking, task: TaskEntry): void {
  leave(parking, task);
  makeReady(turn, task);
}

/** The next one of a lane, unless they are parked on something again. */
export function wakeNext(turn: Turn, parking: Parking, lane: Lane): void {
  if (parking.obstacle !== null) return;
  const waiting = parking.lanes.get(lane);
  const next = waiting === undefined ? undefined : firstOf(waiting);
  if (waiting === undefined || next === undefined) parking.lanes.delete(lane);
  else wake(turn, parking, next);
}

/** After one that had been woken was looked at: those behind it are parked on what stands for the obstacle, or woken. */
export function afterTry(turn: Turn, task: TaskEntry, parking: Parking): void {
  if (parking.obstacle === null) {
    const obstacle = successorOf(task, parking);
    if (obstacle !== null) {
      const parkedThere = obstacle.parked === null ? [] : obstacle.parked.oldest.heap.map((one) => one.task);
      for (const one of parkedThere) unpark(one);
      parking.obstacle = obstacle;
      // Tasks that join now may get along with the former one, so the next successor is measured by this.
      parking.origin = originOf(obstacle);
      obstacle.parked = parking;
      for (const one of parkedThere) enter(parking, one);
    }
  }
  wakeNext(turn, parking, task.lane);
}

/** Most tasks that are re-parked in one step; usually only the one just tried. */
const movedMax = 64;

/** What the task was granted, or is parked on with few others, if that stands in everybody's way as the obstacle did. */
function successorOf(task: TaskEntry, former: Parking): Obstacle | null {
  if (task.place !== "parked") return leasesOf(task).find((lease) => isSuccessor(lease, task, former)) ?? null;
  const { parking } = task;
  if (parking === null || parking.obstacle === null || parking.oldest.heap.length > movedMax) return null;
  return isSuccessor(parking.obstacle, task, former) ? parking.obstacle : null;
}

/** The same name, at least as strong; or units of which the task, that did not get them, wants no more than any other. */
function isSuccessor(obstacle: Obstacle, task: TaskEntry, { origin, unitsMin }: Parking): boolean {
  if (origin?.kind === "lease" && obstacle.kind === "lease") {
    return obstacle.record.resource === origin.resource && obstacle.strength >= origin.strength;
  }
  if (origin?.kind === "kind" && obstacle.kind === "kind") {
    return obstacle.name === origin.name && unitsOfKind(task, origin.name) <= unitsMin;
  }
  if (origin?.kind === "choice" && obstacle.kind === "choice") {
    // One that wants more than this may have been kept from it by the rest of what it wants.
    const isAlone = task.record.spec.intents.length === 1;
    return isAlone && obstacle.id === origin.id && unitsOf(task, origin.resource) <= unitsMin;
  }
  if (origin?.kind !== "resource" || obstacle.kind !== "resource") return false;
  return obstacle.record.name === origin.resource && unitsOf(task, origin.resource) <= unitsMin;
}
