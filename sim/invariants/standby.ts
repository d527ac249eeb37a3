/**
 * W14: what stands by holds nothing and waits for nothing, so that no cycle can close through it; it is granted as soon
 * as it fits, and ends in time.
 */
import type { Request } from "../../src/kernel/contract/records.ts";
import { inTheWay, isFree, unitsIn } from "../model/conflicts.ts";
import type { Change } from "../record-store.ts";
import { type Step, violated } from "./step.ts";
import type { TenantView } from "./tenant-view.ts";

const endsAs: readonly Request["state"][] = [
  "STANDBY",
  "GRANTED",
  "BINDING",
  "DIED",
  "CANCELED",
  "PAUSED",
  "BIND_FAILED",
];

export function checkStandbyChanges(step: Step): void {
  for (const { before, after } of step.changes.filter(isRequest)) {
    if (before?.state !== "STANDBY") continue;
    if (after === null) violated("W14", "a request that stood by disappeared without an outcome", before);
    if (!endsAs.includes(after.state)) violated("W14", "standing by ended in an unexpected state", after);
    const isEarly = after.state === "DIED" && step.now < before.timeoutAt;
    if (isEarly && !hasSomething(step, after)) violated("W14", "it died although its agent has nothing else", after);
  }
}

export function checkStandbys(view: TenantView, step: Step): void {
  if (view.standbys.length > 0 && view.tenant.settings.strategy === "wound_wait") {
    violated("W14", "a request stands by under Wound-Wait", view.standbys[0]?.request);
  }
  for (const { request, agentId, claims } of view.standbys) {
    if (hasSomething(step, request)) violated("W14", "an agent stands by that has something else", request);
    if (!step.settled) continue;
    if (request.timeoutAt <= step.now) violated("W14", "it stands by beyond its time", request);
    const isChoice = request.intents.some(({ pick }) => pick !== null);
    if (isChoice || view.agents.get(agentId)?.pausedByOperator || isOverQuota(view, claims.length)) continue;
    const hasUnits = claims.every(({ resource }) => {
      const capacity = view.field.capacityOf(resource);
      return capacity === null || unitsIn(claims, resource) <= capacity;
    });
    if (hasUnits && isFree(inTheWay(view.field, agentId, claims, view.waiters))) {
      violated("W14", "it stands by although it fits", request);
    }
  }
}

/** A grant beyond a quota is not made, and no freed name tells when there is room again. */
function isOverQuota({ tenant, field, waiters }: TenantView, more: number): boolean {
  const { kinds, leasesMax, patternsMax, tenantLeaseTimeMsMax } = tenant.quotas;
  const patterns = field.leases.length + waiters.length;
  if (Object.keys(kinds).length > 0 || tenantLeaseTimeMsMax !== null || patterns >= patternsMax) return true;
  return field.leases.length + more > leasesMax;
}

function hasSomething({ store }: Step, { tenant, agentId, id }: Request): boolean {
  for (const lease of store.lease.values()) if (lease.tenant === tenant && lease.holder === agentId) return true;
  for (const other of store.request.values()) {
    const isOpen = other.state === "WAITING" || other.state === "BINDING" || other.state === "STANDBY";
    if (isOpen && other.id !== id && other.tenant === tenant && other.holder === agentId) return true;
  }
  return false;
}

function isRequest(change: Change): change is Extract<Change, { kind: "request" }> {
  return change.kind === "request";
}
