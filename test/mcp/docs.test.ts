import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { legivellumTools } from "../../src/mcp/legivellum/tools.ts";
import { selectTools, tools } from "../../src/mcp/tools.ts";

const text = readFileSync("docs/mcp.md", "utf8");

test("docs/mcp.md has every tool in its toolset, and no other", () => {
  const core = selectTools({ sets: ["core"], role: null, hasKey: true });
  for (const { name, set } of [...core, ...tools]) {
    const row = text.split("\n").find((line) => line.startsWith(`| ${set} |`)) ?? "";
    assert.ok(row.includes(`\`${name}\``), `${set} lacks ${name}`);
  }
  for (const { name } of legivellumTools) assert.ok(text.includes(`\`${name}\``), name);
  const named = [...text.matchAll(/`((?:asyncgate|receiptgate|depotgate)\.\w+)`/g)].map(([, name]) => name);
  const known = legivellumTools.map(({ name }) => name);
  assert.deepEqual(
    named.filter((name) => name !== undefined && !known.includes(name)),
    [],
  );
});

test("docs/mcp.md gives a reason for every scenario that does not apply", () => {
  const files = globSync("test/mcp/conformance-*.yml");
  assert.equal(files.length, 2);
  for (const file of files) {
    for (const [, scenario = "", check] of readFileSync(file, "utf8").matchAll(/^ {2}- ([\w-]+)(?::([\w-]+))?$/gm)) {
      assert.ok(text.includes(`\`${scenario}\``), `${file}: ${scenario}`);
      if (check !== undefined) assert.ok(text.includes(`\`${check}\``), `${file}: ${check}`);
    }
  }
});
