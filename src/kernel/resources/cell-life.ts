/**
 * The one place where a cell's record changes, and what follows for its resources. A cell is READY from when it enrols
 * until it leaves or is not heard of in time; then nothing new is leased on what it hosts, and who waits for it is told
 * to pause. What is leased goes on: the cell ends it by its own clock (G11), and an end that nobody confirms is a fence.
 */

import type { CellEvent } from "../contract/events.ts";
import { limits } from "../contract/limits.ts";
import type { Cell, Millis, Resource } from "../contract/records.ts";
import { each } from "../deciding/conflicts.ts";
import { schedule, unschedule } from "../index/heap.ts";
import { textHash } from "../index/text-map.ts";
import {
  type CellEntry,
  type Claim,
  changed,
  createCellEntry,
  emit,
  type LeaseEntry,
  type RequestEntry,
  type ResourceEntry,
  type State,
  type TenantEntry,
} from "../memory/state.ts";
import type { ResourceName } from "../names/resource-name.ts";
import { serve } from "../requests/queue.ts";
import { endWait } from "../requests/request-life.ts";
import { unbarAll } from "../tasks/task-queue.ts";

/** Enters a cell, new or restored. */
export function placeCell(state: State, tenant: TenantEntry, record: Cell): CellEntry {
  const entry = createCellEntry(record);
  tenant.cells.set(record.id, entry);
  scheduleSilence(state, entry);
  return entry;
}

export function updateCell(state: State, entry: CellEntry, change: Partial<Cell>): void {
  entry.record = { ...entry.record, ...change };
  scheduleSilence(state, entry);
  changed(state, entry);
}

function scheduleSilence(state: State, entry: CellEntry): void {
  if (entry.record.state === "GONE") unschedule(state.ends, entry);
  else schedule(state.ends, entry, entry.record.aliveBy, textHash(entry.record.id));
}

export function emitCell(state: State, { record }: CellEntry, type: CellEvent["type"], now: Millis): void {
  emit(state, { type, tenant: record.tenant, at: now, cell: record });
}

/** Its session was heard of. One that was gone is back with it, as long as it is the same that was enrolled. */
export function hear(state: State, cell: CellEntry, now: Millis): void {
  const isBack = cell.record.state === "GONE";
  const aliveBy = now + limits.cellAliveMs;
  updateCell(state, cell, isBack ? { state: "READY", goneReason: null, changedAt: now, aliveBy } : { aliveBy });
  if (isBack) emitCell(state, cell, "cell.enrolled", now);
}

/** Nothing was heard of it in time. */
export function settleCell(state: State, tenant: TenantEntry, cell: CellEntry, now: Millis): void {
  loseCell(state, tenant, cell, "no heartbeat came in time", cell.record.session, now);
}

export function loseCell(
  state: State,
  tenant: TenantEntry,
  cell: CellEntry,
  goneReason: string,
  session: string,
  now: Millis,
): void {
  updateCell(state, cell, { state: "GONE", goneReason, session, changedAt: now });
  emitCell(state, cell, "cell.gone", now);
  readinessChanged(state, tenant, resourcesOf(tenant, cell), now);
}

/** By name, which is an order that a restored kernel finds again. */
export function resourcesOf({ resources }: TenantEntry, { record: { id } }: CellEntry): ResourceEntry[] {
  const hosted: ResourceEntry[] = [];
  for (const resource of resources.values()) if (resource.record.cell === id) hosted.push(resource);
  return hosted.sort((a, b) => (a.record.name < b.record.name ? -1 : 1));
}

/** All live leases on what it hosts, by fence: while a resource is in use, it changes neither its cell nor its kind. */
export function leasesOfCell(tenant: TenantEntry, cell: CellEntry): LeaseEntry[] {
  const leases: LeaseEntry[] = [];
  for (const { node } of resourcesOf(tenant, cell)) {
    for (const head of [node.shared, node.providing, node.exclusive]) {
      each(head, (item) => {
        if ((item as LeaseEntry).record.cell === cell.record.id) leases.push(item as LeaseEntry);
      });
    }
  }
  return leases.sort((a, b) => a.order - b.order);
}

/**
 * Why nothing can be set up on it now, in words; null: it can. A cell that was named by hand and never enrolled is
 * somebody's own program, for which a supervisor reports: whether it is there only its answer in time can tell.
 */
export function whyNotReady({ cells }: TenantEntry, { name, cell: id, fault }: Resource): string | null {
  const cell = id === null ? undefined : cells.get(id)?.record;
  if (cell === undefined) return null;
  if (cell.withdrawn) return `The cell ${cell.id} of ${name} was withdrawn; a supervisor can readmit it.`;
  if (cell.state === "GONE") return `The cell ${cell.id} of ${name} is gone: ${cell.goneReason ?? "no reason given"}.`;
  return fault === null ? null : `The cell ${cell.id} cannot serve ${name}: ${fault}.`;
}

/** Who waits for what is not ready any more is paused; what is ready is for whoever could use it. */
export function readinessChanged(
  state: State,
  tenant: TenantEntry,
  resources: readonly ResourceEntry[],
  now: Millis,
): void {
  const names: ResourceName[] = [];
  const paused = new Set<RequestEntry>();
  for (const resource of resources) {
    if (whyNotReady(tenant, resource.record) === null) names.push(resource.name);
    else addWaiters(paused, resource);
  }
  const isAnyReady = names.length > 0;
  for (const request of [...paused].sort((a, b) => a.record.arrival - b.record.arrival)) {
    names.push(...endWait(state, tenant, request, "PAUSED", "cell_not_ready", now));
  }
  serve(state, tenant, names, now);
  if (isAnyReady) unbarAll(state, tenant);
}

/** Of its very name: who waits for a pattern over it wants nothing from its cell. */
function addWaiters(requests: Set<RequestEntry>, { node }: ResourceEntry): void {
  const { waiting } = node;
  if (waiting === null) return;
  for (const head of [waiting.shared, waiting.providing, waiting.exclusive]) {
    each(head, (claim) => requests.add((claim as Claim).request));
  }
}
