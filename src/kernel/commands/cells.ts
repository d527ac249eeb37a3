/** What cells report of themselves and of leases, and their withdrawal (G6, G7, G11, G12). */

import { checkValue } from "../contract/bounds.ts";
import type { Actor, CellEnded, CellHeartbeat, CellLeft, ReportBinding, WithdrawCell } from "../contract/commands.ts";
import { commands } from "../contract/commands.ts";
import { limits } from "../contract/limits.ts";
import { type Refusal, refuse } from "../contract/refusals.ts";
import type { Reply } from "../contract/replies.ts";
import { mayActAsCell, requireAbove } from "../memory/actors.ts";
import { type CellEntry, nameOf, type Turn } from "../memory/state.ts";
import { endBinding, endLeases } from "../requests/ending.ts";
import { bindFailed, bound, finishGone, teardownFailed, tornDown } from "../resources/bindings.ts";
import { emitCell, hear, leasesOfCell, loseCell, readinessChanged, resourcesOf } from "../resources/cell-life.ts";
import { updateCell } from "../resources/cell-states.ts";
import { fence } from "../resources/resource-life.ts";
import { takeInventory } from "./cell-inventory.ts";

export function reportBinding(turn: Turn, command: ReportBinding): Reply {
  const { cellId } = command;
  const cell = cellId === null ? null : findCell(turn, { actor: command.actor, cellId });
  const refusal = cell === null ? requireAbove(command.actor) : "code" in cell ? cell : null;
  if (refusal !== null) return refusal;
  const lease = turn.tenant.leases.get(command.leaseId);
  if (lease === undefined) return refuse("lease_unknown", "There is no such lease.", { leaseId: command.leaseId });
  if (cellId !== null && lease.record.cell !== cellId) {
    return refuse("forbidden", "The lease is not on a resource of this cell.", { leaseId: command.leaseId });
  }
  // While it is set up it may be re-issued (A3); there is still one binding, which its cell knows by the older generation.
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
      bound(turn, lease, command.coordinate);
      break;
    case "bind_failed":
      bindFailed(turn, lease, command.reason ?? "bind_failed");
      break;
    case "teardown_confirmed":
      tornDown(turn, lease);
      break;
    case "teardown_failed":
      teardownFailed(turn, lease, command.reason ?? "teardown_failed");
      break;
  }
  return { type: "lease", lease: lease.record };
}

export function cellHeartbeat(turn: Turn, cell: CellEntry, command: CellHeartbeat): Reply {
  if (cell.record.session !== command.session) return staleSession();
  const { inventory } = command;
  const tooMany = checkValue("inventory", commands.cell_heartbeat.inventory, inventory);
  if (tooMany !== null) return tooMany;
  const wasGone = cell.record.state === "GONE";
  hear(turn, cell);
  if (inventory !== null) takeInventory(turn, cell, inventory);
  else if (wasGone) readinessChanged(turn, resourcesOf(turn.tenant, cell));
  return { type: "cell", cell: cell.record };
}

/** Its session is over for good: a heartbeat of it that comes late does not bring it back. */
export function cellLeft(turn: Turn, cell: CellEntry, command: CellLeft): Reply {
  const tooLong = checkValue("reason", commands.cell_left.reason, command.reason);
  if (tooLong !== null) return tooLong;
  if (cell.record.session === "") return { type: "cell", cell: cell.record };
  if (cell.record.session !== command.session) return staleSession();
  loseCell(turn, cell, "leave", command.reason);
  return { type: "cell", cell: cell.record };
}

/**
 * What a cell has ended is over, whichever generation it knew: there is one binding, and it is gone. What we have ended
 * too, or never knew, is answered all the same, because a cell tells it again until it is.
 */
export function cellEnded(turn: Turn, _cell: CellEntry, command: CellEnded): Reply {
  const lease = turn.tenant.leases.get(command.leaseId);
  if (lease === undefined || lease.record.cell !== command.cellId) return { type: "done" };
  const isExpired = command.code === "lease_expired";
  const code = command.code.slice(0, limits.reasonLengthMax);
  if (lease.record.state === "BINDING") bindFailed(turn, lease, code);
  const { state: standing, closingAs, endReason } = lease.record;
  if (standing === "CLOSING") finishGone(turn, lease, closingAs ?? "REVOKED", endReason);
  else finishGone(turn, lease, isExpired ? "EXPIRED" : "REVOKED", isExpired ? null : code);
  if (command.failure !== null) {
    fence(turn, nameOf(lease), command.failure.slice(0, limits.reasonLengthMax));
  }
  return { type: "done" };
}

/** G12: no new leases on anything that it hosts; the live ones run out, or are revoked. */
export function withdrawCell(turn: Turn, cell: CellEntry, command: WithdrawCell): Reply {
  const { tenant, now } = turn;
  if (!cell.record.withdrawn) {
    updateCell(turn, cell, { withdrawn: true, changedAt: now });
    emitCell(turn, cell, "cell.withdrawn");
  }
  readinessChanged(turn, resourcesOf(tenant, cell));
  for (const { request } of leasesOfCell(tenant, cell)) {
    if (request?.record.state === "BINDING") endBinding(turn, request, "PAUSED", "cell_not_ready");
  }
  if (command.revoke) endLeases(turn, leasesOfCell(tenant, cell), "REVOKED", "cell_withdrawn");
  return { type: "cell", cell: cell.record };
}

export function readmitCell(turn: Turn, cell: CellEntry): Reply {
  if (!cell.record.withdrawn) return { type: "cell", cell: cell.record };
  updateCell(turn, cell, { withdrawn: false, changedAt: turn.now });
  emitCell(turn, cell, "cell.readmitted");
  readinessChanged(turn, resourcesOf(turn.tenant, cell));
  return { type: "cell", cell: cell.record };
}

interface CellCommand {
  readonly actor: Actor;
  readonly cellId: string;
}

export function findCellToManage(turn: Turn, command: CellCommand): CellEntry | Refusal {
  return requireAbove(command.actor) ?? findCell(turn, command);
}

export function findCell({ state, tenant }: Turn, { actor, cellId }: CellCommand): CellEntry | Refusal {
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
