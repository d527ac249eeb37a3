import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { literalPrefixLength, nameCovers, namesOverlap, segmentsOverlap } from "./pattern.ts";
import { parseResourceName, type ResourceName } from "./resource-name.ts";

test("C4: segments overlap iff a segment is in both", () => {
  const cases: readonly (readonly [string, string, boolean])[] = [
    ["a", "a", true],
    ["a", "b", false],
    ["a", "ab", false],
    ["*", "a", true],
    ["?", "a", true],
    ["?", "ab", false],
    ["??", "?", false],
    ["a?", "?b", true],
    ["a*", "*b", true],
    ["a*", "b*", false],
    ["*a", "*b", false],
    ["*.ts", "app.ts", true],
    ["*.ts", "app.tsx", false],
    ["*.ts", ".ts", true],
    ["aa*aa", "aaa", false],
    ["a*a", "a", false],
    ["*ab*ab*", "abab", true],
    ["*ab*ab*", "aba", false],
    ["*aab", "aaab", true],
    ["??*", "?", false],
    ["??*", "???", true],
    ["a*b?c", "a?b*c", true],
  ];
  for (const [a, b, expected] of cases) {
    assert.equal(segmentsOverlap(a, b), expected, `${a} and ${b}`);
    assert.equal(segmentsOverlap(b, a), expected, `${b} and ${a}`);
  }
});

test("C4: a question mark takes one character, also one that UTF-16 writes as two units", () => {
  const cases: readonly (readonly [string, string, boolean])[] = [
    ["?", "\u{1f600}", true],
    ["??", "\u{1f600}", false],
    ["a?b", "a\u{1f600}b", true],
    ["?b", "\u{1f600}*", true],
    ["*??", "\u{1f600}", false],
    ["*?b*", "\u{1f600}b", true],
    ["*??b*", "\u{1f600}b", false],
    ["\u{1f600}?", "?\u{1f600}", true],
    ["\u{1f600}*", "\u{1f601}*", false],
    ["*\u{1f600}", "*\u{1fa00}", false],
    ["?*\u{1f600}*", "\u{1f600}\u{1f600}", true],
  ];
  for (const [a, b, expected] of cases) {
    assert.equal(segmentsOverlap(a, b), expected, `${a} and ${b}`);
    assert.equal(segmentsOverlap(b, a), expected, `${b} and ${a}`);
  }
});

test("C4: names overlap iff a path is in both, and a final /** includes the directory itself", () => {
  const cases: readonly (readonly [string, string, boolean])[] = [
    ["F:/d/**", "F:/d", true],
    ["F:/d/**", "F:/d/a/b", true],
    ["F:/d/**", "F:/da", false],
    ["F:/d/**", "F:/", false],
    ["F:/**", "F:/", true],
    ["F:/*", "F:/", false],
    ["F:/*", "F:/a/b", false],
    ["F:/d/*/**", "F:/d", false],
    ["F:/**/*.ts", "F:/src/**", true],
    ["F:/**/*.ts", "F:/app.ts", true],
    ["F:/**/*.ts", "F:/src/app.js", false],
    ["F:/src/**/x", "F:/test/**/x", false],
    ["F:/**/x", "F:/**/y", false],
    ["F:/a/**/b/**/c", "F:/a/b/c", true],
    ["F:/a/**/b/**/c", "F:/a/c", false],
    ["F:/a/**/b/*/c", "F:/a/*/*/b/c", true],
    ["F:/a/**/d/*/c", "F:/a/*/b/b/c", false],
    ["F:/a/**/a", "F:/a", false],
    ["F:/a", "G:/a", false],
    ["F:/**", "G:/**", false],
  ];
  for (const [a, b, expected] of cases) {
    assert.equal(namesOverlap(parsed(a), parsed(b)), expected, `${a} and ${b}`);
    assert.equal(namesOverlap(parsed(b), parsed(a)), expected, `${b} and ${a}`);
  }
});

test("C4: a name covers what is in it, and nothing beside it", () => {
  const cases: readonly (readonly [string, string, boolean])[] = [
    ["F:/a", "F:/a", true],
    ["F:/a", "F:/*", false],
    ["F:/a", "G:/a", false],
    ["F:/**", "G:/a", false],
    ["F:/**", "F:/", true],
    ["F:/**", "F:/**/x", true],
    ["F:/d/**", "F:/d", true],
    ["F:/d/**", "F:/d/**", true],
    ["F:/d/**", "F:/d/*/x?/**", true],
    ["F:/d/**", "F:/**", false],
    ["F:/d/**", "F:/?", false],
    ["F:/d/*", "F:/d/**", false],
    ["F:/d/*", "F:/d/x*", true],
    ["F:/d/*", "F:/d", false],
    ["F:/*.ts", "F:/a.ts", true],
    ["F:/*.ts", "F:/*.js", false],
    ["F:/**/x/**", "F:/a/x", true],
    ["F:/**/x/**", "F:/a/y", false],
  ];
  for (const [a, b, expected] of cases) assert.equal(nameCovers(parsed(a), parsed(b)), expected, `${a} over ${b}`);
});

test("C4: the literal prefix ends before the first pattern", () => {
  assert.equal(literalPrefixLength(parsed("F:/")), 0);
  assert.equal(literalPrefixLength(parsed("F:/a/b")), 2);
  assert.equal(literalPrefixLength(parsed("F:/a/b/**")), 2);
  assert.equal(literalPrefixLength(parsed("F:/a/b?/c")), 1);
  assert.equal(literalPrefixLength(parsed("F:/*/a")), 0);
});

test("C4: the overlap of all short segments is that of the oracle, both ways round", () => {
  const patterns = wordsOver(["a", "b", "*", "?"], 3);
  const words = wordsOver(["a", "b"], 6);
  const matched = new Map(patterns.map((pattern) => [pattern, words.filter((word) => inSegment(pattern, word))]));
  for (const [a, ofA] of matched) {
    const inA = new Set(ofA);
    for (const [b, ofB] of matched) {
      const expected = ofB.some((word) => inA.has(word));
      if (segmentsOverlap(a, b) !== expected) assert.fail(`${a} and ${b}: the oracle says ${expected}`);
    }
  }
});

test("C4: the overlap of longer segments, astral characters among them, is that of the oracle", () => {
  const letters = ["a", "\u{1f600}"];
  const words = wordsOver(letters, 10);
  const pattern = fc
    .array(fc.constantFrom(...letters, "*", "?"), { minLength: 1, maxLength: 5 })
    .map((all) => all.join(""));
  fc.assert(
    fc.property(pattern, pattern, (a, b) => {
      const expected = words.some((word) => inSegment(a, word) && inSegment(b, word));
      assert.equal(segmentsOverlap(a, b), expected);
      assert.equal(segmentsOverlap(b, a), expected);
    }),
    { numRuns: 400 },
  );
});

// Of two such names, the shortest common path has at most four segments of at most two characters.
const pathsOfTwoLetters = pathsOver(wordsOver(["a", "b"], 2), 4);
const segment = fc.oneof(
  { weight: 2, arbitrary: fc.constant("**") },
  { weight: 5, arbitrary: fc.constantFrom(...wordsOver(["a", "b", "*", "?"], 2)) },
);
const anyName = fc.array(segment, { maxLength: 3 }).map((segments) => parsed(`F:/${segments.join("/")}`));

test("C4: the overlap of names is that of the oracle, both ways round", () => {
  fc.assert(
    fc.property(anyName, anyName, (a, b) => {
      const expected = pathsOfTwoLetters.some((path) => inName(a.segments, path) && inName(b.segments, path));
      assert.equal(namesOverlap(a, b), expected);
      assert.equal(namesOverlap(b, a), expected);
    }),
    { numRuns: 1500 },
  );
});

test("C4: a name that covers another has all its paths, and the two overlap", () => {
  fc.assert(
    fc.property(anyName, anyName, (a, b) => {
      assert.equal(nameCovers(a, a), true);
      if (!nameCovers(a, b)) return;
      assert.equal(namesOverlap(a, b), true);
      const beside = pathsOfTwoLetters.find((path) => inName(b.segments, path) && !inName(a.segments, path));
      assert.equal(beside, undefined);
    }),
    { numRuns: 3000 },
  );
});

test("C4: covering a literal name is matching it", () => {
  fc.assert(
    fc.property(anyName, fc.constantFrom(...pathsOfTwoLetters), (a, path) => {
      const literal = parsed(`F:/${path.join("/")}`);
      assert.equal(nameCovers(a, literal), inName(a.segments, path));
      assert.equal(namesOverlap(a, literal), inName(a.segments, path));
    }),
    { numRuns: 3000 },
  );
});

test("C4: a directory covers exactly the names that have no path outside it", () => {
  const paths = pathsOver(wordsOver(["a", "b", "c"], 2), 3);
  const directory = fc
    .array(fc.constantFrom("a", "b"), { maxLength: 2 })
    .map((segments) => parsed(`F:/${[...segments, "**"].join("/")}`));
  fc.assert(
    fc.property(directory, anyName, (a, b) => {
      const beside = paths.some((path) => inName(b.segments, path) && !inName(a.segments, path));
      assert.equal(nameCovers(a, b), !beside);
    }),
    { numRuns: 1500 },
  );
});

test("C3, C4: two segment patterns are spelt the same iff they match the same", () => {
  const words = wordsOver(["a", "c"], 6);
  assertOneSpelling(
    wordsOver(["a", "*", "?"], 4).filter((pattern) => pattern !== "**"),
    (pattern) => words.map((word) => (inSegment(pattern, word) ? "1" : "0")).join(""),
  );
});

test("C3, C4: two names of whole-segment patterns are spelt the same iff they match the same", () => {
  const paths = pathsOver(["a", "c"], 6);
  const written = pathsOver(["a", "*", "**"], 4).map((segments) => segments.join("/"));
  assertOneSpelling(written, (path) => {
    const segments = path === "" ? [] : path.split("/");
    return paths.map((each) => (inName(segments, each) ? "1" : "0")).join("");
  });
});

test("C4: patterns made to be slow are not", () => {
  const long = "a".repeat(1000);
  assert.equal(segmentsOverlap("*a".repeat(500), long), true);
  assert.equal(segmentsOverlap(`${"*a".repeat(499)}*b`, long), false);
  assert.equal(segmentsOverlap(`${"*a".repeat(500)}*b*`, long), false);
  assert.equal(segmentsOverlap(`*${"a".repeat(500)}b*`, long), false);
  assert.equal(segmentsOverlap(`*${"?".repeat(500)}b*`, "\u{1f600}".repeat(500)), false);
  assert.equal(segmentsOverlap("*a".repeat(500), "a*".repeat(500)), true);
  assert.equal(segmentsOverlap(`${"*a?".repeat(333)}b`, `${"*?a".repeat(333)}c`), false);

  const deep = parsed(`F:/${"**/a/".repeat(31)}**`);
  const flat = parsed(`F:${"/a".repeat(64)}`);
  assert.equal(namesOverlap(deep, flat), true);
  assert.equal(nameCovers(deep, flat), true);
  assert.equal(namesOverlap(parsed(`F:/${"**/a/".repeat(30)}**/b/**`), flat), false);
  assert.equal(namesOverlap(deep, parsed(`F:/${"**/b/".repeat(31)}**`)), true);
  const heavy = parsed(`F:/${"**/*a*a*a*a*b/".repeat(31)}**`);
  assert.equal(namesOverlap(heavy, parsed(`F:${"/aaaaaaaaaaaaa".repeat(64)}`)), false);
});

test("C4: no segment is compared with the same one twice", () => {
  let reads = 0;
  const path = new Proxy(Array<string>(60).fill("a"), {
    get(segments, key) {
      if (key in segments && Number.isInteger(Number(key))) reads++;
      return Reflect.get(segments, key);
    },
  });
  const literal: ResourceName = { ...parsed("F:/a"), segments: path };
  for (const text of [
    `F:/**${"/a".repeat(30)}/b/**`,
    `F:/${"**/a/".repeat(31)}b`,
    `F:/${"**/a/a/".repeat(20)}**/b/**`,
  ]) {
    const pattern = parsed(text);
    reads = 0;
    assert.equal(nameCovers(pattern, literal), false);
    assert.ok(reads > 0 && reads <= pattern.segments.length * path.length, `${text}: ${reads} reads`);
  }
});

/** Matches by definition, in exponential time. */
function inSegment(pattern: string, word: string): boolean {
  const match = (p: readonly string[], w: readonly string[]): boolean => {
    const [head, ...rest] = p;
    if (head === undefined) return w.length === 0;
    if (head === "*") return match(rest, w) || (w.length > 0 && match(p, w.slice(1)));
    return w.length > 0 && (head === "?" || head === w[0]) && match(rest, w.slice(1));
  };
  return word !== "" && match([...pattern], [...word]);
}

/** The same for paths. */
function inName(pattern: readonly string[], path: readonly string[]): boolean {
  const [head, ...rest] = pattern;
  const [first, ...others] = path;
  if (head === undefined) return first === undefined;
  if (head === "**") return inName(rest, path) || (first !== undefined && inName(pattern, others));
  return first !== undefined && inSegment(head, first) && inName(rest, others);
}

/** All sequences of zero to `lengthMax` of the given parts. */
function pathsOver(parts: readonly string[], lengthMax: number): (readonly string[])[] {
  const all: (readonly string[])[] = [[]];
  let longest: readonly (readonly string[])[] = all.slice();
  for (let length = 1; length <= lengthMax; length++) {
    longest = longest.flatMap((path) => parts.map((part) => [...path, part]));
    all.push(...longest);
  }
  return all;
}

/** All non-empty words of up to `lengthMax` letters. */
function wordsOver(letters: readonly string[], lengthMax: number): string[] {
  return pathsOver(letters, lengthMax)
    .map((word) => word.join(""))
    .filter((word) => word !== "");
}

function assertOneSpelling(paths: readonly string[], language: (path: string) => string): void {
  const spellingOf = new Map<string, string>();
  const languageOf = new Map<string, string>();
  for (const path of paths) {
    const { text } = parsed(`F:/${path}`);
    const words = language(path);
    const spelling = spellingOf.get(words) ?? text;
    assert.equal(text, spelling, `${path} matches what ${spelling} matches`);
    assert.equal(languageOf.get(text) ?? words, words, `${path} does not match what ${text} matches`);
    spellingOf.set(words, text);
    languageOf.set(text, words);
  }
}

function parsed(text: string): ResourceName {
  const name = parseResourceName(text);
  if ("problem" in name) assert.fail(`${JSON.stringify(text)}: ${name.problem}`);
  return name;
}
