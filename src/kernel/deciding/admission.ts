/**
 * What refuses or pauses a manifest before conflicts are searched for: quotas, and bars that stand until somebody acts.
 *
 * Quotas on units by the resources' type (G2): a tenant may hold four of all GPUs. What waits counts too, as units in a
 * queue are reserved (C6): otherwise a wait would end in a grant beyond the quota, or never. A tenant without such
 * quotas counts nothing.
 */
import { limits } from "../contract/limits.ts";
import type { Lease, Millis, Resource, TenantQuotas } from "../contract/records.ts";
import { refuse } from "../contract/refusals.ts";
import type { PauseReason, Refusal, Verdict } from "../contract/replies.ts";
import type { ReceiptDraft } from "../contract/task-records.ts";
import { search } from "../index/resource-search.ts";
import {
  type AgentEntry,
  findRoot,
  type Holder,
  type ResourceEntry,
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
  tenant: TenantEntry,
  claims: readonly LinkedClaim[],
  waiting: Holder["open"] | null = null,
): OverKind | null {
  return tenant.kindUnits === null ? null : findOver(tenant, tenant.kindUnits, claims, waiting);
}

function findOver(
  { record }: TenantEntry,
  kindUnits: ReadonlyMap<string, KindEntry>,
  claims: readonly LinkedClaim[],
  waiting: Holder["open"] | null,
): OverKind | null {
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

/** S4: for whatever adds a record, or lets one grow. It may pass the quota by one command's worth. */
export function whyNoMemory({ memoryBytes, record }: TenantEntry): Refusal | null {
  const { memoryBytesMax } = record.quotas;
  return memoryBytes < memoryBytesMax ? null : quotaExceeded("memory_bytes_max", memoryBytes, memoryBytesMax);
}
