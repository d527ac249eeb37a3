/**
 * What ended, was downgraded or was transferred, by name: the register of last writes (A4, A5). It knows the youngest ended
 * leases of all tenants (`recent`), and of each name the last version for much longer (`kept`).
 *
 *   a lease ends ──► recent ──── 65,536 ends later ───► kept         if it is the last write of its name, with a version
 *                      │                                  │
 *                      │ anything else                    │ superseded, or one of too many
 *                      ▼                                  ▼
 *                  forgotten: `from` moves on         forgotten
 *
 * `recent` costs no writing: the store has these leases among its ended ones, and a start reads them there. An entry that is
 * kept is a record of its own, as is one of a lease that lives on (downgraded, transferred).
 *
 * Kept names stand in a tree like that of the leases. A branch knows the time of what is newest below it, so that a search
 * for a pattern enters only what has changed.
 */
import { limits } from "../contract/limits.ts";
import { writing } from "../contract/predicates.ts";
import type { Lease, Millis } from "../contract/records.ts";
import type { Write } from "../contract/write-records.ts";
import { type Probe, search } from "../index/resource-search.ts";
import { createRoot, type Mark, type Node, nodeFor, setMark, touch } from "../index/resource-tree.ts";
import { nameCovers } from "../names/pattern.ts";
import { canonicalName, type ResourceName, textHash } from "../names/resource-name.ts";
import { isAfter, type RecentEnds, type StoredWrite } from "./recent-ends.ts";
import { changed, type State, type TenantEntry } from "./state.ts";

export { isAfter, type Moment } from "./recent-ends.ts";

/** The last version of a name. */
interface Kept extends Mark {
  readonly node: Node;
  readonly handle: StoredWrite;
}

/** Of all tenants. */
export interface Past {
  readonly recent: RecentEnds;
  endedCount: number;
  /** Everything that ended since then is known. */
  from: Millis;
}

export interface TenantPast {
  /** Where the hashes of its names begin. */
  readonly seed: number;
  readonly roots: Map<string, Node>;
  readonly kept: Map<string, Kept>;
  /** Of `kept`, the longest kept first. One iterator for good: a new one would pass over all that was deleted before. */
  readonly longestKept: Iterator<Kept>;
}

export function createTenantPast(tenantId: string): TenantPast {
  const kept = new Map<string, Kept>();
  return { seed: textHash(tenantId), roots: new Map(), kept, longestKept: kept.values() };
}

/** What the register needs of a turn; restoring has no more. */
export interface Place {
  readonly state: State;
  readonly tenant: TenantEntry;
}

/** A lease has ended, and is counted. */
export function noteEnd({ state, tenant }: Place, lease: Lease): void {
  const { past } = state;
  past.recent.add(tenant, lease, lease.endedAt ?? 0, lease.version, lease.claimBy === null, past.endedCount);
  forgetOld(state);
}

/** L15: a lease lives on, but weaker or in other hands. */
export function noteHandover({ state, tenant }: Place, lease: Lease, at: Millis, version: string | null): void {
  const { recent, endedCount } = state.past;
  const number = recent.add(tenant, lease, at, version, true, endedCount);
  const handle = createHandle(recent.recordOf(number));
  recent.setStored(number, handle);
  changed({ state }, handle);
}

/** A record that was stored by itself. To be called in the order of time, with the ends in between. */
export function restoreWrite({ state, tenant }: Place, record: Write): StoredWrite {
  const { recent, endedCount, from } = state.past;
  const handle = createHandle(record);
  if (record.at < from) keep(tenant, handle);
  else recent.setStored(recent.add(tenant, record, record.at, record.version, record.looked, endedCount), handle);
  return handle;
}

function createHandle(record: Write): StoredWrite {
  return { kind: "write", record, alive: true, row: 0, changedIn: 0, bytes: 0 };
}

/** Of all tenants, what is no longer among the youngest ends. */
export function forgetOld(state: State): void {
  forgetEnds(state, 0, limits.endsRememberedMax, Number.POSITIVE_INFINITY);
}

/** What ended before a time or is not among the youngest leaves `recent`; how many have. */
export function forgetEnds(state: State, before: Millis, keepMax: number, atMost: number): number {
  const { past } = state;
  const { recent } = past;
  let count = 0;
  for (; recent.first < recent.end && count < atMost; count++) {
    const { first } = recent;
    if (recent.at(first) >= before && recent.ordinalOf(first) > past.endedCount - keepMax) break;
    past.from = recent.at(first) + 1;
    const tenant = recent.tenantOf(first);
    if (tenant !== null) leaveRecent({ state, tenant }, first);
    recent.forgetFirst();
  }
  return count;
}

/** The last version of each name is kept (A5), and what has a row of its own loses it. The rest leaves without a trace. */
function leaveRecent({ state, tenant }: Place, number: number): void {
  const { recent } = state.past;
  const { kept } = tenant.past;
  const stored = recent.storedOf(number);
  if (stored === null && kept.size === 0 && recent.versionOf(number) === null) return;
  const record = recent.recordOf(number);
  const before = kept.get(record.resource)?.handle;
  const isSuperseded = !writing[record.predicate] || (before !== undefined && isAfter(before.record, record));
  if (!isSuperseded && before !== undefined) forget({ state, tenant }, before);
  if (isSuperseded || record.version === null || !recent.isLastWrite(number)) {
    if (stored !== null) drop(state, stored);
    return;
  }
  const handle = stored ?? createHandle(record);
  if (stored === null) changed({ state }, handle);
  keep(tenant, handle);
  if (kept.size <= limits.lastWritesMax) return;
  const { value: longest } = tenant.past.longestKept.next();
  if (longest !== undefined) forget({ state, tenant }, longest.handle);
}

function keep({ past }: TenantEntry, handle: StoredWrite): void {
  const { resource, at } = handle.record;
  const name = canonicalName(resource);
  const root = past.roots.get(name.type) ?? createRoot();
  past.roots.set(name.type, root);
  const kept: Kept = { marksNode: true, node: nodeFor(root, name), handle };
  setMark(kept.node, kept);
  touch(kept.node, at);
  past.kept.set(resource, kept);
}

function forget({ state, tenant: { past } }: Place, handle: StoredWrite): void {
  const { resource } = handle.record;
  const kept = past.kept.get(resource);
  past.kept.delete(resource);
  drop(state, handle);
  if (kept !== undefined && setMark(kept.node, null)) past.roots.delete(canonicalName(resource).type);
}

/** Deletes its row. */
function drop(state: State, handle: StoredWrite): void {
  handle.alive = false;
  changed({ state }, handle);
}

/** Every write that has a row of its own. */
export function* storedWrites({ past: { recent } }: State): Generator<StoredWrite> {
  yield* recent.allStored();
}

/** Those of one tenant that are no longer recent. */
export function* keptWrites({ past }: TenantEntry): Generator<StoredWrite> {
  for (const { handle } of past.kept.values()) yield handle;
}

/** The newest write, by anybody, that overlaps with the name. */
export function newestWrite({ state, tenant }: Place, name: ResourceName): Write | null {
  let newest: Write | null = null;
  const compare = (write: Write): boolean => {
    if (newest === null || isAfter(write, newest)) newest = write;
    return false;
  };
  const known = (): Millis => newest?.at ?? Number.NEGATIVE_INFINITY;
  state.past.recent.eachWrite(tenant, name, known, compare);
  eachKept(tenant, name, known, compare);
  return newest;
}

/** The end of the holder's own last lease on all of the name: until then it could see what others did to it. */
export function lastLook({ state, tenant }: Place, name: ResourceName, holder: string): Write | null {
  // What is kept is older than what is recent.
  const recent = state.past.recent.lastLook(tenant, name, holder);
  if (recent !== null) return recent;
  let last: Write | null = null;
  const look = (write: Write): void => {
    if (!write.looked || write.holder !== holder) return;
    if (write.resource !== name.text && !nameCovers(canonicalName(write.resource), name)) return;
    if (last === null || isAfter(write, last)) last = write;
  };
  // A pattern that covers the name hangs on the way to it.
  visitKept(tenant, name, {
    visit(node) {
      if (node.mark !== null) look((node.mark as Kept).handle.record);
      return false;
    },
    below: () => "skip",
  });
  return last;
}

/** Every write on names that overlap from `since` on; true from `act` ends the search. One may come twice. */
export function eachSince(place: Place, name: ResourceName, since: () => Millis, act: (write: Write) => boolean): void {
  let isOver = false;
  place.state.past.recent.eachWrite(place.tenant, name, since, (write) => {
    isOver = act(write);
    return isOver;
  });
  if (!isOver) eachKept(place.tenant, name, since, act);
}

function eachKept(tenant: TenantEntry, name: ResourceName, since: () => Millis, act: (write: Write) => boolean): void {
  visitKept(tenant, name, {
    visit(node) {
      if (node.mark === null) return false;
      const { record } = (node.mark as Kept).handle;
      return record.at >= since() && act(record);
    },
    below: (_node, branch) => (branch.newest < since() ? "skip" : "enter"),
  });
}

function visitKept({ past }: TenantEntry, name: ResourceName, probe: Probe): void {
  const root = past.roots.get(name.type);
  if (root !== undefined) search(root, name, probe);
}
