/**
 * What cells have set up against what the kernel believes (G6, G7, G11), and that nothing is leased on a missing
 * cell.
 */

import type { Resource } from "../../src/kernel/contract/records.ts";
import { inTheWay, isFree } from "../model/conflicts.ts";
import { overlap } from "../model/names.ts";
import type { RecordStore } from "../record-store.ts";
import type { SimCell } from "../world.ts";
import { type Step, violated } from "./step.ts";
import { claimsOf, type TenantView, type Waiter } from "./tenant-view.ts";

/** G7: what a cell has set up is still leased, or cannot be leased. */
export function checkBindings({ store, command, reply }: Step, cells: readonly SimCell[]): void {
  for (const { tenant, bindings } of cells) {
    for (const [leaseId, binding] of bindings) {
      if (store.lease.has(`${tenant} ${leaseId}`)) continue;
      // A supervisor reported for the cell.
      const isSworn = command?.type === "teardown_confirmed" && command.cellId === null && reply?.type === "lease";
      if (isSworn && command.leaseId === leaseId) bindings.delete(leaseId);
      else if (store.resource.get(`${tenant} ${binding.resource}`)?.fenced !== true) {
        violated("G7", "a cell still has an ended lease set up, but the resource is not fenced", leaseId, binding);
      }
    }
  }
}

/** A cell is READY only while its heartbeats arrive; where it is not, nothing waits and nothing is granted. */
export function checkReadiness(view: TenantView, step: Step): void {
  for (const cell of step.store.cell.values()) {
    if (step.settled && cell.state === "READY" && cell.aliveBy <= step.now) {
      violated("G6", "a cell is READY past its heartbeat deadline", cell);
    }
  }
  for (const { claims, request } of view.waiters) {
    for (const { resource } of claims) {
      const hosted = view.resources.get(resource);
      if (hosted !== undefined && !isReady(step.store, hosted)) {
        violated("W9", "a request waits for a resource whose cell is not ready", request, hosted);
      }
    }
  }
  for (const change of step.changes) {
    if (change.kind !== "lease" || change.before !== null || change.after?.tenant !== view.tenant.id) continue;
    const hosted = view.resources.get(change.after.resource);
    const isOver = change.after.state === "CLOSING" || wentIn(step, hosted?.cell ?? null);
    if (hosted !== undefined && !isOver && step.command !== null && !isReady(step.store, hosted)) {
      violated("G6", "a lease began on a resource whose cell is not ready", change.after, hosted);
    }
  }
}

function isReady(store: RecordStore, { tenant, cell: id, fault }: Resource): boolean {
  const cell = id === null ? undefined : store.cell.get(`${tenant} ${id}`);
  return cell === undefined || (cell.state === "READY" && !cell.withdrawn && fault === null);
}

/** A request with `pick` does not wait while a matching resource is free and has no waiters. */
export function checkChoices(view: TenantView, step: Step): void {
  if (!step.settled) return;
  for (const waiter of view.waiters) {
    const [intent, ...others] = waiter.request.intents;
    if (intent === undefined || others.length > 0 || intent.pick !== "any") continue;
    // A task waits for a worker too, and keeps its place meanwhile (T10).
    if (view.tasks.has(waiter.request.holder)) continue;
    for (const resource of view.resources.values()) {
      if (canTake(view, waiter, resource, intent.resource) && isReady(step.store, resource)) {
        violated("W3", "a request with pick waits although a matching resource is free", waiter.request, resource);
      }
    }
  }
}

function canTake(
  view: TenantView,
  { request, agentId }: Waiter,
  { name, capacity }: Resource,
  pattern: string,
): boolean {
  if (name.includes("*") || name.includes("?") || !overlap(name, pattern)) return false;
  for (const { name: other, fenced, withdrawn } of view.resources.values()) {
    if ((fenced || withdrawn) && overlap(other, name)) return false;
  }
  const claims = claimsOf(request.intents, [name]);
  if (capacity !== null && claims.some(({ units }) => units > capacity)) return false;
  const others = view.waiters.filter((one) => one.request !== request);
  return isFree(inTheWay(view.field, agentId, claims, others));
}

/** G2: a new grant or wait fits into the quota on its type. */
export function checkKinds(view: TenantView, step: Step): void {
  for (const [kind, most] of Object.entries(view.tenant.quotas.kinds)) {
    const ofKind = ({ resource }: { readonly resource: string }): boolean => resource.startsWith(`${kind}:`);
    const isNew = step.changes.some(({ kind: what, before, after }) => {
      if (before !== null || after === null) return false;
      if (what === "lease") return after.tenant === view.tenant.id && ofKind(after as { resource: string });
      return what === "request" && after.tenant === view.tenant.id;
    });
    // Only the requester is checked: waiters were counted when they arrived.
    if (
      !isNew ||
      step.command?.type !== "acquire" ||
      (step.reply?.type !== "granted" && step.reply?.type !== "waiting")
    )
      continue;
    if (!step.command.intents.some(ofKind)) continue;
    const claims = [...view.field.leases, ...view.waiters.flatMap((waiter) => waiter.claims)].filter(ofKind);
    const units = claims.reduce((sum, claim) => sum + claim.units, 0);
    if (units > most) violated("G2", `${units} units of ${kind} are leased or waited for, and ${most} may be`);
  }
}

/** Due deadlines are settled in order: the grant may have come before the cell's timeout. */
function wentIn({ changes }: Step, cellId: string | null): boolean {
  return changes.some(
    (change) =>
      change.kind === "cell" &&
      change.after?.id === cellId &&
      change.before?.state === "READY" &&
      change.after.state === "GONE",
  );
}
