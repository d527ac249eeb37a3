/**
 * What the server and the engine may read of the kernel's memory, besides its surface (kernel.ts) and its contract: records
 * and counts, never entries. Nothing here changes anything.
 */
import type { Actor } from "./contract/commands.ts";
import type { Policy } from "./contract/policy-records.ts";
import type {
  Digest,
  Key,
  Lease,
  Millis,
  RecordOf,
  Request,
  Resource,
  Tenant,
  TenantQuotas,
} from "./contract/records.ts";
import { type Refusal, refuse } from "./contract/refusals.ts";
import type { Reply } from "./contract/replies.ts";
import type { ReceiptInput } from "./contract/task-commands.ts";
import type { ForeignObligation, Obligation, Payload, Task, Worker } from "./contract/task-records.ts";
import { leaseTimeUsed } from "./deciding/admission.ts";
import { eachAt } from "./index/placed-lists.ts";
import { findLeases } from "./leases/lease-search.ts";
import { agentOf, findTenant, isOpenTo, mayActFor, submitterOf } from "./memory/actors.ts";
import { type Handle, type ResourceEntry, type State, type TenantEntry, taskPrefix } from "./memory/state.ts";
import { manifestLeases } from "./memory/task-state.ts";
import type { ResourceName } from "./names/resource-name.ts";
import { mayWorkOn } from "./policies/matching.ts";
import { permissionsOf, policiesIn } from "./policies/permissions.ts";
import { dedupeMarksOf, findMark, markName } from "./receipts/marks.ts";
import { describeRequest } from "./requests/describe.ts";
import { isOpen } from "./requests/request-states.ts";
import { explainTask, type WaitingFor } from "./tasks/task-explain.ts";

export { type AgentActivity, activitiesOf, activityOfAgent, inTheWayOf, observationOfAgent } from "./activity.ts";
export { type PolicyTest, type PolicyVerdict, testPolicies } from "./commands/policy-test.ts";
export { NameIndex } from "./index/name-index.ts";
export { namesOverlap } from "./names/pattern.ts";
export { parseResourceName, type ResourceName } from "./names/resource-name.ts";
export { dedupeMarksOf, isKeyOfLiveLease } from "./receipts/marks.ts";
export { isOpen } from "./requests/request-states.ts";

/** The caller, and the tenant that it reads. */
export interface Reader {
  readonly tenant: string;
  readonly actor: Actor;
}

/** An agent reads with its token, and only its newest instance does (A3); a key that registers agents may not read. */
export function whyNotRead(state: State, { tenant: id, actor }: Reader): Refusal | null {
  const tenant = findTenant(state, id);
  if ("code" in tenant) return tenant;
  if (actor.role !== "agent") return null;
  if (actor.agentId === null) {
    return refuse("forbidden", "This key registers agents; use the agent_token of one of them for this.");
  }
  const agent = tenant.agents.get(actor.agentId);
  if (agent === undefined) return refuse("agent_unknown", "There is no such agent; register it first.");
  return mayActFor(actor, agent);
}

/** R7: under which name the ledger knows what this caller sends. */
export function senderNameOf(actor: Actor): string | null {
  return submitterOf(actor);
}

/** Whether this caller may act for that agent (L13). */
export function whyNotActFor(state: State, { tenant: id, actor }: Reader, agentId: string): Refusal | null {
  const tenant = findTenant(state, id);
  if ("code" in tenant) return tenant;
  const agent = agentOf({ tenant }, { actor, agentId });
  return "code" in agent ? agent : null;
}

interface Table<K extends keyof RecordOf> {
  readonly size: number;
  get(id: string): Handle<K> | undefined;
  values(): Iterable<Handle<K>>;
}

const tables = {
  agent: ({ agents }: TenantEntry): Table<"agent"> => agents,
  lease: ({ leases }: TenantEntry): Table<"lease"> => leases,
  request: ({ requests }: TenantEntry): Table<"request"> => requests,
  resource: ({ resources }: TenantEntry): Table<"resource"> => resources,
  cell: ({ cells }: TenantEntry): Table<"cell"> => cells,
  task: ({ tasks }: TenantEntry): Table<"task"> => tasks,
  task_type: ({ book }: TenantEntry): Table<"task_type"> => book.types,
  worker: ({ book }: TenantEntry): Table<"worker"> => book.workers,
};

/** What a tenant has many of. */
export type ListedKind = keyof typeof tables;

function tableOf<K extends ListedKind>(tenant: TenantEntry, kind: K): Table<K> {
  return (tables[kind] as (tenant: TenantEntry) => Table<K>)(tenant);
}

export function findRecord<K extends ListedKind>(
  { tenants }: State,
  tenant: string,
  kind: K,
  id: string,
): RecordOf[K] | undefined {
  const entry = tenants.get(tenant);
  return entry === undefined ? undefined : tableOf(entry, kind).get(id)?.record;
}

const noLeases: readonly Lease[] = [];

/** T10: of the task that this is the lease of, those on cells; mostly there are none. */
export function boundLeasesOfTask({ tenants }: State, tenant: string, leaseId: string): readonly Lease[] {
  const entry = tenants.get(tenant);
  const lease = entry?.leases.get(leaseId);
  if (entry === undefined || lease?.holder.kind !== "task" || lease.holder.leaseCount < 2) return noLeases;
  return manifestLeases(entry, lease.holder, lease).filter(({ cell }) => cell !== null);
}

/** The live records of a tenant. They may be read on in a later turn: those that have ended by then are left out. */
export function recordsOf<K extends ListedKind>({ tenants }: State, tenant: string, kind: K): Iterable<RecordOf[K]> {
  const entry = tenants.get(tenant);
  return entry === undefined ? [] : liveRecords(tableOf(entry, kind).values());
}

/** Of a tenant, or of all. */
function tenantsOf({ tenants }: State, scope: string | null): Iterable<TenantEntry> {
  if (scope === null) return tenants.values();
  const entry = tenants.get(scope);
  return entry === undefined ? [] : [entry];
}

/** Of all tenants, or of one. */
export function* allRecords<K extends ListedKind>(
  state: State,
  kind: K,
  scope: string | null = null,
): Generator<RecordOf[K]> {
  for (const tenant of tenantsOf(state, scope)) yield* liveRecords(tableOf(tenant, kind).values());
}

export function countRecords(state: State, kind: ListedKind | "waiter", scope: string | null = null): number {
  let sum = 0;
  for (const tenant of tenantsOf(state, scope))
    sum += kind === "waiter" ? tenant.waitingCount : tableOf(tenant, kind).size;
  return sum;
}

/** By id; a restored kernel has another map. */
export function keysIn({ keys }: State): ReadonlyMap<string, { readonly record: Key }> {
  return keys;
}

/** Those that concern a tenant, or all; the built-in one too, while it holds. */
export function policiesOf({ policies }: State, tenantId: string | null): readonly Policy[] {
  return policiesIn(policies)
    .map(({ policy }) => policy)
    .filter(({ tenants }) => tenantId === null || tenants.length === 0 || tenants.includes(tenantId));
}

/**
 * What policies make of a worker's poll: `key` is the same for workers that may do the same. Null: they say nothing about
 * its work.
 */
export function workPermitOf(
  { tenants }: State,
  { tenant: tenantId, actor }: Reader,
  workerId: string,
): { readonly key: string; readonly mayTake: (taskType: string) => boolean } | null {
  const tenant = tenants.get(tenantId);
  if (tenant === undefined || isOpenTo(tenant, actor, "work")) return null;
  const { work } = permissionsOf(tenant, actor).parts;
  if (work.length === 0) return null;
  const isById = work.some((part) => [...part.allows, ...part.denies].some(({ ids }) => ids.length > 0));
  const key = `${actor.role} ${actor.keyId ?? ""}${isById ? ` ${workerId}` : ""}`;
  return { key, mayTake: (taskType) => mayWorkOn(work, workerId, taskType) };
}

export function tenantsIn({ tenants }: State): ReadonlyMap<string, { readonly record: Tenant }> {
  return tenants;
}

/** Whether any lease is alive, so that time decides something. */
export function holdsLeases({ tenants }: State): boolean {
  return tenants.values().some(({ leases }) => leases.size > 0);
}

/** How many receipts each tenant was given numbers for. */
export function receiptCounts({ tenants }: State): ReadonlyMap<string, number> {
  return new Map(Array.from(tenants, ([id, { counters }]) => [id, counters.record.receipts]));
}

/** A superset of the live leases that overlap with a name or belong to an agent. */
export function leasesFor(
  { tenants }: State,
  tenant: string,
  sought: { readonly resource: ResourceName | null; readonly agentId: string | null },
): Iterable<Lease> {
  const entry = tenants.get(tenant);
  return entry === undefined ? [] : liveRecords(findLeases(entry, sought));
}

/** The agent that holds the lease, or that made the request; null where that is not an agent. */
export function agentHolding(
  { tenants }: State,
  tenant: string,
  { requestId, leaseId }: { readonly requestId?: unknown; readonly leaseId?: unknown },
): string | null {
  const entry = tenants.get(tenant);
  const request = typeof requestId === "string" ? entry?.requests.get(requestId) : undefined;
  const lease = typeof leaseId === "string" ? entry?.leases.get(leaseId) : undefined;
  const holder = request?.holder ?? lease?.holder;
  return holder?.kind === "agent" ? holder.record.id : null;
}

/** An agent's checkpoint is its own, and of those above it. */
export function findDigest(state: State, { tenant: id, actor }: Reader, agentId: string): Digest | Refusal {
  const tenant = findTenant(state, id);
  if ("code" in tenant) return tenant;
  const agent = agentOf({ tenant }, { actor, agentId });
  if ("code" in agent) return agent;
  return (
    agent.digest?.record ?? refuse("digest_unknown", "The agent has no checkpoint; it was never saved, or dropped.")
  );
}

/** A request that is not decided, with what is in its way. */
export interface OpenRequest {
  readonly request: Request;
  readonly wait: Extract<Reply, { readonly type: "waiting" | "standby" }>;
}

/** Null where it is decided: to describe a granted one would collect it (W8). */
export function describeOpen(state: State, tenantId: string, requestId: string): OpenRequest | null {
  const tenant = state.tenants.get(tenantId);
  const entry = tenant?.requests.get(requestId);
  if (tenant === undefined || entry === undefined || !isOpen(entry.record)) return null;
  const wait = describeRequest({ state, tenant, now: 0 }, entry);
  return wait.type === "waiting" || wait.type === "standby" ? { request: entry.record, wait } : null;
}

export interface HostedResource {
  readonly resource: Resource;
  /** Live ones on its very name: a lease on a pattern over it is not bound. */
  readonly leases: number;
}

/** S4: how far a tenant has used each of its quotas; null where it has no such tenant. What is not counted has no entry. */
export function quotaUse({ tenants }: State, tenantId: string, now: Millis): QuotaUse | null {
  const tenant = tenants.get(tenantId);
  if (tenant === undefined) return null;
  const { receipts, receiptBytes } = tenant.counters.record;
  return {
    leasesMax: tenant.leases.size + tenant.waitingClaims,
    waitersMax: tenant.waitingCount + tenant.standby.count,
    agentsMax: tenant.agents.size,
    resourcesMax: tenant.resources.size,
    patternsMax: tenant.patternCount,
    tasksMax: tenant.tasks.size,
    receiptsMax: receipts,
    receiptBytesMax: receiptBytes,
    foreignObligationsMax: tenant.book.foreign.size,
    payloadBytesMax: tenant.payloadBytes,
    digestBytesMax: tenant.digestBytes,
    memoryBytesMax: tenant.memoryBytes,
    tenantLeaseTimeMsMax: leaseTimeUsed(tenant, now),
  };
}

/** The quotas that the kernel counts; what the edge counts has its own figures. */
export type QuotaUse = Readonly<Record<Exclude<keyof TenantQuotas, EdgeQuota | "leaseTimeMsMax" | "kinds">, number>>;
type EdgeQuota =
  | ("connectionsMax" | "subscriptionsMax" | "heldMax" | "unreadBytesMax" | "requestsPerSecondMax")
  | ("artifactsMax" | "artifactBytesMax");

/** Units of the types of resources that the tenant has a quota on (G2), those that are waited for included. */
export function kindUse({ tenants }: State, tenantId: string): ReadonlyMap<string, number> {
  const kinds = tenants.get(tenantId)?.kindUnits ?? new Map();
  return new Map([...kinds.values()].map(({ name, units }) => [name, units]));
}

/** The resources of each cell by name. All resources are read once, not once for each cell. */
export function resourcesByCell({ tenants }: State, tenant: string): ReadonlyMap<string, readonly HostedResource[]> {
  const resources = [...(tenants.get(tenant)?.resources.values() ?? [])].filter(({ record }) => record.cell !== null);
  resources.sort((a, b) => (a.record.name < b.record.name ? -1 : 1));
  return Map.groupBy(
    resources.map((entry) => ({ resource: entry.record, leases: leasesOn(entry) })),
    ({ resource }) => resource.cell ?? "",
  );
}

/** Live leases on resources of cells. */
export function countBindings(state: State, scope: string | null = null): number {
  let count = 0;
  for (const { resources } of tenantsOf(state, scope)) {
    for (const entry of resources.values()) if (entry.record.cell !== null) count += leasesOn(entry);
  }
  return count;
}

function leasesOn({ node }: ResourceEntry): number {
  let count = 0;
  eachAt(node, () => {
    count++;
  });
  return count;
}

export interface LiveTask {
  readonly task: Task;
  readonly payload: Payload | null;
}

export function findTask({ tenants }: State, tenant: string, taskId: string): LiveTask | null {
  const entry = tenants.get(tenant)?.tasks.get(taskId);
  return entry === undefined ? null : { task: entry.record, payload: entry.payload?.record ?? null };
}

/** T11; nothing where it is not alive. */
export function explain({ tenants }: State, tenantId: string, taskId: string, now: Millis): readonly WaitingFor[] {
  const tenant = tenants.get(tenantId);
  const task = tenant?.tasks.get(taskId);
  return tenant === undefined || task === undefined ? [] : explainTask(tenant, task, now);
}

/** An obligation that is not closed, and when its custodian's lease ends unless it is extended; null: it holds none. */
export interface OpenObligation {
  readonly task: Task | ForeignObligation;
  readonly obligation: Obligation;
  readonly deadline: Millis | null;
}

/** Of one custodian, or of all (R5). */
export function* openObligations(
  { tenants }: State,
  tenant: string,
  custodian: string | null,
): Generator<OpenObligation> {
  const entry = tenants.get(tenant);
  const custodians = entry?.book.custodians;
  const groups = custodian === null ? custodians?.values() : [custodians?.get(custodian) ?? []];
  for (const owed of groups ?? []) {
    for (const { alive, record } of owed) {
      const { obligation } = record;
      if (!alive || obligation === null) continue;
      const live = "live" in record ? record.live : [];
      const attempt = live.find(({ acceptedAt }) => acceptedAt !== null);
      const lease = attempt === undefined ? undefined : entry?.leases.get(attempt.leaseId);
      yield { task: record, obligation, deadline: lease?.record.expiresAt ?? null };
    }
  }
}

/** Each worker with how many task leases it has. */
export function* workersOf({ tenants }: State, tenant: string): Generator<{ worker: Worker; leases: number }> {
  for (const { record, leases } of tenants.get(tenant)?.book.workers.values() ?? []) {
    yield { worker: record, leases: leases.size };
  }
}

/** The task that a receipt is about, as far as that is alive: it is named, or its lease is. */
export function taskOfReceipt({ tenants }: State, tenant: string, { taskId, leaseId }: ReceiptInput): string | null {
  if (taskId !== null) return taskId;
  const holder = leaseId === null ? undefined : tenants.get(tenant)?.leases.get(leaseId)?.holder;
  return holder?.kind === "task" ? holder.record.id : null;
}

/** Whether its task is none that is alive or owed here, but may be one that this system does not own: history is asked first (R1). */
export function mayBeForeign({ tenants }: State, tenant: string, { taskId, leaseId, fence }: ReceiptInput): boolean {
  const entry = tenants.get(tenant);
  if (entry?.record.settings.foreignReceipts !== true || taskId === null) return false;
  if (leaseId !== null || fence !== null) return false;
  return entry.tasks.get(taskId) === undefined && !entry.book.foreign.has(taskId);
}

/** Whether a live task has a receipt with the same key or id: its own, or another that this sender used it for (R3). */
export function isReceiptKnown(state: State, { tenant, actor }: Reader, receipt: ReceiptInput): boolean {
  const entry = state.tenants.get(tenant);
  const taskId = taskOfReceipt(state, tenant, receipt);
  const task = taskId === null ? undefined : (entry?.tasks.get(taskId) ?? entry?.book.foreign.get(taskId));
  if (task !== undefined && findMark(task.record, receipt) !== undefined) return true;
  const names = dedupeMarksOf(receipt).map((mark) => markName(mark, submitterOf(actor)));
  return names.some((name) => entry?.book.dedupes.has(name) === true);
}

/** The task whose lease has this name; null for all other resources. */
export function taskOfName(resource: string): string | null {
  return resource.startsWith(taskPrefix) ? resource.slice(taskPrefix.length) : null;
}

function* liveRecords<K extends ListedKind>(entries: Iterable<Handle<K>>): Generator<RecordOf[K]> {
  for (const { record, alive } of entries) if (alive) yield record;
}
