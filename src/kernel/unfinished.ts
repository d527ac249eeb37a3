/**
 * What a crash cut short (L14). A command that ends very many records first notes what it decided (a tenant is suspended,
 * a resource fenced, an agent aborted, a task over) and then ends them slice by slice. So a restored kernel finds by its
 * records what is left to do. Revocations leave no such note: who asked got no answer, and asks again.
 */

import { isResting } from "./agents/agent-life.ts";
import { SHARED } from "./contract/predicates.ts";
import { barOn, findResource } from "./deciding/admission.ts";
import { eachAt } from "./index/placed-lists.ts";
import { search } from "./index/resource-search.ts";
import { heldFrom } from "./index/resource-tree.ts";
import type { LeaseEnd, RequestEnd } from "./memory/jobs.ts";
import type { LeaseEntry, RequestEntry, TenantEntry, Turn } from "./memory/state.ts";
import { findRoot, leasesOf, nameOf } from "./memory/state.ts";
import type { ResourceName } from "./names/resource-name.ts";
import { resumeSweep, suspension } from "./requests/sweep.ts";
import { isFinal, SettleDependents } from "./tasks/task-life.ts";

/** Begins, on a state that was just restored, what is left to do; most often nothing. */
export function resumeUnfinished(turn: Turn): void {
  const { state, tenant } = turn;
  for (const task of tenant.tasks.values()) {
    if (task.dependents !== null && isFinal(task.record)) state.jobs.push(new SettleDependents(turn, task));
  }
  if (!isCutShort(tenant)) return;
  resumeSweep(turn, {
    leaseEnd: (lease) => leaseEnd(tenant, lease),
    requestEnd: (request) => requestEnd(tenant, request),
  });
}

/** Looks at what could be left only: hardly ever at a lease. */
function isCutShort(tenant: TenantEntry): boolean {
  const { suspended } = tenant.record;
  if (suspended) for (const lease of tenant.leases.values()) if (isOpen(lease)) return true;
  if (suspended || tenant.resources.size > 0) {
    for (const request of tenant.requests.values()) {
      const { state } = request.record;
      if ((state === "WAITING" || state === "BINDING") && requestEnd(tenant, request) !== null) return true;
    }
  }
  for (const agent of tenant.agents.values()) {
    if (!isResting(agent.record.state)) continue;
    if (agent.open.size > 0 || (agent.leases !== null && leasesOf(agent).some(isOpen))) return true;
  }
  for (const { record, name } of tenant.resources.values()) if (record.fenced && isLeased(tenant, name)) return true;
  return false;
}

function isOpen({ record }: LeaseEntry): boolean {
  return record.state !== "CLOSING";
}

function isLeased(tenant: TenantEntry, name: ResourceName): boolean {
  const root = findRoot(tenant, name.type);
  if (root === undefined) return false;
  let found = false;
  return search(root, name, {
    visit(node) {
      eachAt(node, (lease) => (found ||= isOpen(lease as LeaseEntry)));
      return found;
    },
    below: (_node, branch) => (heldFrom(branch, SHARED) > 0 ? "enter" : "skip"),
  });
}

function leaseEnd(tenant: TenantEntry, lease: LeaseEntry): LeaseEnd | null {
  const { holder } = lease;
  if (tenant.record.suspended) return suspension.leaseEnd();
  if (holder.kind === "agent" && isResting(holder.record.state)) {
    return { as: "RELEASED", reason: holder.record.state.toLowerCase() };
  }
  const fenced = findResource(tenant, nameOf(lease), ({ record }) => record.fenced);
  return fenced === undefined ? null : { as: "REVOKED", reason: "resource_fenced" };
}

function requestEnd(tenant: TenantEntry, request: RequestEntry): RequestEnd | null {
  const { holder } = request;
  if (tenant.record.suspended) return suspension.requestEnd();
  if (holder.kind === "agent" && isResting(holder.record.state)) {
    return { fate: "CANCELED", reason: holder.record.state.toLowerCase() };
  }
  for (const { name } of request.claims) {
    const bar = barOn(tenant, name);
    if (bar !== null) return { fate: "PAUSED", reason: bar.reason };
  }
  return null;
}
