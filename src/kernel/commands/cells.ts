/** What cells report of themselves, of what they host and of leases, and their withdrawal (G6, G7, G11, G12). */
import { checkValue, checkValues } from "../contract/bounds.ts";
import {
  type Actor,
  type CellEnded,
  type CellHeartbeat,
  type CellLeft,
  commands,
  type ReportBinding,
  type WithdrawCell,
} from "../contract/commands.ts";
import { only } from "../contract/field.ts";
import { limits } from "../contract/limits.ts";
import { type CellResource, cellResource, type Resource } from "../contract/records.ts";
import { refuse } from "../contract/refusals.ts";
import type { CellEnrolled, Refusal, Reply } from "../contract/replies.ts";
import { whyNoMemory } from "../deciding/admission.ts";
import { readName } from "../deciding/manifest.ts";
import { mayActAsCell, requireAbove } from "../memory/actors.ts";
import {
  type CellEntry,
  type LeaseEntry,
  nameOf,
  type RequestEntry,
  type ResourceEntry,
  type Turn,
} from "../memory/state.ts";
import type { ResourceName } from "../names/resource-name.ts";
import { question } from "../policies/matching.ts";
import { whyNotPermitted } from "../policies/permissions.ts";
import { liveLeasesOf } from "../requests/request-life.ts";
import { answerAfter, type Later, sweep } from "../requests/sweep.ts";
import {
  bindFailed,
  bound,
  emitCell,
  finishGone,
  hear,
  holdTornDown,
  leasesOfCell,
  loseCell,
  notReadyEnd,
  readinessChanged,
  resourcesOf,
  teardownFailed,
  tornDown,
} from "../resources/cell-life.ts";
import { updateCell } from "../resources/cell-states.ts";
import { addResource, changeResource, fence, isUsed, turnsAWait } from "../resources/resource-life.ts";
import { liveLease } from "./holding.ts";

export function reportBinding(turn: Turn, command: ReportBinding): Reply {
  const { cellId } = command;
  const cell = cellId === null ? null : findCell(turn, { actor: command.actor, cellId });
  const refusal = cell === null ? requireAbove(command.actor) : "code" in cell ? cell : null;
  if (refusal !== null) return refusal;
  const lease = liveLease(turn, command.leaseId);
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
  if (inventory !== null) takeInventory(turn, cell, inventory, command.actor);
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
  if (isExpired && command.failure === null) {
    // A late report of what was torn down before it is set up again (L9).
    if (lease.record.state === "BINDING" && command.generation < lease.record.generation) return { type: "done" };
    if (holdTornDown(turn, lease)) return { type: "done" };
  }
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
export function withdrawCell(turn: Turn, cell: CellEntry, command: WithdrawCell): Reply | Later<Reply> {
  const { tenant, now } = turn;
  if (!cell.record.withdrawn) {
    updateCell(turn, cell, { withdrawn: true, changedAt: now });
    emitCell(turn, cell, "cell.withdrawn");
  }
  readinessChanged(turn, resourcesOf(tenant, cell));
  const isMeant = (lease: LeaseEntry): boolean => lease.record.cell === cell.record.id;
  const clearing = sweep(turn, {
    find: (most) => {
      const leases = leasesOfCell(tenant, cell);
      if (leases.length > most) return null;
      const requests = new Set<RequestEntry>();
      for (const { request } of leases) if (request?.record.state === "BINDING") requests.add(request);
      return { requests: [...requests], leases: command.revoke ? leases : [] };
    },
    leaseEnd: (lease) => (command.revoke && isMeant(lease) ? { as: "REVOKED", reason: "cell_withdrawn" } : null),
    requestEnd: (request) => (liveLeasesOf(tenant, request).some(isMeant) ? notReadyEnd : null),
  });
  return answerAfter(turn, clearing, () => ({ type: "cell", cell: cell.record }));
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
  const asked = { ...question, action: "host", id: command.cellId } as const;
  return requireAbove(command.actor) ?? whyNotPermitted(turn, command.actor, asked, "cell") ?? findCell(turn, command);
}

export function findCell({ tenant }: Pick<Turn, "tenant">, { actor, cellId }: CellCommand): CellEntry | Refusal {
  const cell = tenant.cells.get(cellId);
  const refusal = mayActAsCell(cell, actor);
  if (refusal !== null) return refusal;
  return cell ?? refuse("cell_unknown", "There is no such cell; it enrols first.", { field: "cell" });
}

function staleSession(): Refusal {
  return refuse("stale_session", "Another process has enrolled as this cell, or it has left; enrol again.", {
    field: "session",
  });
}

type Refused = CellEnrolled["refused"];

/** What is stored as the cell says it; its other texts are cut. */
const kept = only(cellResource, "capacity", "driver", "hardware");
const notListed = "it is not in the cell's inventory";

/**
 * What a cell says that it hosts. Each resource is declared as its own, or refused alone: one bad line must not keep
 * the others from being leased. What it no longer names, or says it cannot serve, is not ready; what it has fenced is
 * fenced. It lifts neither a fence (that takes a reset, G7) nor a withdrawal (G12).
 */
export function takeInventory(turn: Turn, cell: CellEntry, inventory: readonly CellResource[], actor: Actor): Refused {
  const { tenant } = turn;
  const refused: { resource: string; message: string }[] = [];
  const listed = new Set<string>();
  const fences: { readonly name: ResourceName; readonly reason: string }[] = [];
  for (const said of inventory) {
    const name = readName(said.resource, "resource");
    const message = "code" in name ? name.detail : whyNotTaken(turn, cell, name, said, listed, actor);
    if (message !== null) refused.push({ resource: said.resource, message });
    if ("code" in name) continue;
    listed.add(name.text);
    const known = tenant.resources.get(name.text);
    if (message !== null && known?.record.cell !== cell.record.id) continue;
    // What is its own already is still heard of, though with the units that it had.
    const capacity = message === null ? said.capacity : (known?.record.capacity ?? null);
    declareHosted(turn, cell, name, { ...said, capacity });
    if (said.fenced !== null) fences.push({ name, reason: brief(said.fenced) });
  }
  const hosted = resourcesOf(tenant, cell);
  for (const resource of hosted) {
    if (!listed.has(resource.record.name)) change(turn, resource, { ...resource.record, fault: notListed });
  }
  for (const { name, reason } of fences) fence(turn, name, reason);
  readinessChanged(turn, hosted);
  return refused;
}

/** A sentence for the cell's operator; null: it is the cell's to declare. */
function whyNotTaken(
  turn: Turn,
  { record: { id } }: CellEntry,
  name: ResourceName,
  said: CellResource,
  listed: ReadonlySet<string>,
  actor: Actor,
): string | null {
  const { tenant } = turn;
  if (name.wild) return "A pattern cannot be hosted; name each resource.";
  if (listed.has(name.text)) return "It is named twice.";
  const asked = { ...question, action: "host", resource: name, id } as const;
  const refusal = checkValues(kept, said) ?? whyNotPermitted(turn, actor, asked, "resource");
  if (refusal !== null) return refusal.detail;
  const { capacity } = said;
  const known = tenant.resources.get(name.text);
  if (known === undefined) {
    const most = tenant.record.quotas.resourcesMax;
    if (tenant.resources.size >= most) return `The tenant may declare ${most} resources.`;
    const noMemory = whyNoMemory(tenant);
    if (noMemory !== null) return noMemory.detail;
  }
  const before = known?.record ?? null;
  const owner = before?.cell ?? null;
  if (owner !== null && owner !== id) return `It belongs to the cell ${owner}.`;
  if (before !== null && before.refillMs !== null)
    return "Its units come back with time; declare it without refill_ms.";
  const isOtherKind = (capacity === null) !== ((before?.capacity ?? null) === null) || owner === null;
  if (isOtherKind && isUsed(tenant, name)) return "It is leased or waited for as something else; free it first.";
  if (known !== undefined && capacity !== null && turnsAWait(tenant, known, capacity)) {
    return "With so few units a waiting request could deadlock; it keeps the units that it had.";
  }
  return null;
}

function declareHosted(
  turn: Turn,
  cell: CellEntry,
  name: ResourceName,
  { capacity, driver, hardware, ready, fault }: CellResource,
): void {
  const { tenant, now } = turn;
  const entry = tenant.resources.get(name.text) ?? addResource(tenant, name, now);
  const why = fault === null && !ready ? "it is not ready" : fault;
  const said = {
    capacity,
    cell: cell.record.id,
    driver,
    hardware: [...hardware],
    fault: why === null ? null : brief(why),
  };
  change(turn, entry, { ...entry.record, ...said });
}

/** A cell says the same again and again; only what is new is an event. */
function change(turn: Turn, entry: ResourceEntry, record: Resource): void {
  if (isSame(entry.record, record)) return;
  changeResource(turn, entry, record, "resource.declared");
}

function isSame(a: Resource, b: Resource): boolean {
  if (a.cell !== b.cell || a.capacity !== b.capacity || a.driver !== b.driver || a.fault !== b.fault) return false;
  return a.hardware.length === b.hardware.length && a.hardware.every((label, at) => label === b.hardware[at]);
}

/** A driver's text may be long; it is cut rather than refused. */
function brief(text: string): string {
  return text.slice(0, limits.reasonLengthMax);
}
