import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { UsageProblem } from "./problem.ts";
import { repositoryAt, resourceName } from "./resource-names.ts";

const place = mkdtempSync(join(tmpdir(), "leasehold-names-"));
after(() => rmSync(place, { recursive: true, force: true }));

function write(path: string, text: string): void {
  mkdirSync(join(place, path, ".."), { recursive: true });
  writeFileSync(join(place, path), text);
}

function origin(url: string): string {
  return `[core]\n\tbare = false\n[remote "upstream"]\n\turl = x:y/other.git\n[remote "origin"]\n\turl = ${url}\n\tfetch = +refs\n`;
}

test("a path means the same file from every folder of a repository, whether it is there or not", () => {
  write("shop-main/.git/config", origin("git@example.com:acme/shop.git"));
  const root = join(place, "shop-main");
  const cases: readonly (readonly [cwd: string, text: string, name: string])[] = [
    ["", "src/auth.ts", "FILE:/shop/src/auth.ts"],
    ["", "./src//auth.ts", "FILE:/shop/src/auth.ts"],
    ["src/login", "../auth.ts", "FILE:/shop/src/auth.ts"],
    ["src", join(root, "src/auth.ts"), "FILE:/shop/src/auth.ts"],
    ["", "src/", "FILE:/shop/src/**"],
    ["", "src/**/*.ts", "FILE:/shop/src/**/*.ts"],
    ["src", "*.ts", "FILE:/shop/src/*.ts"],
    ["", ".", "FILE:/shop/**"],
    ["src", "..", "FILE:/shop/**"],
    ["", "GPU:/rack-1/a100", "GPU:/rack-1/a100"],
    ["", "FILE:/elsewhere/x", "FILE:/elsewhere/x"],
  ];
  for (const [cwd, text, name] of cases) assert.equal(resourceName(text, join(root, cwd)), name, `${cwd}: ${text}`);
});

test("the name comes from .leasehold.json, else from the origin, else from the folder", () => {
  write("a/.git/config", origin("https://example.com/acme/from-origin/"));
  assert.equal(repositoryAt(join(place, "a"))?.name, "from-origin");
  write("a/.leasehold.json", JSON.stringify({ repository: "from-file" }));
  assert.equal(repositoryAt(join(place, "a"))?.name, "from-file");
  write("plain-folder/.git/config", "[core]\n");
  assert.equal(repositoryAt(join(place, "plain-folder/src/deep"))?.name, "plain-folder");
  write("no-git/.leasehold.json", JSON.stringify({ repository: "named" }));
  const found = repositoryAt(join(place, "no-git/src"));
  assert.deepEqual([found?.root, found?.name], [join(place, "no-git"), "named"]);
});

test("a worktree says what the main checkout says, with an origin and without one", () => {
  for (const [folder, config, name] of [
    ["one", origin("ssh://git@example.com:2222/acme/one-repo.git"), "one-repo"],
    ["two", "[core]\n", "two"],
  ] as const) {
    write(`${folder}/.git/config`, config);
    write(`${folder}/.git/worktrees/feature/commondir`, "../..\n");
    write(`${folder}-feature/.git`, `gitdir: ${join(place, folder, ".git/worktrees/feature")}\n`);
    const main = resourceName("src/a.ts", join(place, folder));
    assert.equal(main, `FILE:/${name}/src/a.ts`);
    assert.equal(resourceName("src/a.ts", join(place, `${folder}-feature`)), main);
  }
});

test("a path into another checkout has that one's name", () => {
  write("left/.git/config", origin("x:left.git"));
  write("right/.git/config", origin("x:right.git"));
  assert.equal(resourceName("../right/a.ts", join(place, "left")), "FILE:/right/a.ts");
});

test("what cannot be named is refused with what to do", () => {
  mkdirSync(join(place, "nowhere"));
  write("broken/.leasehold.json", "{");
  write("odd/.leasehold.json", JSON.stringify({ repository: "a/b" }));
  for (const [cwd, text] of [
    ["nowhere", "a.ts"],
    ["broken", "a.ts"],
    ["odd", "a.ts"],
    ["nowhere", ""],
    ["nowhere", "a\0b"],
  ] as const) {
    assert.throws(() => resourceName(text, join(place, cwd)), UsageProblem, `${cwd}: ${text}`);
  }
});
