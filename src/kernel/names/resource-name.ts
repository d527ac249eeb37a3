/**
 * The one spelling of a resource (C3): `TYPE:/path`, where a path may hold patterns (C4). Whatever names the same
 * thing, or the same set of things, either comes out of the parser as the same text or does not come out at all;
 * so names are compared as strings everywhere else.
 */

import { randomFrom } from "../contract/ids.ts";
import { limits } from "../contract/limits.ts";

export interface ResourceName {
  /** The canonical spelling, "FILE:/src/**". */
  readonly text: string;
  /** "FILE" */
  readonly type: string;
  /** ["src", "**"]; "FILE:/" has none. */
  readonly segments: readonly string[];
  /** `textHash` of each segment, which costs nothing while the characters are read. */
  readonly hashes: readonly number[];
  /** True if any segment is a pattern. */
  readonly wild: boolean;
}

/** A sentence: what is wrong, and what to write instead. It never repeats the input, which may hold anything. */
export interface NameProblem {
  readonly problem: string;
}

/** Lengths are in UTF-16 units. All hold for what was sent, and the length also for its normal form. */
export const resourceNameLimits = { lengthMax: limits.resourceLengthMax, typeLengthMax: 64, segmentsMax: 64 } as const;

const slash = 0x2f;
const colon = 0x3a;
const star = 0x2a;
const questionMark = 0x3f;
const dot = 0x2e;
const backslash = 0x5c;
const underscore = 0x5f;
const printableAsciiMin = 0x20;
const printableAsciiMax = 0x7e;

/** Every command passes here: one walk over the character codes, and no more than that for a plain ASCII name. */
export function parseResourceName(text: string): ResourceName | NameProblem {
  const end = text.length;
  if (end > resourceNameLimits.lengthMax) {
    return { problem: `The name is longer than ${resourceNameLimits.lengthMax} characters; write a shorter one.` };
  }
  const typeEnd = findTypeEnd(text);
  if (typeEnd < 0) return { problem: problems.type };
  const pathStart = typeEnd + 2;
  if (text.charCodeAt(typeEnd + 1) !== slash) return { problem: problems.root };
  const type = text.slice(0, typeEnd);
  const segments: string[] = [];
  const hashes: number[] = [];
  if (pathStart === end) return { text, type, segments, hashes, wild: false };

  let ascii = true;
  let wild = false;
  let segmentStart = pathStart;
  let hash = hashStart;
  for (let at = pathStart; ; at++) {
    const code = at < end ? text.charCodeAt(at) : slash;
    if (code === slash) {
      const length = at - segmentStart;
      if (length === 0) return { problem: problems.emptySegment };
      if (length <= 2 && text.charCodeAt(segmentStart) === dot && text.charCodeAt(at - 1) === dot) {
        return { problem: problems.dotSegment };
      }
      if (segments.length === resourceNameLimits.segmentsMax) return { problem: problems.tooManySegments };
      segments.push(text.slice(segmentStart, at));
      hashes.push(hash);
      if (at === end) break;
      segmentStart = at + 1;
      hash = hashStart;
      continue;
    }
    hash = hashNext(hash, code);
    if (code === star || code === questionMark) {
      wild = true;
    } else if (code === backslash) {
      return { problem: problems.backslash };
    } else if (code < printableAsciiMin || code > printableAsciiMax) {
      const point = text.codePointAt(at) ?? code;
      const kind = forbiddenKind(point);
      if (kind !== undefined) return forbiddenProblem(kind, point, at);
      ascii = false;
      if (point > 0xffff) hash = hashNext(hash, text.charCodeAt(++at));
    }
  }

  if (!ascii) {
    const composed = text.normalize("NFC");
    if (composed !== text) return parseResourceName(composed); // Once only: NFC of NFC is itself.
  }
  return wild ? canonicalPattern(text, type, segments) : { text, type, segments, hashes, wild };
}

/** A name out of a record: it has been through the parser before. */
export function canonicalName(text: string): ResourceName {
  const name = parseResourceName(text);
  if ("problem" in name) throw new Error(`A stored name does not parse: ${JSON.stringify(text)}`);
  return name;
}

export function isWildSegment(segment: string): boolean {
  return segment.includes("*") || segment.includes("?");
}

/** Where the ":" stands after a well-formed type, or -1. */
function findTypeEnd(text: string): number {
  for (let at = 0; at <= resourceNameLimits.typeLengthMax; at++) {
    const code = text.charCodeAt(at); // NaN past the end, which is none of the below.
    if (code >= 0x41 && code <= 0x5a) continue;
    if (at === 0) return -1;
    if (code === colon) return at;
    if (!(code >= 0x30 && code <= 0x39) && code !== underscore) return -1;
  }
  return -1;
}

/**
 * Gives every language of paths one spelling. `**` takes any number of segments and `*` exactly one, so in a run of
 * them only the count of `*` and the presence of `**` matter: the `*` go first, one `**` last.
 */
function canonicalPattern(text: string, type: string, written: readonly string[]): ResourceName {
  const segments: string[] = [];
  let deep = false;
  for (const segment of written) {
    if (segment === "**") {
      deep = true;
      continue;
    }
    const canonical = isWildSegment(segment) ? canonicalSegment(segment) : segment;
    if (deep && canonical !== "*") {
      segments.push("**");
      deep = false;
    }
    segments.push(canonical);
  }
  if (deep) segments.push("**");
  const canonicalText = `${type}:/${segments.join("/")}`;
  return {
    text: canonicalText === text ? text : canonicalText,
    type,
    segments,
    hashes: segments.map(textHash),
    wild: true,
  };
}

/**
 * The same within a segment, where `?` takes one character and `*` any number: in a run of them the `?` go first,
 * one `*` last. A segment is never empty, so that a lone `?*` says no more than `*`.
 */
function canonicalSegment(segment: string): string {
  let canonical = "";
  let literalStart = 0;
  let at = 0;
  while (at < segment.length) {
    const runStart = at;
    let marks = 0;
    for (let code = segment.charCodeAt(at); code === star || code === questionMark; code = segment.charCodeAt(++at)) {
      if (code === questionMark) marks++;
    }
    if (at === runStart) {
      at++;
      continue;
    }
    canonical += segment.slice(literalStart, runStart) + "?".repeat(marks) + (at - runStart > marks ? "*" : "");
    literalStart = at;
  }
  canonical += segment.slice(literalStart);
  return canonical === "?*" ? "*" : canonical;
}

/** What a path must not hold: the invisible that makes two names look alike, and what is not text at all. */
function forbiddenKind(point: number): string | undefined {
  if (point <= 0x9f) return "control character";
  if (point === 0x061c || point === 0x200e || point === 0x200f) return "bidirectional control";
  if ((point >= 0x202a && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069)) return "bidirectional control";
  if (point === 0x2028 || point === 0x2029) return "line or paragraph separator";
  if (point === 0xfeff) return "byte order mark";
  if (point >= 0xd800 && point <= 0xdfff) return "lone surrogate";
  if ((point >= 0xfdd0 && point <= 0xfdef) || (point & 0xfffe) === 0xfffe) return "noncharacter";
  return undefined;
}

function forbiddenProblem(kind: string, point: number, at: number): NameProblem {
  const code = point.toString(16).toUpperCase().padStart(4, "0");
  return { problem: `The name has a ${kind} (U+${code}) at position ${at}; write it without.` };
}

const problems = {
  type:
    `The name does not start with a type and ":"; write a capital letter, then capital letters, digits or "_", ` +
    `${resourceNameLimits.typeLengthMax} at most, as in "FILE:/src/app.ts".`,
  root: `The path does not start with "/"; write it from the root, as in "FILE:/src/app.ts".`,
  emptySegment: `The path has an empty segment; write one "/" between segments and none at the end, as in "FILE:/src".`,
  dotSegment: `The path has a "." or ".." segment; write the path that it leads to.`,
  backslash: `The path has a backslash; write "/" between segments.`,
  tooManySegments: `The path has more than ${resourceNameLimits.segmentsMax} segments; write a shorter one.`,
};

/** FNV-1a, for texts of any kind: the hash tables of index/ are built on these functions. */
export function textHash(text: string): number {
  let hash = hashStart;
  for (let at = 0; at < text.length; at++) hash = hashNext(hash, text.charCodeAt(at));
  return hash;
}

export const hashStart = 0x811c9dc5 | 0;

export function hashNext(hash: number, code: number): number {
  return Math.imul(hash ^ code, 0x01000193);
}

/** Ids of contract/ids.ts end in random characters; those are hash enough. */
export function idHash(id: string): number {
  let hash = hashStart;
  for (let at = randomFrom; at < id.length; at++) hash = hashNext(hash, id.charCodeAt(at));
  return hash;
}
