import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { parseResourceName, resourceNameLimits } from "../kernel/names/resource-name.ts";
import { nameLengthMax, nameSegmentsMax, targetOf } from "./targets.ts";

const place = realpathSync(mkdtempSync(join(tmpdir(), "leasehold-targets-")));
after(() => rmSync(place, { recursive: true, force: true }));

function git(folder: string, ...args: readonly string[]): void {
  execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@example.com", ...args], {
    cwd: folder,
    stdio: "ignore",
  });
}

const root = join(place, "shop");
mkdirSync(join(root, "src"), { recursive: true });
git(root, "init", "-q");
writeFileSync(join(root, "src/a.ts"), "a");
git(root, "add", ".");
git(root, "commit", "-qm", "first");
const resource = (path: string, cwd = root, options = {}) => targetOf(path, cwd, options).resource;

test("however a file is spelled, it has one name", () => {
  const name = "FILE:/shop/src/a.ts";
  for (const path of ["src/a.ts", "./src/../src//a.ts", join(root, "src/a.ts"), `${root}/x/../src/a.ts`]) {
    assert.equal(resource(path), name, path);
  }
  assert.equal(resource("a.ts", join(root, "src")), name);
  assert.equal(resource("src/caf\u00e9.ts"), resource("src/cafe\u0301.ts"));
});

test("a link is what it leads to, also where that is not there yet; to delete one is to delete the link", () => {
  symlinkSync("src/a.ts", join(root, "link.ts"));
  symlinkSync("src", join(root, "folder"));
  symlinkSync("src/later.ts", join(root, "dangling.ts"));
  symlinkSync("loop.ts", join(root, "loop.ts"));
  assert.equal(resource("link.ts"), "FILE:/shop/src/a.ts");
  assert.equal(resource("folder/new.ts"), "FILE:/shop/src/new.ts");
  assert.equal(resource("dangling.ts"), "FILE:/shop/src/later.ts");
  assert.equal(resource("link.ts", root, { isLink: true }), "FILE:/shop/link.ts");
  assert.equal(typeof resource("loop.ts"), "string");
});

test("a link that leads out of the repository is outside, and so is `..`", () => {
  mkdirSync(join(place, "elsewhere"));
  symlinkSync(join(place, "elsewhere"), join(root, "out"));
  assert.deepEqual(targetOf("out/x.ts", root), { path: join(place, "elsewhere/x.ts"), resource: null });
  assert.equal(resource("../elsewhere/x.ts"), null);
});

test("every worktree says the same name, and its own with scope worktree", () => {
  const tree = join(place, "shop-feature");
  git(root, "worktree", "add", "-q", tree, "-b", "feature");
  assert.equal(resource("src/a.ts", tree), "FILE:/shop/src/a.ts");
  writeFileSync(join(tree, ".leasehold.json"), '{"scope": "worktree"}');
  assert.equal(resource("src/a.ts", tree), "FILE:/shop@shop-feature/src/a.ts");
  writeFileSync(join(root, ".leasehold.json"), '{"scope": "worktree"}');
  assert.equal(resource("src/a.ts"), "FILE:/shop/src/a.ts");
  rmSync(join(root, ".leasehold.json"));
});

test("a file whose name cannot be said is leased with its folder, and every name is one that the kernel takes", () => {
  assert.deepEqual([nameLengthMax, nameSegmentsMax], [resourceNameLimits.lengthMax, resourceNameLimits.segmentsMax]);
  const hostile = [
    "src/a\\b.ts",
    "src/a\nb.ts",
    "src/\u202eab.ts",
    `src/${"x".repeat(1_100)}`,
    `${"d/".repeat(90)}f`,
    "src/*.ts",
    "src/a?b",
    ".",
  ];
  for (const path of hostile) {
    const name = resource(path);
    assert.ok(name !== null && !("problem" in parseResourceName(name)), `${JSON.stringify(path)}: ${name}`);
  }
  assert.equal(resource("src/a\\b.ts"), "FILE:/shop/src/**");
  assert.equal(resource("."), "FILE:/shop/**");
});
