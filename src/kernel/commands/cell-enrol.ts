/**
 * A cell comes, or comes back, with what it believes. Both beliefs are compared, and the stricter wins: what either
 * side has ended is over. The reply says what the cell is to do so that both believe the same.
 */

import { conclude } from "../aftermath.ts";
import { checkValues } from "../contract/bounds.ts";
import { commands, type EnrolCell } from "../contract/commands.ts";
import { limits } from "../contract/limits.ts";
import type { Cell, CellBinding, Lease } from "../contract/records.ts";
import { deny } from "../contract/refusals.ts";
import type { CellEnrolled, Reply } from "../contract/replies.ts";
import { whyNoMemory } from "../deciding/admission.ts";
import { updateLease } from "../leases/lease-life.ts";
import { mayActAsCell, ownerOf } from "../memory/actors.ts";
import type { CellEntry, LeaseEntry, TenantEntry, Turn } from "../memory/state.ts";
import { question } from "../policies/matching.ts";
import { whyNotPermitted } from "../policies/permissions.ts";
import { endLeases } from "../requests/request-life.ts";
import { bindFailed, emitCell, finishGone, holdTornDown, leasesOfCell, placeCell } from "../resources/cell-life.ts";
import { firstCellState, moveCell } from "../resources/cell-states.ts";
import { takeInventory } from "./cells.ts";

const lost = "cell_lost_binding";

export function enrolCell(turn: Turn, command: EnrolCell): Reply {
  const { tenant } = turn;
  const known = tenant.cells.get(command.cellId);
  const { actor } = command;
  const asked = { ...question, action: "host", id: command.cellId } as const;
  const refusal =
    mayActAsCell(known, actor) ??
    checkValues(commands.enrol_cell, command) ??
    whyNotPermitted(turn, actor, asked, "cell");
  if (refusal !== null) return refusal;
  if (known === undefined && tenant.cells.size >= limits.cellsMax) {
    return deny("quota", `The tenant may have ${limits.cellsMax} cells.`);
  }
  const noMemory = known === undefined ? whyNoMemory(tenant) : null;
  if (noMemory !== null) return noMemory;
  const cell = enter(turn, known, command);
  const believed = byLease(command.bindings);
  reconcile(turn, cell, believed);
  // Nobody is granted what was lost before the cell has said whether it can serve it.
  const refused = takeInventory(turn, cell, command.inventory, actor);
  conclude(turn);
  return { type: "cell_enrolled", cell: cell.record, ...whatToDo(tenant, cell, believed), refused };
}

/** The newest session is the cell's; the one before is refused from here on. */
function enter(
  turn: Turn,
  known: CellEntry | undefined,
  { cellId: id, session, version, actor }: EnrolCell,
): CellEntry {
  const { tenant, now } = turn;
  const record: Cell = {
    tenant: tenant.record.id,
    id,
    session,
    keyId: known === undefined ? ownerOf(actor) : known.record.keyId,
    state: firstCellState,
    goneReason: null,
    withdrawn: known?.record.withdrawn ?? false,
    version,
    enrolledAt: now,
    changedAt: known?.record.state === "READY" ? known.record.changedAt : now,
    aliveBy: now + limits.cellAliveMs,
  };
  const cell = known ?? placeCell(turn, record);
  const { state: _first, ...change } = record;
  moveCell(turn, cell, "enrol", change);
  emitCell(turn, cell, "cell.enrolled");
  return cell;
}

/** Named twice, a binding that has ended once has ended. */
function byLease(bindings: readonly CellBinding[]): Map<string, CellBinding> {
  const believed = new Map<string, CellBinding>();
  for (const binding of bindings) {
    if (believed.get(binding.leaseId)?.endedAs == null) believed.set(binding.leaseId, binding);
  }
  return believed;
}

/** Ends what one side has ended. */
function reconcile(turn: Turn, cell: CellEntry, believed: ReadonlyMap<string, CellBinding>): void {
  for (const lease of leasesOfCell(turn.tenant, cell)) {
    if (lease.alive) reconcileOne(turn, lease, believed.get(lease.record.id) ?? null);
  }
}

function reconcileOne(turn: Turn, lease: LeaseEntry, binding: CellBinding | null): void {
  const { record } = lease;
  switch (record.state) {
    case "BINDING":
      // What is being taken down there cannot be set up again under the same lease.
      if (binding !== null && binding.endedAs !== null) bindFailed(turn, lease, lost);
      else if (binding === null && record.cellBy === null) awaitAgain(turn, lease);
      return;
    case "ACTIVE":
    case "HELD":
      // It is reserved all the same, until its agent is back or too late (L9).
      if (record.state === "HELD" && isTornDownInTime(binding)) {
        if (binding === null) holdTornDown(turn, lease);
        return;
      }
      // Nobody can use it any more, and the cell has nothing of it left that would have to be torn down.
      if (binding === null) return finishGone(turn, lease, "REVOKED", lost);
      if (binding.endedAs === null && !isAhead(binding, record)) return;
      return endLeases(turn, [lease], "REVOKED", lost);
    case "CLOSING":
      if (binding !== null) return;
      return finishGone(turn, lease, record.closingAs ?? "REVOKED", record.endReason);
    case "RELEASED":
    case "EXPIRED":
    case "REVOKED":
      throw new Error(`An ended lease is still in the index: ${record.id}`);
  }
}

/** The cell has nothing of it left, or is tearing down what ran out. */
function isTornDownInTime(binding: CellBinding | null): boolean {
  return binding === null || binding.endedAs === "lease_expired";
}

/** It was set up, and is to be set up once more before its manifest is granted. */
function awaitAgain(turn: Turn, lease: LeaseEntry): void {
  updateLease(turn, lease, { ...lease.record, cellBy: turn.now + limits.bindMs, coordinate: null });
}

/** A cell that knows of a later grant than we do, because we are restored from a backup: nothing here can be trusted. */
function isAhead({ generation, fence }: CellBinding, lease: Lease): boolean {
  return generation > lease.generation || fence > lease.fence;
}

function whatToDo(
  tenant: TenantEntry,
  cell: CellEntry,
  believed: ReadonlyMap<string, CellBinding>,
): Pick<CellEnrolled, "bind" | "update" | "teardown"> {
  const bind: Lease[] = [];
  const update: Lease[] = [];
  const teardown: { leaseId: string; code: string }[] = [];
  const alive = new Set<string>();
  for (const { record } of leasesOfCell(tenant, cell)) {
    alive.add(record.id);
    if (record.state === "BINDING") bind.push(record);
    else if (record.state === "CLOSING") teardown.push({ leaseId: record.id, code: endCodeOf(record) });
    // There is nothing to update where it was torn down (L9).
    else if (!record.tornDown) update.push(record);
  }
  for (const leaseId of believed.keys()) if (!alive.has(leaseId)) teardown.push({ leaseId, code: "lease_revoked" });
  return { bind, update, teardown };
}

/** The code with which its users are disconnected (G9). */
function endCodeOf({ closingAs, endReason }: Lease): string {
  if (endReason === "resource_fenced") return endReason;
  if (closingAs === "EXPIRED") return "lease_expired";
  return closingAs === "RELEASED" ? "lease_released" : "lease_revoked";
}
