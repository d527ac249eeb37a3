/**
 * The kernel's memory: every live record in an entry that also stands in the indexes. Records are data and leave the
 * kernel; entries are places and never do. Everything here is rebuilt from records alone (see restore.ts).
 */

import type { AuditEntry } from "../contract/audit-records.ts";
import type { KernelEvent } from "../contract/events.ts";
import type { Strength } from "../contract/predicates.ts";
import type { Counters, Intent, Lease, Millis, RecordKind, RecordOf } from "../contract/records.ts";
import type { Receipt } from "../contract/task-records.ts";
import type { TextMap } from "../index/hash-tables.ts";
import { createHeap, firstRank, type Heap, type Ranked, rankIn, removeFrom } from "../index/heap.ts";
import type { KeyFilter } from "../index/key-filter.ts";
import type { Placed } from "../index/placed-lists.ts";
import { createRoot, type Mark, type Node } from "../index/resource-tree.ts";
import { canonicalName, type ResourceName } from "../names/resource-name.ts";
import type { Policies, TenantPermissions } from "../policies/permissions.ts";
import type { Standby } from "../requests/standby-index.ts";
import type { Consequence } from "./consequences.ts";
import type { ConcernNames } from "./entries.ts";
import type { Job, Sweep, Walk } from "./jobs.ts";
import type { Past, TenantPast } from "./past.ts";
import { RecentEnds } from "./recent-ends.ts";
import type { KindEntry, Parking, ReadyTask, TaskBook, TaskEntry, WorkerEntry } from "./task-state.ts";

/** A record that may have changed. The object stays the same for the record's whole life; `record` is its newest form. */
export interface Handle<K extends RecordKind = RecordKind> {
  readonly kind: K;
  readonly record: RecordOf[K];
  readonly alive: boolean;
  /** For the store: the number under which the record is stored; 0 while it is not. */
  row: number;
}

export interface Entry<K extends RecordKind> {
  readonly kind: K;
  record: RecordOf[K];
  alive: boolean;
  row: number;
  /** The step that last listed it among its changes. */
  changedIn: number;
  /** What it counts in `memoryBytes` of its tenant. */
  bytes: number;
}

/**
 * What holds leases and waits: an agent, or a task (T10). Conflicts are between holders (C2), and waits are ordered
 * by their priority timestamps (W1).
 */
export type Holder = AgentEntry | TaskEntry;

export interface LeaseEntry extends Placed, Ranked, Entry<"lease"> {
  readonly kind: "lease";
  /** Its name is a pattern. */
  wild: boolean;
  holder: Holder;
  nextOfHolder: LeaseEntry | null;
  previousOfHolder: LeaseEntry | null;
  request: RequestEntry | null;
  /** Tasks whose manifests it stands in the way of; they are looked at again when it ends (T10). */
  parked: Parking | null;
}

/** One intent of a request that waits or stands by, at its place in the index. */
export interface WaitingClaim extends Placed {
  readonly request: RequestEntry;
  readonly name: ResourceName;
  readonly intent: Intent;
  readonly counted: ResourceEntry | null;
}

export interface RequestEntry extends Ranked, Entry<"request"> {
  readonly kind: "request";
  readonly holder: Holder;
  readonly claims: WaitingClaim[];
  parked: Parking | null;
}

export interface AgentEntry extends Ranked, Entry<"agent"> {
  readonly kind: "agent";
  readonly holderId: string;
  /** The priority timestamp of its unit of work: smaller is older. */
  priority: number;
  /** First of the holder's live leases, linked through `nextOfHolder`. */
  leases: LeaseEntry | null;
  leaseCount: number;
  /** Requests that wait or bind. */
  readonly open: Set<RequestEntry>;
  /** The request that stands by (W14). While there is one, the agent has no lease and nothing open. */
  standby: RequestEntry | null;
  /** Granted and open requests by their idempotency keys, or the leases that stand for them (W10). */
  readonly keys: Map<string, RequestEntry | LeaseEntry>;
  /** Requests that have ended, but can still be asked for. */
  readonly remembered: Set<RequestEntry>;
  digest: DigestEntry | null;
  senior: Senior | null;
  concernNames: ConcernNames | null;
}

/** A holder among those of its tenant. */
export interface Senior extends Ranked {
  readonly kind: "senior";
  readonly holder: Holder;
}

export interface DigestEntry extends Entry<"digest"> {}

/** Its deadline is when the next of its units come back (G15). */
export interface ResourceEntry extends Ranked, Entry<"resource">, Mark {
  readonly kind: "resource";
  readonly node: Node;
  readonly name: ResourceName;
  /** Of a counted resource: units of all its leases, or those that are not back yet (C6, G15), and of all that waits for it. */
  heldUnits: number;
  waitingUnits: number;
  /** Tasks that wait for units of it. */
  parked: Parking | null;
}

export type CellEntry = Ranked & Entry<"cell"> & { readonly kind: "cell" };

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
  /** Ended requests that are remembered (W10), in the order in which they ended. */
  readonly remembered: Set<RequestEntry>;
  /** Of those, the one that ended first. One iterator for good: a new one would pass over all that was deleted before. */
  readonly longestRemembered: Iterator<RequestEntry>;
  /** Keys that were left to the store (W10). */
  readonly storedKeys: KeyFilter;
  /** Units leased and waited for by type, where the tenant has a quota on one (G2); null where it has none. */
  kindUnits: Map<string, KindEntry> | null;
  readonly tasks: TextMap<TaskEntry>;
  readonly book: TaskBook;
  readonly past: TenantPast;
  waitingCount: number;
  /** Intents of all waiting requests; each becomes a lease. */
  waitingClaims: number;
  readonly standby: Standby;
  patternCount: number;
  /** About what memory keeps of its live records (S4); see memory-use.ts. */
  memoryBytes: number;
  /** As stored: bodies and inputs of its tasks, and its agents' digests (S4). */
  payloadBytes: number;
  digestBytes: number;
  /** Holders that have or had something, by age; see deciding/seniority.ts. */
  readonly seniors: Heap<Senior>;
  /** Under way; mostly none. */
  readonly sweeps: Sweep[];
  readonly walks: Walk[];
  /** Those of all tenants; see policies/permissions.ts. */
  readonly policies: Policies;
  /** What they come to for each credential of the tenant; null: to be compiled when somebody asks. */
  permissions: TenantPermissions | null;
}

export interface CountersEntry extends Entry<"counters"> {}
export interface KeyEntry extends Entry<"key"> {}

/** Names that are served together, to waiters or to what stands by. */
export interface Freed {
  readonly tenant: TenantEntry;
  readonly names: readonly ResourceName[];
  readonly to: "waiters" | "standby";
}

/** What has a deadline other than a wait's timeout. */
export type EndEntry = LeaseEntry | RequestEntry | AgentEntry | TaskEntry | WorkerEntry | CellEntry | ResourceEntry;

export interface State {
  readonly tenants: Map<string, TenantEntry>;
  readonly keys: Map<string, KeyEntry>;
  readonly policies: Policies;
  readonly past: Past;
  /** When waits time out; settled before anything else that is due (L3). */
  readonly waits: Heap<RequestEntry>;
  /** Every other deadline. */
  readonly ends: Heap<EndEntry>;
  /** What the present turn has caused and is yet to be followed up. Empty between turns. */
  readonly consequences: Consequence[];
  /** Names that the present turn has freed; their waiters are served at its end. Empty between turns. */
  freed: ResourceName[];
  /** What timed-out waits have freed, one group per wait, to be served once all due waits have ended (L3). */
  readonly unserved: Freed[];
  /** How many of those have been served. */
  servedCount: number;
  /** Work that is done in slices, first come, first served. */
  readonly jobs: Job[];
  /** How many records the present step may end at once; more is a job. */
  sliceMax: number;
  step: number;
  events: KernelEvent[];
  changes: Handle[];
  receipts: Receipt[];
  ready: ReadyTask[];
  audits: AuditEntry[];
}

/** What one command, or one item that is due, works on: the kernel's state, its tenant and the time. */
export interface Turn {
  readonly state: State;
  readonly tenant: TenantEntry;
  readonly now: Millis;
}

export function createState(): State {
  return {
    tenants: new Map(),
    keys: new Map(),
    policies: { entries: new Map(), hasScopes: false },
    past: { recent: new RecentEnds(), endedCount: 0, from: 0 },
    waits: createHeap(),
    ends: createHeap(),
    consequences: [],
    freed: [],
    unserved: [],
    servedCount: 0,
    jobs: [],
    sliceMax: Number.POSITIVE_INFINITY,
    step: 0,
    events: [],
    changes: [],
    receipts: [],
    ready: [],
    audits: [],
  };
}

/** Lists the entry among the step's changes, once. */
export function changed<K extends RecordKind>({ state }: Pick<Turn, "state">, entry: Entry<K> & Handle<K>): void {
  if (entry.changedIn === state.step) return;
  entry.changedIn = state.step;
  state.changes.push(entry as Handle);
}

export function emit({ state }: Turn, event: KernelEvent): void {
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

/** Empty trees that are kept, because most types come again; agents can invent any number of others (S4). */
const emptyRootsMax = 64;

/** The tree of this type has become empty. */
export function dropRoot(tenant: TenantEntry, type: string): void {
  if (tenant.roots.size <= emptyRootsMax) return;
  tenant.roots.delete(type);
  if (tenant.lastRootType !== type) return;
  tenant.lastRootType = "";
  tenant.lastRoot = undefined;
}

/** All live leases of a holder, by fence: an order that a restored kernel finds again. */
export function leasesOf(holder: Holder): LeaseEntry[] {
  const leases: LeaseEntry[] = [];
  for (let lease = holder.leases; lease !== null; lease = lease.nextOfHolder) leases.push(lease);
  return leases.sort((a, b) => a.order - b.order);
}

export function nextFence(turn: Turn): number {
  const { counters } = turn.tenant;
  counters.record = { ...counters.record, fence: counters.record.fence + 1 };
  changed(turn, counters);
  return counters.record.fence;
}

export function updateCounters(turn: Turn, change: Partial<Counters>): void {
  const { counters } = turn.tenant;
  counters.record = { ...counters.record, ...change };
  changed(turn, counters);
}

/** Their waiters are served at the end of the turn (L6, W3). */
export function freeName({ state, tenant }: Turn, name: ResourceName): void {
  if (isAwaited(tenant)) state.freed.push(name);
}

export function freeNameOf(turn: Turn, lease: LeaseEntry): void {
  if (isAwaited(turn.tenant)) turn.state.freed.push(nameOf(lease));
}

function isAwaited({ waitingCount, standby, book }: TenantEntry): boolean {
  return waitingCount > 0 || standby.count > 0 || book.choices.size > 0;
}

/** W1: the time in ms, counted up where that is not yet unique. */
export function freshPriority(tenant: TenantEntry, now: Millis): number {
  return Math.max(tenant.counters.record.priority + 1, now);
}

export function takePriority(turn: Turn): number {
  const { counters } = turn.tenant;
  const priority = freshPriority(turn.tenant, turn.now);
  counters.record = { ...counters.record, priority };
  changed(turn, counters);
  return priority;
}

/** Both halves of a rename, or just the lease (C7). */
export function withLinked(tenant: TenantEntry, entry: LeaseEntry): LeaseEntry[] {
  const other = entry.record.linkedTo === null ? undefined : tenant.leases.get(entry.record.linkedTo);
  return other === undefined ? [entry] : [entry, other];
}

/** The lease on a task itself, not on what its manifest names. */
export function isTaskLease({ resource }: Lease): boolean {
  return resource.startsWith(taskPrefix);
}
export const taskPrefix = "TASK:/";

export function nameOf(entry: LeaseEntry): ResourceName {
  return canonicalName(entry.record.resource);
}

/** In no index yet. */
export function createLeaseEntry(record: Lease, holder: Holder, strength: Strength): LeaseEntry {
  return {
    kind: "lease",
    record,
    alive: true,
    row: 0,
    changedIn: 0,
    bytes: 0,
    wild: false,
    holder,
    nextOfHolder: null,
    previousOfHolder: null,
    request: null,
    parked: null,
    node: null,
    strength,
    order: record.fence,
    suborder: 0,
    previous: null,
    next: null,
    rank: 0,
    tie: 0,
    tenantId: record.tenant,
    slot: -1,
  };
}

/** When a wait's timeout or another deadline is due; what was freed and is not served, at once. Infinity: nothing is. */
export function nextDeadline({ waits, ends, unserved }: State): Millis {
  if (unserved.length > 0) return 0;
  return waits.heap.length === 0 ? firstRank(ends) : Math.min(firstRank(waits), firstRank(ends));
}

/**
 * Holders by the age of their unit of work, for deciding/seniority.ts. A holder enters with its first lease or wait, and stays
 * when it has nothing any more, because most soon have something again. Ranks are lower bounds, because timestamps only
 * grow (W1). Both are put right when somebody looks.
 */
export function enterSeniors({ seniors }: TenantEntry, holder: Holder): void {
  holder.senior = { kind: "senior", holder, tenantId: holder.tenantId, rank: 0, tie: 0, slot: -1 };
  rankIn(seniors, holder.senior, holder.priority, 0);
}

export function leaveSeniors({ seniors }: TenantEntry, holder: Holder): void {
  if (holder.senior !== null) removeFrom(seniors, holder.senior);
  holder.senior = null;
}

/** True: the holder has nothing, and has left. */
export function refreshSenior(tenant: TenantEntry, senior: Senior): boolean {
  const { holder } = senior;
  if (holder.leaseCount === 0 && holder.open.size === 0) {
    leaveSeniors(tenant, holder);
    return true;
  }
  if (senior.rank !== holder.priority) rankIn(tenant.seniors, senior, holder.priority, 0);
  return false;
}
