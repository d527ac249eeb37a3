import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { groups } from "../src/cli/commands.ts";
import { predicates, strengths, strengthsConflict } from "../src/kernel/contract/predicates.ts";
import { readSources } from "./sources/imports.ts";

const pages = readSources(["docs/**/*.md", "README.md", "examples/**/*.md", "plugin/**/*.md", "llms.txt", "AGENTS.md"]);

test("C1: the matrix of docs/concepts.md is the kernel's", () => {
  const rows = readFileSync("docs/concepts.md", "utf8").split("\n");
  for (const one of predicates) {
    const row = rows.find((line) => line.startsWith(`| ${one}:`)) ?? "";
    const cells = row.split("|").slice(2, -1);
    const expected = predicates.map((other) => (strengthsConflict(strengths[one], strengths[other]) ? "✗" : "✓"));
    assert.deepEqual(
      cells.map((cell) => cell.trim()),
      expected,
      one,
    );
  }
});

test("every command that the docs name exists", async () => {
  const modules = Object.values(groups).flatMap((group) => Object.entries(group));
  const known = new Set<string>();
  for (const [, load] of modules) for (const { name } of (await load()).commands) known.add(name);
  const firstWords = new Set([...known].map((name) => name.split(" ")[0]));
  const unknown = pages.flatMap(({ path, text }) =>
    [...text.matchAll(/(?:`|^ *(?:npx )?)leasehold ([a-z]+)(?: ([a-z]+))?/gm)]
      .filter(([, first = "", second = ""]) => !firstWords.has(first) && !known.has(`${first} ${second}`))
      .map(([found]) => `${path}: ${found}`),
  );
  assert.deepEqual(unknown, []);
});

test("links between pages lead to files that exist", () => {
  const broken = pages.flatMap(({ path, text }) =>
    [...text.matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)]
      .map(([, target = ""]) => target)
      .filter((target) => !/^[a-z]+:/.test(target) && !existsSync(join(dirname(path), target)))
      .map((target) => `${path}: ${target}`),
  );
  assert.deepEqual(broken, []);
});

test("newuser 3.26: the upgrade of a server is described, from the backup to what an older version refuses", () => {
  const page = readFileSync("docs/operations.md", "utf8");
  const section = page.split("### Upgrading\n")[1]?.split("\n## ")[0] ?? "";
  for (const word of ["backup", "Stop", "leases", "older", "exit code 4"])
    assert.ok(section.toLowerCase().includes(word.toLowerCase()), `"${word}" is missing in: ${section}`);
});

test("newuser 1.3: until there is a release, the README says that npm has none", () => {
  const isReleased = !readFileSync("README.md", "utf8").includes("Nothing has been released");
  assert.equal(isReleased, !readFileSync("README.md", "utf8").includes("Nothing is on npm before the first release"));
});
