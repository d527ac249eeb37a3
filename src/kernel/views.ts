/**
 * What the server and the engine may read of the kernel's memory, besides its surface (kernel.ts) and its contract. Nothing
 * here changes anything.
 */
import type { Actor } from "./contract/commands.ts";
import type { Lease, TenantSettings } from "./contract/records.ts";
import { type Refusal, refuse } from "./contract/refusals.ts";
import type { ReceiptInput } from "./contract/task-commands.ts";
import type { Worker } from "./contract/task-records.ts";
import { findTenant, mayActFor } from "./memory/actors.ts";
import { type State, type TenantEntry, taskPrefix } from "./memory/state.ts";
import { dedupeMarksOf } from "./receipts/receipts.ts";

export { each, headOf, type Placed } from "./index/placed-lists.ts";
export { search } from "./index/resource-search.ts";
export { createRoot, type Mark, type Node, nodeFor, setMark } from "./index/resource-tree.ts";
export { agentOf } from "./memory/actors.ts";
export {
  type AgentEntry,
  type CellEntry,
  type KeyEntry,
  type LeaseEntry,
  leasesOf,
  type RequestEntry,
  type ResourceEntry,
  type TenantEntry,
} from "./memory/state.ts";
export type { TaskEntry, TaskTypeEntry, WorkerEntry } from "./memory/task-state.ts";
export { namesOverlap } from "./names/pattern.ts";
export { parseResourceName, type ResourceName } from "./names/resource-name.ts";
export { dedupeMarksOf } from "./receipts/receipts.ts";
export { describeRequest } from "./requests/describe.ts";

/** An agent reads with its token, and only its newest instance does (A3); a key that registers agents may not read. */
export function findTenantFor(
  state: State,
  { tenant: id, actor }: { readonly tenant: string; readonly actor: Actor },
): TenantEntry | Refusal {
  const tenant = findTenant(state, id);
  if ("code" in tenant || actor.role !== "agent") return tenant;
  if (actor.agentId === null) {
    return refuse("forbidden", "This key registers agents; use the agent_token of one of them for this.");
  }
  const agent = tenant.agents.get(actor.agentId);
  if (agent === undefined) return refuse("agent_unknown", "There is no such agent; register it first.");
  return mayActFor(actor, agent) ?? tenant;
}

export function findLease({ tenants }: State, tenant: string, leaseId: string): Lease | undefined {
  return tenants.get(tenant)?.leases.get(leaseId)?.record;
}

export function findWorker({ tenants }: State, tenant: string, workerId: string): Worker | undefined {
  return tenants.get(tenant)?.book.workers.get(workerId)?.record;
}

export function settingsOf({ tenants }: State, tenant: string): TenantSettings | undefined {
  return tenants.get(tenant)?.record.settings;
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

/** Whether a live task has a receipt with the same key or id (R3). */
export function isReceiptKnown({ tenants }: State, tenant: string, receipt: ReceiptInput): boolean {
  const dedupes = tenants.get(tenant)?.book.dedupes;
  return dedupeMarksOf(receipt).some((mark) => dedupes?.has(mark) === true);
}

/** The task whose lease has this name; null for all other resources. */
export function taskOfName(resource: string): string | null {
  return resource.startsWith(taskPrefix) ? resource.slice(taskPrefix.length) : null;
}

/** Sums something up over all tenants. */
export function total({ tenants }: State, count: (tenant: TenantEntry) => number): number {
  let sum = 0;
  for (const tenant of tenants.values()) sum += count(tenant);
  return sum;
}
