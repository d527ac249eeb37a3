/** No two conflicting live leases of different holders (C1), and no more units granted than there are (C6, G15). */
import type { Lease } from "../../src/kernel/contract/records.ts";
import { claimsConflict, unitsIn } from "../model/conflicts.ts";
import { type Step, violated } from "./step.ts";
import type { TenantView } from "./tenant-view.ts";

/** Every lease against every other. BINDING, HELD and CLOSING leases conflict as ACTIVE ones do. */
export function checkAllConflicts(view: TenantView): void {
  for (const lease of view.field.leases) checkAgainstAll(view, lease);
}

/** Only the leases that this step granted, transferred or changed, against all: enough if every earlier step passed. */
export function checkNewConflicts(view: TenantView, step: Step): void {
  for (const change of step.changes) {
    if (change.kind !== "lease" || change.after === null || change.after.tenant !== view.tenant.id) continue;
    const { before, after } = change;
    const moved = before === null || before.agentId !== after.agentId || before.predicate !== after.predicate;
    if (moved) checkAgainstAll(view, after);
    if (before === null && !lostUnits(step, after)) checkUnits(view, after);
  }
}

/** What the step settled first was granted before its command lowered the capacity. */
function lostUnits({ changes }: Step, lease: Lease): boolean {
  return changes.some(
    ({ kind, before, after }) =>
      kind === "resource" && after?.name === lease.resource && before?.capacity !== after.capacity,
  );
}

function checkAgainstAll({ field }: TenantView, lease: Lease): void {
  for (const other of field.leases) {
    if (other.holder === lease.holder) continue;
    if (claimsConflict(field, lease, other))
      violated("C1", "two live leases of different holders conflict", lease, other);
  }
}

/** A smaller capacity applies to new grants only, so units are counted when some are granted. */
function checkUnits({ field }: TenantView, lease: Lease): void {
  const capacity = field.capacityOf(lease.resource);
  if (capacity === null) return;
  const spent = field.spentOf(lease.resource);
  const taken = spent ?? unitsIn(field.leases, lease.resource);
  if (taken > capacity) violated(spent === null ? "C6" : "G15", `${taken} units are taken of ${capacity}`, lease);
}
