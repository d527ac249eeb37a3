/** The doors for cells: what they report about setting up and tearing down (G6, G7). */
import { findTenant, requireAbove } from "./actors.ts";
import type { ReportBinding } from "./commands.ts";
import { endBinding } from "./holding.ts";
import { finishLease, nameOf, updateLease } from "./lease-life.ts";
import { serve } from "./queue.ts";
import type { Millis } from "./records.ts";
import { refuse } from "./refusals.ts";
import type { Reply } from "./replies.ts";
import { finishBinding } from "./request-life.ts";
import { fence } from "./resources.ts";
import type { LeaseEntry, State, TenantEntry } from "./state.ts";

export function reportBinding(state: State, command: ReportBinding, now: Millis): Reply {
  const tenant = findTenant(state, command.tenant);
  if ("code" in tenant) return tenant;
  const refusal = requireAbove(command.actor);
  if (refusal !== null) return refusal;
  const lease = tenant.leases.get(command.leaseId);
  if (lease === undefined) return refuse("lease_unknown", "There is no such lease.", { leaseId: command.leaseId });
  if (lease.record.generation !== command.generation) {
    return refuse("stale_generation", `The lease is at generation ${lease.record.generation}.`, {
      leaseId: command.leaseId,
      generation: lease.record.generation,
    });
  }
  const awaited = command.type === "bind_confirmed" || command.type === "bind_failed" ? "BINDING" : "CLOSING";
  if (lease.record.state !== awaited || lease.record.cellBy === null) {
    const code = awaited === "BINDING" ? "lease_not_binding" : "lease_not_closing";
    return refuse(code, `The lease is ${lease.record.state}; this report is not awaited.`, {
      leaseId: command.leaseId,
    });
  }
  switch (command.type) {
    case "bind_confirmed":
      bound(state, tenant, lease, command.coordinate, now);
      break;
    case "bind_failed":
      bindFailed(state, tenant, lease, command.reason ?? "bind_failed", now);
      break;
    case "teardown_confirmed":
      tornDown(state, tenant, lease, now);
      break;
    case "teardown_failed":
      teardownFailed(state, tenant, lease, command.reason ?? "teardown_failed", now);
      break;
  }
  return { type: "lease", lease: lease.record };
}

function bound(state: State, tenant: TenantEntry, lease: LeaseEntry, coordinate: string | null, now: Millis): void {
  updateLease(state, lease, { ...lease.record, coordinate, cellBy: null });
  if (lease.request !== null) finishBinding(state, tenant, lease.request, now);
}

export function bindFailed(state: State, tenant: TenantEntry, lease: LeaseEntry, reason: string, now: Millis): void {
  if (lease.request === null) return;
  serve(state, tenant, endBinding(state, tenant, lease.request, "BIND_FAILED", reason, now), now);
}

function tornDown(state: State, tenant: TenantEntry, lease: LeaseEntry, now: Millis): void {
  finish(state, tenant, lease, now);
  serve(state, tenant, [nameOf(lease)], now);
}

/** G7: an end that nobody could confirm becomes a hard refusal to lease, not a silent risk. */
export function teardownFailed(
  state: State,
  tenant: TenantEntry,
  lease: LeaseEntry,
  reason: string,
  now: Millis,
): void {
  finish(state, tenant, lease, now);
  fence(state, tenant, nameOf(lease), reason, now);
}

function finish(state: State, tenant: TenantEntry, lease: LeaseEntry, now: Millis): void {
  const { closingAs, endReason, version } = lease.record;
  finishLease(state, tenant, lease, closingAs ?? "REVOKED", endReason, version, now);
}
