import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Resource } from "../../src/sdk/wire.ts";
import { type Server, startServer, until } from "./harness.ts";

let server: Server;

before(async () => {
  server = await startServer();
});
after(async () => {
  await server.stop();
});

const declared = async (name: string): Promise<Resource | undefined> => {
  const { resources } = await server.json<{ resources: Resource[] }>(["resources", name]);
  return resources.find(({ resource }) => resource === name);
};

describe("what fleets collide on", { concurrency: 3 }, () => {
  test("G15: limit declares a rate, runs the command with its exit code, and a spent unit stays spent", async () => {
    const first = await server.line(["limit", "model", "--rate", "2/1h", "--", "sh", "-c", "echo asked; exit 3"]);
    assert.deepEqual([first.code, first.stdout], [3, "asked\n"]);
    const { capacity, refill_ms: refillMs } = (await declared("LIMIT:/model")) ?? {};
    assert.deepEqual([capacity, refillMs], [2, 3_600_000]);
    assert.equal((await server.line(["limit", "model"])).code, 0);
    const refused = await server.line(["limit", "model", "-n", "--", "echo", "never"]);
    assert.deepEqual([refused.code, refused.stdout], [107, ""]);
    assert.match(refused.stderr, /units are used up, until some come back in \d+ ms/);
  });

  test("G15: of many callers at once exactly as many are let through as there are units; the others wait for time", async () => {
    const calls = Array.from({ length: 6 }, () => server.line(["limit", "shared", "--rate", "4/1h", "-w", "1s"]));
    const codes = (await Promise.all(calls)).map(({ code }) => code);
    assert.deepEqual(codes.sort(), [0, 0, 0, 0, 107, 107]);
  });

  test("G15: a caller that waits goes on when units are back", async () => {
    const rate = ["--rate", "1/300ms"];
    for (const _ of [1, 2, 3]) assert.equal((await server.line(["limit", "soon", ...rate])).code, 0);
  });

  test("G15: another rate changes the limit, more units than there are and wrong rates are refused", async () => {
    await server.line(["limit", "changing", "--rate", "10/m"]);
    await server.line(["limit", "changing", "--rate", "100/m", "--units", "50"]);
    assert.equal((await declared("LIMIT:/changing"))?.capacity, 100);
    assert.equal((await server.line(["limit", "changing", "--units", "101"])).code, 107);
    for (const rate of ["60", "0/m", "60/x", "60/1ms", "m/60"]) {
      const { code, stderr } = await server.line(["limit", "wrong", "--rate", rate]);
      assert.equal(code, 2);
      assert.match(stderr, /is not a rate; give units and a time/);
    }
    assert.equal(await declared("LIMIT:/wrong"), undefined);
  });

  test("G15: a signal that ends a wait leaves nothing in line", async () => {
    await server.line(["limit", "gone", "--rate", "1/1h"]);
    const { child, output, ended } = server.begin(["limit", "gone"]);
    await until(() => /waits: units come back in/.exec(output.stderr), "it waits");
    child.kill("SIGTERM");
    assert.equal((await ended).code, 143);
    const waiting = await fetch(`${server.url}/v1/requests`);
    const { requests } = (await waiting.json()) as { requests: { intents: { resource: string }[] }[] };
    assert.ok(!requests.some(({ intents }) => intents.some(({ resource }) => resource === "LIMIT:/gone")));
  });

  test("L11: next never prints a number twice, to however many callers at once", async () => {
    const lines = await Promise.all(Array.from({ length: 8 }, () => server.line(["next", "migration"])));
    const numbers = lines.map(({ stdout }) => Number(stdout));
    assert.equal(new Set(numbers).size, 8);
    const later = Number((await server.line(["next", "migration"])).stdout);
    assert.ok(numbers.every((number) => number < later));
    assert.deepEqual(await server.json(["next", "other"]), { sequence: "other", number: later + 1 });
    assert.equal((await server.line(["next", "not/../it"])).code, 2);
  });
});
