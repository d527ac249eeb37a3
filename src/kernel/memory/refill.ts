/**
 * G15: units that come back with time. A grant spends them, and they come back `refillMs` later, whatever becomes of the
 * lease. So in no span of `refillMs` are more units granted than the resource has.
 *
 *   capacity 3, refillMs 60 s        granted at   0 s, 20 s, 50 s
 *                                    back at     60 s, 80 s, 110 s      the fourth is granted at 60 s
 *
 * All that is kept is when how many come back. A resource of very many units has few such moments: a unit comes back at
 * the next one, never early and at most a 64th of `refillMs` late.
 */
import { limits } from "../contract/limits.ts";
import type { Millis, Resource } from "../contract/records.ts";
import type { SpentUnits } from "../contract/resource-records.ts";
import { rankIn, removeFrom } from "../index/heap.ts";
import { textHash } from "../names/resource-name.ts";
import { changed, freeName, type LeaseEntry, type ResourceEntry, type State, type Turn } from "./state.ts";

/** A lease on it holds none of its units: they are spent. */
export function isRefilled({ record }: ResourceEntry): boolean {
  return record.refillMs !== null;
}

/** C6: a lease at this name, new or restored, holds units, unless they come back with time. */
export function holdUnits(resource: ResourceEntry, units: number): void {
  if (!isRefilled(resource)) resource.heldUnits += units;
}

/** At the latest `laterMs` from now: until its cells have set it up, a manifest is not granted (G6). */
export function spendUnits(turn: Turn, resource: ResourceEntry, units: number, laterMs: Millis): void {
  const { refillMs, spent } = resource.record;
  if (refillMs === null) return;
  setSpent(turn, resource, withSpent(spent, { at: backFrom(resource.record, turn.now + laterMs), units }));
}

/**
 * A manifest is granted now that its cells have set it up: what it spent comes back so long after this, and not after the
 * latest moment at which it could have been. Where the rate has changed meanwhile, that later moment stays.
 */
export function spentNow(turn: Turn, { node, record: lease }: LeaseEntry): void {
  const resource = (node?.mark ?? null) as ResourceEntry | null;
  if (resource === null || !isRefilled(resource)) return;
  const { units, acquiredAt } = lease;
  const { spent } = resource.record;
  const at = backFrom(resource.record, acquiredAt + limits.bindMs);
  const place = spent.findIndex((one) => one.at === at && one.units >= units);
  const known = spent[place];
  if (known === undefined) return;
  const left =
    known.units === units ? spent.toSpliced(place, 1) : spent.with(place, { at, units: known.units - units });
  setSpent(turn, resource, withSpent(left, { at: backFrom(resource.record, turn.now), units }));
}

/** Nobody knows what was granted since a backup was taken: until it would be back, nothing is (S6). */
export function spendAll(turn: Turn, resource: ResourceEntry): void {
  const { capacity, refillMs } = resource.record;
  if (refillMs === null || capacity === null) return;
  setSpent(turn, resource, [{ at: backFrom(resource.record, turn.now), units: capacity }]);
}

/** The first units are back: those who wait for them are served at the end of the turn (W3, W14). */
export function settleRefill(turn: Turn, resource: ResourceEntry): void {
  setSpent(turn, resource, resource.record.spent.slice(1));
  freeName(turn, resource.name);
  if (resource.parked !== null) turn.state.consequences.push({ type: "units_freed", resource });
}

/**
 * Of a resource that was restored or declared: what is not back yet counts, and has its deadline. In the same millisecond
 * leases end first.
 */
export function scheduleRefill({ ends }: State, resource: ResourceEntry): ResourceEntry {
  const { refillMs, spent, name } = resource.record;
  const [next] = spent;
  if (refillMs !== null) resource.heldUnits = spent.reduce((sum, { units }) => sum + units, 0);
  if (next === undefined) removeFrom(ends, resource);
  else rankIn(ends, resource, next.at, Number.MAX_SAFE_INTEGER - (textHash(name) >>> 0));
  return resource;
}

/** When this many units can be back; null: they do not come back with time. */
export function unitsBackAt({ record: { refillMs, spent } }: ResourceEntry, lacking: number): Millis | null {
  if (refillMs === null) return null;
  let units = 0;
  for (const one of spent) {
    units += one.units;
    if (units >= lacking) return one.at;
  }
  return spent.at(-1)?.at ?? null;
}

function backFrom({ capacity, refillMs }: Resource, now: Millis): Millis {
  const span = refillMs ?? 0;
  const apart = (capacity ?? 0) <= limits.refillMomentsMax ? 1 : Math.ceil(span / limits.refillMomentsMax);
  return Math.ceil((now + span) / apart) * apart;
}

/** In order. After changes of `refillMs` there may be more moments than one span has; then units share a later one. */
function withSpent(spent: readonly SpentUnits[], { at, units }: SpentUnits): readonly SpentUnits[] {
  const later = spent.findIndex((one) => one.at >= at);
  const place = later < 0 ? spent.length : later;
  const isFull = spent.length >= 2 * limits.refillMomentsMax;
  const shared = spent[place] ?? (isFull ? spent.at(-1) : undefined);
  if (shared === undefined || (shared.at !== at && !isFull)) return spent.toSpliced(place, 0, { at, units });
  return spent.with(later < 0 ? -1 : later, { at: Math.max(shared.at, at), units: shared.units + units });
}

function setSpent(turn: Turn, resource: ResourceEntry, spent: readonly SpentUnits[]): void {
  resource.record = { ...resource.record, spent };
  scheduleRefill(turn.state, resource);
  changed(turn, resource);
}
