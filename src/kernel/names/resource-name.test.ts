import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { isWildSegment, parseResourceName, type ResourceName, resourceNameLimits, textHash } from "./resource-name.ts";

test("C3: a literal name is read as type and segments, and keeps its text", () => {
  assert.deepEqual(parsed("FILE:/src/app.ts"), {
    text: "FILE:/src/app.ts",
    type: "FILE",
    segments: ["src", "app.ts"],
    hashes: [textHash("src"), textHash("app.ts")],
    wild: false,
  });
  assert.deepEqual(parsed("DB_2:/a b/:x:/...").segments, ["a b", ":x:", "..."]);
});

test("C3: the bare root is a name without segments", () => {
  assert.deepEqual(parsed("FILE:/"), { text: "FILE:/", type: "FILE", segments: [], hashes: [], wild: false });
});

test("C3: TASK is a name like others here; it is the acquire rule that reserves it", () => {
  assert.equal(parsed("TASK:/17").type, "TASK");
});

test("C3: a type that is not [A-Z][A-Z0-9_]* is refused", () => {
  for (const text of [
    "",
    ":",
    ":/a",
    "FILE",
    "file:/a",
    "1A:/a",
    "_A:/a",
    "A-B:/a",
    "FÏLE:/a",
    "FI LE:/a",
    "A*:/a",
    "/a",
  ]) {
    assert.match(refused(text), /does not start with a type/, JSON.stringify(text));
  }
});

test("C3, S4: a type of the greatest length is taken, and one character more is refused", () => {
  const longest = "T".repeat(resourceNameLimits.typeLengthMax);
  assert.equal(parsed(`${longest}:/a`).type, longest);
  assert.match(refused(`${longest}T:/a`), /does not start with a type/);
});

test("C3: a path that does not start at the root is refused", () => {
  for (const text of ["FILE:", "FILE:a", "FILE:a/b", "FILE:*", "FILE::/a"])
    assert.match(refused(text), /start with "\/"/, text);
});

test("C3: an empty segment is refused", () => {
  for (const text of ["FILE://", "FILE://a", "FILE:/a//b", "FILE:/**//a"])
    assert.match(refused(text), /empty segment/, text);
});

test("C3: a trailing slash is refused", () => {
  for (const text of ["FILE:/a/", "FILE:/a/b/", "FILE:/**/"]) assert.match(refused(text), /empty segment/, text);
});

test('C3: "." and ".." segments are refused wherever they stand, and names that only have dots in them are not', () => {
  for (const text of ["FILE:/.", "FILE:/..", "FILE:/./a", "FILE:/a/../b", "FILE:/a/.."]) {
    assert.match(refused(text), /"\." or "\.\."/, text);
  }
  for (const text of ["FILE:/...", "FILE:/.a", "FILE:/a.", "FILE:/..a", "FILE:/.a."])
    assert.equal(parsed(text).text, text);
});

test("C3: a backslash is refused, because some systems take it for a separator", () => {
  assert.match(refused("FILE:/a\\b"), /backslash/);
});

test("C3: every control character is refused, C0, DEL and C1", () => {
  for (let code = 0; code <= 0x9f; code++) {
    if (code >= 0x20 && code < 0x7f) continue;
    assert.match(refused(`FILE:/a${String.fromCodePoint(code)}b`), /control character/, code.toString(16));
  }
});

test("C3: every bidirectional control is refused", () => {
  const controls = [0x061c, 0x200e, 0x200f, 0x202a, 0x202b, 0x202c, 0x202d, 0x202e, 0x2066, 0x2067, 0x2068, 0x2069];
  for (const point of controls)
    assert.match(refused(`FILE:/a${String.fromCodePoint(point)}b`), /bidirectional control/);
});

test("C3: line and paragraph separators and the byte order mark are refused", () => {
  assert.match(refused("FILE:/a\u2028"), /separator \(U\+2028\)/);
  assert.match(refused("FILE:/a\u2029"), /separator \(U\+2029\)/);
  assert.match(refused("FILE:/\ufeffa"), /byte order mark \(U\+FEFF\)/);
  assert.match(refused("\ufeffFILE:/a"), /does not start with a type/);
});

test("C3: lone surrogates are refused, and pairs are not", () => {
  for (const half of ["\ud83d", "\ude00", "\ude00\ud83d"]) {
    assert.match(refused(`FILE:/${half}`), /lone surrogate/);
    assert.match(refused(`FILE:/${half}/b`), /lone surrogate/);
  }
  assert.deepEqual(parsed("FILE:/\u{1f600}/b").segments, ["\u{1f600}", "b"]);
});

test("C3: noncharacters of every plane are refused, and their neighbours are not", () => {
  for (let plane = 0; plane <= 0x10; plane++) {
    for (const last of [0xfffe, 0xffff]) {
      assert.match(refused(`FILE:/${String.fromCodePoint(plane * 0x10000 + last)}`), /noncharacter/);
    }
  }
  for (const point of [0xfdd0, 0xfdef]) assert.match(refused(`FILE:/${String.fromCodePoint(point)}`), /noncharacter/);
  for (const point of [0xfdcf, 0xfdf0, 0xfffd]) parsed(`FILE:/${String.fromCodePoint(point)}`);
});

test("C3: a refusal names the code point and its position, and does not repeat the input", () => {
  assert.equal(
    refused("FILE:/a\u202eb"),
    "The name has a bidirectional control (U+202E) at position 7; write it without.",
  );
});

test("C3: composed and decomposed spellings are one name, in NFC", () => {
  const composed = parsed("FILE:/caf\u00e9/x");
  assert.deepEqual(parsed("FILE:/cafe\u0301/x"), composed);
  assert.equal(composed.text, "FILE:/caf\u00e9/x");
  assert.equal(parsed("FILE:/\u212a").text, "FILE:/K");
  assert.equal(parsed("FILE:/e\u0301*?").text, "FILE:/\u00e9?*");
});

test("S4: a name of the greatest length is taken, and one character more is refused", () => {
  const longest = `FILE:/${"a".repeat(resourceNameLimits.lengthMax - 6)}`;
  assert.equal(parsed(longest).text.length, resourceNameLimits.lengthMax);
  assert.match(refused(`${longest}a`), /longer than 1024/);
});

test("S4: a name that only its normal form makes too long is refused", () => {
  const growing = `FILE:/${"\ufb2c".repeat(400)}`; // Each becomes three characters.
  assert.ok(growing.length <= resourceNameLimits.lengthMax);
  assert.match(refused(growing), /longer than 1024/);
});

test("S4: a path of the greatest depth is taken, and one segment more is refused", () => {
  const deepest = `FILE:${"/a".repeat(resourceNameLimits.segmentsMax)}`;
  assert.equal(parsed(deepest).segments.length, resourceNameLimits.segmentsMax);
  assert.match(refused(`${deepest}/a`), /more than 64 segments/);
});

test("C3, C4: a pattern has one spelling", () => {
  const spellings: readonly (readonly [string, string])[] = [
    ["/a**b", "/a*b"],
    ["/a*?b", "/a?*b"],
    ["/a?*?*?b", "/a???*b"],
    ["/***", "/*"],
    ["/?*", "/*"],
    ["/*?", "/*"],
    ["/**?", "/*"],
    ["/?", "/?"],
    ["/??*", "/??*"],
    ["/*??", "/??*"],
    ["/a?*", "/a?*"],
    ["/**", "/**"],
    ["/a/**", "/a/**"],
    ["/**/**/**", "/**"],
    ["/**/*", "/*/**"],
    ["/**/*/**/*", "/*/*/**"],
    ["/**/*?", "/*/**"],
    ["/**/a/**/*/b", "/**/a/*/**/b"],
    ["/**/*a", "/**/*a"],
    ["/***/**", "/*/**"],
    ["/**a/b**", "/*a/b*"],
  ];
  for (const [written, canonical] of spellings) {
    const name = parsed(`FILE:${written}`);
    assert.equal(name.text, `FILE:${canonical}`);
    assert.equal(name.wild, true);
    assert.deepEqual(name.segments, canonical.slice(1).split("/"));
  }
});

test("C4: a segment is a pattern iff it has a star or a question mark", () => {
  for (const segment of ["*", "**", "?", "a*", "?a", "a?b"]) assert.equal(isWildSegment(segment), true, segment);
  for (const segment of ["a", "[a]", "{a,b}", "!a", "+"]) assert.equal(isWildSegment(segment), false, segment);
});

test("C3: parsing a canonical text gives the same name again", () => {
  const character = fc.constantFrom(
    "a",
    "b",
    "*",
    "*",
    "?",
    "/",
    ".",
    "e",
    "\u0301",
    "\u0323",
    "\u{1f600}",
    "\ufb2c",
    "\uac00",
    "\u11a8",
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.array(character, { maxLength: 14 }).map((all) => all.join("")),
        fc.string({ unit: "grapheme" }),
      ),
      (path) => {
        const first = parseResourceName(`FILE:/${path}`);
        if ("problem" in first) return;
        assert.deepEqual(parseResourceName(first.text), first);
        assert.equal(first.text, `${first.type}:/${first.segments.join("/")}`);
        assert.equal(first.wild, first.segments.some(isWildSegment));
        assert.equal(first.text, first.text.normalize("NFC"));
      },
    ),
    { numRuns: 3000 },
  );
});

test("S3: whatever is sent, the parser answers with a name or with a problem", () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string({ unit: "binary" }),
        fc.string({ unit: "binary" }).map((path) => `FILE:/${path}`),
      ),
      (text) => {
        const result = parseResourceName(text);
        assert.ok(
          "problem" in result
            ? /^The .*; write .*\.$/.test(result.problem)
            : result.text.startsWith(`${result.type}:/`),
        );
      },
    ),
    { numRuns: 1000 },
  );
});

function parsed(text: string): ResourceName {
  const name = parseResourceName(text);
  if ("problem" in name) assert.fail(`${JSON.stringify(text)}: ${name.problem}`);
  return name;
}

function refused(text: string): string {
  const name = parseResourceName(text);
  if (!("problem" in name)) assert.fail(`${JSON.stringify(text)} was taken`);
  return name.problem;
}
