/**
 * The oracle's own pattern matcher (C4), written to be obviously right and not to be fast: it tries every way in
 * which two patterns could match one path. It shares no code with the kernel's matcher.
 */

/** A cache: worlds have few names and compare the same pairs again and again. */
type Cache = Map<string, Map<string, boolean>>;
const overlapsKnown: Cache = new Map();
const coversKnown: Cache = new Map();

/** True if some path matches both. */
export function overlap(a: string, b: string): boolean {
  if (a === b) return true;
  return remembered(overlapsKnown, a, b, () => {
    const [x, y] = [split(a), split(b)];
    return x.type === y.type && listsMeet(x.segments, y.segments, "**", segmentsMeet);
  });
}

/**
 * True if every path that matches `narrow` matches `wide`. Each wildcard of `narrow` is filled with zero to three
 * letters that occur in no name, so a literal that `wide` requires there does not match.
 */
export function covers(wide: string, narrow: string): boolean {
  if (wide === narrow) return true;
  return remembered(coversKnown, wide, narrow, () => {
    const [x, y] = [split(wide), split(narrow)];
    if (x.type !== y.type) return false;
    return membersOf(y.segments).every((path) => listsMeet(x.segments, path, "**", segmentsMeet));
  });
}

export function isPattern(name: string): boolean {
  return name.includes("*") || name.includes("?");
}

/** The resource prefix of L14: everything at or below a name. */
export function isUnder(name: string, prefix: string): boolean {
  return name === prefix || name.startsWith(prefix.endsWith("/") ? prefix : `${prefix}/`);
}

function remembered(known: Cache, a: string, b: string, answer: () => boolean): boolean {
  let ofA = known.get(a);
  if (ofA === undefined) {
    ofA = new Map();
    known.set(a, ofA);
  }
  const before = ofA.get(b);
  if (before !== undefined) return before;
  const found = answer();
  ofA.set(b, found);
  return found;
}

function split(name: string): { readonly type: string; readonly segments: readonly string[] } {
  const at = name.indexOf(":");
  const path = name.slice(at + 2);
  return { type: name.slice(0, at), segments: path === "" ? [] : path.split("/") };
}

function segmentsMeet(a: string, b: string): boolean {
  return listsMeet([...a], [...b], "*", (x, y) => x === y || x === "?" || y === "?");
}

/** A star matches nothing and is dropped, or matches one item and stays: both are tried, on either side. */
function listsMeet(
  a: readonly string[],
  b: readonly string[],
  star: string,
  meets: (x: string, y: string) => boolean,
): boolean {
  const [x, ...restOfA] = a;
  const [y, ...restOfB] = b;
  if (x === undefined && y === undefined) return true;
  if (x === star) return listsMeet(restOfA, b, star, meets) || (y !== undefined && listsMeet(a, restOfB, star, meets));
  if (y === star) return listsMeet(a, restOfB, star, meets) || (x !== undefined && listsMeet(restOfA, b, star, meets));
  return x !== undefined && y !== undefined && meets(x, y) && listsMeet(restOfA, restOfB, star, meets);
}

function membersOf(segments: readonly string[]): readonly (readonly string[])[] {
  const [first, ...rest] = segments;
  if (first === undefined) return [[]];
  const tails = membersOf(rest);
  const heads = first === "**" ? [[], ["§"], ["§§", "¶"]] : filled(first);
  return heads.flatMap((head) => tails.map((tail) => [...head, ...tail]));
}

/** A segment is never empty, so a star alone matches at least one letter. */
function filled(segment: string): readonly (readonly string[])[] {
  return fillingsOf(segment)
    .filter((filling) => filling !== "")
    .map((filling) => [filling]);
}

function fillingsOf(segment: string): readonly string[] {
  const [first, ...rest] = [...segment];
  if (first === undefined) return [""];
  const tails = fillingsOf(rest.join(""));
  const heads = first === "*" ? ["", "§", "§¶§"] : first === "?" ? ["§"] : [first];
  return heads.flatMap((head) => tails.map((tail) => head + tail));
}
