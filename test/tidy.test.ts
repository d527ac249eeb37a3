import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import type { Allowances } from "./sources/tidy.ts";
import * as tidy from "./sources/tidy.ts";

const sources = tidy.projectSources();
const allowed = tidy.readAllowances();

test("comments, messages, test names and docs use plain words", () => {
  assert.deepEqual(tidy.beyondAllowance(sources.flatMap(tidy.phraseFindings), allowed.phrases), []);
});

test("no file written by hand is longer than 400 lines", () => {
  assert.deepEqual(
    sources.flatMap((source) => tidy.lengthFindings(source, allowed.lines)),
    [],
  );
});

test("no file or folder has a name that says nothing", () => {
  assert.deepEqual(
    sources.flatMap(({ path }) => tidy.nameFindings(path)),
    [],
  );
});

test("nothing names a path of somebody's machine or a private registry", () => {
  assert.deepEqual(sources.flatMap(tidy.traceFindings), []);
});

test("only resetSocket resets a socket: Node forgets one that is being shut down, and loops when it exits", () => {
  const resets = sources.filter(({ path, text }) => path.endsWith(".ts") && text.includes(`.${"resetAndDestroy"}(`));
  assert.deepEqual(
    resets.map(({ path }) => path),
    ["src/cell/reset-socket.ts"],
  );
});

test("docs and comments name only files that exist", () => {
  assert.deepEqual(sources.flatMap(tidy.pathFindings), []);
});

test("docs and comments name only links and npm scripts that exist", () => {
  const { scripts } = JSON.parse(readFileSync("package.json", "utf8")) as { scripts: Record<string, string> };
  const names = new Set(Object.keys(scripts));
  assert.deepEqual(
    sources.flatMap((source) => tidy.linkFindings(source, names)),
    [],
  );
  const text = "[a](rules.md#l-leases) [b](nowhere.md) [c](https://example.com) `npm run sim` `npm run nothing`";
  assert.equal(tidy.linkFindings({ path: "docs/a.md", text }, names).length, 2);
});

test("every decision has its four parts, and a row in the table", () => {
  const table = readFileSync("docs/decisions/README.md", "utf8");
  const decisions = sources.filter(({ path }) => /^docs\/decisions\/\d/.test(path));
  assert.deepEqual(
    decisions.flatMap((decision) => tidy.decisionFindings(decision, table)),
    [],
  );
  const half = { path: "docs/decisions/0099-half.md", text: "# 0099\n\n## Question\n\n## Decision\n" };
  assert.equal(tidy.decisionFindings(half, table).length, 3);
});

test("a banned phrase is found in a comment, a string, a template, a document, and across a line's end", () => {
  const names = (path: string, text: string) => tidy.phraseFindings({ path, text }).map(({ name }) => name);
  assert.deepEqual(names("src/cli/a.ts", "// Tried anew by whoever\n// asks.\nconst anew = 1;"), ["whoever", "anew"]);
  assert.deepEqual(names("src/cli/a.ts", 'throw fail(`"$' + '{name}" is no command`);'), ["is no"]);
  assert.deepEqual(names("src/cli/a.ts", '/**\n * The answer is put\n * into words.\n */\ntest("a look", f);'), [
    "put into words",
    "a look",
  ]);
  assert.deepEqual(names("docs/a.md", "Flags go behind `--`. What was\ntold is found by\nhalving."), [
    "behind --",
    "by halving",
    "told",
  ]);
  assert.deepEqual(names("src/cli/a.ts", "export type Asked = { readonly by: string };"), ["type"]);
});

test("ordinary English is not taken for a banned phrase", () => {
  const plain = [
    "There is no lease on it, and it is no longer held. There are no waiters.",
    "It looks up the lease. The two are told apart by their ids.",
    "It waits for as long as the timeout says, so long as nobody cancels.",
    "Who may read it? Recommended: amend the commit.",
  ];
  for (const text of plain) assert.deepEqual(tidy.phraseFindings({ path: "docs/a.md", text }), []);
  assert.deepEqual(tidy.phraseFindings({ path: "src/a.ts", text: 'import { open } from "./door.ts";' }), []);
});

test("an allowance lets as many pass as it says, and one more is found", () => {
  const findings = ["anew", "anew and anew"].flatMap((text) => tidy.phraseFindings({ path: "docs/a.md", text }));
  const allow = (count: number): Allowances["phrases"] => ({ docs: { anew: count } });
  assert.deepEqual(tidy.beyondAllowance(findings, allow(3)), []);
  assert.equal(tidy.beyondAllowance(findings, allow(2)).length, 4);
  assert.equal(tidy.beyondAllowance(findings, {}).length, 4);
});

test("a file that is too long, a name that says nothing, a machine's path and a missing file are found", () => {
  const long = { path: "src/a/a.ts", text: "\n".repeat(401) };
  assert.equal(tidy.lengthFindings(long, {}).length, 1);
  assert.deepEqual(tidy.lengthFindings(long, { "src/a/a.ts": 401 }), []);
  assert.deepEqual(tidy.lengthFindings({ ...long, text: `/** Written by scripts/x.ts. */${long.text}` }, {}), []);
  assert.equal(tidy.nameFindings("src/server/utils/text.ts").length, 1);
  assert.equal(tidy.nameFindings("src/server/lease-manager.ts").length, 1);
  assert.deepEqual(tidy.nameFindings("src/server/common-sense.md").length, 1);
  assert.deepEqual(tidy.nameFindings("src/server/commons.ts"), []);
  assert.equal(tidy.traceFindings({ path: "docs/a.md", text: "see\n/root/project/a.ts" }).length, 1);
  assert.equal(tidy.traceFindings({ path: "docs/a.md", text: "https://registry.example.net/leasehold" }).length, 1);
  assert.equal(tidy.pathFindings({ path: "docs/a.md", text: "It is in `src/kernel/nothing-there.ts`." }).length, 1);
  assert.equal(tidy.pathFindings({ path: "docs/a.md", text: "It is in `nothing-there.ts`." }).length, 1);
  assert.equal(tidy.pathFindings({ path: "src/a.ts", text: "// As src/store/nothing.ts does." }).length, 1);
  assert.deepEqual(
    tidy.pathFindings({ path: "docs/a.md", text: "`src/kernel/kernel.ts`, `src/auth.ts`, test/*.ts" }),
    [],
  );
});
