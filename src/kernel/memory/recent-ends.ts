/**
 * The youngest ends of all tenants, for observation updates (A4, A5). They stand in columns, because each end of a lease
 * comes here and few are ever asked for: an object for each would be copied by several garbage collections.
 *
 *   first                        filedTo        end
 *     ▼                             ▼            ▼        ends have numbers, which only grow;
 *   ──┬───┬───┬───┬───┬───┬───┬───┬───┬───┬───┬───        the slot of one is its number modulo the size of the columns
 *     └───┴───┴───┴───┴───┴───┴───┴───┴───┴───┘
 *
 * Those before `filedTo` stand in chains, newest first. A hash table has the head of each. An end is linked into
 *
 *   below    a write: of every folder on the way to its name, and of the name itself. A pattern ends with its last
 *            literal segment, so that all that can be below `/src` is found from `/src`.
 *   exact    a write: of its whole name, or of the folder where its pattern begins.
 *   looks    any end: the same, of its holder.
 *
 * Different names may share a chain, so that each hit is compared with the name. What was forgotten is still linked; a
 * chain is over where its links are older than the oldest end.
 */
import { type Predicate, predicates, strengths, writing } from "../contract/predicates.ts";
import type { Lease, Millis } from "../contract/records.ts";
import type { Write } from "../contract/write-records.ts";
import { nameCovers, namesOverlap } from "../names/pattern.ts";
import { canonicalName, hashNext, type ResourceName, resourceNameLimits } from "../names/resource-name.ts";
import type { Entry, TenantEntry } from "./state.ts";

/** The handle of a write that has a row of its own in the store, or gets one with this batch. */
export interface StoredWrite extends Entry<"write"> {
  readonly kind: "write";
}

/** What an end is made of. */
export type End = Pick<Lease, "resource" | "predicate" | "agentId" | "holder" | "fence">;

interface Extra {
  readonly agentId: string;
  readonly version: string | null;
  readonly stored: StoredWrite | null;
}

const noExtra = { agentId: null, version: null, stored: null };
const lookedBit = 0x80;
const placeOf = Object.fromEntries(predicates.map((predicate, at) => [predicate, at])) as Record<Predicate, number>;

const slotsAtFirst = 1_024;
/** Links for each end that there is room for, before the ring of links grows. */
const linksPerSlot = 8;
const nothing = -1;

const slash = 0x2f;
const colon = 0x3a;
const star = 0x2a;
const questionMark = 0x3f;
/** Follow a prefix in the hashes of chains. No literal name has them. */
const exactMark = 0x01;
const lookMark = 0x02;

/** Go on; this chain is over; the search is over. */
type Visited = "next" | "over" | "stop";

export class RecentEnds {
  /** The number of the oldest one, and the one after the youngest. */
  first = 0;
  end = 0;
  /** `ordinal` of the oldest; infinity: there is none. A field, because each end of a task's lease reads it. */
  oldestOrdinal = Number.POSITIVE_INFINITY;
  private filedTo = 0;
  private mask = slotsAtFirst - 1;
  private tenants: (TenantEntry | null)[] = new Array(slotsAtFirst).fill(null);
  private resources: string[] = new Array(slotsAtFirst).fill("");
  private holders: string[] = new Array(slotsAtFirst).fill("");
  /** The place of the predicate in `predicates`, and `lookedBit`. */
  private kinds = new Uint8Array(slotsAtFirst);
  private times = new Float64Array(slotsAtFirst);
  private fences = new Float64Array(slotsAtFirst);
  /** How many leases had ended by then. */
  private ordinals = new Float64Array(slotsAtFirst);
  /** Where an end's links begin. */
  private linkStarts = new Float64Array(slotsAtFirst);
  /** What few of them have, by number. */
  private readonly extras = new Map<number, Extra>();

  private heads = new Float64Array(2 * slotsAtFirst).fill(nothing);
  private linkMask = linksPerSlot * slotsAtFirst - 1;
  private linkNext = new Float64Array(linksPerSlot * slotsAtFirst);
  private linkOf = new Float64Array(linksPerSlot * slotsAtFirst);
  private linkEnd = 0;

  /** The hashes of a name's literal prefixes, its root first; see `readPrefixes`. */
  private readonly prefixes = new Int32Array(resourceNameLimits.segmentsMax + 1);
  private prefixCount = 0;
  private prefixWild = false;

  add(tenant: TenantEntry, end: End, at: Millis, version: string | null, looked: boolean, ordinal: number): number {
    if (this.end - this.first > this.mask) this.grow();
    if (this.first === this.end) this.oldestOrdinal = ordinal;
    const number = this.end++;
    const slot = number & this.mask;
    const { agentId, holder } = end;
    this.tenants[slot] = tenant;
    this.resources[slot] = end.resource;
    this.holders[slot] = holder;
    this.kinds[slot] = placeOf[end.predicate] | (looked ? lookedBit : 0);
    this.times[slot] = at;
    this.fences[slot] = end.fence;
    this.ordinals[slot] = ordinal;
    // An agent is its own holder.
    if (version !== null || agentId !== holder) this.extras.set(number, { agentId, version, stored: null });
    return number;
  }

  at(number: number): Millis {
    return this.times[number & this.mask] ?? 0;
  }

  ordinalOf(number: number): number {
    return this.ordinals[number & this.mask] ?? 0;
  }

  tenantOf(number: number): TenantEntry | null {
    return this.tenants[number & this.mask] ?? null;
  }

  versionOf(number: number): string | null {
    return this.extras.get(number)?.version ?? null;
  }

  storedOf(number: number): StoredWrite | null {
    return this.extras.get(number)?.stored ?? null;
  }

  setStored(number: number, stored: StoredWrite): void {
    const { agentId, version } = stored.record;
    this.extras.set(number, { agentId, version, stored });
  }

  recordOf(number: number): Write {
    const slot = number & this.mask;
    const { agentId, version, stored } = this.extras.get(number) ?? noExtra;
    if (stored !== null) return stored.record;
    const holder = this.holders[slot] ?? "";
    return {
      tenant: this.tenants[slot]?.record.id ?? "",
      resource: this.resources[slot] ?? "",
      predicate: this.predicateOf(slot),
      agentId: agentId ?? holder,
      holder,
      at: this.times[slot] ?? 0,
      fence: this.fences[slot] ?? 0,
      version,
      looked: this.isLooked(slot),
    };
  }

  private predicateOf(slot: number): Predicate {
    return predicates[(this.kinds[slot] ?? 0) & ~lookedBit] ?? "CONSUMES";
  }

  private isLooked(slot: number): boolean {
    return ((this.kinds[slot] ?? 0) & lookedBit) !== 0;
  }

  /** Every stored one, the oldest first. */
  *allStored(): Generator<StoredWrite> {
    for (const { stored } of this.extras.values()) if (stored !== null) yield stored;
  }

  forgetFirst(): void {
    if (this.extras.size > 0) this.extras.delete(this.first);
    this.first++;
    this.oldestOrdinal = this.first === this.end ? Number.POSITIVE_INFINITY : this.ordinalOf(this.first);
  }

  /**
   * The writes on names that overlap, chain by chain, and newest first in each. Of a chain those before `since()` are
   * left out. True from `act` ends the search. One may come twice.
   */
  eachWrite(tenant: TenantEntry, name: ResourceName, since: () => Millis, act: (write: Write) => boolean): void {
    this.file();
    this.readPrefixes(tenant, name.text);
    const { prefixCount: count, prefixWild: wild } = this;
    const last = this.prefixes[count - 1] ?? 0;
    const visit = (number: number): Visited => {
      if (this.at(number) < since()) return "over";
      if (!this.isOf(number, tenant) || !overlaps(name, this.resources[number & this.mask] ?? "")) return "next";
      return act(this.recordOf(number)) ? "stop" : "next";
    };
    if (this.walk(wild ? last : hashNext(last, exactMark), visit)) return;
    // Patterns that begin above the name, or where a literal name ends.
    for (let depth = 0; depth < (wild ? count - 1 : count); depth++) {
      if (this.walk(hashNext(hashNext(this.prefixes[depth] ?? 0, star), exactMark), visit)) return;
    }
  }

  /** The end of the holder's own last lease that covered all of the name. */
  lastLook(tenant: TenantEntry, name: ResourceName, holder: string): Write | null {
    this.file();
    this.readPrefixes(tenant, name.text);
    const { prefixCount: count } = this;
    let found: Write | null = null;
    const visit = (number: number): Visited => {
      const slot = number & this.mask;
      if (!this.isOf(number, tenant) || this.holders[slot] !== holder || !this.isLooked(slot)) return "next";
      const resource = this.resources[slot] ?? "";
      if (resource !== name.text && !nameCovers(canonicalName(resource), name)) return "next";
      const record = this.recordOf(number);
      if (found !== null && record.at < found.at) return "over";
      if (found === null || isAfter(record, found)) found = record;
      return "next";
    };
    if (!name.wild) this.walk(lookHash(this.prefixes[count - 1] ?? 0, holder), visit);
    for (let depth = 0; depth < count; depth++) {
      this.walk(lookHash(hashNext(this.prefixes[depth] ?? 0, star), holder), visit);
    }
    return found;
  }

  /** Whether no later write of the same name is among the recent ones. */
  isLastWrite(number: number): boolean {
    this.file();
    const slot = number & this.mask;
    const tenant = this.tenants[slot] ?? null;
    const text = this.resources[slot] ?? "";
    if (tenant === null) return false;
    this.readPrefixes(tenant, text);
    let isLast = true;
    const own = this.recordOf(number);
    this.walk(this.exactHash(), (other) => {
      if (other === number) return "next";
      if (this.at(other) < own.at) return "over";
      if (!this.isOf(other, tenant) || this.resources[other & this.mask] !== text) return "next";
      if (!isAfter(this.recordOf(other), own)) return "next";
      isLast = false;
      return "over";
    });
    return isLast;
  }

  private isOf(number: number, tenant: TenantEntry): boolean {
    return this.tenants[number & this.mask] === tenant;
  }

  /** Puts what has ended since the last time into its chains. */
  private file(): void {
    if (this.filedTo < this.first) this.filedTo = this.first;
    for (; this.filedTo < this.end; this.filedTo++) this.fileOne(this.filedTo);
  }

  private fileOne(number: number): void {
    const slot = number & this.mask;
    const tenant = this.tenants[slot] ?? null;
    this.linkStarts[slot] = this.linkEnd;
    if (tenant === null) return;
    this.readPrefixes(tenant, this.resources[slot] ?? "");
    if (writing[this.predicateOf(slot)]) {
      for (let depth = 0; depth < this.prefixCount; depth++) this.link(this.prefixes[depth] ?? 0, number);
      this.link(this.exactHash(), number);
    }
    if (this.isLooked(slot)) this.link(lookHash(this.ownHash(), this.holders[slot] ?? ""), number);
  }

  private ownHash(): number {
    const last = this.prefixes[this.prefixCount - 1] ?? 0;
    return this.prefixWild ? hashNext(last, star) : last;
  }

  private exactHash(): number {
    return hashNext(this.ownHash(), exactMark);
  }

  /** One walk over the characters. `FILE:/a/b` has three prefixes: `FILE:/`, `FILE:/a` and itself. */
  private readPrefixes(tenant: TenantEntry, text: string): void {
    const { prefixes } = this;
    let count = 0;
    let hash = tenant.past.seed;
    let at = 0;
    for (let code = 0; code !== colon; at++) {
      code = text.charCodeAt(at);
      hash = hashNext(hash, code);
    }
    hash = hashNext(hash, slash);
    prefixes[count++] = hash;
    this.prefixWild = false;
    for (at++; at < text.length; ) {
      for (; at < text.length; at++) {
        const code = text.charCodeAt(at);
        if (code === slash) break;
        if (code === star || code === questionMark) {
          this.prefixWild = true;
          this.prefixCount = count;
          return;
        }
        hash = hashNext(hash, code);
      }
      prefixes[count++] = hash;
      hash = hashNext(hash, slash);
      at++;
    }
    this.prefixCount = count;
  }

  private link(hash: number, number: number): void {
    if (this.linkEnd - this.linkFirst() > this.linkMask) this.growLinks();
    const place = this.linkEnd++;
    const bucket = this.bucketOf(hash);
    this.linkNext[place & this.linkMask] = this.heads[bucket] ?? nothing;
    this.linkOf[place & this.linkMask] = number;
    this.heads[bucket] = place;
  }

  private bucketOf(hash: number): number {
    return (hash ^ (hash >>> 15)) & (this.heads.length - 1);
  }

  /** The oldest link that may still be followed. */
  private linkFirst(): number {
    return this.first <= this.filedTo && this.first < this.end
      ? (this.linkStarts[this.first & this.mask] ?? 0)
      : this.linkEnd;
  }

  /** True: `visit` ended the search. */
  private walk(hash: number, visit: (number: number) => Visited): boolean {
    const from = this.linkFirst();
    for (let place = this.heads[this.bucketOf(hash)] ?? nothing; place >= from; ) {
      const visited = visit(this.linkOf[place & this.linkMask] ?? 0);
      if (visited !== "next") return visited === "stop";
      place = this.linkNext[place & this.linkMask] ?? nothing;
    }
    return false;
  }

  private growLinks(): void {
    const [next, of, mask] = [this.linkNext, this.linkOf, this.linkMask];
    const size = 2 * (mask + 1);
    this.linkMask = size - 1;
    this.linkNext = new Float64Array(size);
    this.linkOf = new Float64Array(size);
    for (let place = this.linkFirst(); place < this.linkEnd; place++) {
      this.linkNext[place & this.linkMask] = next[place & mask] ?? nothing;
      this.linkOf[place & this.linkMask] = of[place & mask] ?? 0;
    }
  }

  /** Twice the slots. The chains are built again when somebody asks, with twice the heads. */
  private grow(): void {
    const { mask } = this;
    const size = 2 * (mask + 1);
    const copied = <T>(column: readonly T[], empty: T): T[] => {
      const grown = new Array<T>(size).fill(empty);
      for (let number = this.first; number < this.end; number++)
        grown[number & (size - 1)] = column[number & mask] as T;
      return grown;
    };
    const copiedNumbers = <T extends Uint8Array | Float64Array>(column: T, grown: T): T => {
      for (let number = this.first; number < this.end; number++)
        grown[number & (size - 1)] = column[number & mask] ?? 0;
      return grown;
    };
    this.tenants = copied(this.tenants, null);
    this.resources = copied(this.resources, "");
    this.holders = copied(this.holders, "");
    this.kinds = copiedNumbers(this.kinds, new Uint8Array(size));
    this.times = copiedNumbers(this.times, new Float64Array(size));
    this.fences = copiedNumbers(this.fences, new Float64Array(size));
    this.ordinals = copiedNumbers(this.ordinals, new Float64Array(size));
    this.linkStarts = new Float64Array(size);
    this.mask = size - 1;
    this.heads = new Float64Array(2 * size).fill(nothing);
    this.linkEnd = 0;
    this.filedTo = this.first;
  }
}

/** Of the names in one chain, which is mostly the same name, or one below a pattern's folder. */
function overlaps(name: ResourceName, text: string): boolean {
  if (text === name.text) return true;
  const isWild = text.includes("*") || text.includes("?");
  if (!name.wild && !isWild) return false;
  return namesOverlap(name, canonicalName(text));
}

function lookHash(hash: number, holder: string): number {
  let mixed = hashNext(hash, lookMark);
  for (let at = 0; at < holder.length; at++) mixed = hashNext(mixed, holder.charCodeAt(at));
  return mixed;
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
