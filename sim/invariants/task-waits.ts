/** A task that queues for its resources (T10) ends its wait for a reason, and overtakes nobody (W3). */
import { inTheWay, withoutSpent } from "../model/conflicts.ts";
import { overlap } from "../model/names.ts";
import { isFinal } from "./receipts.ts";
import { type Step, violated } from "./step.ts";
import { claimsOf, type TenantView } from "./tenant-view.ts";

export function checkTaskWaits(view: TenantView, step: Step): void {
  for (const change of step.changes) {
    if (change.kind !== "request") continue;
    const { before, after } = change;
    if (before === null || after !== null || before.holder === before.agentId || before.state === "BINDING") continue;
    if (before.tenant !== view.tenant.id || step.now >= before.timeoutAt || view.tenant.suspended) continue;
    const task = view.tasks.get(before.holder);
    if (task === undefined || isFinal(task) || task.live.length > 0) continue;
    // Offered and revoked within the step.
    if (step.events.some((event) => event.type === "task.offered" && event.task.id === task.id)) continue;
    if (!isBarred(view, before.intents)) violated("W2", "a task's wait disappeared without an outcome", before, task);
  }
}

/** W9, C6, G2: a resource of it is now fenced, withdrawn or bound, or exceeds capacity or quota. */
function isBarred({ resources, tenant }: TenantView, intents: Parameters<typeof claimsOf>[0]): boolean {
  const claims = claimsOf(intents);
  const kinds = Object.keys(tenant.quotas.kinds);
  if (claims.some(({ resource }) => kinds.some((kind) => resource.startsWith(`${kind}:`)))) return true;
  return [...resources.values()].some(({ name, fenced, withdrawn, cell, capacity }) => {
    const units = claims.reduce((sum, claim) => sum + (claim.resource === name ? claim.units : 0), 0);
    if (units > 0 && (cell !== null || (capacity !== null && units > capacity))) return true;
    return (fenced || withdrawn) && claims.some((claim) => overlap(claim.resource, name));
  });
}

/** A task that got its resources in this step has not overtaken a conflicting waiter ahead of it. */
export function checkTaskOvertaking(view: TenantView, step: Step): void {
  const byAge = view.tenant.settings.strategy === "wound_wait";
  for (const change of step.changes) {
    if (change.kind !== "task" || change.after?.tenant !== view.tenant.id) continue;
    const { before, after } = change;
    if (after.spec.intents.length === 0 || after.live.length === 0 || (before?.live.length ?? 0) > 0) continue;
    const own = step.changes.find(
      (one) => one.kind === "request" && one.before?.holder === after.id && one.after === null,
    );
    const arrival = own?.kind === "request" ? (own.before?.arrival ?? 0) : Number.POSITIVE_INFINITY;
    const ahead = view.waiters.filter(({ request, priority }) => {
      const isNew = step.changes.some(
        (one) => one.kind === "request" && one.before === null && one.after?.id === request.id,
      );
      if (isNew) return false;
      return byAge ? priority < after.timestamp : request.arrival < arrival;
    });
    // What cells have set up was granted before.
    if (view.field.leases.some(({ holder, cell }) => holder === after.id && cell !== null)) continue;
    const leases = view.field.leases.filter((lease) => lease.holder !== after.id);
    const claims = claimsOf(after.spec.intents, after.picked);
    const { requests } = inTheWay(withoutSpent({ ...view.field, leases }, claims), after.id, claims, ahead);
    const [overtaken] = requests;
    if (overtaken !== undefined) violated("W3", "a task overtook a conflicting waiter", after, overtaken.request);
  }
}
