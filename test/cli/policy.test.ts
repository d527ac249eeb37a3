import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { type Folder, makeFolder, type Server, start, startServer } from "./harness.ts";

let server: Server;
let folder: Folder;

before(async () => {
  server = await startServer();
  folder = makeFolder();
});
after(async () => {
  await server.stop();
  folder.remove();
});

const run = (...args: readonly string[]) => start(["policy", ...args, "--url", server.url]).ended;

describe("policy", () => {
  test("S4: a policy is tested, set from a file, shown, listed and deleted", async () => {
    const broad = await run("test", "--role", "agent", "FILE:/**");
    assert.equal(broad.code, 7);
    assert.match(broad.stdout, /^refused {2}MUTATES FILE:\/\*\*\n.*policy default.*\npolicies: default\n$/);
    const example = "examples/policy/ci.json";
    const proposed = await run("test", "--role", "agent", "--policy", example, "FILE:/shop/src/**", "DB:/test/a");
    assert.equal(proposed.code, 0, proposed.stderr);
    assert.match(proposed.stdout, /allowed {2}MUTATES DB:\/test\/a \(at most 60000 ms at a time\)/);
    assert.equal((await run("set", example)).code, 0);
    const denied = await run("test", "--role", "agent", "-s", "FILE:/shop/migrations/1.sql", "--json");
    assert.equal(denied.code, 7);
    const verdict = JSON.parse(denied.stdout) as { results: readonly { policy: string; rule: string }[] };
    assert.deepEqual([verdict.results[0]?.policy, verdict.results[0]?.rule], ["ci", "migrations"]);
    assert.match((await run("ls")).stdout, /^ci\tall\tagent\tall\t3\t/m);
    const shown = await run("show", "ci");
    const file = join(folder.path, "shown.json");
    writeFileSync(file, shown.stdout);
    assert.equal((await run("set", file, "--id", "copy")).code, 0);
    for (const id of ["ci", "copy"]) assert.equal((await run("rm", id)).code, 0);
    assert.equal((await run("rm", "ci")).code, 1);
  });

  test("S4: what a file lacks or has too much is said in one line", async () => {
    const file = join(folder.path, "bad.json");
    const said: readonly [string, RegExp][] = [
      ["{", /bad\.json is not a policy/],
      ["[]", /is not a policy; write/],
      ['{"rules": []}', /has no "policy_id"/],
      ['{"policy_id": "p", "rules": [{"effect": "deny", "actions": ["fly"]}]}', /rules\.0\.actions\.0/],
      ['{"policy_id": "p", "rules": [], "rule": 1}', /rule/],
    ];
    for (const [text, expected] of said) {
      writeFileSync(file, text);
      const { code, stderr } = await run("set", file);
      assert.equal(code, 2, stderr);
      assert.match(stderr, expected);
    }
    assert.equal((await run("test", "--can", "fly:high")).code, 2);
    assert.equal((await run("test", "--role", "worker", "--can", "work:build", "--as", "build.1")).code, 0);
  });
});
