/** The part of the contract about history: ended leases, events, and pruning them. */
import assert from "node:assert/strict";
import { describe } from "node:test";
import { batch, type Check, endedLease, liveRows, row } from "./contract-fixture.ts";

export function describeHistory(name: string, check: Check): void {
  describe(`${name}: ended leases`, () => {
    check("an ended lease is answerable by its id, to its tenant only (L16)", async (_, store) => {
      await store.open();
      await store.commit(batch({ now: 100, ended: [endedLease(1), endedLease(2, { tenant: "other" })] }));
      const ids = [endedLease(1).id, endedLease(2).id, "lse_unknown"];
      assert.deepEqual(await store.endedLease("t", ids), [endedLease(1)]);
      assert.deepEqual(await store.endedLease("other", ids), [endedLease(2, { tenant: "other" })]);
    });

    check("a tenant's ended leases come in pages, youngest first", async (_, store) => {
      await store.open();
      const mine = [1, 2, 3, 4, 5].map((number) => endedLease(number));
      await store.commit(batch({ now: 100, ended: [...mine, endedLease(6, { tenant: "other" })] }));
      const first = await store.endedPage({ tenant: "t", limit: 3 });
      assert.deepEqual(first, [endedLease(5), endedLease(4), endedLease(3)]);
      const rest = await store.endedPage({ tenant: "t", limit: 3, before: endedLease(3).id });
      assert.deepEqual(rest, [endedLease(2), endedLease(1)]);
    });

    check("the leases that ended last are read back, the last one first, of all tenants (A4)", async (_, store) => {
      await store.open();
      assert.deepEqual(await store.youngestEnded(10), []);
      for (let number = 1; number <= 60; number += 1) {
        const other = endedLease(number, { tenant: "other", body: `other ${number}` });
        await store.commit(batch({ now: number, ended: [endedLease(number, { body: `body ${number}` }), other] }));
      }
      assert.deepEqual(await store.youngestEnded(3), ["other 60", "body 60", "other 59"]);
      assert.equal((await store.youngestEnded(1_000)).length, 120);
    });
  });

  describe(`${name}: events`, () => {
    check("events after a number come in order, with the row that contains the number", async (_, store) => {
      await store.open();
      const packed = [1, 4, 7, 10].map((firstSeq) => ({ firstSeq, count: 3, body: `["from ${firstSeq}"]` }));
      for (const events of packed) await store.commit(batch({ now: 1, events }));
      assert.deepEqual(await store.eventsAfter({ seq: 0, limit: 100 }), packed);
      assert.deepEqual(await store.eventsAfter({ seq: 4, limit: 100 }), packed.slice(1));
      assert.deepEqual(await store.eventsAfter({ seq: 6, limit: 3 }), packed.slice(2, 3));
      assert.deepEqual(await store.eventsAfter({ seq: 5, limit: 2 }), packed.slice(1, 3));
      assert.deepEqual(await store.eventsAfter({ seq: 12, limit: 100 }), []);
    });
  });

  describe(`${name}: forgetting`, () => {
    check(
      "pruning goes by age and by count, says since when history is complete, and keeps live rows",
      async (_, store) => {
        await store.open();
        const live = [row(1), row(2, "agent")];
        await store.commit(batch({ now: 1, puts: live }));
        const commits = Array.from({ length: 2_000 }, (_, index) => {
          const now = index + 1;
          const events = { firstSeq: now, count: 1, body: `[${now}]` };
          return store.commit(batch({ now, events, ended: [endedLease(now)] }));
        });
        await Promise.all(commits);
        const byAge = await store.prune({ eventsBefore: 1_001, endedBefore: 501, endedKeep: 10_000 });
        assert.deepEqual(byAge, { events: 1_000, ended: 500, endedTasks: 0 });
        assert.equal(await store.earliestSeq(), 1_001);
        assert.equal(await store.earliestEnded(), 501);
        const byCount = await store.prune({ eventsBefore: 0, endedBefore: 0, endedKeep: 600 });
        assert.deepEqual(byCount, { events: 0, ended: 900, endedTasks: 0 });
        assert.equal(await store.earliestEnded(), 1_401);
        const ids = [1_400, 1_401].map((number) => endedLease(number).id);
        assert.deepEqual(await store.endedLease("t", ids), [endedLease(1_401)]);
        assert.equal((await store.youngestEnded(10_000)).length, 600);
        assert.deepEqual(await liveRows(store), live);
        const none = await store.prune({ eventsBefore: 0, endedBefore: 0, endedKeep: 600 });
        assert.deepEqual(none, { events: 0, ended: 0, endedTasks: 0 });
      },
    );
  });
}
