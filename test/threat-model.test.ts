import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";

/** Rows of the tables of claims: the claim, and the file and name of its test. */
function claims(text: string): readonly { readonly claim: string; readonly file: string; readonly name: string }[] {
  const rows = text.matchAll(/^\| ([^|]+) \| `([^`]+\.test\.ts)`: "([^"]+)" \|$/gm);
  return [...rows].map(([, claim = "", file = "", name = ""]) => ({ claim, file, name }));
}

function isHeld({ file, name }: { readonly file: string; readonly name: string }): boolean {
  if (!existsSync(file)) return false;
  const lines = readFileSync(file, "utf8").split("\n");
  return lines.some((line) => /^\s*test\(["`]/.test(line) && line.includes(name));
}

test("every claim of the threat model names a test that exists", () => {
  const text = readFileSync("docs/threat-model.md", "utf8");
  const section = text.slice(text.indexOf("## Claims"), text.indexOf("## What is not defended"));
  const found = claims(section);
  const rows = section.split("\n").filter((line) => /^\| (?!---|claim)/.test(line));
  assert.ok(found.length >= 30);
  assert.equal(found.length, rows.length, "a row without a test");
  assert.deepEqual(
    found.filter((one) => !isHeld(one)).map(({ claim }) => claim),
    [],
  );
});

test("a claim whose test was renamed is found", () => {
  assert.equal(isHeld({ file: "test/threat-model.test.ts", name: "every claim of the threat model" }), true);
  assert.equal(isHeld({ file: "test/threat-model.test.ts", name: `every ${"promise"} of` }), false);
  assert.equal(isHeld({ file: "test/nothing.test.ts", name: "x" }), false);
});
