/**
 * A map from text to things, in the order in which they came. The language's own map asks its runtime for the hash of
 * every text that has just come off the wire, which costs more than all else that a small command does, and walks
 * chains through a table that no cache holds; here the hash is computed in place, and most look-ups touch one line of
 * `index` and the thing that they find. Texts whose places are taken, by chance or by malice, go into a map of the
 * language's own, so that the worst case is that one.
 */
export class TextMap<V extends object> {
  private readonly textOf: (value: V) => string;
  private readonly hashOf: (text: string) => number;
  /** Everything in the order of its coming; null where it has gone. */
  private items: (V | null)[] = [];
  private hashes = new Int32Array(capacityMin);
  /** Grow with every item and stay with it, so that whoever is looking through the map finds the place again. */
  private serials = new Float64Array(capacityMin);
  /** One more than the item's place in `items`; 0: free. */
  private index = new Int32Array(2 * capacityMin);
  private shift = Math.clz32(2 * capacityMin - 1);
  private displaced: Map<string, number> | null = null;
  private lastSerial = 0;
  private rebuilds = 0;
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
    if (this.items.length === this.hashes.length) this.rebuild();
    const at = this.items.length;
    this.items.push(value);
    this.hashes[at] = hash;
    this.serials[at] = ++this.lastSerial;
    this.enter(value, hash, at);
    this.size++;
  }

  delete(text: string, hash: number = this.hashOf(text)): void {
    const at = this.find(text, hash);
    if (at < 0) return;
    this.items[at] = null;
    this.displaced?.delete(text);
    this.size--;
  }

  /** What is there from beginning to end is seen once, whatever comes and goes meanwhile. */
  *values(): Generator<V> {
    let at = 0;
    let seen = 0;
    let { rebuilds } = this;
    for (;;) {
      if (rebuilds !== this.rebuilds) {
        at = this.firstAfter(seen);
        rebuilds = this.rebuilds;
      }
      if (at >= this.items.length) return;
      seen = this.serials[at] ?? 0;
      const item = this.items[at++];
      if (item !== null && item !== undefined) yield item;
    }
  }

  private find(text: string, hash: number): number {
    const { index, items, hashes } = this;
    const mask = index.length - 1;
    let slot = Math.imul(hash, golden) >>> this.shift;
    for (let probes = 0; probes < probesMax; probes++) {
      const at = (index[slot] ?? 0) - 1;
      if (at < 0) break;
      if (hashes[at] === hash) {
        const item = items[at];
        if (item !== null && item !== undefined && this.textOf(item) === text) return at;
      }
      slot = (slot + 1) & mask;
    }
    return this.displaced?.get(text) ?? -1;
  }

  /** Takes the first slot that is free, or whose item has gone. */
  private enter(item: V, hash: number, at: number): void {
    const { index, items } = this;
    const mask = index.length - 1;
    let slot = Math.imul(hash, golden) >>> this.shift;
    for (let probes = 0; probes < probesMax; probes++) {
      const other = (index[slot] ?? 0) - 1;
      if (other < 0 || items[other] === null) {
        index[slot] = at + 1;
        return;
      }
      slot = (slot + 1) & mask;
    }
    this.displaced ??= new Map();
    this.displaced.set(this.textOf(item), at);
  }

  /** Leaves out what has gone, and makes room for as many again. */
  private rebuild(): void {
    const [before, serialsBefore, hashesBefore] = [this.items, this.serials, this.hashes];
    const capacity = Math.max(capacityMin, 2 * this.size);
    const slots = 2 ** (32 - Math.clz32(2 * capacity - 1));
    this.items = [];
    this.hashes = new Int32Array(capacity);
    this.serials = new Float64Array(capacity);
    this.index = new Int32Array(slots);
    this.shift = Math.clz32(slots - 1);
    this.displaced = null;
    this.rebuilds++;
    for (const [at, item] of before.entries()) {
      if (item === null) continue;
      const hash = hashesBefore[at] ?? 0;
      const to = this.items.push(item) - 1;
      this.hashes[to] = hash;
      this.serials[to] = serialsBefore[at] ?? 0;
      this.enter(item, hash, to);
    }
  }

  private firstAfter(serial: number): number {
    let [low, high] = [0, this.items.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.serials[middle] ?? 0) > serial) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

const capacityMin = 8;
/** Half of the slots are free at least, so that only chosen texts need as many. */
const probesMax = 64;
/** Spreads hashes whose lower bits are alike; the upper ones of the product are taken. */
export const golden = 0x9e3779b1 | 0;

/** FNV-1a, for texts of any kind. */
export function textHash(text: string): number {
  let hash = hashStart;
  for (let at = 0; at < text.length; at++) hash = hashNext(hash, text.charCodeAt(at));
  return hash;
}

export const hashStart = 0x811c9dc5 | 0;

export function hashNext(hash: number, code: number): number {
  return Math.imul(hash ^ code, 0x01000193);
}

/** Ids made by ids.ts end in random characters; those are hash enough. */
export function idHash(id: string): number {
  let hash = hashStart;
  for (let at = 19; at < id.length; at++) hash = hashNext(hash, id.charCodeAt(at));
  return hash;
}
