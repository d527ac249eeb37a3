import type { Agent, Counters, RecordOf, Request, Resource, Tenant } from "../contract/records.ts";
import type { Worker } from "../contract/task-records.ts";
import { recordId, TextMap } from "../index/hash-tables.ts";
import { createHeap, type Ranked } from "../index/heap.ts";
import { createKeyFilter } from "../index/key-filter.ts";
import type { Node } from "../index/resource-tree.ts";
import { idHash, type ResourceName, textHash } from "../names/resource-name.ts";
import type { Policies } from "../policies/permissions.ts";
import { createTenantPast } from "./past.ts";
import type { AgentEntry, Entry, Holder, LeaseEntry, RequestEntry, ResourceEntry, TenantEntry } from "./state.ts";
import type { TaskBook, TaskEntry, WorkerEntry } from "./task-state.ts";

/** In place of a digest's context that is in the store, and not in memory (S4). */
export const away: object = Object.freeze({});

export function createTenantEntry(record: Tenant, counters: Counters, policies: Policies): TenantEntry {
  const remembered = new Set<RequestEntry>();
  return {
    kind: "tenant",
    record,
    alive: true,
    row: 0,
    changedIn: 0,
    bytes: 0,
    counters: { kind: "counters", record: counters, alive: true, row: 0, changedIn: 0, bytes: 0 },
    roots: new Map(),
    lastRootType: "",
    lastRoot: undefined,
    agents: new TextMap<AgentEntry>(recordId, textHash),
    leases: new TextMap<LeaseEntry>(recordId, idHash),
    requests: new TextMap<RequestEntry>(recordId, idHash),
    resources: new Map(),
    cells: new Map(),
    picking: new Map(),
    remembered,
    longestRemembered: remembered.values(),
    storedKeys: createKeyFilter(counters.keysStoredUntil),
    kindUnits: null,
    tasks: new TextMap<TaskEntry>(recordId, idHash),
    book: createTaskBook(counters),
    past: createTenantPast(record.id),
    waitingCount: 0,
    waitingClaims: 0,
    standby: { roots: new Map(), count: 0, picks: 0, freed: [] },
    patternCount: 0,
    memoryBytes: 0,
    payloadBytes: 0,
    digestBytes: 0,
    seniors: createHeap(),
    sweeps: [],
    walks: [],
    policies,
    permissions: null,
  };
}

/** The names of an agent's concerns (A4) where they are many, and how long they are together. */
export interface ConcernNames {
  of: Agent["concerns"];
  readonly names: Set<string>;
  chars: number;
}

/** An agent is its own holder. */
export function createAgentEntry(record: Agent): AgentEntry {
  return {
    kind: "agent",
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
    priority: record.priority,
    leases: null,
    leaseCount: 0,
    open: new Set(),
    standby: null,
    keys: new Map(),
    remembered: new Set(),
    digest: null,
    senior: null,
    concernNames: null,
  };
}

export function createRequestEntry(record: Request, holder: Holder): RequestEntry {
  return {
    kind: "request",
    record,
    alive: true,
    row: 0,
    changedIn: 0,
    bytes: 0,
    holder,
    claims: [],
    parked: null,
    rank: 0,
    tie: 0,
    tenantId: record.tenant,
    slot: -1,
  };
}

/** Of a record that stands in no index and has no deadline. */
export function createEntry<K extends "digest" | "key" | "payload" | "task_type" | "foreign_obligation">(
  kind: K,
  record: RecordOf[K],
): Entry<K> {
  return { kind, record, alive: true, row: 0, changedIn: 0, bytes: 0 };
}

export function createResourceEntry(record: Resource, name: ResourceName, node: Node): ResourceEntry {
  return {
    kind: "resource",
    record,
    alive: true,
    row: 0,
    changedIn: 0,
    bytes: 0,
    marksNode: true,
    node,
    name,
    heldUnits: 0,
    waitingUnits: 0,
    parked: null,
    rank: 0,
    tie: 0,
    tenantId: record.tenant,
    slot: -1,
  };
}

export function createDueEntry<K extends "cell" | "worker">(
  kind: K,
  record: RecordOf[K],
): Entry<K> & Ranked & { readonly kind: K } {
  const due = { rank: 0, tie: 0, tenantId: record.tenant, slot: -1 };
  return { kind, record, alive: true, row: 0, changedIn: 0, bytes: 0, ...due };
}

export function createTaskBook({ taskKeysStored, taskKeysStoredUntil }: Counters): TaskBook {
  return {
    lanes: new Map(),
    keys: new Map(),
    created: new Map(),
    endedKeys: createKeyFilter(taskKeysStored ? Number.POSITIVE_INFINITY : 0),
    endedOnceKeys: createKeyFilter(taskKeysStoredUntil),
    types: new Map(),
    workers: new Map(),
    affine: new Map(),
    choices: new Map(),
    preparing: new Map(),
    dedupes: new Map(),
    barred: new Set(),
    lateResults: new Map(),
    lateNames: new Map(),
    foreign: new Map(),
    custodians: new Map(),
    obligations: new Map(),
    readyCount: 0,
    isLeaseQuotaFull: false,
  };
}

export function createWorkerEntry(record: Worker): WorkerEntry {
  return { ...createDueEntry("worker", record), leases: new Set() };
}
