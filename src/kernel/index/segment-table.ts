/**
 * The literal children of a node, by their segments. Every level of a path is looked up here, and with a million leases
 * each load is one from memory: so nodes and their hashes lie side by side in one array, and nothing is between. Nodes
 * whose slots are taken, by chance or by malice, go into a map of the language's own, as in TextMap.
 */
import { golden } from "./text-map.ts";

export interface Segment {
  readonly segment: string;
  readonly hash: number;
}

export class SegmentTable<N extends Segment> {
  /** A node, or null, at every even place, and behind it its hash. */
  private slots: (N | number | null)[] = emptySlots(slotsMin);
  private shift = Math.clz32(slotsMin - 1);
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
    if (this.slots.length > 2 * slotsMin && 12 * this.size < this.slots.length) this.resize(this.slots.length / 4);
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

const slotsMin = 4;
/** Only chosen segments need as many. */
const probesMax = 64;
