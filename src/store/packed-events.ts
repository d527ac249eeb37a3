/**
 * Events as they are stored. A commit writes one row of text, `[[tenant, event], …]`; later many such rows become one
 * compressed block (S8). Both are parsed, and chosen by tenant, in the thread that reads them.
 */
import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import type { EventsAfter, EventsQuery, PackedEvents } from "./store.ts";

type Entry = readonly [tenant: string, event: unknown];

/** The texts of several rows as that of one. */
export function joinPacked(bodies: readonly string[]): string {
  return `[${bodies.map((body) => body.slice(1, -1)).join()}]`;
}

export function compress(text: string): Uint8Array {
  return zstdCompressSync(text);
}

export function decompress(bytes: Uint8Array): string {
  return zstdDecompressSync(bytes).toString();
}

/** Events of more text than this are not given at once, and rows of more not read, whatever their number (S8). */
const eventBytesMax = 2 ** 18;

export interface KnownNumbers {
  /** The smallest number still kept, or the next one to come. */
  readonly earliest: number;
  readonly lastSeq: number;
  /** Whether the row of the number that was asked for is still kept. */
  readonly isKept: boolean;
}

/** Those of the tenant in these rows, which begin with the one that has the next number. */
export function collectEvents(
  { tenant, seq, limit }: EventsQuery,
  rows: Iterable<PackedEvents>,
  { earliest, lastSeq, isKept }: KnownNumbers,
): EventsAfter {
  const seqs: number[] = [];
  const texts: string[] = [];
  let through = seq;
  let next: number | null = null;
  let examined = 0;
  let bytes = 0;
  let passed = 0;
  for (const { firstSeq, count, body } of rows) {
    next ??= Math.max(firstSeq, seq + 1);
    through = firstSeq + count - 1;
    for (const [index, [of, event]] of (JSON.parse(body) as Entry[]).entries()) {
      if (firstSeq + index <= seq || of !== tenant) continue;
      const text = JSON.stringify(event);
      seqs.push(firstSeq + index);
      texts.push(text);
      bytes += text.length;
      // One commit may have ended a hundred thousand leases: the rest of its row comes with the next portion.
      if (bytes < eventBytesMax) continue;
      through = firstSeq + index;
      break;
    }
    examined += through - Math.max(seq, firstSeq - 1);
    passed += body.length;
    if (examined >= limit || Math.max(bytes, passed) >= eventBytesMax) break;
  }
  // Where numbers jumped and nothing has come since, the follower is at the end.
  if (next === null) through = Math.max(seq, lastSeq);
  next ??= through + 1;
  const isKnown = seq === 0 || seq === lastSeq || isKept || next === seq + 1;
  return { seqs, texts, through, earliest, next, isKnown };
}
