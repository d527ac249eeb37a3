/** The part of the contract about who leads: one writer at a time, known to all, fenced by its epoch. */
import assert from "node:assert/strict";
import { describe } from "node:test";
import { batch, type Check, endedLease, endedTask, liveRows, packedEvents, row } from "./contract-fixture.ts";

export function describeLeading(name: string, check: Check): void {
  describe(`${name}: leading`, () => {
    check("nobody leads new data; who has opened it leads, until it resigns or closes", async (_, store) => {
      assert.equal(await store.watch(), null);
      const { epoch } = await store.open();
      const leader = await store.watch();
      assert.equal(leader?.epoch, epoch);
      assert.ok((leader?.leftMs ?? 0) > 0);
      await store.resign();
      assert.equal(await store.watch(), null);
      assert.equal((await store.open()).epoch, epoch + 1);
      await store.close();
    });

    check("what was committed before a resignation is there for the next", async (fixture, store) => {
      await store.open();
      const commits = [1, 2, 3].map((n) => store.commit(batch({ now: n, puts: [row(n)] })));
      await store.resign();
      await Promise.all(commits);
      await assert.rejects(store.commit(batch({ now: 4 })), { code: "store_closed" });
      const next = fixture.store();
      await next.open();
      assert.deepEqual(await liveRows(next), [row(1), row(2), row(3)]);
      await next.close();
    });

    check("a renewal lets the leader go on, and a deposed one is refused (stale_epoch)", async (fixture, store) => {
      const { lease } = await store.open();
      const renewed = await store.renew(1);
      assert.equal(renewed?.lastsMs, lease?.lastsMs);
      assert.ok((renewed?.askedAt ?? 0) >= (lease?.askedAt ?? 0));
      await fixture.moveEpoch();
      const late = store.commit(batch({ now: 2, puts: [row(1)] }));
      await assert.rejects(late, { code: "stale_epoch" });
      await assert.rejects(store.renew(3), { code: "stale_epoch" });
    });

    check("of many that campaign at once one wins, and what it loads stays as it is", async (fixture, store) => {
      await store.open();
      await store.commit(batch({ now: 1, puts: [row(1)] }));
      await store.close();
      const others = Array.from({ length: 4 }, () => fixture.store());
      const outcomes = await Promise.allSettled(others.map((other) => other.open()));
      assert.equal(outcomes.filter(({ status }) => status === "fulfilled").length, 1);
      for (const outcome of outcomes)
        if (outcome.status === "rejected") assert.equal((outcome.reason as { code: string }).code, "store_locked");
      const winner = others[outcomes.findIndex(({ status }) => status === "fulfilled")];
      if (winner === undefined) return assert.fail("nobody won");
      // They campaign while it loads.
      const loading = liveRows(winner);
      const competing = [1, 2, 3].map(() => assert.rejects(fixture.store().open(), { code: "store_locked" }));
      assert.deepEqual(await loading, [row(1)]);
      await Promise.all(competing);
      assert.deepEqual(await liveRows(winner), [row(1)]);
      await winner.commit(batch({ now: 2, puts: [row(2)] }));
      await Promise.all(others.map((other) => other.close()));
    });

    check("history reads what was committed before the question", async (_, store) => {
      await store.open();
      for (let number = 1; number <= 30; number++) {
        const events = packedEvents(number, 1);
        await store.commit(
          batch({ now: number, ended: [endedLease(number)], endedTasks: [endedTask(number)], events }),
        );
        assert.deepEqual(await store.endedLease("t", [endedLease(number).id]), [endedLease(number)]);
        assert.deepEqual(await store.endedTasks("t", [endedTask(number).id]), [endedTask(number)]);
        const { seqs } = await store.eventsAfter({ tenant: "t", seq: number - 1, limit: 10 });
        assert.deepEqual(seqs, [number]);
      }
    });
  });
}
