import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { projectFiles, readSources } from "./sources/imports.ts";
import { pendingFaults, readPending, readRules, testedRules, unknownRules, untestedRules } from "./sources/rules.ts";

const rules = readRules(readFileSync("docs/rules.md", "utf8"));
const pending = readPending(readFileSync("docs/rules-pending.md", "utf8"));
/** They plant numbers that are not rules. */
const planted = ["test/rules.test.ts", "test/conformance.test.ts", "test/sources/rules.ts"];
const folders = ["src", "sim", "test", "bench", "torture", "docs", "scripts", "spec", "examples", "experiments"];
const sources = readSources([...folders.map((folder) => `${folder}/**/*.{ts,md,mjs,txt,tla}`), "*.md"]).filter(
  ({ path }) => !planted.includes(path),
);

test("docs/rules.md has the rules of all eight sections, numbered without a gap", () => {
  const sections = { L: 16, C: 7, W: 14, A: 7, G: 15, T: 13, R: 8, S: 8 };
  const expected = Object.entries(sections).flatMap(([letter, last]) =>
    Array.from({ length: last }, (_, index) => `${letter}${index + 1}`),
  );
  assert.deepEqual([...rules.keys()], expected);
});

test("every rule number cited in code, tests and docs exists", () => {
  assert.deepEqual(
    sources.flatMap((source) => unknownRules(source, rules)),
    [],
  );
});

test("every rule of which something is built is named by a test", () => {
  assert.deepEqual(untestedRules(sources, rules, pending), []);
});

test("docs/rules-pending.md agrees with the marks of docs/rules.md and with the tests", () => {
  assert.deepEqual(pendingFaults(sources, rules, pending), []);
});

test("an unknown number is found in comments, strings and documents, and letters with numbers that are not rules are not", () => {
  const unknown = (path: string, text: string) => unknownRules({ path, text }, rules).length;
  assert.equal(unknown("src/a.ts", "/** Strict expiry\n * (L99). */"), 1);
  assert.equal(unknown("src/a.ts", 'test("W77: nobody overtakes", () => {});'), 1);
  assert.equal(unknown("docs/a.md", "The ledger (R6, R44)."), 1);
  assert.equal(
    unknown("src/a.ts", "// L3, W2 and T13 hold; finding M5, H1, D11 and version V2 of it; 0x1A2B, SHA-256."),
    0,
  );
  assert.equal(unknown("src/a.ts", "const L99 = A88(W77);"), 0);
});

test("packages that were installed below the project are not read", (t) => {
  const root = mkdtempSync(join(tmpdir(), "leasehold-sources-"));
  t.after(() => rmSync(root, { recursive: true }));
  for (const path of ["bench/a.ts", "bench/peers/b.ts", "bench/peers/node_modules/c/d.ts"]) {
    mkdirSync(join(root, dirname(path)), { recursive: true });
    writeFileSync(join(root, path), "");
  }
  assert.deepEqual(projectFiles(["bench/**/*.{ts,md}"], root).sort(), ["bench/a.ts", "bench/peers/b.ts"]);
});

test("a rule that no test names is found, unless nothing of it is built", () => {
  const own = readRules("- **L1** One. ◆ More.\n- **L2** Two.\n- **L3** ◆ Three.\n\n## C\n\n- **C1** Four.\n");
  const tests = [{ path: "a.test.ts", text: 'test("L1: one", f);\ntest(`$' + "{name} (C1)`, f);\n// test L2" }];
  assert.deepEqual([...testedRules(tests)], ["L1", "C1"]);
  const list = (row: string) => readPending(`| rule | built today | missing |\n| --- | --- | --- |\n${row}`);
  assert.deepEqual(untestedRules(tests, own, list("| L1 | one | more |\n| L3 | nothing | three |")), ["L2"]);
  assert.deepEqual(untestedRules(tests, own, list("| L2 | half | two |")), ["L2", "L3"]);
});

test("a stale or missing row of the list is found", () => {
  const own = readRules("- **L1** One. ◆ More.\n- **L2** Two.\n- **L3** ◆ Three.\n");
  const tests = [{ path: "a.test.ts", text: 'test("L1: one", f);\ntest("L3: three", f);' }];
  const faults = (...rows: readonly string[]) => pendingFaults(tests, own, readPending(rows.join("\n")));
  assert.deepEqual(faults("| L1 | one | more |", "| L3 | some | three |"), []);
  assert.equal(faults("| L1 | one | more |").length, 1);
  assert.equal(faults("| L1 | one | more |", "| L3 | nothing | three |").length, 1);
  assert.equal(faults("| L1 | one | more |", "| L3 | some | three |", "| L2 | two | more |").length, 1);
  assert.equal(faults("| L1 | one | more |", "| L3 | some | three |", "| L9 | some | nine |").length, 1);
});
