/** The part of the contract about history: ended leases, events, and pruning them. */
import assert from "node:assert/strict";
import { describe } from "node:test";
import { batch, type Check, endedLease, endedRequest, liveRows, packedEvents, row } from "./contract-fixture.ts";

export function describeHistory(name: string, check: Check): void {
  describe(`${name}: ended leases`, () => {
    check("an ended lease is answerable by its id, to its tenant only (L16)", async (_, store) => {
      await store.open();
      await store.commit(batch({ now: 100, ended: [endedLease(1), endedLease(2, { tenant: "other" })] }));
      const ids = [endedLease(1).id, endedLease(2).id, "lse_unknown"];
      assert.deepEqual(await store.endedLease("t", ids), [endedLease(1)]);
      assert.deepEqual(await store.endedLease("other", ids), [endedLease(2, { tenant: "other" })]);
    });

    check("leases that were granted together are found by the id of the first", async (_, store) => {
      await store.open();
      const together = ["lse_01ab", "lse_01ab-1", "lse_01ab-12"].map((id, at) => endedLease(at, { id }));
      const others = ["lse_01aa", "lse_01ac", "lse_01aa-1"].map((id, at) => endedLease(at, { id }));
      await store.commit(
        batch({ now: 100, ended: [...together, ...others, endedLease(9, { id: "lse_01ab", tenant: "o" })] }),
      );
      assert.deepEqual(await store.endedGrant("t", "lse_01ab"), together);
      assert.deepEqual(await store.endedGrant("t", "lse_01ad"), []);
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

  describe(`${name}: keys of ended requests`, () => {
    check(
      "W10: a key is found by its agent, oldest first, to its tenant only, also after a reopening",
      async (_, store) => {
        await store.open();
        const mine = [endedRequest("a", "k"), endedRequest("b", "k"), endedRequest("a", "k", { leaseId: "lse_later" })];
        await store.commit(batch({ now: 1, endedRequests: [...mine, endedRequest("a", "k", { tenant: "other" })] }));
        await store.close();
        await store.open();
        const found = await store.endedRequests("t", [
          ["a", "k"],
          ["a", "unknown"],
        ]);
        assert.deepEqual(found, [mine[0], mine[2]]);
        assert.deepEqual(await store.endedRequests("t", [["b", 'k"\n']]), []);
      },
    );

    check("W10: keys are pruned by age, in slices", async (_, store) => {
      await store.open();
      for (const now of [1, 2, 3]) {
        const endedRequests = Array.from({ length: 600 }, (_, n) => endedRequest("a", `${now}-${n}`));
        await store.commit(batch({ now, endedRequests }));
      }
      const isKept = async (key: string) => (await store.endedRequests("t", [["a", key]])).length === 1;
      await store.prune({ eventsBefore: 0, endedBefore: 0, endedKeep: 0 });
      assert.deepEqual([await isKept("1-0"), await isKept("3-599")], [true, true]);
      await store.prune({ eventsBefore: 0, endedBefore: 0, endedKeep: 0, endedRequestsBefore: 3 });
      assert.deepEqual([await isKept("1-0"), await isKept("2-599"), await isKept("3-0")], [false, false, true]);
    });
  });

  describe(`${name}: events`, () => {
    check("events after a number come in order, in portions of whole commits", async (_, store) => {
      await store.open();
      for (const firstSeq of [1, 4, 7, 10]) await store.commit(batch({ now: 1, events: packedEvents(firstSeq, 3) }));
      const after = async (seq: number, limit: number) => {
        const { seqs, texts, through } = await store.eventsAfter({ tenant: "t", seq, limit });
        assert.deepEqual(
          texts.map((text) => JSON.parse(text).n),
          seqs,
        );
        return [seqs, through];
      };
      assert.deepEqual(await after(0, 100), [[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], 12]);
      assert.deepEqual(await after(4, 100), [[5, 6, 7, 8, 9, 10, 11, 12], 12]);
      assert.deepEqual(await after(6, 3), [[7, 8, 9], 9]);
      assert.deepEqual(await after(5, 2), [[6, 7, 8, 9], 9]);
      assert.deepEqual(await after(12, 100), [[], 12]);
    });

    check("S4: a reader that may lag gets every event once and in order, while commits go on", async (_, store) => {
      await store.open();
      const seen: number[] = [];
      let position = 0;
      for (let portions = 0; position < 60; portions++) {
        assert.ok(portions < 100, `at ${position} after ${portions} portions`);
        if (portions < 20) await store.commit(batch({ now: 1, events: packedEvents(3 * portions + 1, 3) }));
        const found = await store.eventsAfter({ tenant: "t", seq: position, limit: 3, mayLag: true });
        seen.push(...found.seqs);
        position = found.through;
      }
      assert.deepEqual(
        seen,
        Array.from({ length: 60 }, (_, index) => index + 1),
      );
    });

    check("a tenant gets its own events, and what it examined of others", async (_, store) => {
      await store.open();
      const body = '[["a",{"n":1}],["t",{"n":2}],["a",{"n":3}]]';
      await store.commit(batch({ now: 1, events: { firstSeq: 1, count: 3, body } }));
      const found = await store.eventsAfter({ tenant: "t", seq: 0, limit: 10 });
      assert.deepEqual([found.seqs, found.texts, found.through], [[2], ['{"n":2}'], 3]);
      assert.deepEqual((await store.eventsAfter({ tenant: "nobody", seq: 0, limit: 10 })).through, 3);
    });

    check("L11: numbers jump where history may have been lost, and those jumped over are unknown", async (_, store) => {
      await store.open();
      await store.commit(batch({ now: 1, events: packedEvents(1, 3) }));
      await store.commit(batch({ now: 2, lastSeq: 1_000 }));
      const known = async (seq: number) => {
        const { isKnown, next, through } = await store.eventsAfter({ tenant: "t", seq, limit: 10 });
        return [isKnown, next, through];
      };
      assert.deepEqual(await known(3), [true, 1_001, 1_000]);
      assert.deepEqual(await known(500), [false, 1_001, 1_000]);
      assert.deepEqual(await known(1_000), [true, 1_001, 1_000]);
      await store.commit(batch({ now: 3, events: packedEvents(1_001, 2) }));
      assert.deepEqual(await known(3), [true, 1_001, 1_002]);
      assert.deepEqual(await known(4), [false, 1_001, 1_002]);
      assert.deepEqual(await known(999), [false, 1_001, 1_002]);
      assert.deepEqual(await known(1_000), [true, 1_001, 1_002]);
      assert.deepEqual(await known(1_001), [true, 1_002, 1_002]);
      await store.close();
      assert.equal((await store.open()).lastSeq, 1_002);
    });

    check("S8: compacted events are read as before, across jumps, and are kept by number", async (_, store) => {
      await store.open();
      let seq = 1;
      for (let row = 0; row < 300; row += 1) {
        if (row === 150) {
          seq += 10_000;
          await store.commit(batch({ now: 1, lastSeq: seq - 1 }));
        }
        await store.commit(batch({ now: 1, events: packedEvents(seq, 5, "x".repeat(300)) }));
        seq += 5;
      }
      const all = async () => {
        const seqs: number[] = [];
        for (let after = 0; after < seq - 1; ) {
          const found = await store.eventsAfter({ tenant: "t", seq: after, limit: 100 });
          assert.ok(found.texts.every((text, index) => JSON.parse(text).n === found.seqs[index]));
          seqs.push(...found.seqs);
          after = found.through;
        }
        return seqs;
      };
      const before = await all();
      assert.equal(before.length, 1_500);
      await store.compact();
      assert.deepEqual(await all(), before);
      await store.prune({ eventsBefore: 0, eventsKeep: 700, endedBefore: 0, endedKeep: 0 });
      const kept = await store.eventsAfter({ tenant: "t", seq: seq - 2, limit: 1 });
      assert.deepEqual(kept.seqs, [seq - 1], "the newest are there");
      assert.ok(kept.earliest > (before[700] ?? 0), "no more than the limit says are kept");
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

    check("S4: a tenant that ends very many leases pushes out its own history, not another's", async (_, store) => {
      await store.open();
      const quiet = Array.from({ length: 40 }, (_, index) => endedLease(index, { tenant: "quiet" }));
      await store.commit(batch({ now: 1, ended: quiet }));
      const flood = Array.from({ length: 2_000 }, (_, index) => endedLease(index, { tenant: "loud" }));
      for (let from = 0; from < flood.length; from += 500) {
        await store.commit(batch({ now: 2 + from, ended: flood.slice(from, from + 500) }));
        await store.prune({ eventsBefore: 0, endedBefore: 0, endedKeep: 200 });
      }
      const kept = async (tenant: string) => (await store.endedPage({ tenant, limit: 10_000 })).toReversed();
      assert.deepEqual(await kept("quiet"), quiet);
      assert.deepEqual(await kept("loud"), flood.slice(-160));
      assert.equal(await store.earliestEnded(), 1_503);
      // Age counts for all.
      assert.equal((await store.prune({ eventsBefore: 0, endedBefore: 2, endedKeep: 200 })).ended, 40);
      assert.deepEqual(await kept("quiet"), []);
    });
  });
}
