/**
 * What refuses or pauses a manifest before conflicts are searched for: quotas, and bars that stand until somebody acts.
 *
 * Quotas on units by the resources' type (G2): a tenant may hold four of all GPUs. What waits counts too, as units in a
 * queue are reserved (C6): otherwise a wait would end in a grant beyond the quota, or never. A tenant without such
 * quotas counts nothing.
 */
import { limits } from "../contract/limits.ts";
import type { Policy } from "../contract/policy-records.ts";
import type {
  Agent,
  Intent,
  Lease,
  Millis,
  RecordKind,
  RecordOf,
  Request,
  Resource,
  Tenant,
  TenantQuotas,
} from "../contract/records.ts";
import { refuse } from "../contract/refusals.ts";
import type { PauseReason, Refusal, Verdict } from "../contract/replies.ts";
import type { DedupeMark, ForeignObligation, ReceiptDraft, Task, Worker } from "../contract/task-records.ts";
import type { Write } from "../contract/write-records.ts";
import { search } from "../index/resource-search.ts";
import {
  type AgentEntry,
  type Entry,
  findRoot,
  type Handle,
  type Holder,
  type ResourceEntry,
  type State,
  type TenantEntry,
  type Turn,
} from "../memory/state.ts";
import type { KindEntry } from "../memory/task-state.ts";
import type { ResourceName } from "../names/resource-name.ts";
import type { LinkedClaim } from "./manifest.ts";

/** Whenever the quotas are set, and for what is restored: all that is there, by type. */
export function countKinds(tenant: TenantEntry): void {
  const { quotas } = tenant.record;
  tenant.kindUnits = noKinds(quotas) ? null : new Map();
  if (tenant.kindUnits === null) return;
  for (const name of Object.keys(quotas.kinds))
    tenant.kindUnits.set(name, { kind: "kind", name, units: 0, parked: null });
  for (const { record } of tenant.leases.values()) addKind(tenant, record.resource, record.units);
  for (const { record, claims } of tenant.requests.values()) {
    // What stands by reserves nothing (W14).
    if (record.state !== "WAITING") continue;
    for (const { name, intent } of claims) addKind(tenant, name.text, intent.units);
  }
}

export function noKinds({ kinds }: TenantQuotas): boolean {
  for (const _ in kinds) return false;
  return true;
}

/** Only where `kindUnits` is not null. */
export function addKind({ kindUnits }: TenantEntry, resource: string, units: number): void {
  const kind = kindUnits?.get(kindOf(resource));
  if (kind !== undefined) kind.units += units;
}

/** Tasks that the quota kept from running are tried again, one by one. */
export function takeKind({ state, tenant }: Turn, resource: string, units: number): void {
  const kind = tenant.kindUnits?.get(kindOf(resource));
  if (kind === undefined) return;
  kind.units -= units;
  if (kind.parked !== null) state.consequences.push({ type: "kind_freed", kind });
}

function kindOf(resource: string): string {
  return resource.slice(0, resource.indexOf(":"));
}

export interface OverKind {
  readonly kind: string;
  readonly most: number;
  readonly entry: KindEntry;
  readonly wanted: number;
}

/** The type of which the claims would take too much, and how much there may be. What the holder waits for is its own. */
export function findOverKind(
  { kindUnits, record }: TenantEntry,
  claims: readonly LinkedClaim[],
  waiting: Holder["open"] | null = null,
): OverKind | null {
  if (kindUnits === null) return null;
  const wanted = new Map<string, number>();
  const add = (kind: string, units: number): void => void wanted.set(kind, (wanted.get(kind) ?? 0) + units);
  for (const { claim } of claims) add(claim.name.type, claim.intent.units);
  for (const { claims } of waiting ?? []) for (const { name, intent } of claims) add(name.type, -intent.units);
  for (const [kind, units] of wanted) {
    const entry = kindUnits.get(kind);
    const most = record.quotas.kinds[kind] ?? 0;
    if (entry !== undefined && entry.units + units > most) return { kind, most, entry, wanted: units };
  }
  return null;
}

/** L10: of tasks as of agents; with what a live lease has used since it was booked last. */
export function isLeaseTimeUsedUp(tenant: TenantEntry, now: Millis, lease: Lease | null = null): boolean {
  const { tenantLeaseTimeMsMax: most } = tenant.record.quotas;
  if (most === null) return false;
  return leaseTimeUsed(tenant, now) + (lease === null ? 0 : unbookedTime(lease, now)) >= most;
}

export function leaseTimeUsed({ counters: { record } }: TenantEntry, now: Millis): number {
  return record.windowStart === windowAt(now) ? record.leaseTimeMs : 0;
}

/** What lies before midnight belongs to yesterday, whose quota is over. */
export function unbookedTime({ bookedAt, acquiredAt }: Lease, now: Millis): number {
  return now - Math.max(bookedAt ?? acquiredAt, windowAt(now));
}

export function windowAt(now: Millis): Millis {
  return now - (now % limits.leaseTimeWindowMs);
}

/** Why nothing can be leased until somebody acts (W9): a suspended tenant, a paused agent, a fence, a cell that is not ready. */
export type Bar = Extract<Verdict, { readonly type: "paused" }>;

/** W9: somebody must act first, whatever is asked for, or for one of these names. */
export function findBar(tenant: TenantEntry, agent: AgentEntry, claims: readonly LinkedClaim[]): Bar | null {
  if (tenant.record.suspended) return bar("tenant_suspended", "The tenant is suspended; its operator can resume it.");
  if (agent.record.pausedByOperator) return bar("agent_paused", "The agent was paused; a supervisor can unpause it.");
  if (tenant.resources.size === 0) return null;
  for (const { claim } of claims) {
    const found = barOn(tenant, claim.name);
    if (found !== null) return found;
  }
  return null;
}

/** Why nothing can be leased on a name: a fence, a withdrawal, or a cell that is not there to set it up. */
export function barOn(tenant: TenantEntry, name: ResourceName): Bar | null {
  const fencedOne = findResource(tenant, name, ({ record }) => record.fenced);
  const closed = fencedOne ?? findResource(tenant, name, ({ record }) => record.withdrawn);
  if (closed !== undefined) {
    const { name: text } = closed.record;
    return fencedOne === undefined
      ? bar("resource_withdrawn", `${text} was withdrawn; declare it again.`, text)
      : bar("resource_fenced", `${text} is fenced; an operator must reset it.`, text);
  }
  const resource = tenant.cells.size === 0 ? undefined : tenant.resources.get(name.text);
  const notReady = resource === undefined ? null : whyNotReady(tenant, resource.record);
  return notReady === null ? null : bar("cell_not_ready", notReady, name.text);
}

export function bar(reason: PauseReason, detail: string, resource: string | null = null): Bar {
  return { type: "paused", reason, detail, resource };
}

/**
 * Why nothing can be set up on it now, in words; null: it can. A cell that was named by hand and never enrolled is
 * somebody's own program, for which a supervisor reports: whether it is there only its answer in time can tell.
 */
export function whyNotReady({ cells }: TenantEntry, { name, cell: id, fault }: Resource): string | null {
  const cell = id === null ? undefined : cells.get(id)?.record;
  if (cell === undefined) return null;
  if (cell.withdrawn) return `The cell ${cell.id} of ${name} was withdrawn; a supervisor can readmit it.`;
  if (cell.state === "GONE") return `The cell ${cell.id} of ${name} is gone: ${cell.goneReason ?? "no reason given"}.`;
  return fault === null ? null : `The cell ${cell.id} cannot serve ${name}: ${fault}.`;
}

/** Of the declared resources that overlap with the name and match, the first by name. */
export function findResource(
  tenant: TenantEntry,
  name: ResourceName,
  matches: (resource: ResourceEntry) => boolean,
): ResourceEntry | undefined {
  if (tenant.resources.size === 0) return undefined;
  const root = findRoot(tenant, name.type);
  if (root === undefined) return undefined;
  let found: ResourceEntry | undefined;
  search(root, name, {
    visit(node) {
      const resource = node.mark as ResourceEntry | null;
      if (resource === null || !matches(resource)) return false;
      if (found === undefined || resource.record.name < found.record.name) found = resource;
      return false;
    },
    below: (_node, branch) => (branch.marks > 0 ? "enter" : "skip"),
  });
  return found;
}

/*
 * R8: how much of the ledger a tenant may use. Nothing is ever taken out of a ledger (R1), so what is counted only
 * grows. A full quota refuses what begins something, and what only reports: what was accepted can still be completed or
 * escalated, and what the rules write themselves is always written.
 */

/** What a receipt takes besides its long fields: member names, ids, times, hashes. */
const otherBytes = 1_024;

/** About what it takes as it is stored: an ASCII text, in which any other character is written with six. */
export function receiptSize(draft: ReceiptDraft): number {
  return (
    otherBytes +
    textSize(draft.taskSummary) +
    textSize(draft.taskBody) +
    jsonSize(draft.inputs) +
    textSize(draft.outcomeText) +
    textSize(draft.artifactLocation) +
    textSize(draft.artifactPointer) +
    jsonSize(draft.artifactRefs) +
    textSize(draft.escalationReason) +
    jsonSize(draft.body) +
    jsonSize(draft.metadata)
  );
}

function textSize(text: string | null): number {
  if (text === null) return 0;
  let size = text.length;
  for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) > 0x7e) size += 5;
  return size;
}

function jsonSize(value: unknown): number {
  return value === null || value === undefined ? 0 : textSize(JSON.stringify(value));
}

export function whyNotWithinLedger(tenant: TenantEntry, draft: ReceiptDraft): Refusal | null {
  const { counters, record } = tenant;
  if (draft.phase === "complete" || draft.phase === "escalate") return null;
  // Not for an acceptance: that is how the queue becomes shorter.
  const noMemory = draft.phase === "progress" ? whyNoMemory(tenant) : null;
  if (noMemory !== null) return noMemory;
  const { receipts, receiptBytes } = counters.record;
  const { receiptsMax, receiptBytesMax } = record.quotas;
  if (receipts >= receiptsMax) return quotaExceeded("receipts_max", receipts, receiptsMax);
  if (receiptBytes + receiptSize(draft) <= receiptBytesMax) return null;
  return quotaExceeded("receipt_bytes_max", receiptBytes, receiptBytesMax);
}

export function quotaExceeded(quota: string, used: number, limit: number): Refusal {
  return refuse("quota_exceeded", `The tenant's quota ${quota} is used up; its operator can raise it.`, {
    quota,
    used,
    limit,
  });
}

/*
 * S4: about what memory keeps of each tenant's live records, in bytes. It is brought up to date at the end of each step
 * from what the step has changed, in one place, so that no kind of record is left out. Fixed parts stand for a record, its
 * entry and its places in indexes. Texts count by their length, and free JSON as objects, which take a multiple of it.
 */

/** S4: for whatever adds a record, or lets one grow. It may pass the quota by one command's worth. */
export function whyNoMemory({ memoryBytes, record }: TenantEntry): Refusal | null {
  const { memoryBytesMax } = record.quotas;
  return memoryBytes < memoryBytesMax ? null : quotaExceeded("memory_bytes_max", memoryBytes, memoryBytesMax);
}

/** A number of bytes for each record of the kind; what it holds of texts comes on top. */
const fixedBytes: Readonly<Record<RecordKind, number>> = {
  tenant: 4_096,
  counters: 256,
  agent: 1_024,
  digest: 256,
  resource: 768,
  cell: 512,
  request: 1_024,
  lease: 768,
  key: 512,
  task: 1_536,
  payload: 128,
  task_type: 512,
  worker: 1_536,
  foreign_obligation: 1_024,
  write: 384,
  // The operator's own, in number and size limited for all tenants together.
  policy: 0,
};

/** What a text takes besides its characters, and an object in a list. */
const textBytes = 24;
const itemBytes = 64;
/** How much larger JSON is as objects than as text, at worst about. */
const jsonFactor = 8;

/** Brings the counts up to date with these records: at the end of a step what it changed, or what was restored. */
export function countMemory({ tenants }: Pick<State, "tenants">, handles: readonly Handle[]): void {
  for (const handle of handles) {
    // Handles are the kernel's own entries.
    const entry = handle as Entry<RecordKind>;
    const { kind, record } = entry;
    let bytes = 0;
    // One function for what most steps change.
    if (entry.alive) {
      bytes = fixedBytes[kind];
      if (kind === "lease") {
        const { resource, purpose, requestKey } = record as Lease;
        bytes += resource.length + (purpose?.length ?? 0) + (requestKey?.length ?? 0);
      } else if (kind === "agent") {
        const { labels, concerns } = record as Agent;
        for (const label in labels) bytes += 2 * textBytes + label.length + (labels[label]?.length ?? 0);
        const { concernNames: known } = entry as unknown as AgentEntry;
        if (known?.of === concerns) bytes += concerns.length * itemBytes + known.chars;
        else for (const { resource } of concerns) bytes += itemBytes + resource.length;
      } else if (kind !== "counters") bytes += textsOf(kind, record);
    }
    if (bytes === entry.bytes) continue;
    const tenant = tenants.get(kind === "tenant" ? (record as Tenant).id : (record as OfTenant).tenant);
    if (tenant !== undefined) tenant.memoryBytes += bytes - entry.bytes;
    entry.bytes = bytes;
  }
}

type OfTenant = Exclude<RecordOf[RecordKind], Tenant | Policy>;

function textsOf(kind: Exclude<RecordKind, "lease" | "agent" | "counters">, record: RecordOf[RecordKind]): number {
  switch (kind) {
    case "request":
      return requestTexts(record as Request);
    case "task":
      return taskTexts(record as Task);
    case "worker":
      return workerTexts(record as Worker);
    case "resource":
      return resourceTexts(record as Resource);
    case "foreign_obligation":
      return marksSize((record as ForeignObligation).dedupes);
    case "write":
      return sizeOf((record as Write).resource) + sizeOf((record as Write).version);
    case "tenant":
    case "digest":
    case "cell":
    case "key":
    case "payload":
    case "task_type":
    case "policy":
      return 0;
  }
}

function requestTexts({ intents, picked, key, purpose, warnings, leaseIds, ended }: Request): number {
  let size = sizeOf(key) + sizeOf(purpose) + intentsSize(intents) + sizeOfAll(picked) + sizeOfAll(warnings);
  size += leaseIds.length * itemBytes;
  for (const lease of ended) size += fixedBytes.lease / 2 + sizeOf(lease.resource) + sizeOf(lease.purpose);
  return size;
}

function taskTexts({ spec, past, waitingOn, dedupes, progress }: Task): number {
  const { taskSummary, payloadPointer, requires, intents, dependsOn, concurrencyKey, idempotencyKey } = spec;
  return (
    sizeOf(taskSummary) +
    sizeOf(payloadPointer) +
    sizeOf(concurrencyKey) +
    sizeOf(idempotencyKey) +
    sizeOfAll(requires) +
    sizeOfAll(dependsOn) +
    sizeOfAll(waitingOn) +
    intentsSize(intents) +
    marksSize(dedupes) +
    past.length * 4 * itemBytes +
    (progress === null || progress === undefined ? 0 : JSON.stringify(progress).length * jsonFactor)
  );
}

function workerTexts({ capabilities, polls }: Worker): number {
  let size = sizeOfAll(capabilities);
  for (const { leaseIds } of polls) size += itemBytes + leaseIds.length * itemBytes;
  return size;
}

function resourceTexts({ name, driver, hardware, fault, fenceReason: why, spent: { length } }: Resource): number {
  return sizeOf(name) + sizeOf(driver) + sizeOfAll(hardware) + sizeOf(fault) + sizeOf(why) + length * itemBytes;
}

function intentsSize(intents: readonly Intent[]): number {
  let size = 0;
  for (const { resource, to } of intents) size += itemBytes + sizeOf(resource) + sizeOf(to);
  return size;
}

function marksSize(marks: readonly DedupeMark[]): number {
  let size = 0;
  for (const { key, receiptId } of marks) size += 3 * itemBytes + key.length + receiptId.length;
  return size;
}

function sizeOfAll(texts: readonly string[]): number {
  let size = 0;
  for (const text of texts) size += sizeOf(text);
  return size;
}

function sizeOf(text: string | null | undefined): number {
  return text === null || text === undefined ? 0 : textBytes + text.length;
}
