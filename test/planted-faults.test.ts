/** `npm run mutants` plants each fault and runs the tests, which takes long. That each still has its place is checked here. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { mutants } from "../scripts/mutants/planted.ts";

const kernel = join(import.meta.dirname, "../src/kernel");

/** A fault whose text stands nowhere, or in several places, cannot be planted. */
function isPlantable(file: string, find: string): boolean {
  return readFileSync(join(kernel, file), "utf8").split(find).length === 2;
}

test("every planted fault has exactly one place in the kernel, and a name of its own", () => {
  const lost = mutants
    .filter(({ file, find }) => !isPlantable(file, find))
    .map(({ name, file }) => `${name} (${file})`);
  assert.deepEqual(lost, [], "the code has changed: bring these up to date in scripts/mutants");
  assert.equal(new Set(mutants.map(({ name }) => name)).size, mutants.length);
});

test("a fault whose place is gone is found", () => {
  assert.equal(isPlantable("settle.ts", "no such text"), false);
});
