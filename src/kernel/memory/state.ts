/**
 * The kernel's memory: every live record in an entry that also stands in the indexes. Records are data and leave the
 * kernel; entries are places and never do. Everything here is rebuilt from records alone (see restore.ts).
 */

import type { KernelEvent } from "../contract/events.ts";
import type { Strength } from "../contract/predicates.ts";
import type {
  Agent,
  Cell,
  Counters,
  Digest,
  Intent,
  Key,
  Lease,
  Millis,
  RecordKind,
  RecordOf,
  Request,
  Resource,
  Tenant,
} from "../contract/records.ts";
import type { Receipt } from "../contract/task-records.ts";
import { createDeadlines, type Deadlines, type Due } from "../index/heap.ts";
import { createRoot, type Mark, type Node, type Placed } from "../index/resource-tree.ts";
import { idHash, TextMap, textHash } from "../index/text-map.ts";
import type { ResourceName } from "../names/resource-name.ts";
import {
  createTaskBook,
  type Parking,
  type ReadyTask,
  type TaskBook,
  type TaskEntry,
  type TaskKeyEntry,
  type WorkerEntry,
} from "./task-state.ts";

/** A record that may have changed. The object stays the same for the record's whole life; `record` is its newest form. */
export interface Handle<K extends RecordKind = RecordKind> {
  readonly kind: K;
  readonly record: RecordOf[K];
  readonly alive: boolean;
  /** Left to whoever stores the record: under which number it is stored; 0 while it is not. */
  row: number;
}

export interface Entry<K extends RecordKind> {
  readonly kind: K;
  record: RecordOf[K];
  alive: boolean;
  row: number;
  /** The step that last listed it among its changes. */
  changedIn: number;
}

/**
 * Whoever holds leases and waits: an agent, or a task (T10). Conflicts are between parties (C2), and waits are ordered
 * by their priority timestamps (W1).
 */
export type Party = AgentEntry | TaskEntry;

export interface LeaseEntry extends Placed, Due, Entry<"lease"> {
  readonly kind: "lease";
  /** Its name is a pattern. */
  wild: boolean;
  party: Party;
  nextOfParty: LeaseEntry | null;
  previousOfParty: LeaseEntry | null;
  request: RequestEntry | null;
  /** Tasks whose manifests it stands in the way of; they are looked at again when it ends (T10). */
  parked: Parking | null;
}

/** One intent of a waiting request, at its place in the index. */
export interface Claim extends Placed {
  readonly request: RequestEntry;
  readonly name: ResourceName;
  readonly intent: Intent;
  readonly counted: ResourceEntry | null;
}

export interface RequestEntry extends Due, Entry<"request"> {
  readonly kind: "request";
  readonly party: Party;
  readonly claims: Claim[];
  parked: Parking | null;
}

export interface AgentEntry extends Due, Entry<"agent"> {
  readonly kind: "agent";
  readonly holder: string;
  /** The priority timestamp of its unit of work: smaller is older. */
  priority: number;
  /** First of the party's live leases, linked through `nextOfParty`. */
  leases: LeaseEntry | null;
  leaseCount: number;
  /** Requests that wait or bind. */
  readonly open: Set<RequestEntry>;
  /** Granted and open requests by their idempotency keys (W10). */
  readonly keys: Map<string, RequestEntry>;
  /** Requests of which nothing is alive any more, but whose fate is still told. */
  readonly remembered: Set<RequestEntry>;
  digest: DigestEntry | null;
}

export interface DigestEntry extends Entry<"digest"> {}

export interface ResourceEntry extends Entry<"resource">, Mark {
  readonly node: Node;
  readonly name: ResourceName;
  /** Of a counted resource: units of all its leases, and of all that waits for it (C6). */
  heldUnits: number;
  waitingUnits: number;
  /** Tasks that wait for units of it. */
  parked: Parking | null;
}

export interface CellEntry extends Due, Entry<"cell"> {
  readonly kind: "cell";
}

export interface TenantEntry extends Entry<"tenant"> {
  readonly counters: CountersEntry;
  /** One tree per resource type; `findRoot` and `rootOf` are the ways in. */
  readonly roots: Map<string, Node>;
  lastRootType: string;
  lastRoot: Node | undefined;
  readonly agents: TextMap<AgentEntry>;
  readonly leases: TextMap<LeaseEntry>;
  readonly requests: TextMap<RequestEntry>;
  readonly resources: Map<string, ResourceEntry>;
  readonly cells: Map<string, CellEntry>;
  /** Waiting requests that may be granted another resource than the one they wait for, with their patterns. */
  readonly picking: Map<RequestEntry, readonly ResourceName[]>;
  /** Units leased and waited for by type, where the tenant has a quota on one (G2); null where it has none. */
  kindUnits: Map<string, number> | null;
  readonly tasks: TextMap<TaskEntry>;
  readonly book: TaskBook;
  waitingCount: number;
  patternCount: number;
}

export interface CountersEntry extends Entry<"counters"> {}
export interface KeyEntry extends Entry<"key"> {}

export interface Freed {
  readonly tenant: TenantEntry;
  readonly names: readonly ResourceName[];
}

export interface State {
  readonly tenants: Map<string, TenantEntry>;
  readonly keys: Map<string, KeyEntry>;
  /** When waits time out; settled before anything else that is due (L3). */
  readonly waits: Deadlines<RequestEntry>;
  /** Every other deadline. */
  readonly ends: Deadlines<LeaseEntry | RequestEntry | AgentEntry | TaskEntry | TaskKeyEntry | WorkerEntry | CellEntry>;
  /** What timed-out waiters have freed, each in turn; whoever else waits for it is yet to be served. */
  readonly unserved: Freed[];
  /** How many of those have been served. */
  servedCount: number;
  step: number;
  events: KernelEvent[];
  changes: Handle[];
  receipts: Receipt[];
  ready: ReadyTask[];
}

export function createState(): State {
  return {
    tenants: new Map(),
    keys: new Map(),
    waits: createDeadlines(),
    ends: createDeadlines(),
    unserved: [],
    servedCount: 0,
    step: 0,
    events: [],
    changes: [],
    receipts: [],
    ready: [],
  };
}

/** Lists the entry among the step's changes, once. */
export function changed<K extends RecordKind>(state: State, entry: Entry<K> & Handle<K>): void {
  if (entry.changedIn === state.step) return;
  entry.changedIn = state.step;
  state.changes.push(entry as Handle);
}

export function emit(state: State, event: KernelEvent): void {
  state.events.push(event);
}

/** Most names are of the type that was asked for last, and comparing is cheaper than hashing a fresh text. */
export function findRoot(tenant: TenantEntry, type: string): Node | undefined {
  if (tenant.lastRootType === type) return tenant.lastRoot;
  const root = tenant.roots.get(type);
  if (root === undefined) return undefined;
  tenant.lastRootType = type;
  tenant.lastRoot = root;
  return root;
}

export function rootOf(tenant: TenantEntry, type: string): Node {
  const known = findRoot(tenant, type);
  if (known !== undefined) return known;
  const root = createRoot();
  tenant.roots.set(type, root);
  return root;
}

export function createTenantEntry(record: Tenant, counters: Counters): TenantEntry {
  return {
    kind: "tenant",
    record,
    alive: true,
    row: 0,
    changedIn: 0,
    counters: { kind: "counters", record: counters, alive: true, row: 0, changedIn: 0 },
    roots: new Map(),
    lastRootType: "",
    lastRoot: undefined,
    agents: new TextMap<AgentEntry>(recordId, textHash),
    leases: new TextMap<LeaseEntry>(recordId, idHash),
    requests: new TextMap<RequestEntry>(recordId, idHash),
    resources: new Map(),
    cells: new Map(),
    picking: new Map(),
    kindUnits: null,
    tasks: new TextMap<TaskEntry>(recordId, idHash),
    book: createTaskBook(),
    waitingCount: 0,
    patternCount: 0,
  };
}

const recordId = ({ record }: { readonly record: { readonly id: string } }): string => record.id;

/** An agent is its own party. */
export function createAgentEntry(record: Agent): AgentEntry {
  return {
    kind: "agent",
    record,
    alive: true,
    row: 0,
    changedIn: 0,
    dueAt: 0,
    dueOrder: 0,
    tenantId: record.tenant,
    slot: -1,
    holder: record.id,
    priority: record.priority,
    leases: null,
    leaseCount: 0,
    open: new Set(),
    keys: new Map(),
    remembered: new Set(),
    digest: null,
  };
}

export function createLeaseEntry(record: Lease, party: Party, strength: Strength): LeaseEntry {
  return {
    kind: "lease",
    record,
    alive: true,
    row: 0,
    changedIn: 0,
    wild: false,
    party,
    nextOfParty: null,
    previousOfParty: null,
    request: null,
    parked: null,
    node: null,
    strength,
    order: record.fence,
    suborder: 0,
    previous: null,
    next: null,
    dueAt: 0,
    dueOrder: 0,
    tenantId: record.tenant,
    slot: -1,
  };
}

export function createRequestEntry(record: Request, party: Party): RequestEntry {
  return {
    kind: "request",
    record,
    alive: true,
    row: 0,
    changedIn: 0,
    party,
    claims: [],
    parked: null,
    dueAt: 0,
    dueOrder: 0,
    tenantId: record.tenant,
    slot: -1,
  };
}

export function createDigestEntry(record: Digest): DigestEntry {
  return { kind: "digest", record, alive: true, row: 0, changedIn: 0 };
}

export function createResourceEntry(record: Resource, name: ResourceName, node: Node): ResourceEntry {
  return {
    kind: "resource",
    record,
    alive: true,
    row: 0,
    changedIn: 0,
    marksNode: true,
    node,
    name,
    heldUnits: 0,
    waitingUnits: 0,
    parked: null,
  };
}

export function createCellEntry(record: Cell): CellEntry {
  return {
    kind: "cell",
    record,
    alive: true,
    row: 0,
    changedIn: 0,
    dueAt: 0,
    dueOrder: 0,
    tenantId: record.tenant,
    slot: -1,
  };
}

export function createKeyEntry(record: Key): KeyEntry {
  return { kind: "key", record, alive: true, row: 0, changedIn: 0 };
}

/** All live leases of a party, by fence: an order that a restored kernel finds again. */
export function leasesOf(party: Party): LeaseEntry[] {
  const leases: LeaseEntry[] = [];
  for (let lease = party.leases; lease !== null; lease = lease.nextOfParty) leases.push(lease);
  return leases.sort((a, b) => a.order - b.order);
}

export function nextFence(state: State, tenant: TenantEntry): number {
  const { counters } = tenant;
  counters.record = { ...counters.record, fence: counters.record.fence + 1 };
  changed(state, counters);
  return counters.record.fence;
}

/** W1: the time in ms, counted up where that is not yet unique. */
export function freshPriority(tenant: TenantEntry, now: Millis): number {
  return Math.max(tenant.counters.record.priority + 1, now);
}
