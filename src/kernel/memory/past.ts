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
 * Ends are filed under their names when somebody asks about the tenant's past: most leave `recent` before that, and cost
 * one small object. Names stand in a tree like that of the leases. A branch knows the time of what is newest below it, so that a search for a
 * pattern enters only what has changed.
 */
import { limits } from "../contract/limits.ts";
import { strengths, writes } from "../contract/predicates.ts";
import type { Lease, Millis } from "../contract/records.ts";
import type { Write } from "../contract/write-records.ts";
import { type Probe, search } from "../index/resource-search.ts";
import { createRoot, type Mark, type Node, nodeFor, setMark, touch } from "../index/resource-tree.ts";
import { nameCovers } from "../names/pattern.ts";
import { canonicalName, type ResourceName } from "../names/resource-name.ts";
import { changed, type Entry, type State, type TenantEntry } from "./state.ts";

/** One end of a lease, or of what could be written through it. */
export interface PastEntry extends Entry<"write"> {
  readonly kind: "write";
  /** Null until somebody asks about its tenant's past. */
  name: PastName | null;
  readonly writes: boolean;
  /** How many leases had ended by then. */
  readonly ordinal: number;
  /** Has a row of its own in the store, or gets one with this batch. */
  stored: boolean;
  /** Of the same name. */
  older: PastEntry | null;
  newer: PastEntry | null;
  /** The next younger one in `recent`. */
  next: PastEntry | null;
}

export interface PastName extends Mark {
  readonly text: string;
  readonly node: Node;
  newest: PastEntry | null;
  lastWrite: PastEntry | null;
}

/** Of all tenants. */
export interface Past {
  oldest: PastEntry | null;
  youngest: PastEntry | null;
  endedCount: number;
  /** Everything that ended since then is known. */
  from: Millis;
}

export interface TenantPast {
  readonly roots: Map<string, Node>;
  readonly names: Map<string, PastName>;
  readonly kept: Set<PastEntry>;
  /** Of `kept`, the longest kept first. One iterator for good: a new one would pass over all that was deleted before. */
  readonly longestKept: Iterator<PastEntry>;
  /** Ends that are not under their names yet, from `unfiledFrom` on. Most are forgotten before anybody asks. */
  unfiled: PastEntry[];
  unfiledFrom: number;
}

export function createTenantPast(): TenantPast {
  const kept = new Set<PastEntry>();
  return { roots: new Map(), names: new Map(), kept, longestKept: kept.values(), unfiled: [], unfiledFrom: 0 };
}

/** What the register needs of a turn; restoring has no more. */
export interface Place {
  readonly state: State;
  readonly tenant: TenantEntry;
}

/** A lease has ended, and is counted. */
export function noteEnd(place: Place, lease: Lease): void {
  const { past } = place.tenant;
  const write = writeOf(lease, lease.endedAt ?? 0, lease.version, lease.claimBy === null);
  const entry = addRecent(place, write);
  past.unfiled.push(entry);
  // What supersedes a kept write deletes its row, which belongs into this step.
  if (write.version !== null || past.kept.size > 0) file(place);
  forgetOld(place.state);
}

/** L15: a lease lives on, but weaker or in other hands. */
export function noteHandover(place: Place, lease: Lease, at: Millis, version: string | null): void {
  const entry = addRecent(place, writeOf(lease, at, version, true));
  place.tenant.past.unfiled.push(entry);
  file(place);
  store(place.state, entry);
}

function writeOf(lease: Lease, at: Millis, version: string | null, looked: boolean): Write {
  const { tenant, resource, predicate, agentId, holder, fence } = lease;
  return { tenant, resource, predicate, agentId, holder, at, fence, version, looked };
}

function addRecent({ state: { past } }: Place, record: Write): PastEntry {
  const entry = createEntry(record, past.endedCount);
  if (past.youngest === null) past.oldest = entry;
  else past.youngest.next = entry;
  past.youngest = entry;
  return entry;
}

/** A record that was stored by itself. To be called in the order of time, with the ends in between. */
export function restoreWrite(place: Place, record: Write): PastEntry {
  const { past } = place.state;
  const isRecent = record.at >= past.from;
  const entry = isRecent ? addRecent(place, record) : createEntry(record, past.endedCount);
  place.tenant.past.unfiled.push(entry);
  file(place);
  entry.stored = true;
  if (!isRecent) place.tenant.past.kept.add(entry);
  return entry;
}

function createEntry(record: Write, ordinal: number): PastEntry {
  return {
    kind: "write",
    record,
    alive: true,
    row: 0,
    changedIn: 0,
    bytes: 0,
    name: null,
    writes: writes(record.predicate),
    ordinal,
    stored: false,
    older: null,
    newer: null,
    next: null,
  };
}

/** Puts what has ended since the last time under its names. */
function file(place: Place): void {
  const { past } = place.tenant;
  for (const entry of takeUnfiled(past)) {
    const superseded = fileOne(past, entry);
    if (superseded !== null && past.kept.has(superseded)) forget(place, superseded);
  }
}

/** Before a search. Nothing is kept as long as something is unfiled, so that nothing can be superseded that has a row. */
function fileAll(past: TenantPast): void {
  for (const entry of takeUnfiled(past)) fileOne(past, entry);
}

function takeUnfiled(past: TenantPast): readonly PastEntry[] {
  const { unfiled, unfiledFrom } = past;
  if (unfiled.length === 0) return unfiled;
  past.unfiled = [];
  past.unfiledFrom = 0;
  return unfiledFrom === 0 ? unfiled : unfiled.slice(unfiledFrom);
}

/** Returns the write that it supersedes. To be called in the order of the ends. */
function fileOne(past: TenantPast, entry: PastEntry): PastEntry | null {
  const { record } = entry;
  const name = nameFor(past, record.resource);
  entry.name = name;
  entry.older = name.newest;
  if (name.newest !== null) name.newest.newer = entry;
  name.newest = entry;
  if (!entry.writes) return null;
  touch(name.node, record.at);
  const { lastWrite } = name;
  if (lastWrite !== null && !isAfter(record, lastWrite.record)) return null;
  name.lastWrite = entry;
  return lastWrite;
}

function nameFor(past: TenantPast, text: string): PastName {
  const known = past.names.get(text);
  if (known !== undefined) return known;
  const parsed = canonicalName(text);
  const root = past.roots.get(parsed.type) ?? createRoot();
  past.roots.set(parsed.type, root);
  const name: PastName = { marksNode: true, text, node: nodeFor(root, parsed), newest: null, lastWrite: null };
  setMark(name.node, name);
  past.names.set(text, name);
  return name;
}

/** Of all tenants, what is no longer among the youngest ends. */
export function forgetOld(state: State): void {
  forgetEnds(state, 0, limits.endsRememberedMax, Number.POSITIVE_INFINITY);
}

/** What ended before a time or is not among the youngest leaves `recent`; how many have. */
export function forgetEnds(state: State, before: Millis, keep: number, atMost: number): number {
  const { past } = state;
  let count = 0;
  for (let { oldest } = past; oldest !== null && count < atMost; count++) {
    if (oldest.record.at >= before && oldest.ordinal > past.endedCount - keep) break;
    const tenant = state.tenants.get(oldest.record.tenant);
    past.oldest = oldest.next;
    if (past.oldest === null) past.youngest = null;
    past.from = oldest.record.at + 1;
    if (tenant !== undefined) leaveRecent({ state, tenant }, oldest);
    oldest = past.oldest;
  }
  return count;
}

/** What nobody asked about leaves without a trace; of the rest, the last version of each name is kept (A5). */
function leaveRecent(place: Place, entry: PastEntry): void {
  const { past } = place.tenant;
  entry.next = null;
  if (entry.name === null) return dropUnfiled(past);
  file(place);
  const { kept } = past;
  if (entry.name.lastWrite !== entry || entry.record.version === null) return forget(place, entry);
  kept.add(entry);
  store(place.state, entry);
  if (kept.size <= limits.lastWritesMax) return;
  const { value: first } = past.longestKept.next();
  if (first !== undefined) forget(place, first);
}

/** The first of them: they leave in the order in which they came. */
function dropUnfiled(past: TenantPast): void {
  past.unfiledFrom++;
  if (past.unfiledFrom < unfiledDroppedMax) return;
  past.unfiled = past.unfiled.slice(past.unfiledFrom);
  past.unfiledFrom = 0;
}

/** A list is cut rarely, because that copies what is left of it. */
const unfiledDroppedMax = 65_536;

function store(state: State, entry: PastEntry): void {
  if (entry.stored) return;
  entry.stored = true;
  changed({ state }, entry);
}

function forget({ state, tenant }: Place, entry: PastEntry): void {
  const { name, older, newer } = entry;
  const { past } = tenant;
  if (name === null) throw new Error(`Kept without a name: ${entry.record.resource}`);
  past.kept.delete(entry);
  entry.alive = false;
  if (entry.stored) changed({ state }, entry);
  if (newer === null) name.newest = older;
  else newer.older = older;
  if (older !== null) older.newer = newer;
  if (name.lastWrite === entry) name.lastWrite = null;
  if (name.newest !== null) return;
  past.names.delete(name.text);
  if (setMark(name.node, null)) past.roots.delete(canonicalName(name.text).type);
}

/**
 * By time; within a millisecond by fence, which is how conflicting leases followed each other; and one lease only becomes
 * weaker. So a restart finds the same order.
 */
export function isAfter(a: Moment, b: Moment): boolean {
  if (a.at !== b.at) return a.at > b.at;
  return a.fence !== b.fence ? a.fence > b.fence : strengths[a.predicate] < strengths[b.predicate];
}

export type Moment = Pick<Write, "at" | "fence" | "predicate">;

/** The newest write, by anybody, that overlaps with the name. */
export function newestWrite({ past }: TenantEntry, name: ResourceName): Write | null {
  fileAll(past);
  let newest: Write | null = null;
  visitNames(past, name, {
    visit(node) {
      const { lastWrite = null } = (node.mark as PastName | null) ?? {};
      if (lastWrite !== null && (newest === null || isAfter(lastWrite.record, newest))) newest = lastWrite.record;
      return false;
    },
    below: (_node, branch) => (newest !== null && branch.newest < newest.at ? "skip" : "enter"),
  });
  return newest;
}

/** The end of the holder's own last lease on all of the name: until then it could see what others did to it. */
export function lastLook({ past }: TenantEntry, name: ResourceName, holder: string): Write | null {
  fileAll(past);
  let last: Write | null = null;
  const look = (visited: PastName): void => {
    for (let entry = visited.newest; entry !== null; entry = entry.older) {
      if (!entry.record.looked || entry.record.holder !== holder) continue;
      if (last === null || isAfter(entry.record, last)) last = entry.record;
      return;
    }
  };
  const own = past.names.get(name.text);
  if (own !== undefined) look(own);
  // A pattern that covers the name hangs on the way to it.
  visitNames(past, name, {
    visit(node) {
      const visited = node.mark as PastName | null;
      if (visited === null || visited === own) return false;
      if (nameCovers(canonicalName(visited.text), name)) look(visited);
      return false;
    },
    below: () => "skip",
  });
  return last;
}

/** Everything on names that overlap, newest first by name, from `since` on; true from `act` ends the search. */
export function eachSince(
  { past }: TenantEntry,
  name: ResourceName,
  since: () => Millis,
  act: (entry: PastEntry) => boolean,
): void {
  fileAll(past);
  visitNames(past, name, {
    visit(node) {
      for (let entry = (node.mark as PastName | null)?.newest ?? null; entry !== null; entry = entry.older) {
        if (entry.record.at < since()) return false;
        if (act(entry)) return true;
      }
      return false;
    },
    below: (_node, branch) => (branch.newest < since() ? "skip" : "enter"),
  });
}

function visitNames(past: TenantPast, name: ResourceName, probe: Probe): void {
  const root = past.roots.get(name.type);
  if (root !== undefined) search(root, name, probe);
}
