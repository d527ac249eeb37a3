import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { conformanceFaults } from "./sources/conformance.ts";
import { readSources } from "./sources/imports.ts";

const page = readFileSync("docs/conformance.md", "utf8");
const rules = readFileSync("docs/rules.md", "utf8");
const tests = readSources("{src,sim,test,torture}/**/*.test.ts");

function faults(document: string): readonly string[] {
  return conformanceFaults(document, rules, tests);
}

/** The page with one change, which must be possible. */
function changed(from: string | RegExp, to: string): string {
  const text = page.replace(from, to);
  assert.ok(text !== page, `${from} is not on the page`);
  return text;
}

test("docs/conformance.md has every statement once, with rules, sentences and tests that exist", () => {
  assert.deepEqual(faults(page), []);
});

test("a test or file that does not exist, and a beginning that several tests share, are found", () => {
  assert.match(faults(changed('"L12: ended is final"', '"L12: ended is not"')).join(), /^K3-33 .* 0 times/);
  assert.match(faults(changed('"L12: ended is final"', '"L5: "')).join(), /^K3-33 .* 2 times/);
  assert.match(faults(changed("`sim/sim.test.ts`", "`sim/none.test.ts`")).join(), /^K3-12 .* does not exist/);
  assert.match(faults(changed(/`[^`]+` "L12: ended is final"/, "none")).join(), /^K3-33 names no test$/);
});

test("a rule that does not exist, and a sentence that the rule does not say, are found", () => {
  assert.match(faults(changed("| A7 | `test/sdk/worker", "| A70 | `test/sdk/worker")).join(), /^K3-10 cites A70/);
  assert.match(faults(changed("| A7 | `test/sdk/worker", "| – | `test/sdk/worker")).join(), /^K3-10 cites no rule$/);
  assert.match(faults(changed("“Nobody can", "“Everybody can")).join(), /^K4-05 quotes of W1 what it does not say/);
  assert.match(faults(changed("“Nobody can choose or change it.”", "")).join(), /^K4-05 quotes no sentence/);
});

test("what is listed as not kept, though the rules say that it is built, is found", () => {
  const row = "\n| K3-33 | final | L12 | all of it |\n";
  const listed = changed(/^\| K3-33 .*\n/m, "").replace(/(?=\nNot applicable)/, row);
  assert.deepEqual(faults(listed), ["K3-33 is not kept, but none of its rules has a mark ◆"]);
});

test("a statement that is left out, is there twice, or is not one of the documents' is found", () => {
  assert.deepEqual(faults(changed(/^\| K3-33 .*\n/m, "")), ["K3-33 is there 0 times"]);
  assert.deepEqual(faults(changed("K5-36, A-04", "K5-36, A-04, K3-33")), ["K3-33 is there 2 times"]);
  assert.deepEqual(faults(changed("K5-36, A-04", "K5-36, A-04, A-86")), ["A-86 is not a statement"]);
});
