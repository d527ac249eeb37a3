import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { batch, endedLease, endedTask, liveRows, packedEvents, receipt, signedHead } from "./contract-fixture.ts";
import { createMemoryStore } from "./memory.ts";
import { createPostgresStore } from "./postgres.ts";
import { createSqliteStore } from "./sqlite.ts";
import type { Batch, Store } from "./store.ts";
import { testSchema } from "./testing/postgres-fixture.ts";

type Step =
  | { readonly type: "commit"; readonly later: number; readonly keys: readonly number[]; readonly ended: number }
  | { readonly type: "prune"; readonly age: number; readonly keep: number }
  | { readonly type: "reopen" };

const key = fc.integer({ min: 1, max: 60 });
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      type: fc.constant("commit" as const),
      later: fc.nat({ max: 3 }),
      keys: fc.array(key, { maxLength: 50 }),
      ended: fc.nat({ max: 40 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ type: fc.constant("prune" as const), age: fc.nat(20), keep: fc.nat(200) }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant("reopen" as const) }) },
);

test("whatever is committed and pruned, SQLite and PostgreSQL hold what memory holds", async () => {
  const run = fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 25 }), async (steps) => {
    const folder = mkdtempSync(join(tmpdir(), "leasehold-oracle-"));
    const data = await testSchema();
    const stores = [
      createMemoryStore(),
      createSqliteStore(folder),
      createPostgresStore({ url: data.url, leaseMs: 60_000 }),
    ];
    try {
      const [fromMemory, ...others] = await Promise.all(stores.map((store) => outcome(store, steps)));
      for (const other of others) assert.deepEqual(other, fromMemory);
    } finally {
      for (const store of stores) await store.close();
      await data.drop();
      rmSync(folder, { recursive: true });
    }
  });
  await fc.assert(run, { numRuns: 8 });
});

/** Takes the steps, and returns everything that can be observed of the result. */
async function outcome(store: Store, steps: readonly Step[]): Promise<unknown> {
  const seen: unknown[] = [await opened(store)];
  let [now, seq, leases] = [100, 1, 0];
  for (const taken of steps) {
    switch (taken.type) {
      case "commit": {
        now += taken.later;
        await store.commit(batchOf(taken, now, seq, leases));
        seq += Math.max(1, taken.keys.length);
        leases += taken.ended;
        break;
      }
      case "prune":
        seen.push(
          await store.prune({
            eventsBefore: now - taken.age,
            endedBefore: now - taken.age,
            endedKeep: taken.keep,
            endedTasksBefore: now - 2 * taken.age,
            endedTasksKeep: taken.keep,
          }),
        );
        break;
      case "reopen":
        await store.close();
        seen.push(await opened(store));
        break;
    }
  }
  seen.push(await liveRows(store), await store.earliestSeq(), await store.earliestEnded());
  seen.push(await store.eventsAfter({ tenant: "t", seq: Math.floor(seq / 2), limit: 40 }));
  seen.push(await store.endedPage({ tenant: "t", limit: 100, before: endedLease(leases - 3).id }));
  seen.push(await store.youngestEnded(50), await store.youngestEnded(1_000));
  seen.push(await store.ledgerHeads(), await store.receiptsAfter({ tenant: "t", sequence: 7, limit: 1_000 }));
  seen.push(await store.receiptsPage({ tenant: "t", limit: 20, phase: "progress", since: now - 5 }));
  seen.push(await store.receiptsPage({ tenant: "t", limit: 20, newestFirst: true, after: 3, before: 90 }));
  seen.push(await store.signedHeads({ tenant: "t", sequence: 3, limit: 5 }));
  seen.push(await store.endedTaskPage({ tenant: "t", limit: 30, status: "failed" }));
  return seen;
}

/** All but what only data that servers share has. */
async function opened(store: Store): Promise<unknown> {
  const { lease: _lease, passedMs: _passedMs, ...rest } = await store.open();
  return rest;
}

/** Even keys are put, odd ones removed; every fifth lease that ended was one that only reads. */
function batchOf(taken: Step & { type: "commit" }, now: number, seq: number, leases: number): Batch {
  const bodyOf = (n: number): string => JSON.stringify({ n, now, word: "žluť" });
  return batch({
    now,
    puts: taken.keys
      .filter((n) => n % 2 === 0)
      .map((n) => ({ n, kind: n % 3 === 0 ? "lease" : "agent", body: bodyOf(n) })),
    removes: taken.keys.filter((n) => n % 2 === 1).map((n) => n + 1),
    events: packedEvents(seq, Math.max(1, taken.keys.length)),
    ended: Array.from({ length: taken.ended }, (_, index) =>
      endedLease(leases + index, { endedAt: now - (index % 2), writes: index % 5 !== 0 }),
    ),
    receipts: Array.from({ length: taken.ended }, (_, index) =>
      receipt(leases + index + 1, { storedAt: now, phase: index % 3 === 0 ? "progress" : "complete" }),
    ),
    endedTasks: Array.from({ length: taken.ended >> 1 }, (_, index) =>
      endedTask(leases + index, { status: index % 2 === 0 ? "failed" : "succeeded" }),
    ),
    heads: taken.ended > 20 ? [signedHead(leases + taken.ended)] : [],
  });
}
