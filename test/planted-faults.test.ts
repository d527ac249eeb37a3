/** `npm run mutants` plants each fault and runs the tests, which takes long. That each still has its place is checked here. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
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

/** A file that cannot be loaded fails every test, and shows nothing. */
function isLoadable(text: string): boolean {
  try {
    stripTypeScriptTypes(text);
    return true;
  } catch {
    return false;
  }
}

test("the file with a planted fault is still TypeScript, and the tests that must find it exist", () => {
  const broken = mutants
    // Node reads no JSX: what is planted there is built before its tests run, and a build that fails is reported.
    .filter(({ file }) => !file.endsWith(".tsx"))
    .filter(({ file, find, replace }) => {
      const sound = readFileSync(join(kernel, file), "utf8");
      return !isLoadable(sound.replace(find, () => replace));
    })
    .map(({ name, file }) => `${name} (${file})`);
  assert.deepEqual(broken, []);
  const named = new Set(mutants.flatMap(({ tests = [] }) => tests));
  assert.deepEqual(
    [...named].filter((file) => !existsSync(join(kernel, "../..", file))),
    [],
  );
  assert.equal(isLoadable("const a = ;"), false);
});

test("a fault whose place is gone is found", () => {
  assert.equal(isPlantable("settle.ts", "no such text"), false);
});
