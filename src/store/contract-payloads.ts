/** The part of the contract about what is large and stored apart from the live rows (S4). */
import assert from "node:assert/strict";
import { describe } from "node:test";
import { batch, type Check, endedTask, liveRows, row } from "./contract-fixture.ts";
import type { Store, StoredPayload } from "./store.ts";

const large = (n: number, text = "x"): StoredPayload => ({ n, body: JSON.stringify(text.repeat(100_000)) });

async function keysOf(store: Store, ...keys: readonly number[]): Promise<readonly number[]> {
  return (await store.payloads(keys)).map(({ n }) => n).sort((a, b) => a - b);
}

export function describePayloads(name: string, check: Check): void {
  describe(`${name}: payloads`, () => {
    check("S4: they are read by their keys, and are not among the rows that are loaded", async (fixture, store) => {
      await store.open();
      await store.commit(batch({ now: 1, puts: [row(1), row(2)], payloads: [large(1), large(2, "é")] }));
      assert.deepEqual(await store.payloads([2]), [large(2, "é")]);
      assert.deepEqual(await keysOf(store, 2, 1, 7), [1, 2]);
      assert.deepEqual(await store.payloads([]), []);
      await store.close();
      const next = fixture.store();
      assert.equal((await next.open()).liveCount, 2);
      assert.deepEqual(await liveRows(next), [row(1), row(2)]);
      assert.deepEqual(await next.payloads([1]), [large(1)]);
      await next.close();
    });

    check("S4: one is replaced and removed by its key; the row beside it is another matter", async (_, store) => {
      await store.open();
      await store.commit(batch({ now: 1, puts: [row(1), row(2)], payloads: [large(1), large(2)] }));
      await store.commit(batch({ now: 2, payloads: [large(1, "new")], payloadRemoves: [2] }));
      assert.deepEqual(await store.payloads([1, 2]), [large(1, "new")]);
      await store.commit(batch({ now: 3, removes: [1] }));
      assert.deepEqual(await keysOf(store, 1), [1]);
    });

    check("S4, S8: that of an ended task stays until the task is pruned", async (_, store) => {
      await store.open();
      const tasks = [1, 2, 3].map((n) => endedTask(n, { payload: n === 3 ? null : n }));
      await store.commit(batch({ now: 1, payloads: [large(1), large(2), large(9)] }));
      await store.commit(batch({ now: 5, endedTasks: tasks.slice(0, 1) }));
      await store.commit(batch({ now: 8, endedTasks: tasks.slice(1) }));
      assert.deepEqual((await store.endedTasks("t", [endedTask(1).id]))[0]?.payload, 1);
      const limits = { eventsBefore: 0, endedBefore: 0, endedKeep: 100 };
      assert.equal((await store.prune({ ...limits, endedTasksBefore: 6 })).endedTasks, 1);
      assert.deepEqual(await keysOf(store, 1, 2, 9), [2, 9]);
      assert.equal((await store.prune({ ...limits, endedTasksBefore: 9 })).endedTasks, 2);
      assert.deepEqual(await keysOf(store, 1, 2, 9), [9]);
    });

    check("the key of a payload counts as given, so that no row gets it", async (fixture, store) => {
      await store.open();
      await store.commit(batch({ now: 1, puts: [row(1)], payloads: [large(7)] }));
      await store.close();
      const next = fixture.store();
      assert.equal((await next.open()).lastN, 7);
      await next.close();
    });
  });
}
