/** A kernel from its records alone, and its records again. What is restored goes on as if nothing had happened. */
import { placeAgent } from "./agents/agent-life.ts";
import { requestIdOf } from "./contract/ids.ts";
import type { Agent, Lease, Millis, RecordKind, RecordOf, Request, StoredRecord } from "./contract/records.ts";
import { countKinds } from "./deciding/admission.ts";
import { claimOfLease } from "./deciding/manifest.ts";
import { rankIn } from "./index/heap.ts";
import { isAlone, isOutOfOrder } from "./index/placed-lists.ts";
import { type Node, nodesFor, putInOrder } from "./index/resource-tree.ts";
import { awaitLateResult } from "./leases/late-results.ts";
import { place } from "./leases/lease-life.ts";
import { createEntry, createRequestEntry, createTenantEntry } from "./memory/entries.ts";
import { countMemory } from "./memory/memory-use.ts";
import { isAfter, keptWrites, type Moment, noteEnd, restoreWrite, storedWrites } from "./memory/past.ts";
import { scheduleRefill } from "./memory/refill.ts";
import {
  type AgentEntry,
  createLeaseEntry,
  createState,
  type Entry,
  type Handle,
  type Holder,
  isTaskLease,
  type LeaseEntry,
  type RequestEntry,
  rootOf,
  type State,
  type Turn,
} from "./memory/state.ts";
import type { TaskEntry } from "./memory/task-state.ts";
import { canonicalName, type ResourceName } from "./names/resource-name.ts";
import { noteScopes, placePolicy } from "./policies/permissions.ts";
import { rememberMarks } from "./receipts/marks.ts";
import { enqueue, openFor } from "./requests/request-life.ts";
import { isOpen } from "./requests/request-states.ts";
import { enterStandby } from "./requests/standby-index.ts";
import { noteKeyOfEnded, noteKeysUnknownBefore } from "./requests/stored-keys.ts";
import { placeCell } from "./resources/cell-life.ts";
import { placeResource } from "./resources/resource-life.ts";
import { placeForeign } from "./tasks/foreign-obligations.ts";
import { resumePreparation } from "./tasks/task-binding.ts";
import { isFinal } from "./tasks/task-life.ts";
import { enterQueue, placeTask } from "./tasks/task-queue.ts";
import { placeTaskType, resumeSpeculation } from "./tasks/task-speculation.ts";
import { listObligation } from "./tasks/task-states.ts";
import { placeWorker } from "./tasks/workers.ts";
import { resumeUnfinished } from "./unfinished.ts";

/** A record together with the number that it is stored under, which its handle keeps. */
export type RestoredRecord = StoredRecord & { readonly row?: number };

interface Of<K extends RecordKind> {
  readonly record: RecordOf[K];
  readonly row?: number;
}

/** `ended` are the youngest ended leases, those that the store's history had at that time. */
export function restore(records: Iterable<RestoredRecord>, ended: EndedLeases = { leases: [], from: 0 }): State {
  const others: RestoredRecord[] = [];
  const leases: Of<"lease">[] = [];
  for (const stored of records) {
    if (stored.kind === "lease") leases.push(stored);
    else others.push(stored);
  }
  const restoring = beginRestore(others);
  restoreLeases(
    restoring,
    leases.map(({ record }) => record),
    leases.map(({ row }) => row ?? 0),
  );
  return endRestore(restoring, ended);
}

/** What is known of the past: the youngest ended leases, in any order; all that have ended since `from` are among them. */
export interface EndedLeases {
  readonly leases: readonly Lease[];
  readonly from: Millis;
}

/**
 * A kernel that is being restored. Leases outnumber all else, and need all else to be there: they come one by one, as
 * they are read, so that nobody has to hold a million of them twice.
 */
export interface Restoring {
  readonly state: State;
  readonly turns: ReadonlyMap<string, Turn>;
  readonly writes: readonly Of<"write">[];
  /** Nodes where leases came in another order than that of their fences. */
  readonly unordered: Set<Node>;
  /** Where leases could conflict: nodes with several of them, and patterns (see stored-conflicts.ts). */
  readonly crowded: Set<Node>;
  readonly patterns: LeaseEntry[];
}

/** Everything but leases, in any order. */
export function beginRestore(records: Iterable<RestoredRecord>): Restoring {
  const byKind = Object.groupBy(records, ({ kind }) => kind) as { readonly [K in RecordKind]?: Of<K>[] };
  const all = <K extends RecordKind>(kind: K): Of<K>[] => byKind[kind] ?? [];
  if (all("lease").length > 0) throw new Error("Leases are restored after everything else.");
  const state = createState();
  const counters = new Map(all("counters").map((stored) => [stored.record.tenant, stored]));
  const turns = new Map<string, Turn>();
  for (const { record, row } of all("tenant")) {
    const counted = counters.get(record.id);
    if (counted === undefined) throw new Error(`The counters of tenant ${record.id} are missing.`);
    const tenant = storedAs(createTenantEntry(record, counted.record, state.policies), row);
    countKinds(tenant);
    storedAs(tenant.counters, counted.row);
    state.tenants.set(record.id, tenant);
    countMemory(state, [tenant, tenant.counters]);
    // Nothing that is restored depends on the time.
    turns.set(record.id, { state, tenant, now: 0 });
  }
  for (const { record, row } of all("key")) {
    const key = storedAs(createEntry("key", record), row);
    countMemory(state, [key]);
    state.keys.set(record.id, key);
  }
  for (const { record, row } of all("policy")) storedAs(placePolicy(state.policies, record), row);
  const credentials = [...all("key"), ...all("agent")];
  if (credentials.some(({ record }) => record.scopes !== null)) noteScopes(state);
  /** Each kind needs those before it. */
  const each = <K extends TenantKind>(kind: K, place: (turn: Turn, record: RecordOf[K]) => Entry<K>): void => {
    for (const { record, row } of all(kind)) {
      const turn = turnOf(turns, record.tenant);
      countMemory(state, [storedAs(place(turn, record), row) as Entry<K> & Handle<K>]);
    }
  };
  const scopesByKey = new Map<string, Agent["scopes"]>();
  each("agent", (turn, record) => placeAgent(turn, withSharedScopes(record, scopesByKey)));
  each("digest", (turn, record) => (agentOf(turn, record.agentId).digest = createEntry("digest", record)));
  each("resource", ({ tenant }, record) =>
    scheduleRefill(state, placeResource(tenant, record, canonicalName(record.name))),
  );
  each("cell", placeCell);
  each("worker", placeWorker);
  each("task_type", ({ tenant }, record) => placeTaskType(tenant, record));
  // In the order of creation, so that what a task depends on is there before it.
  all("task").sort((a, b) => a.record.timestamp - b.record.timestamp);
  each("task", ({ tenant }, record) => placeTask(tenant, record));
  each("payload", (turn, record) => {
    const task = taskOf(turn, record.taskId);
    task.payload = { ...createEntry("payload", record), task };
    return task.payload;
  });
  each("foreign_obligation", ({ tenant }, record) => placeForeign(tenant, record));
  // Appending in order is what makes each list at a node cheap to rebuild.
  all("request").sort((a, b) => a.record.arrival - b.record.arrival);
  each("request", restoreRequest);
  const ended = all("request").filter(({ record }) => record.forgetAt !== null);
  for (const { record } of ended.sort((a, b) => (a.record.forgetAt ?? 0) - (b.record.forgetAt ?? 0))) {
    const { tenant } = turnOf(turns, record.tenant);
    const request = tenant.requests.get(record.id);
    if (request !== undefined) tenant.remembered.add(request);
  }
  return { state, turns, writes: all("write"), unordered: new Set(), crowded: new Set(), patterns: [] };
}

type TenantKind = Exclude<RecordKind, "tenant" | "counters" | "key" | "policy" | "lease" | "write">;

/** Once every lease has come. */
export function endRestore(restoring: Restoring, ended: EndedLeases): State {
  const { state, turns, unordered } = restoring;
  for (const node of unordered) putInOrder(node);
  restorePast(restoring, ended);
  for (const turn of turns.values()) {
    const tasks = [...turn.tenant.tasks.values()].sort((a, b) => a.record.timestamp - b.record.timestamp);
    for (const task of tasks) resumeTask(turn, task);
  }
  state.ready = [];
  // A crash between two slices may have left waiters unserved; trying all of them once is harmless otherwise.
  for (const tenant of state.tenants.values()) {
    for (const { record, claims } of tenant.requests.values()) {
      if (record.state !== "WAITING") continue;
      state.unserved.push({ tenant, names: claims.map(({ name }) => name), to: "waiters" });
    }
    for (const names of tenant.picking.values()) state.unserved.push({ tenant, names, to: "waiters" });
  }
  for (const tenant of state.tenants.values()) {
    if (tenant.standby.count === 0) continue;
    const names: ResourceName[] = [];
    for (const { record, claims } of tenant.requests.values()) {
      if (record.state === "STANDBY") for (const { name } of claims) names.push(name);
    }
    state.unserved.push({ tenant, names, to: "standby" });
  }
  for (const turn of turns.values()) resumeUnfinished(turn);
  return state;
}

/** All agents of a key have its scopes: they are there once, as they were when the agents were registered. */
function withSharedScopes(record: Agent, byKey: Map<string, Agent["scopes"]>): Agent {
  const { keyId, scopes } = record;
  if (keyId === null || scopes === null) return record;
  const shared = byKey.get(keyId);
  if (shared !== undefined) return { ...record, scopes: shared };
  byKey.set(keyId, scopes);
  return record;
}

/** In the order of time: each ended lease, and each write that is stored by itself (A4). */
function restorePast({ state, turns, writes }: Restoring, { leases, from }: EndedLeases): void {
  state.past.from = from;
  for (const { tenant } of turns.values()) noteKeysUnknownBefore(tenant, from);
  const past: (Moment & { readonly add: () => void })[] = [];
  for (const { record, row } of writes) {
    const turn = turnOf(turns, record.tenant);
    past.push({ ...record, add: () => countMemory(state, [storedAs(restoreWrite(turn, record), row)]) });
  }
  const stored = new Set(writes.map(({ record }) => pastKey(record)));
  for (const lease of leases) {
    const turn = turnOf(turns, lease.tenant);
    noteKeyOfEnded(turn.tenant, lease);
    // It was kept by itself because the lease was about to be deleted.
    if (stored.size > 0 && stored.has(pastKey({ ...lease, at: lease.endedAt ?? 0 }))) continue;
    const { fence, predicate, endedAt } = lease;
    past.push({ at: endedAt ?? 0, fence, predicate, add: () => restoreEnd(turn, lease) });
  }
  past.sort((a, b) => (isAfter(a, b) ? 1 : isAfter(b, a) ? -1 : 0));
  for (const { add } of past) add();
}

function restoreEnd(turn: Turn, lease: Lease): void {
  turn.state.past.endedCount++;
  if (!isTaskLease(lease)) noteEnd(turn, lease);
}

function pastKey({ tenant, resource, predicate, at, fence }: Moment & Pick<Lease, "tenant" | "resource">): string {
  return `${at} ${fence} ${predicate} ${tenant} ${resource}`;
}

function storedAs<E extends { row: number }>(entry: E, row: number | undefined): E {
  entry.row = row ?? 0;
  return entry;
}

function restoreRequest(turn: Turn, record: Request): RequestEntry {
  const holder = holderOf(turn, record);
  const request = createRequestEntry(record, holder);
  turn.tenant.requests.set(record.id, request);
  if (record.state === "WAITING") enqueue(turn, request);
  if (record.state === "BINDING") openFor(holder, request);
  if (holder.kind === "task") return request;
  if (record.state === "STANDBY") enterStandby(turn, request, holder);
  const holdsKey = isOpen(record) || record.state === "GRANTED";
  if (record.key !== null && holdsKey) holder.keys.set(record.key, request);
  if (record.forgetAt !== null) {
    holder.remembered.add(request);
    rankIn(turn.state.ends, request, record.forgetAt, record.arrival);
  }
  return request;
}

/** How many leases go down the index together. With many more, their parsed names outlive what they are needed for. */
const leasesAtOnce = 128;

/** Some of the leases, in any order; that of their fences, in which nearly all are stored, costs least. */
export function restoreLeases(restoring: Restoring, records: readonly Lease[], rows: readonly number[]): void {
  for (let start = 0; start < records.length; start += leasesAtOnce) {
    const end = start + leasesAtOnce;
    restoreTogether(restoring, records.slice(start, end), rows.slice(start, end));
  }
}

function restoreTogether(restoring: Restoring, records: readonly Lease[], rows: readonly number[]): void {
  const { turns } = restoring;
  const names = records.map(({ resource }) => canonicalName(resource));
  const roots = names.map(({ type }, at) => rootOf(turnOf(turns, records[at]?.tenant ?? "").tenant, type));
  prefetch(turns, records);
  for (const [at, node] of nodesFor(roots, names).entries()) {
    const [record, name] = [records[at], names[at]];
    if (record !== undefined && name !== undefined) restoreLease(restoring, record, rows[at] ?? 0, name, node);
  }
}

/** Touches each id's slot so that the inserts that follow find it in the cache. The answers are not needed. */
function prefetch(turns: Restoring["turns"], records: readonly Lease[]): void {
  for (const { tenant, id } of records) turnOf(turns, tenant).tenant.leases.has(id);
}

function restoreLease(
  { turns, unordered, crowded, patterns }: Restoring,
  record: Lease,
  row: number,
  name: ResourceName,
  node: Node,
): void {
  const turn = turnOf(turns, record.tenant);
  const { tenant } = turn;
  const entry = createLeaseEntry(record, holderOf(turn, record), claimOfLease(tenant, record, name).strength);
  const request = tenant.requests.size === 0 ? undefined : tenant.requests.get(requestIdOf(record.id));
  // Handed over, it no longer belongs to the request through which it was granted.
  const isHandedOver = request?.record.ended.some((ended) => ended.id === record.id) ?? true;
  entry.request = isHandedOver ? null : (request ?? null);
  if (record.requestKey !== null && entry.holder.kind === "agent") entry.holder.keys.set(record.requestKey, entry);
  entry.row = row;
  countMemory(turn.state, [entry]);
  const { size } = tenant.leases;
  place(turn, entry, node, name.wild);
  if (tenant.leases.size === size) throw new Error(`A lease is stored twice: ${record.id}`);
  if (isOutOfOrder(entry)) unordered.add(node);
  if (name.wild) patterns.push(entry);
  if (!isAlone(node, entry)) crowded.add(node);
  if (entry.holder.kind === "task" && name.type === "TASK") tenant.book.workers.get(record.agentId)?.leases.add(entry);
}

/** A task's leases and requests name it as their holder, and somebody else as who acts for it. */
function holderOf(turn: Turn, record: Lease | Request): Holder {
  return record.holder === record.agentId ? agentOf(turn, record.agentId) : taskOf(turn, record.holder);
}

function taskOf({ tenant }: Turn, taskId: string): TaskEntry {
  const task = tenant.tasks.get(taskId);
  if (task === undefined) throw new Error(`A record belongs to an unknown task: ${taskId}`);
  return task;
}

/** Once its leases and requests are there: back to where it stood. A queued one is tried again when a worker polls. */
function resumeTask(turn: Turn, task: TaskEntry): void {
  const { tenant } = turn;
  const { record } = task;
  listObligation(tenant, task);
  if (!isFinal(record)) rememberMarks(tenant, task);
  if (record.live.length > 0) {
    if (task.key !== null) task.key.running++;
    resumeSpeculation(turn, task);
    return;
  }
  const mayComeLate = record.past.some(({ acceptedAt, contested }) => acceptedAt !== null && !contested);
  if (record.spec.intents.length > 0 && mayComeLate && !isFinal(record)) awaitLateResult(turn, task);
  if (record.status !== "queued" && record.status !== "retry_pending") return;
  if (!resumePreparation(turn, task)) enterQueue(turn, task);
}

function turnOf(turns: Restoring["turns"], tenantId: string): Turn {
  const turn = turns.get(tenantId);
  if (turn === undefined) throw new Error(`A record belongs to an unknown tenant: ${tenantId}`);
  return turn;
}

function agentOf({ tenant }: Turn, agentId: string): AgentEntry {
  const agent = tenant.agents.get(agentId);
  if (agent === undefined) throw new Error(`A record belongs to an unknown agent: ${agentId}`);
  return agent;
}

/** Every live record, as a handle: what a restored kernel's records are to be stored under. */
export function* liveHandles(state: State): Generator<Handle> {
  for (const tenant of state.tenants.values()) {
    yield tenant;
    yield tenant.counters;
    for (const agent of tenant.agents.values()) {
      yield agent;
      if (agent.digest !== null) yield agent.digest;
    }
    yield* tenant.resources.values();
    yield* tenant.cells.values();
    yield* tenant.requests.values();
    yield* tenant.leases.values();
    for (const task of tenant.tasks.values()) {
      yield task;
      if (task.payload !== null) yield task.payload;
    }
    yield* tenant.book.types.values();
    yield* tenant.book.workers.values();
    yield* tenant.book.foreign.values();
    yield* keptWrites(tenant);
  }
  yield* storedWrites(state);
  yield* state.keys.values();
  yield* state.policies.entries.values();
}

export function snapshot(state: State): StoredRecord[] {
  return Array.from(liveHandles(state), ({ kind, record }) => ({ kind, record }) as StoredRecord);
}
