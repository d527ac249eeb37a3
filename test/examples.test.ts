import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { type RunningServer, startServer } from "../src/server/start.ts";
import { type Ended, run as runProgram } from "./package/packing.ts";

let server: RunningServer;
const folder = mkdtempSync(join(tmpdir(), "leasehold-examples-"));

before(async () => {
  server = await startServer({ port: 0, store: "memory", logLevel: "silent" });
});
after(async () => {
  await server.close();
  rmSync(folder, { recursive: true, force: true });
});

function run(command: string, ...args: readonly string[]): Promise<Ended> {
  const env = { LEASEHOLD_URL: server.address.url, NODE: process.execPath, OUT: join(folder, "out") };
  return runProgram(command, args, { env });
}
const node = (...args: readonly string[]) => run(process.execPath, ...args);

describe("examples", { concurrency: 2 }, () => {
  test("two scripts edit one file, and no line is lost", async () => {
    const file = join(folder, "notes.txt");
    const both = await Promise.all(["ann", "ben"].map((name) => node("examples/two-editors.ts", file, name, "20")));
    for (const { code, stderr } of both) assert.deepEqual([code, stderr], [0, ""]);
    const lines = readFileSync(file, "utf8").trim().split("\n");
    const wanted = ["ann", "ben"].flatMap((name) => Array.from({ length: 20 }, (_, index) => `${name} ${index + 1}`));
    assert.deepEqual(lines.toSorted(), wanted.toSorted());
  });

  test("a fleet of workers does every task, though one of them is killed", async () => {
    const { code, stdout, stderr } = await node("examples/fleet.ts", "3", "30");
    assert.equal(code, 0, stderr);
    assert.match(stdout, /all 30 tasks are done, each once/);
  });

  test("an agent that was killed resumes and gets the changes made meanwhile", async () => {
    const digest = join(folder, "digest.json");
    const first = await node("examples/resuming-agent.ts", digest);
    assert.deepEqual([first.code, first.stdout], ["SIGKILL", "first half done, checkpoint saved\n"]);
    const second = await node("examples/resuming-agent.ts", digest);
    assert.equal(second.code, 0, second.stderr);
    assert.match(
      second.stdout,
      /resumed: the tests are written[\s\S]*meanwhile \S+ changed FILE:\/example\/src\/auth\.ts to somebody-else-1[\s\S]*second half done/,
    );
    assert.equal(existsSync(digest), false);
  });

  test("leasehold run around a real build: two at once take turns", async () => {
    const both = await Promise.all([run("examples/build/build.sh"), run("examples/build/build.sh")]);
    for (const { code, stderr } of both) assert.equal(code, 0, stderr);
    const fences = both.map(({ stdout }) => Number(/under fence (\d+)/.exec(stdout)?.[1]));
    assert.ok(fences[0] !== fences[1], "each has a fence of its own");
    assert.match(readFileSync(join(folder, "out/main.js"), "utf8"), /greeting\("lease"\)/);
  });
});
