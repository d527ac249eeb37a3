/** Per tenant, fences only grow and none is given twice (L11); generations grow with them. */
import type { Lease } from "../../src/kernel/contract/records.ts";
import { type Step, violated } from "./step.ts";

/** The greatest fence ever seen of each tenant, restarts of the kernel included. */
export type FenceMemory = Map<string, number>;

export function checkFences(memory: FenceMemory, step: Step): void {
  const fresh = new Map<string, Lease[]>();
  for (const change of step.changes) {
    if (change.kind !== "lease" || change.after === null) continue;
    const { before, after } = change;
    if (before !== null && after.fence === before.fence) {
      if (after.generation !== before.generation) violated("A3", "a generation without a new fence", before, after);
      // T10: what cells have set up for a task is for the worker that collects it; until then nobody has its fence.
      const isCollected = before.holder !== before.agentId && before.claimBy !== null && after.claimBy === null;
      if (after.agentId !== before.agentId && !isCollected)
        violated("L15", "a transfer without a new fence", before, after);
      continue;
    }
    if (before !== null && after.generation < before.generation)
      violated("L11", "a generation went back", before, after);
    const ofTenant = fresh.get(after.tenant) ?? [];
    ofTenant.push(after);
    fresh.set(after.tenant, ofTenant);
  }
  // A lease that was granted and ended within the step has no record, but its events are in order.
  for (const event of step.events) {
    if (event.type !== "lease.granted" && event.type !== "lease.binding") continue;
    const last = memory.get(event.tenant) ?? 0;
    if (event.lease.fence > last) continue;
    const isNew = step.changes.some((one) => one.kind === "lease" && one.before?.id === event.lease.id);
    if (!isNew) violated("L11", `a grant's fence is not above ${last}`, event.lease);
  }
  for (const [tenant, leases] of fresh) {
    const last = memory.get(tenant) ?? 0;
    const fences = leases.map((lease) => lease.fence);
    for (const lease of leases) {
      if (lease.fence <= last) violated("L11", `a new fence is not above ${last}, the greatest so far`, lease);
      if (!Number.isSafeInteger(lease.fence)) violated("L11", "a fence is not below 2^53", lease);
    }
    if (new Set(fences).size < fences.length) violated("L11", "a fence was given twice", ...leases);
    memory.set(tenant, Math.max(last, ...fences));
  }
}
