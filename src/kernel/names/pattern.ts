/**
 * What patterns have in common (C4). A name is a sequence of segments in which `**` stands for any run of them; a
 * segment is a sequence of characters in which `*` does. So there is one algorithm, used on both levels. It never
 * backtracks, and never costs more than the product of both lengths.
 *
 * The universe is all non-empty segments. That some of them are not written in any name (".", "..", what is not NFC,
 * what is too long) is left out of account: there two patterns may be said to overlap in a path nobody can lease,
 * which errs to the safe side.
 */
import { isWildSegment, type ResourceName } from "./resource-name.ts";

/** True iff some segment is matched by both; each is literal or has `*` and `?`. */
export function segmentsOverlap(a: string, b: string): boolean {
  if (a === b || a === "*" || b === "*") return true;
  if (!edgesMeet(a, b)) return false;
  // Without a `?` on either side a comparison of UTF-16 units is one of characters, because names are well-formed.
  const units = !(a.includes("?") || b.includes("?")) || !(hasSurrogate(a) || hasSurrogate(b));
  return units ? sequencesOverlap(a, b, "*", charactersMeet) : sequencesOverlap([...a], [...b], "*", charactersMeet);
}

/**
 * False: they differ before the first wildcard of either, or after the last one. A folder may have thousands of patterns,
 * and most differ from a name there.
 */
function edgesMeet(a: string, b: string): boolean {
  const least = Math.min(a.length, b.length);
  for (let at = 0; at < least; at++) {
    const [left, right] = [a.charCodeAt(at), b.charCodeAt(at)];
    if (isWild(left) || isWild(right)) break;
    if (left !== right) return false;
  }
  for (let back = 1; back <= least; back++) {
    const [left, right] = [a.charCodeAt(a.length - back), b.charCodeAt(b.length - back)];
    if (isWild(left) || isWild(right)) break;
    if (left !== right) return false;
  }
  return true;
}

function isWild(code: number): boolean {
  return code === asterisk || code === questionMark;
}

const asterisk = 0x2a;
const questionMark = 0x3f;

/** True iff some path is in both. `**` takes zero segments too, so that `/d/**` includes `/d`. */
export function namesOverlap(a: ResourceName, b: ResourceName): boolean {
  if (a.text === b.text) return true;
  if (a.type !== b.type || !(a.wild || b.wild)) return false;
  return sequencesOverlap(a.segments, b.segments, "**", segmentsOverlap);
}

/**
 * True only if every path of `b` is in `a`. It reads `b` as if its patterns were letters, each of which something
 * in `a` has to take; so it is exact if `b` is literal, or `a` is literal up to a final `**`. Otherwise it may miss
 * a cover (that of "?*x" over "ab*x"), but never invents one.
 */
export function nameCovers(a: ResourceName, b: ResourceName): boolean {
  if (a.text === b.text) return true;
  if (a.type !== b.type || !a.wild) return false;
  return fillsOut(a.segments, b.segments, "**", segmentCovers);
}

/** How many segments stand before the first pattern. */
export function literalPrefixLength(name: ResourceName): number {
  if (!name.wild) return name.segments.length;
  return name.segments.findIndex(isWildSegment);
}

/** The characters of a segment, or the segments of a path. */
type Sequence = string | readonly string[];
type Meets = (x: string, y: string) => boolean;

function charactersMeet(x: string, y: string): boolean {
  return x === y || x === "?" || y === "?";
}

function segmentCovers(x: string, y: string): boolean {
  if (x === y) return true;
  if (isWildSegment(y)) return x === "*" && y !== "**";
  return segmentsOverlap(x, y);
}

function sequencesOverlap(a: Sequence, b: Sequence, star: string, meets: Meets): boolean {
  if (!a.includes(star)) return fillsOut(b, a, star, meets);
  if (!b.includes(star)) return fillsOut(a, b, star, meets);
  return endsMeet(a, b, star, meets);
}

/**
 * Two sequences that both have a star overlap iff what stands before their first stars agrees as far as both go, and
 * what stands after their last ones. For then there is a common one: the longer front, the middle of `a`, the middle
 * of `b`, the longer back; each side's first and last star take what is the other's. So no table is needed.
 */
function endsMeet(a: Sequence, b: Sequence, star: string, meets: Meets): boolean {
  for (let at = 0; ; at++) {
    const x = a[at];
    const y = b[at];
    if (x === undefined || y === undefined || x === star || y === star) break;
    if (!meets(x, y)) return false;
  }
  for (let back = 1; ; back++) {
    const x = a[a.length - back];
    const y = b[b.length - back];
    if (x === undefined || y === undefined || x === star || y === star) return true;
    if (!meets(x, y)) return false;
  }
}

/**
 * True iff the stars of `a` can be filled with runs of `b` so that the rest of `a` meets the rest of `b` one to one.
 * Front and back are tied to the ends; each piece between two stars takes the leftmost place where it fits, which
 * leaves the most room to those after it, so that no choice is ever taken back. No element of `a` is held against
 * the same element of `b` twice: that is the product of the lengths at most, and mostly far less.
 */
function fillsOut(a: Sequence, b: Sequence, star: string, meets: Meets): boolean {
  let front = 0;
  for (; ; front++) {
    const x = a[front];
    if (x === undefined) return front === b.length;
    if (x === star) break;
    const y = b[front];
    if (y === undefined || !meets(x, y)) return false;
  }

  let aEnd = a.length;
  let bEnd = b.length;
  for (; ; aEnd--, bEnd--) {
    const x = a[aEnd - 1];
    if (x === undefined || x === star) break; // At the latest the star that the front stopped at.
    const y = bEnd > front ? b[bEnd - 1] : undefined;
    if (y === undefined || !meets(x, y)) return false;
  }

  let room = front;
  let piece = front + 1;
  while (piece < aEnd) {
    const pieceEnd = a.indexOf(star, piece); // Found: a star stands at aEnd - 1.
    const length = pieceEnd - piece;
    for (; ; room++) {
      if (room + length > bEnd) return false;
      if (meetsAt(a, piece, b, room, length, meets)) break;
    }
    room += length;
    piece = pieceEnd + 1;
  }
  return true;
}

function meetsAt(a: Sequence, aStart: number, b: Sequence, bStart: number, length: number, meets: Meets): boolean {
  for (let at = 0; at < length; at++) {
    const x = a[aStart + at];
    const y = b[bStart + at];
    if (x === undefined || y === undefined || !meets(x, y)) return false;
  }
  return true;
}

function hasSurrogate(segment: string): boolean {
  for (let at = 0; at < segment.length; at++) {
    const code = segment.charCodeAt(at);
    if (code >= 0xd800 && code <= 0xdfff) return true;
  }
  return false;
}
