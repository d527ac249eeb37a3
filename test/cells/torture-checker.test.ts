/** The checkers of `npm run torture:cells` find what a broken cell would do. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { createRandom } from "../../sim/random.ts";
import { CellChecker, kinds } from "../../torture/cell-checker.ts";
import { MemoryService } from "../../torture/cell-memory.ts";

/** Memory that lets everybody in, at any time; it is as clean as the test leaves it. */
async function openMemory(t: TestContext, onWrite: () => void) {
  const bytes = Buffer.alloc(4_096);
  const server = createServer(async (request, response) => {
    if (request.method === "GET") return void response.end(bytes);
    let at = Number(new URL(request.url ?? "", "http://memory").searchParams.get("offset"));
    for await (const chunk of request as AsyncIterable<Buffer>) at += chunk.copy(bytes, at);
    response.writeHead(204).end();
    onWrite();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { bytes, coordinate: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

/** One holder after the other, each for some writes. */
async function holdInTurn(t: TestContext, ids: readonly string[], lastsMs: number, between: (bytes: Buffer) => void) {
  const checker = new CellChecker();
  const service = new MemoryService("alpha", checker, createRandom(1));
  let writes = 0;
  const { bytes, coordinate } = await openMemory(t, () => writes++);
  for (const [at, id] of ids.entries()) {
    const endsAt = Date.now() + lastsMs;
    checker.know(id, { resource: service.resource, fence: at + 1, endsAt });
    const lease = { id, fence: at + 1, expires_at: new Date(endsAt).toISOString(), token: "t", coordinate };
    const enough = writes + 4;
    await service.use({ present: () => lease, service, isUsing: () => writes < enough, wasRefused: () => {}, checker });
    between(bytes);
  }
  return checker.judge();
}

test("G7: memory that is wiped between two holders is in order", async (t) => {
  const { violations, operations } = await holdInTurn(t, ["lse_a", "lse_b"], 200, (bytes) => bytes.fill(0));
  // The write that is sent in halves may be late by as much as its lease lasts: this memory takes it.
  assert.deepEqual(
    violations.filter((one) => !one.includes("after that")),
    [],
  );
  assert.ok(operations.memory > 8);
});

test("G7: a holder that finds another's bytes is a violation, at the start and later", async (t) => {
  const unwiped = await holdInTurn(t, ["lse_a", "lse_b"], 200, () => {});
  assert.match(unwiped.violations.join("\n"), /lse_b was granted with lse_a/);
  assert.match(unwiped.violations.join("\n"), /lse_b found lse_a/);
});

test("G11: a write into memory that was sent after the end and was taken is a violation", async (t) => {
  const { violations } = await holdInTurn(t, ["lse_late"], -1_000, () => {});
  assert.match(violations.join("\n"), /memory MEM:\/torture\/alpha: lse_late, which ended at \d+, was used \d+ times/);
});

test("a confirmed write that is gone is a violation, unless the cell was killed since", async (t) => {
  for (const wasKilled of [false, true]) {
    const checker = new CellChecker();
    const service = new MemoryService("alpha", checker, createRandom(1));
    let writes = 0;
    const { bytes, coordinate } = await openMemory(t, () => {
      writes++;
      if (writes !== 3) return;
      bytes.fill(0);
      if (wasKilled) service.forget();
    });
    const lease = { id: "lse_a", fence: 1, expires_at: new Date().toISOString(), token: "t", coordinate };
    await service.use({ present: () => lease, service, isUsing: () => writes < 6, wasRefused: () => {}, checker });
    assert.equal(checker.violations.length > 0, !wasKilled, checker.violations.join("\n"));
  }
});

test("G11: a use of any kind after its lease's end is a violation", () => {
  for (const kind of kinds) {
    const checker = new CellChecker();
    checker.know("lse_a", { resource: "X:/alpha", fence: 1, endsAt: 10_000 });
    checker.did({ kind, resource: "X:/alpha", lease: "lse_a", at: 10_000 });
    assert.deepEqual(checker.judge().violations, [], kind);
    checker.did({ kind, resource: "X:/alpha", lease: "lse_a", at: 11_001 });
    assert.equal(checker.judge().violations.length, 1, kind);
  }
});
