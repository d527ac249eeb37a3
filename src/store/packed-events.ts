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
  for (const { firstSeq, count, body } of rows) {
    next ??= Math.max(firstSeq, seq + 1);
    through = firstSeq + count - 1;
    for (const [index, [of, event]] of (JSON.parse(body) as Entry[]).entries()) {
      if (firstSeq + index <= seq || of !== tenant) continue;
      seqs.push(firstSeq + index);
      texts.push(JSON.stringify(event));
    }
    examined += through - Math.max(seq, firstSeq - 1);
    if (examined >= limit) break;
  }
  // Where numbers jumped and nothing has come since, the follower is at the end.
  if (next === null) through = Math.max(seq, lastSeq);
  next ??= through + 1;
  const isKnown = seq === 0 || seq === lastSeq || isKept || next === seq + 1;
  return { seqs, texts, through, earliest, next, isKnown };
}
