import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { changedPaths, pictureTree } from "./tree.ts";

const root = mkdtempSync(join(tmpdir(), "leasehold-tree-"));
const checkout = { root, gitFolder: join(root, ".git") };
after(() => rmSync(root, { recursive: true, force: true }));

function git(...args: readonly string[]): void {
  execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@example.com", ...args], { cwd: root, stdio: "ignore" });
}
function write(path: string, text: string): void {
  mkdirSync(join(root, path, ".."), { recursive: true });
  writeFileSync(join(root, path), text);
}
async function changes(act: () => void): Promise<readonly string[]> {
  const before = await pictureTree(checkout);
  act();
  const later = await pictureTree(checkout);
  assert.ok(before !== null && later !== null);
  return await changedPaths(checkout, before, later);
}

test("two pictures of a tree tell which files changed between them, whatever git makes of them", async () => {
  git("init", "-q", "-b", "main");
  for (const path of ["a.ts", "b.ts", "with space.ts", "naïve.ts"]) write(path, "first");
  write(".gitignore", "out/\n");
  git("add", ".");
  git("commit", "-qm", "first");
  assert.deepEqual(await changes(() => undefined), []);
  assert.deepEqual(await changes(() => write("a.ts", "other")), ["a.ts"]);
  assert.deepEqual(await changes(() => write("a.ts", "third")), ["a.ts"], "it differed from the head before, too");
  assert.deepEqual(await changes(() => write("with space.ts", "x")), ["with space.ts"]);
  assert.deepEqual(await changes(() => write("naïve.ts", "x")), ["naïve.ts"]);
  assert.deepEqual(await changes(() => write("new/c.ts", "x")), ["new/c.ts"]);
  assert.deepEqual(await changes(() => rmSync(join(root, "b.ts"))), ["b.ts"]);
  assert.deepEqual(await changes(() => write("out/built.js", "x")), [], "what is ignored is nobody's work");
  assert.deepEqual(await changes(() => git("add", "a.ts")), [], "staging changes no file");
  assert.deepEqual(await changes(() => git("commit", "-qm", "second")), [], "nor does a commit");
  assert.deepEqual(await changes(() => git("checkout", "-q", "-f", "HEAD~1")), [
    "a.ts",
    "b.ts",
    "naïve.ts",
    "with space.ts",
  ]);
});

test("a change that keeps size and time is found all the same", async () => {
  const at = new Date(1_000_000);
  write("same.ts", "aaaa");
  utimesSync(join(root, "same.ts"), at, at);
  assert.deepEqual(
    await changes(() => {
      write("same.ts", "bbbb");
      utimesSync(join(root, "same.ts"), at, at);
    }),
    ["same.ts"],
  );
});

test("without git there is no snapshot", async () => {
  assert.equal(await pictureTree({ root: tmpdir(), gitFolder: null }), null);
  assert.equal(await pictureTree({ root: tmpdir(), gitFolder: join(tmpdir(), ".git") }), null);
});
