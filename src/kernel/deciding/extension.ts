/**
 * May a lease last longer? Heartbeats and renewals ask the same of it: that it is honoured, that nothing it covers was
 * withdrawn (G12), and that there is lease time left (L10). A renewal is a fresh grant, and passes admission again (G8).
 */
import type { EndedLeaseState, Lease, Millis } from "../contract/records.ts";
import { type Refusal, type RefusalCode, refuse } from "../contract/refusals.ts";
import { type LeaseEntry, nameOf, type TenantEntry, withLinked } from "../memory/state.ts";
import { leaseTimeMax } from "../policies/permissions.ts";
import { type Bar, bar, findResource, isLeaseTimeUsedUp, whyNotReady } from "./admission.ts";

const endedCodes: Readonly<Record<EndedLeaseState, RefusalCode>> = {
  RELEASED: "lease_released",
  EXPIRED: "lease_expired",
  REVOKED: "lease_revoked",
};

/** The refusal that a lease's end calls for (L4, G9). */
export function endedRefusal(id: string, state: EndedLeaseState, reason: string | null): Refusal {
  const detail = `The lease has ended (${state.toLowerCase()}${reason === null ? "" : `: ${reason}`}); acquire again.`;
  return refuse(endedCodes[state], detail, reason === null ? { leaseId: id } : { leaseId: id, problem: reason });
}

/** Null: a heartbeat extends it. */
export function whyNotExtended(tenant: TenantEntry, lease: LeaseEntry, now: Millis): Refusal | null {
  const { record } = lease;
  const notHonoured = whyNotHonoured(record);
  if (notHonoured !== null) return notHonoured;
  const withdrawn = tenant.resources.size === 0 ? null : whyWithdrawn(tenant, lease);
  if (withdrawn !== null) return withdrawn;
  const isBound =
    record.state === "BINDING" ||
    record.cell !== null ||
    (record.linkedTo !== null && tenant.leases.get(record.linkedTo)?.record.cell != null);
  if (isBound) {
    return refuse("renew_required", "A lease on a bound resource is not extended; renew it.", { leaseId: record.id });
  }
  return whyTimeIsUp(tenant, lease, now);
}

/** Of one of a task's leases, which a heartbeat of the task extends together (G12, L10), or renews (G8). */
export function whyNotLonger(tenant: TenantEntry, lease: LeaseEntry, now: Millis): Refusal | Bar | null {
  if (lease.record.cell !== null) return whyNotAdmitted(tenant, lease) ?? whyTimeIsUp(tenant, lease, now);
  return (tenant.resources.size === 0 ? null : whyWithdrawn(tenant, lease)) ?? whyTimeIsUp(tenant, lease, now);
}

/** Null: it is renewed, together with those that it belongs to. */
export function whyNotRenewed(
  tenant: TenantEntry,
  lease: LeaseEntry,
  together: readonly LeaseEntry[],
  now: Millis,
): Refusal | Bar | null {
  const { record } = lease;
  const notHonoured = whyNotHonoured(record);
  if (notHonoured !== null) return notHonoured;
  if (record.state === "BINDING") {
    return refuse("renew_required", "The lease is still being set up; renew it once it is active.", {
      leaseId: record.id,
    });
  }
  for (const one of together) {
    const refusal = whyNotAdmitted(tenant, one) ?? whyTimeIsUp(tenant, one, now);
    if (refusal !== null) return refusal;
  }
  return null;
}

function whyNotHonoured(lease: Lease): Refusal | null {
  if (lease.state === "CLOSING") return endedRefusal(lease.id, lease.closingAs ?? "RELEASED", lease.endReason);
  if (lease.state !== "HELD" || lease.verified) return null;
  return refuse("verify_required", "The lease is held for a restart; call verify-all first.", { leaseId: lease.id });
}

/** G12: what covers something withdrawn, or is on a cell that was, runs out. */
function whyWithdrawn(tenant: TenantEntry, lease: LeaseEntry): Refusal | null {
  for (const one of withLinked(tenant, lease)) {
    const { cell } = one.record;
    const resource = findResource(tenant, nameOf(one), ({ record }) => record.withdrawn);
    const isWithdrawn = cell !== null && tenant.cells.get(cell)?.record.withdrawn === true;
    if (resource === undefined && !isWithdrawn) continue;
    const what = resource === undefined ? `The cell ${cell}` : resource.record.name;
    return refuse(
      "resource_withdrawn",
      `${what} was withdrawn; the lease keeps its present end. Finish before it, and release.`,
      { leaseId: lease.record.id },
    );
  }
  return null;
}

/** G8: what a fresh grant of the same would meet: withdrawal, readiness, quotas. */
function whyNotAdmitted(tenant: TenantEntry, lease: LeaseEntry): Refusal | Bar | null {
  const { id: leaseId, resource: name } = lease.record;
  if (tenant.resources.size > 0) {
    const withdrawn = whyWithdrawn(tenant, lease);
    if (withdrawn !== null) return withdrawn;
    const resource = tenant.resources.get(name);
    const notReady = resource === undefined ? null : whyNotReady(tenant, resource.record);
    if (notReady !== null) return bar("cell_not_ready", notReady, name);
  }
  const { leasesMax, patternsMax, kinds } = tenant.record.quotas;
  const type = name.slice(0, name.indexOf(":"));
  const most = Object.hasOwn(kinds, type) ? (kinds[type] ?? 0) : Number.POSITIVE_INFINITY;
  const isOver =
    tenant.leases.size > leasesMax ||
    (lease.wild && tenant.patternCount > patternsMax) ||
    (tenant.kindUnits?.get(type)?.units ?? 0) > most;
  if (!isOver) return null;
  return refuse("lease_denied", "The tenant has more leases than its quota allows now; release some first.", {
    leaseId,
    reason: "quota",
  });
}

/** L10: of the one lease, or of the tenant's day. A lease that was held past its quota cannot be brought back (L9). */
function whyTimeIsUp(tenant: TenantEntry, entry: LeaseEntry, now: Millis): Refusal | null {
  const { record: lease } = entry;
  if (isLeaseTimeUsedUp(tenant, now, lease)) {
    return refuse("lease_denied", "The tenant's lease time for today is used up; the lease keeps its present end.", {
      leaseId: lease.id,
      reason: "quota",
    });
  }
  const { leaseTimeMsMax: most } = tenant.record.quotas;
  const byPolicy = leaseTimeMax(tenant, entry);
  const isUp = (time: number | null): boolean => time !== null && lease.acquiredAt + time <= now;
  if (!isUp(most) && !isUp(byPolicy)) return null;
  return refuse("lease_denied", "The lease has used up its lease time; acquire again.", {
    leaseId: lease.id,
    reason: "quota",
  });
}
