/**
 * Which keys the store may know although memory has forgotten them (W10): a Bloom filter in blocks. It never misses a key
 * that was added, and takes about one other key in four hundred for such a one; then the store is asked in vain.
 *
 *   blocks   [ … full, until 12:03 ] [ … full, until 12:07 ] [ filling, until 12:09 ]
 *
 * A block is dropped when the last of its keys may be forgotten, so memory grows with the keys of ten minutes only.
 */
import type { Millis } from "../contract/records.ts";

interface Block {
  readonly bits: Uint32Array;
  count: number;
  until: Millis;
}

export interface KeyFilter {
  blocks: Block[];
  /** Until then there may be keys from before a restart, of which nothing is known. */
  olderUntil: Millis;
}

const wordsPerBlock = 2 ** 16;
const keysPerBlock = 2 ** 17;
const bitsPerKey = 4;
/** Beyond, the last block takes all that comes: the store is asked more often, and memory stays bounded (S4). */
const blocksMax = 32;

export function createKeyFilter(olderUntil: Millis): KeyFilter {
  return { blocks: [], olderUntil };
}

export function addKey(filter: KeyFilter, key: string, until: Millis, now: Millis): void {
  let block = filter.blocks.at(-1);
  if (block === undefined || block.count >= keysPerBlock) {
    filter.blocks = filter.blocks.filter((one) => one.until > now);
    if (block === undefined || filter.blocks.length < blocksMax) {
      block = { bits: new Uint32Array(wordsPerBlock), count: 0, until: 0 };
      filter.blocks.push(block);
    }
  }
  const [first, second] = hash(key);
  for (let n = 0; n < bitsPerKey; n++) {
    const bit = bitAt(first, second, n);
    block.bits[bit >>> 5] = (block.bits[bit >>> 5] ?? 0) | (1 << (bit & 31));
  }
  block.count++;
  block.until = Math.max(block.until, until);
}

export function mayHaveKey({ blocks, olderUntil }: KeyFilter, key: string, now: Millis): boolean {
  if (olderUntil > now) return true;
  const [first, second] = hash(key);
  return blocks.some(({ bits, until }) => {
    if (until <= now) return false;
    for (let n = 0; n < bitsPerKey; n++) {
      const bit = bitAt(first, second, n);
      if (((bits[bit >>> 5] ?? 0) & (1 << (bit & 31))) === 0) return false;
    }
    return true;
  });
}

function bitAt(first: number, second: number, n: number): number {
  return ((first + Math.imul(n, second)) >>> 0) % (wordsPerBlock * 32);
}

/** Two sums with their bits mixed: keys that count up differ in their last characters only. */
function hash(key: string): readonly [number, number] {
  let a = 0x811c9dc5;
  let b = 0x9747b28c;
  for (let at = 0; at < key.length; at++) {
    const code = key.charCodeAt(at);
    a = Math.imul(a ^ code, 0x01000193);
    b = Math.imul(b ^ code, 0x85ebca6b) ^ (b >>> 13);
  }
  return [mix(a), mix(b) | 1];
}

function mix(sum: number): number {
  const half = Math.imul(sum ^ (sum >>> 16), 0x7feb352d);
  const most = Math.imul(half ^ (half >>> 15), 0x846ca68b);
  return (most ^ (most >>> 16)) >>> 0;
}
