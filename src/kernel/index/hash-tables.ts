/** Two hash tables: texts to entries, and the children of a node of the resource tree by segment. */

/** What entries with a record are found by. */
export const recordId = ({ record }: { readonly record: { readonly id: string } }): string => record.id;

/**
 * A map from text to things. The language's own map asks its runtime for the hash of every text that has just come off
 * the wire, which costs more than all else that a small command does, and walks chains through a table that no cache
 * holds; here the hash is computed in place, and most look-ups touch one line of the index and the thing that they find.
 * It grows without a pause: a larger index is filled a little with every change. Texts whose slots are taken, by chance
 * or by malice, go into a map of the language's own, so that the worst case is that one.
 */
export class TextMap<V extends object> {
  private readonly textOf: (value: V) => string;
  private readonly hashOf: (text: string) => number;
  /** Nothing ever moves here, so that who looks through the map need not care what comes and goes. Null is free. */
  private items: (V | null)[] = [];
  private free: number[] = [];
  private index = createIndex(slotsMin);
  /** The smaller index of before, while not all of it is in the present one; and how far that has got. */
  private former: Int32Array | null = null;
  private moved = 0;
  private displaced: Map<string, number> | null = null;
  size = 0;

  constructor(textOf: (value: V) => string, hashOf: (text: string) => number) {
    this.textOf = textOf;
    this.hashOf = hashOf;
  }

  get(text: string, hash: number = this.hashOf(text)): V | undefined {
    const at = this.find(text, hash);
    return at < 0 ? undefined : (this.items[at] ?? undefined);
  }

  has(text: string): boolean {
    return this.find(text, this.hashOf(text)) >= 0;
  }

  set(text: string, value: V, hash: number = this.hashOf(text)): void {
    const known = this.find(text, hash);
    if (known >= 0) {
      this.items[known] = value;
      return;
    }
    // Half of the slots are free at least, and a slot is two numbers.
    if (4 * (this.size + 1) > this.index.length) this.grow();
    const at = this.free.pop() ?? this.items.length;
    this.items[at] = value;
    if (!enterIn(this.index, hash, at)) this.displace(text, at);
    this.size++;
    if (this.former !== null) this.moveSome(this.former);
  }

  delete(text: string, hash: number = this.hashOf(text)): void {
    const at = this.find(text, hash);
    if (at < 0) return;
    this.items[at] = null;
    this.free.push(at);
    this.size--;
    if (this.former !== null) strike(this.former, hash, at);
    if (this.displaced?.delete(text) !== true) leave(this.index, hash, at);
    if (this.size === 0 && this.index.length > 2 * slotsKept) this.reset();
  }

  /** In no particular order. What is there from beginning to end is seen once, whatever comes and goes meanwhile. */
  *values(): Generator<V> {
    for (let at = 0; at < this.items.length; at++) {
      const item = this.items[at];
      if (item !== null && item !== undefined) yield item;
    }
  }

  /** In the present index, then in the former one, then among the displaced. */
  private find(text: string, hash: number, index: Int32Array = this.index): number {
    const mask = index.length - 1;
    let slot = homeOf(hash, index);
    for (let probes = 0; probes < probesMax; probes++) {
      const entry = index[slot] ?? 0;
      if (entry === 0) break;
      if (index[slot + 1] === hash && entry > 0) {
        const at = entry - 1;
        const item = this.items[at];
        if (item !== null && item !== undefined && this.textOf(item) === text) return at;
      }
      slot = (slot + 2) & mask;
    }
    if (this.former !== null && index !== this.former) return this.find(text, hash, this.former);
    return this.displaced?.get(text) ?? -1;
  }

  private displace(text: string, at: number): void {
    this.displaced ??= new Map();
    this.displaced.set(text, at);
  }

  /** Finishes a migration that is still under way. In practice none is: every insert moves 16 slots. */
  private grow(): void {
    while (this.former !== null) this.moveSome(this.former);
    this.former = this.index;
    this.moved = 0;
    this.index = createIndex(this.index.length);
  }

  private moveSome(former: Int32Array): void {
    const end = Math.min(former.length, this.moved + 2 * slotsMoved);
    for (let slot = this.moved; slot < end; slot += 2) {
      const at = (former[slot] ?? 0) - 1;
      const hash = former[slot + 1] ?? 0;
      if (at < 0 || enterIn(this.index, hash, at)) continue;
      const item = this.items[at];
      if (item !== null && item !== undefined) this.displace(this.textOf(item), at);
    }
    this.moved = end;
    if (end === former.length) this.former = null;
  }

  private reset(): void {
    this.items = [];
    this.free = [];
    this.index = createIndex(slotsMin);
    this.former = null;
    this.displaced = null;
  }
}

const slotsMin = 16;
/** An index of more slots is given up when the map is empty; a smaller one is not worth making again. */
const slotsKept = 1_024;
/** With every item that comes: many more than are needed to be done before the next time. */
const slotsMoved = 16;
/** Half of the slots are free at least, so that only chosen texts need as many. */
const probesMax = 64;
/** Spreads hashes whose lower bits are alike; the upper ones of the product are taken. */
export const golden = 0x9e3779b1 | 0;

/** Slots of two numbers: one more than the item's place, or 0 where it is free, and the item's hash. -1: struck out. */
function createIndex(slots: number): Int32Array {
  return new Int32Array(2 * slots);
}

function homeOf(hash: number, index: Int32Array): number {
  return 2 * (Math.imul(hash, golden) >>> (Math.clz32(index.length - 1) + 1));
}

/** False: all slots near its home are taken. */
function enterIn(index: Int32Array, hash: number, at: number): boolean {
  const mask = index.length - 1;
  let slot = homeOf(hash, index);
  for (let probes = 0; probes < probesMax; probes++) {
    if (index[slot] === 0) {
      index[slot] = at + 1;
      index[slot + 1] = hash;
      return true;
    }
    slot = (slot + 2) & mask;
  }
  return false;
}

/** In an index that is only read any more, what has gone is struck out; others stay where they are. */
function strike(index: Int32Array, hash: number, at: number): void {
  const mask = index.length - 1;
  let slot = homeOf(hash, index);
  for (; index[slot] !== at + 1; slot = (slot + 2) & mask) if (index[slot] === 0) return;
  index[slot] = -1;
}

/** Frees the item's slot, and moves up what would no longer be found behind a free one. */
function leave(index: Int32Array, hash: number, at: number): void {
  const mask = index.length - 1;
  let gap = homeOf(hash, index);
  while (index[gap] !== at + 1) {
    // It was in the former index only.
    if (index[gap] === 0) return;
    gap = (gap + 2) & mask;
  }
  for (let slot = (gap + 2) & mask; index[slot] !== 0; slot = (slot + 2) & mask) {
    const home = homeOf(index[slot + 1] ?? 0, index);
    // Whether the gap lies on its way from home to where it stands.
    if (((slot - home) & mask) < ((slot - gap) & mask)) continue;
    index[gap] = index[slot] ?? 0;
    index[gap + 1] = index[slot + 1] ?? 0;
    gap = slot;
  }
  index[gap] = 0;
}

export interface Segment {
  readonly segment: string;
  readonly hash: number;
}

/**
 * The literal children of a node, by their segments. Every level of a path is looked up here, and with a million leases
 * each load is one from memory: so nodes and their hashes lie side by side in one array, and nothing is between. Nodes
 * whose slots are taken, by chance or by malice, go into a map of the language's own, as in TextMap.
 */
export class SegmentTable<N extends Segment> {
  /** A node, or null, at every even place, and behind it its hash. */
  private slots: (N | number | null)[] = emptySlots(tableSlotsMin);
  private shift = Math.clz32(tableSlotsMin - 1);
  private displaced: Map<string, N> | null = null;
  size = 0;

  get(segment: string, hash: number): N | undefined {
    const { slots } = this;
    const mask = slots.length - 1;
    let at = 2 * (Math.imul(hash, golden) >>> this.shift);
    for (let probes = 0; probes < probesMax; probes++) {
      const node = slots[at] as N | null;
      if (node === null) break;
      if (slots[at + 1] === hash && node.segment === segment) return node;
      at = (at + 2) & mask;
    }
    return this.displaced?.get(segment);
  }

  /** Of a segment that is not there yet. */
  add(node: N): void {
    // At most two thirds full.
    if (3 * (this.size + 1) > this.slots.length) this.resize(this.slots.length);
    this.enter(node);
    this.size++;
  }

  delete(node: N): void {
    if (this.displaced?.delete(node.segment)) {
      this.size--;
      return;
    }
    const { slots } = this;
    const mask = slots.length - 1;
    let at = 2 * (Math.imul(node.hash, golden) >>> this.shift);
    while (slots[at] !== node) {
      if (slots[at] === null) return;
      at = (at + 2) & mask;
    }
    this.closeGap(at);
    this.size--;
    if (this.slots.length > 2 * tableSlotsMin && 12 * this.size < this.slots.length) this.resize(this.slots.length / 4);
  }

  *values(): Generator<N> {
    const { slots } = this;
    for (let at = 0; at < slots.length; at += 2) {
      const node = slots[at] as N | null;
      if (node !== null) yield node;
    }
    if (this.displaced !== null) yield* this.displaced.values();
  }

  private enter(node: N): void {
    const { slots } = this;
    const mask = slots.length - 1;
    let at = 2 * (Math.imul(node.hash, golden) >>> this.shift);
    for (let probes = 0; probes < probesMax; probes++) {
      if (slots[at] === null) {
        slots[at] = node;
        slots[at + 1] = node.hash;
        return;
      }
      at = (at + 2) & mask;
    }
    this.displaced ??= new Map();
    this.displaced.set(node.segment, node);
  }

  /** Moves up what would no longer be found behind a free slot. */
  private closeGap(from: number): void {
    const { slots, shift } = this;
    const mask = slots.length - 1;
    let gap = from;
    for (let at = (gap + 2) & mask; slots[at] !== null; at = (at + 2) & mask) {
      const home = 2 * (Math.imul(slots[at + 1] as number, golden) >>> shift);
      // Whether the gap lies on its way from home to where it stands.
      if (((at - home) & mask) < ((at - gap) & mask)) continue;
      slots[gap] = slots[at] ?? null;
      slots[gap + 1] = slots[at + 1] ?? null;
      gap = at;
    }
    slots[gap] = null;
    slots[gap + 1] = null;
  }

  private resize(count: number): void {
    const { slots, displaced } = this;
    this.slots = emptySlots(count);
    this.shift = Math.clz32(count - 1);
    this.displaced = null;
    for (let at = 0; at < slots.length; at += 2) {
      const node = slots[at] as N | null;
      if (node !== null) this.enter(node);
    }
    if (displaced !== null) for (const node of displaced.values()) this.enter(node);
  }
}

function emptySlots<N>(count: number): (N | number | null)[] {
  return new Array<N | number | null>(2 * count).fill(null);
}

const tableSlotsMin = 4;
