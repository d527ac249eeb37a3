/** The doors for cells, and for who withdraws them: what they report of themselves and of leases (G6, G7, G11, G12). */

import type {
  Actor,
  CellEnded,
  CellHeartbeat,
  CellLeft,
  ReadmitCell,
  ReportBinding,
  WithdrawCell,
} from "../contract/commands.ts";
import { limits } from "../contract/limits.ts";
import type { EndedLeaseState, Millis } from "../contract/records.ts";
import { type Refusal, refuse } from "../contract/refusals.ts";
import type { Reply } from "../contract/replies.ts";
import { endBinding, endLeases } from "../leases/holding.ts";
import { finishLease, nameOf, updateLease } from "../leases/lease-life.ts";
import { findTenant, mayActAsCell, requireAbove } from "../memory/actors.ts";
import type { CellEntry, LeaseEntry, State, TenantEntry } from "../memory/state.ts";
import type { ResourceName } from "../names/resource-name.ts";
import { serve } from "../requests/queue.ts";
import { finishBinding } from "../requests/request-life.ts";
import { tooMany } from "./cell-enrol.ts";
import { takeInventory } from "./cell-inventory.ts";
import { emitCell, hear, leasesOfCell, loseCell, readinessChanged, resourcesOf, updateCell } from "./cell-life.ts";
import { fence } from "./resources.ts";

export function reportBinding(state: State, command: ReportBinding, now: Millis): Reply {
  const tenant = findTenant(state, command.tenant);
  if ("code" in tenant) return tenant;
  const { cellId } = command;
  const cell = cellId === null ? null : findCell(state, tenant, command.actor, cellId);
  const refusal = cell === null ? requireAbove(command.actor) : "code" in cell ? cell : null;
  if (refusal !== null) return refusal;
  const lease = tenant.leases.get(command.leaseId);
  if (lease === undefined) return refuse("lease_unknown", "There is no such lease.", { leaseId: command.leaseId });
  if (cellId !== null && lease.record.cell !== cellId) {
    return refuse("forbidden", "The lease is not on a resource of this cell.", { leaseId: command.leaseId });
  }
  // While it is set up it may be issued anew (A3); there is one binding all the same, which its cell knows as the older.
  const isOlder = lease.record.state === "BINDING" && command.generation < lease.record.generation;
  if (lease.record.generation !== command.generation && !isOlder) {
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

/** Ends a lease of which its cell has nothing left: at once, and with the other half of its rename. What is free then. */
export function finishGone(
  state: State,
  tenant: TenantEntry,
  lease: LeaseEntry,
  as: EndedLeaseState,
  reason: string | null,
  now: Millis,
): ResourceName[] {
  finishLease(state, tenant, lease, as, reason, lease.record.version, now);
  const other = lease.record.linkedTo === null ? undefined : tenant.leases.get(lease.record.linkedTo);
  const freed = other === undefined ? [] : endLeases(state, tenant, [other], as, reason, now);
  return [nameOf(lease), ...freed];
}

export function cellHeartbeat(state: State, command: CellHeartbeat, now: Millis): Reply {
  const tenant = findTenant(state, command.tenant);
  if ("code" in tenant) return tenant;
  const cell = findCell(state, tenant, command.actor, command.cellId);
  if ("code" in cell) return cell;
  if (cell.record.session !== command.session) return staleSession();
  const { inventory } = command;
  if (inventory !== null && inventory.length > limits.cellInventoryMax)
    return tooMany("inventory", limits.cellInventoryMax);
  const wasGone = cell.record.state === "GONE";
  hear(state, cell, now);
  if (inventory !== null) takeInventory(state, tenant, cell, inventory, now);
  else if (wasGone) readinessChanged(state, tenant, resourcesOf(tenant, cell), now);
  return { type: "cell", cell: cell.record };
}

/** Its session is over for good: a heartbeat of it that comes late does not bring it back. */
export function cellLeft(state: State, command: CellLeft, now: Millis): Reply {
  const tenant = findTenant(state, command.tenant);
  if ("code" in tenant) return tenant;
  const cell = findCell(state, tenant, command.actor, command.cellId);
  if ("code" in cell) return cell;
  if (command.reason.length > limits.reasonLengthMax) {
    return refuse("invalid_reason", `reason has at most ${limits.reasonLengthMax} characters.`, { field: "reason" });
  }
  if (cell.record.session === "") return { type: "cell", cell: cell.record };
  if (cell.record.session !== command.session) return staleSession();
  loseCell(state, tenant, cell, command.reason, "", now);
  return { type: "cell", cell: cell.record };
}

/**
 * What a cell has ended is over, whichever generation it knew: there is one binding, and it is gone. What we have ended
 * too, or never knew, is answered all the same, because a cell tells it again until it is.
 */
export function cellEnded(state: State, command: CellEnded, now: Millis): Reply {
  const tenant = findTenant(state, command.tenant);
  if ("code" in tenant) return tenant;
  const cell = findCell(state, tenant, command.actor, command.cellId);
  if ("code" in cell) return cell;
  const lease = tenant.leases.get(command.leaseId);
  if (lease === undefined || lease.record.cell !== command.cellId) return { type: "done" };
  const isExpired = command.code === "lease_expired";
  const code = command.code.slice(0, limits.reasonLengthMax);
  if (lease.record.state === "BINDING") bindFailed(state, tenant, lease, code, now);
  const { state: standing, closingAs, endReason } = lease.record;
  const freed =
    standing === "CLOSING"
      ? finishGone(state, tenant, lease, closingAs ?? "REVOKED", endReason, now)
      : finishGone(state, tenant, lease, isExpired ? "EXPIRED" : "REVOKED", isExpired ? null : code, now);
  if (command.failure !== null) {
    fence(state, tenant, nameOf(lease), command.failure.slice(0, limits.reasonLengthMax), now);
  }
  serve(state, tenant, freed, now);
  return { type: "done" };
}

/** G12: no new leases on anything that it hosts; the live ones run out, or are revoked. */
export function withdrawCell(state: State, command: WithdrawCell, now: Millis): Reply {
  const found = findAsSupervisor(state, command);
  if ("code" in found) return found;
  const { tenant, cell } = found;
  if (!cell.record.withdrawn) {
    updateCell(state, cell, { withdrawn: true, changedAt: now });
    emitCell(state, cell, "cell.withdrawn", now);
  }
  readinessChanged(state, tenant, resourcesOf(tenant, cell), now);
  const freed: ResourceName[] = [];
  for (const { request } of leasesOfCell(tenant, cell)) {
    if (request?.record.state === "BINDING")
      freed.push(...endBinding(state, tenant, request, "PAUSED", "cell_not_ready", now));
  }
  if (command.revoke)
    freed.push(...endLeases(state, tenant, leasesOfCell(tenant, cell), "REVOKED", "cell_withdrawn", now));
  serve(state, tenant, freed, now);
  return { type: "cell", cell: cell.record };
}

export function readmitCell(state: State, command: ReadmitCell, now: Millis): Reply {
  const found = findAsSupervisor(state, command);
  if ("code" in found) return found;
  const { tenant, cell } = found;
  if (!cell.record.withdrawn) return { type: "cell", cell: cell.record };
  updateCell(state, cell, { withdrawn: false, changedAt: now });
  emitCell(state, cell, "cell.readmitted", now);
  readinessChanged(state, tenant, resourcesOf(tenant, cell), now);
  return { type: "cell", cell: cell.record };
}

function findAsSupervisor(
  state: State,
  command: WithdrawCell | ReadmitCell,
): { readonly tenant: TenantEntry; readonly cell: CellEntry } | Refusal {
  const tenant = findTenant(state, command.tenant);
  if ("code" in tenant) return tenant;
  const refusal = requireAbove(command.actor);
  if (refusal !== null) return refusal;
  const cell = findCell(state, tenant, command.actor, command.cellId);
  return "code" in cell ? cell : { tenant, cell };
}

function findCell(state: State, tenant: TenantEntry, actor: Actor, cellId: string): CellEntry | Refusal {
  const cell = tenant.cells.get(cellId);
  const refusal = mayActAsCell(state, cell, actor);
  if (refusal !== null) return refusal;
  return cell ?? refuse("cell_unknown", "There is no such cell; it enrols first.", { field: "cell" });
}

function staleSession(): Refusal {
  return refuse("stale_session", "Another process has enrolled as this cell, or it has left; enrol again.", {
    field: "session",
  });
}
