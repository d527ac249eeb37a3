/**
 * Where tasks and workers stand in memory. A queued task is in exactly one place: delayed (among the deadlines),
 * dependent (on tasks that are not done), ready (in its lane), keyed (its concurrency key is full), parked (on one thing
 * that stands in its manifest's way), barred (somebody must act first) or binding (cells set its resources up). It is
 * looked at when it is ready and a worker asks, and put elsewhere if it cannot be offered; whatever put it there brings it
 * back. So a poll's cost does not grow with the queue.
 */

import { leaseIndexOf } from "../contract/ids.ts";
import { limits } from "../contract/limits.ts";
import type { Strength } from "../contract/predicates.ts";
import type { Lease } from "../contract/records.ts";
import type { Task, TaskAttempt, TaskSpec } from "../contract/task-records.ts";
import { createHeap, firstOf, type Heap, type Ranked, rankIn, removeFrom } from "../index/heap.ts";
import type { KeyFilter } from "../index/key-filter.ts";
import type { Placed } from "../index/placed-lists.ts";
import type { Node } from "../index/resource-tree.ts";
import type { ResourceName } from "../names/resource-name.ts";
import {
  changed,
  type Entry,
  isTaskLease,
  type LeaseEntry,
  leasesOf,
  type RequestEntry,
  type ResourceEntry,
  type Senior,
  type TenantEntry,
  type Turn,
} from "./state.ts";

/** What a task's manifest waits for: a lease, a request ahead of it, units of a counted resource (C6), a quota (G2). */
export type Obstacle = LeaseEntry | RequestEntry | ResourceEntry | KindEntry | ChoiceEntry;

/** T10: a pattern of which tasks want any one resource (`pick`) in the same way; all were taken when they were tried. */
export interface ChoiceEntry {
  readonly kind: "choice";
  readonly id: string;
  readonly pattern: ResourceName;
  /** Tasks that wait until one that it matches is freed. */
  parked: Parking | null;
}

/** A type of resources that the tenant has a quota on: units leased and waited for. */
export interface KindEntry {
  readonly kind: "kind";
  readonly name: string;
  units: number;
  /** Tasks that wait for the quota. */
  parked: Parking | null;
}

export type TaskPlace = "delayed" | "dependent" | "ready" | "keyed" | "parked" | "barred" | "binding" | "none";

export interface TaskEntry extends Ranked, Entry<"task"> {
  readonly kind: "task";
  /** As a holder (C2): its id. */
  readonly holderId: string;
  readonly priority: number;
  leases: LeaseEntry | null;
  leaseCount: number;
  open: Set<RequestEntry>;
  /** Null: it has none, or it is away. */
  payload: PayloadEntry | null;
  /** Its payload is away and a receipt waits for it: what comes later about the task waits too. */
  isPayloadAwaited: boolean;
  place: TaskPlace;
  readonly lane: Lane;
  key: ConcurrencyKey | null;
  /** The parking it waits in or, while ready, the one it was woken from. */
  parking: Parking | null;
  /** The worker that asked for it while cells set its resources up (T10), and after that until it is offered. */
  preparedFor: string | null;
  /** How often it was passed over because of its manifest since it last queued for it (T10). */
  passedOver: number;
  /** Those that depend on it. */
  dependents: Set<TaskEntry> | null;
  senior: Senior | null;
  /** Of a task that runs: whether a second worker may try it, or will (T8). */
  second: "no" | "timed" | "open";
  /** While it is ready: its place among those that its last worker would get first (T7). */
  affinity: Listed | null;
  /** While it is parked: its place among those by age. */
  age: Listed | null;
}

/** The tasks that are parked on one obstacle (see task-parking.ts). */
export interface Parking {
  /** Null: it has gone, and they come one by one. */
  obstacle: Obstacle | null;
  /** What it is or was: something else of the kind may take its place. */
  origin:
    | { readonly kind: "lease"; readonly resource: string; readonly strength: Strength }
    | { readonly kind: "resource"; readonly resource: string }
    | { readonly kind: "kind"; readonly name: string }
    | { readonly kind: "choice"; readonly id: string; readonly resource: string }
    | null;
  readonly lanes: Map<Lane, Heap<TaskEntry>>;
  /** All of them by age. */
  readonly oldest: Heap<Listed>;
  /** Those that a worker had before (T7). */
  readonly returning: Set<TaskEntry>;
  /** The fewest units that any of them wants of a counted resource, or of a type with a quota. */
  unitsMin: number;
}

/** A task's body and inputs, while memory has them: once they are stored they may be away (S4). */
export interface PayloadEntry extends Entry<"payload"> {
  readonly task: TaskEntry;
}
export interface TaskTypeEntry extends Entry<"task_type"> {}

/** An open obligation on a task that this system does not own (R5). */
export interface ForeignEntry extends Entry<"foreign_obligation"> {}

/** What somebody answers for. */
export type Owed = TaskEntry | ForeignEntry;

export interface WorkerEntry extends Entry<"worker">, Ranked {
  readonly kind: "worker";
  /** Its live task leases. */
  readonly leases: Set<LeaseEntry>;
}

/** A task in a second list, in another order than where it stands. */
export interface Listed extends Ranked {
  readonly task: TaskEntry;
  readonly list: Heap<Listed>;
}

/** One name that a lost attempt had leased. */
export interface LateName extends Placed {
  readonly task: TaskEntry;
  /** Of its resource. */
  readonly type: string;
}

/** Ready tasks of one type and one set of required capabilities, the next one first. */
export interface Lane {
  readonly id: string;
  readonly taskType: string;
  readonly requires: readonly string[];
  readonly ready: Heap<TaskEntry>;
  /** Those that one worker has and a second one may try (T8), the oldest first. */
  readonly second: Heap<TaskEntry>;
  /** What the last of its tasks was asked for with, which the next one mostly is too. */
  lastSpec: TaskSpec | null;
  /** Tasks of this lane that are alive; without any the lane goes. */
  count: number;
}

/** T12: tasks of one key that run at once, and those that wait for a slot. */
export interface ConcurrencyKey {
  readonly name: string;
  running: number;
  count: number;
  /** By lane, and apart for each worker that had them before: it would get them first (T7). */
  readonly waiting: Map<string, Heap<TaskEntry>>;
}

/** Everything of a tenant that has to do with tasks. */
export interface TaskBook {
  readonly lanes: Map<string, Lane>;
  readonly keys: Map<string, ConcurrencyKey>;
  /** Live tasks by the idempotency keys of their creations (T12). */
  readonly created: Map<string, TaskEntry>;
  /** Those of tasks that have ended, and of them the ones with a short life. */
  readonly endedKeys: KeyFilter;
  readonly endedOnceKeys: KeyFilter;
  readonly types: Map<string, TaskTypeEntry>;
  readonly workers: Map<string, WorkerEntry>;
  /** By worker, known or forgotten: ready tasks that it had before (T7), the next one first. */
  readonly affine: Map<string, Heap<Listed>>;
  /** Receipts with keys or given ids, of tasks that are alive or owed, by `markName` (R3). */
  readonly dedupes: Map<string, Owed>;
  /** Tasks that wait for somebody to act: a fenced resource, for instance. */
  readonly barred: Set<TaskEntry>;
  /** By id: what tasks that wait for any one of a pattern's resources are parked on. */
  readonly choices: Map<string, ChoiceEntry>;
  /** Tasks that are prepared, or that cells prepare, by the worker that asked for them (T10). */
  readonly preparing: Map<string, number>;
  /** Tasks with a manifest whose last holder may still come with a late complete (T13), and where they were. */
  readonly lateResults: Map<TaskEntry, readonly LateName[]>;
  /** What those held, in trees of its own by the type of resource, so that a grant meets only what it overlaps (C5). */
  readonly lateNames: Map<string, Node>;
  /** Open obligations on tasks that this system does not own, by the task's id (R5). */
  readonly foreign: Map<string, ForeignEntry>;
  /** All open obligations, by custodian (R5). */
  readonly custodians: Map<string, Set<Owed>>;
  /** The same by the obligation's id. */
  readonly obligations: Map<string, Owed>;
  readyCount: number;
  /** A poll got nothing because the tenant may have no more leases; the next end of one wakes held polls. */
  isLeaseQuotaFull: boolean;
}

/** A task that can be offered now, as far as it matters to held polls. */
export interface ReadyTask {
  readonly tenant: string;
  readonly taskType: string;
  readonly requires: readonly string[];
  /** The worker that had it before, or that it was prepared for, which is asked first (T7, T10). */
  readonly lastWorker: string | null;
  /** The worker that has it: the second attempt is for others (T8). */
  readonly runningOn: string | null;
}

/** Most tasks never wait for a manifest, and a million sets would be a quarter of a gigabyte. */
export const noRequests: Set<RequestEntry> = new Set();

export function createLane(id: string, taskType: string, requires: readonly string[]): Lane {
  return { id, taskType, requires, ready: createHeap(), second: createHeap(), lastSpec: null, count: 0 };
}

export function createListed(kind: "affinity" | "age", task: TaskEntry, list: Heap<Listed>): Listed {
  return { kind, task, list, tenantId: task.tenantId, rank: 0, tie: 0, slot: -1 };
}

/** Its body and inputs are in the store, and not in memory. */
export function isPayloadAway({ payload, record }: TaskEntry): boolean {
  return payload === null && record.payloadBytes > 0;
}

export function updateTask(turn: Turn, task: TaskEntry, change: Partial<Omit<Task, "status">>): void {
  task.record = { ...task.record, ...change };
  changed(turn, task);
}

/** The task's lease and those of its manifest; a speculative attempt has its own lease and no others. */
export function leasesOfAttempt(tenant: TenantEntry, task: TaskEntry, lease: LeaseEntry): LeaseEntry[] {
  const attempt = attemptOf(task, lease);
  if (attempt === undefined || attempt.canceled) return [];
  if (task.record.spec.intents.length > 0) return openLeasesOf(task);
  const own = tenant.leases.get(attempt.leaseId);
  return own === undefined ? [] : [own];
}

/** Those of its manifest, in the order of the intents: renewals change that of their fences. */
export function manifestLeases(tenant: TenantEntry, task: TaskEntry, lease: LeaseEntry): Lease[] {
  const leases = leasesOfAttempt(tenant, task, lease).filter((one) => one !== lease);
  if (leases.length > 1) leases.sort((a, b) => leaseIndexOf(a.record.id) - leaseIndexOf(b.record.id));
  return leases.map(({ record }) => record);
}

/** Without those of earlier attempts that cells are still tearing down (G6). */
export function openLeasesOf(task: TaskEntry): LeaseEntry[] {
  return leasesOf(task).filter(({ record }) => record.state !== "CLOSING");
}

/** Which of the task's attempts a lease belongs to: only a task without a manifest has more than one. */
export function attemptOf({ record }: TaskEntry, { record: lease }: LeaseEntry): TaskAttempt | undefined {
  if (lease.closingAs !== null) return undefined;
  return isTaskLease(lease) ? record.live.find(({ leaseId }) => leaseId === lease.id) : record.live[0];
}

/** By fence, which is an order that a restored kernel finds again. */
export function leasesOfWorker({ leases }: WorkerEntry): LeaseEntry[] {
  return [...leases].sort((a, b) => a.order - b.order);
}

/** In no index yet. */
export function createTaskEntry(record: Task, lane: Lane): TaskEntry {
  return {
    kind: "task",
    record,
    alive: true,
    row: 0,
    changedIn: 0,
    bytes: 0,
    rank: 0,
    tie: 0,
    tenantId: record.tenant,
    slot: -1,
    holderId: record.id,
    priority: record.timestamp,
    leases: null,
    leaseCount: 0,
    open: noRequests,
    payload: null,
    isPayloadAwaited: false,
    place: "none",
    lane,
    key: null,
    parking: null,
    preparedFor: null,
    passedOver: 0,
    dependents: null,
    second: "no",
    affinity: null,
    age: null,
    senior: null,
  };
}

/**
 * Ready tasks stand in lanes by type and required capabilities. Rank is age less the priority's worth in time: the order
 * of two tasks never changes while they wait, and an old task of low priority in the end comes before a young one of
 * high priority.
 */
export function rankOf({ timestamp, spec }: Task): number {
  return timestamp - spec.taskPriority * limits.taskAgeingMsPerLevel;
}

/**
 * Neither types nor capabilities have line breaks in them, and none is empty. Tasks of one key with different limits are
 * apart, so that one whose limit is reached does not hide another whose is not (T12).
 */
export function laneIdOf({ taskType, requires, concurrencyLimit }: TaskSpec): string {
  const kind = requires.length === 0 ? taskType : `${taskType}\n${requires.join("\n")}`;
  return concurrencyLimit === 1 ? kind : `${kind}\n\n${concurrencyLimit}`;
}

export function laneFor({ book }: TenantEntry, spec: TaskSpec): Lane {
  const id = laneIdOf(spec);
  const known = book.lanes.get(id);
  if (known !== undefined) return known;
  const lane = createLane(id, spec.taskType, spec.requires);
  book.lanes.set(id, lane);
  return lane;
}

export function makeReady(turn: Turn, task: TaskEntry): void {
  const { tenant } = turn;
  const { record, lane } = task;
  task.place = "ready";
  tenant.book.readyCount++;
  // One whose resources are set up holds them: it is offered before all others.
  const rank = task.preparedFor === null ? rankOf(record) : Number.NEGATIVE_INFINITY;
  rankIn(lane.ready, task, rank, record.timestamp);
  if (record.lastWorker !== null) enterAffine(tenant, task, record.lastWorker);
  announce(turn, task);
}

function enterAffine({ book }: TenantEntry, task: TaskEntry, workerId: string): void {
  let affine = book.affine.get(workerId);
  if (affine === undefined) {
    affine = createHeap();
    book.affine.set(workerId, affine);
  }
  task.affinity = createListed("affinity", task, affine);
  rankIn(affine, task.affinity, rankOf(task.record), task.record.timestamp);
}

/** No longer ready. */
export function leaveReady({ tenant: { book } }: Turn, task: TaskEntry): void {
  const { affinity, lane } = task;
  const { lastWorker } = task.record;
  removeFrom(lane.ready, task);
  book.readyCount--;
  if (affinity === null) return;
  removeFrom(affinity.list, affinity);
  task.affinity = null;
  if (lastWorker !== null && affinity.list.heap.length === 0 && book.affine.get(lastWorker) === affinity.list)
    book.affine.delete(lastWorker);
}

export function announce({ state }: Turn, { record, lane, preparedFor }: TaskEntry): void {
  const { tenant, live } = record;
  const runningOn = live[0]?.workerId ?? null;
  const lastWorker = runningOn === null ? (preparedFor ?? record.lastWorker) : null;
  state.ready.push({ tenant, taskType: lane.taskType, requires: lane.requires, lastWorker, runningOn });
}

/** Announces the next task of each lane, so that held polls are tried again. */
export function announceAll(turn: Turn): void {
  for (const { ready } of turn.tenant.book.lanes.values()) {
    const first = firstOf(ready);
    if (first !== undefined) announce(turn, first);
  }
}
