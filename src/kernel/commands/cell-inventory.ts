/**
 * What a cell says that it hosts. Each resource is declared as its own, or refused alone: one bad line must not keep
 * the others from being leased. What it no longer names, or says it cannot serve, is not ready; what it has fenced is
 * fenced. It lifts neither a fence (that takes a reset, G7) nor a withdrawal (G12).
 */

import { checkValues } from "../contract/bounds.ts";
import { only } from "../contract/field.ts";
import { limits } from "../contract/limits.ts";
import { type CellResource, cellResource, type Resource } from "../contract/records.ts";
import type { CellEnrolled } from "../contract/replies.ts";
import { readName } from "../deciding/manifest.ts";
import { type CellEntry, changed, type ResourceEntry, type TenantEntry, type Turn } from "../memory/state.ts";
import type { ResourceName } from "../names/resource-name.ts";
import { readinessChanged, resourcesOf } from "../resources/cell-life.ts";
import { addResource, emitResource, fence, isUsed, turnsAWait } from "../resources/resource-life.ts";

type Refused = CellEnrolled["refused"];

/** What is stored as the cell says it; its other texts are cut. */
const kept = only(cellResource, "capacity", "driver", "hardware");
const notListed = "it is not in the cell's inventory";

export function takeInventory(turn: Turn, cell: CellEntry, inventory: readonly CellResource[]): Refused {
  const { tenant } = turn;
  const refused: { resource: string; message: string }[] = [];
  const listed = new Set<string>();
  const fences: { readonly name: ResourceName; readonly reason: string }[] = [];
  for (const said of inventory) {
    const name = readName(said.resource, "resource");
    const message = "code" in name ? name.detail : whyNotTaken(tenant, cell, name, said, listed);
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
  tenant: TenantEntry,
  { record: { id } }: CellEntry,
  name: ResourceName,
  said: CellResource,
  listed: ReadonlySet<string>,
): string | null {
  if (name.wild) return "A pattern cannot be hosted; name each resource.";
  if (listed.has(name.text)) return "It is named twice.";
  const refusal = checkValues(kept, said);
  if (refusal !== null) return refusal.detail;
  const { capacity } = said;
  const known = tenant.resources.get(name.text);
  if (known === undefined) {
    const most = tenant.record.quotas.resourcesMax;
    if (tenant.resources.size >= most) return `The tenant may declare ${most} resources.`;
  }
  const before = known?.record ?? null;
  const owner = before?.cell ?? null;
  if (owner !== null && owner !== id) return `It belongs to the cell ${owner}.`;
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
  entry.record = record;
  changed(turn, entry);
  emitResource(turn, entry, "resource.declared");
}

function isSame(a: Resource, b: Resource): boolean {
  if (a.cell !== b.cell || a.capacity !== b.capacity || a.driver !== b.driver || a.fault !== b.fault) return false;
  return a.hardware.length === b.hardware.length && a.hardware.every((label, at) => label === b.hardware[at]);
}

/** A driver's text may be long; it is cut rather than refused. */
function brief(text: string): string {
  return text.slice(0, limits.reasonLengthMax);
}
