/**
 * Quotas on units by the resources' type (G2): a tenant may hold four of all GPUs. What waits counts too, as units in a
 * queue are reserved (C6): otherwise a wait would end in a grant beyond the quota, or never. A tenant without such
 * quotas counts nothing.
 */

import { limits } from "../contract/limits.ts";
import type { Millis, TenantQuotas } from "../contract/records.ts";
import type { Holder, TenantEntry, Turn } from "../memory/state.ts";
import type { LinkedClaim } from "./claims.ts";

/** Whenever the quotas are set, and for what is restored: all that is there, by type. */
export function countKinds(tenant: TenantEntry): void {
  tenant.kindUnits = noKinds(tenant.record.quotas) ? null : new Map();
  if (tenant.kindUnits === null) return;
  for (const { record } of tenant.leases.values()) addKind(tenant, record.resource, record.units);
  for (const { claims } of tenant.requests.values()) {
    for (const { name, intent } of claims) addKind(tenant, name.text, intent.units);
  }
}

export function noKinds({ kinds }: TenantQuotas): boolean {
  for (const _ in kinds) return false;
  return true;
}

/** Only where `kindUnits` is not null. */
export function addKind({ kindUnits }: TenantEntry, resource: string, units: number): void {
  const kind = kindOf(resource);
  kindUnits?.set(kind, (kindUnits.get(kind) ?? 0) + units);
}

/** Tasks that the quota kept from running are tried again. */
export function takeKind(turn: Turn, resource: string, units: number): void {
  const { tenant } = turn;
  addKind(tenant, resource, -units);
  if (tenant.book.barred.size > 0) turn.state.consequences.push({ type: "quota_freed" });
}

function kindOf(resource: string): string {
  return resource.slice(0, resource.indexOf(":"));
}

/** The type of which the claims would take too much, and how much there may be. What the holder waits for is its own. */
export function findOverKind(
  { kindUnits, record }: TenantEntry,
  claims: readonly LinkedClaim[],
  waiting: Holder["open"] | null = null,
): { readonly kind: string; readonly most: number } | null {
  if (kindUnits === null) return null;
  const wanted = new Map<string, number>();
  const add = (kind: string, units: number): void => void wanted.set(kind, (wanted.get(kind) ?? 0) + units);
  for (const { claim } of claims) add(claim.name.type, claim.intent.units);
  for (const { claims } of waiting ?? []) for (const { name, intent } of claims) add(name.type, -intent.units);
  for (const [kind, units] of wanted) {
    const most = Object.hasOwn(record.quotas.kinds, kind) ? record.quotas.kinds[kind] : undefined;
    if (most !== undefined && (kindUnits.get(kind) ?? 0) + units > most) return { kind, most };
  }
  return null;
}

/** L10: of tasks as of agents. */
export function isLeaseTimeUsedUp({ record, counters }: TenantEntry, now: Millis): boolean {
  const { tenantLeaseTimeMsMax: most } = record.quotas;
  if (most === null) return false;
  const { windowStart, leaseTimeMs } = counters.record;
  return windowStart === now - (now % limits.leaseTimeWindowMs) && leaseTimeMs >= most;
}
