/** Waits: only in the allowed direction (W2, W7), only behind an obstacle (W3), and not past the timeout (W4). */
import type { Request } from "../../src/kernel/contract/records.ts";
import { inTheWay, isFree, withoutSpent } from "../model/conflicts.ts";
import { overlap } from "../model/names.ts";
import type { Change } from "../record-store.ts";
import { type Step, violated } from "./step.ts";
import { claimsOf, type TenantView, type Waiter } from "./tenant-view.ts";

export function checkAllWaits(view: TenantView, step: Step): void {
  for (const waiter of view.waiters) checkWait(view, waiter, step);
}

/** Only waiters whose names overlap with a changed record; no other wait can be affected. */
export function checkTouchedWaits(view: TenantView, step: Step): void {
  if (view.waiters.length === 0) return;
  const touched = new Set(step.changes.flatMap((change) => namesOf(change, view.tenant.id)));
  if (touched.size === 0) return;
  for (const waiter of view.waiters) {
    const isTouched = waiter.claims.some((claim) => [...touched].some((name) => overlap(claim.resource, name)));
    if (isTouched) checkWait(view, waiter, step);
  }
}

/** A task on a cell that waited under W2 keeps its place: its wait ends where its preparation begins (T10). */
function arrivalOf({ changes }: Step, { holder, arrival }: Request): number {
  const wait = changes.find(
    (one) =>
      one.kind === "request" && one.after === null && one.before?.holder === holder && one.before.state === "WAITING",
  );
  return wait?.kind === "request" ? Math.min(wait.before?.arrival ?? arrival, arrival) : arrival;
}

/** W3: a granted waiter has not overtaken a conflicting one ahead of it. */
export function checkOvertaking(view: TenantView, step: Step): void {
  for (const change of step.changes) {
    if (change.kind !== "request" || change.after?.tenant !== view.tenant.id) continue;
    const { before, after } = change;
    // What stood by comes after every waiter (W14).
    const stoodBy = before?.state === "STANDBY";
    if (before !== null && before.state !== "WAITING" && !stoodBy) continue;
    if (after.state !== "GRANTED" && after.state !== "BINDING") continue;
    if (before === null && wasHeld(step, after)) continue;
    const priority = view.agents.get(after.agentId)?.priority ?? 0;
    const byAge = view.tenant.settings.strategy === "wound_wait";
    // A waiter that arrived in this step came after what the step settled first.
    const cameBefore = view.waiters.filter((waiter) => !isNew(step, waiter.request));
    const arrival = arrivalOf(step, after);
    const isAhead = (waiter: Waiter) =>
      byAge && waiter.priority !== priority ? waiter.priority < priority : waiter.request.arrival < arrival;
    const ahead = stoodBy ? cameBefore : cameBefore.filter(isAhead);
    // Its own new leases must not count as covering what it asked for.
    const leases = view.field.leases.filter((lease) => !after.leaseIds.includes(lease.id));
    const claims = claimsOf(after.intents, after.picked);
    const field = withoutSpent({ ...view.field, leases }, claims);
    const { requests } = inTheWay(field, after.agentId, claims, ahead);
    const [overtaken] = requests;
    if (overtaken !== undefined) violated("W3", "a request overtook a conflicting one", after, overtaken.request);
  }
}

/** A lease that stood for its request was transferred: the request gets a record, and was granted long ago (W10). */
function wasHeld({ changes }: Step, { tenant, leaseIds }: Request): boolean {
  return changes.some(
    ({ kind, before }) =>
      kind === "lease" && before !== null && before.tenant === tenant && leaseIds.includes(before.id),
  );
}

function isNew({ changes }: Step, { tenant, id }: Request): boolean {
  return changes.some(
    (one) => one.kind === "request" && one.before === null && one.after?.id === id && one.after.tenant === tenant,
  );
}

function checkWait(view: TenantView, waiter: Waiter, step: Step): void {
  const { request } = waiter;
  if (step.settled && request.timeoutAt <= step.now) violated("W4", "a wait outlives its timeout", request);
  if (!Number.isFinite(request.timeoutAt)) violated("W4", "a wait has no end", request);

  const ahead = view.waiters.slice(0, view.waiters.indexOf(waiter));
  const blocking = inTheWay(view.field, waiter.agentId, waiter.claims, ahead);
  if (step.settled && isFree(blocking) && !awaitsWorker(step, request)) {
    violated("W3", "a request waits without an obstacle", request);
  }
  checkDirection(view, waiter, ahead);
  for (const resource of view.resources.values()) {
    if (!resource.fenced || !waiter.claims.some((claim) => overlap(claim.resource, resource.name))) continue;
    violated("G7", "a request waits for a fenced resource", request, resource);
  }
}

/** A task whose turn has come keeps its place until a worker polls or its concurrency key has a slot (T10, T12). */
function awaitsWorker({ state }: Step, { tenant, holder, agentId }: Request): boolean {
  if (holder === agentId) return false;
  const place = state.tenants.get(tenant)?.tasks.get(holder)?.place;
  return place === "ready" || place === "keyed";
}

/**
 * Older waits for younger under Wait-Die, younger for older under Wound-Wait. There a CLOSING lease cannot be
 * wounded: both wait for it, and a request that only lacks the units it will free waits for nothing else.
 */
function checkDirection(view: TenantView, waiter: Waiter, ahead: readonly Waiter[]): void {
  const woundWait = view.tenant.settings.strategy === "wound_wait";
  const leases = woundWait ? view.field.leases.filter((lease) => lease.state !== "CLOSING") : view.field.leases;
  const blocking = inTheWay({ ...view.field, leases }, waiter.agentId, waiter.claims, ahead, "covered");
  for (const one of [...blocking.leases, ...blocking.requests]) {
    const priority = view.priorityOf(one.agentId);
    if (priority === undefined) violated("A1", "a lease has no holder", one);
    const isForbidden = woundWait ? waiter.priority < priority : waiter.priority > priority;
    if (isForbidden) violated(rule(view), "a wait points in the forbidden direction", waiter.request, one);
  }
}

function rule({ tenant }: TenantView): string {
  return tenant.settings.strategy === "wait_die" ? "W2" : "W7";
}

function namesOf(change: Change, tenantId: string): string[] {
  const record = change.after ?? change.before;
  if (record === null) return [];
  switch (change.kind) {
    case "lease":
      return change.before?.tenant === tenantId || change.after?.tenant === tenantId ? leaseNames(change) : [];
    case "request": {
      const request = change.after ?? change.before;
      return request?.tenant === tenantId
        ? claimsOf(request.intents, request.picked).map((claim) => claim.resource)
        : [];
    }
    case "resource": {
      const resource = change.after ?? change.before;
      return resource?.tenant === tenantId ? [resource.name] : [];
    }
    default:
      return [];
  }
}

function leaseNames({ before, after }: Extract<Change, { kind: "lease" }>): string[] {
  const lease = after ?? before;
  return lease === null ? [] : [lease.resource];
}
