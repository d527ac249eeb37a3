/** What every store must do. Each store's tests run this suite; what is specific to one store is tested with it. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { describeAudit } from "./contract-audit.ts";
import { batch, type Check, endedLease, liveRows, row, type StoreFixture } from "./contract-fixture.ts";
import { describeHistory } from "./contract-history.ts";
import { describeLeading } from "./contract-leading.ts";
import { describeLedger } from "./contract-ledger.ts";
import { describePayloads } from "./contract-payloads.ts";
import { StoreFault } from "./faults.ts";
import type { LiveRow } from "./store.ts";

const closed = { code: "store_closed" } as const;

export function describeStore(name: string, make: () => Promise<StoreFixture>): void {
  const check: Check = (claim, body) => {
    test(claim, async () => {
      const fixture = await make();
      const store = fixture.store();
      try {
        await body(fixture, store);
      } finally {
        await store.close();
        await fixture.dispose();
      }
    });
  };

  describe(`${name}: opening`, () => {
    check("new data is empty, in the first epoch", async (_, store) => {
      const opened = { epoch: 1, now: 0, lastSeq: 0, lastN: 0, liveCount: 0, restores: 0, restoredAt: 0 };
      const { lease: _lease, passedMs: _passedMs, ...found } = await store.open();
      assert.deepEqual(found, opened);
      assert.deepEqual(await liveRows(store), []);
      assert.equal(await store.earliestSeq(), 1);
      assert.equal(await store.earliestEnded(), 0);
    });

    check("what was committed is there for the next to open, in order of its keys", async (fixture, store) => {
      await store.open();
      await store.commit(batch({ now: 5, puts: [row(3, "agent"), row(1), row(2)] }));
      await store.close();
      const next = fixture.store();
      const { epoch, now, lastN } = await next.open();
      assert.deepEqual({ epoch, now, lastN }, { epoch: 2, now: 5, lastN: 3 });
      assert.deepEqual(await liveRows(next), [row(1), row(2), row(3, "agent")]);
      await next.close();
    });

    check("the last key and sequence number are kept when their rows are gone", async (_, store) => {
      await store.open();
      await store.commit(batch({ now: 1, puts: [row(9)], events: { firstSeq: 1, count: 4, body: "[1,2,3,4]" } }));
      await store.commit(batch({ now: 2, removes: [9] }));
      await store.prune({ eventsBefore: 10, endedBefore: 10, endedKeep: 0 });
      await store.close();
      const { now, lastN, lastSeq } = await store.open();
      assert.deepEqual({ now, lastN, lastSeq }, { now: 2, lastN: 9, lastSeq: 4 });
      assert.equal(await store.earliestSeq(), 5);
    });

    check(
      "a second opener is refused while the first works, and accepted when it has closed",
      async (fixture, store) => {
        await store.open();
        const second = fixture.store();
        await assert.rejects(second.open(), { code: "store_locked" });
        await store.commit(batch({ now: 1, puts: [row(1)] }));
        await store.close();
        assert.equal((await second.open()).epoch, 2);
        await second.close();
      },
    );

    check("many thousand rows are loaded completely", async (_, store) => {
      await store.open();
      const rows = Array.from({ length: 4_321 }, (_, index) => row(index + 1));
      await store.commit(batch({ now: 1, puts: rows }));
      assert.deepEqual(await liveRows(store), rows);
    });
  });

  describe(`${name}: loading lists`, () => {
    check("lists come by column, after all other rows, each in the order of their keys", async (_, store) => {
      await store.open();
      const lists = Array.from({ length: 2_500 }, (_, index) => {
        const list = [`t${index % 3}`, `id-${index}`, index, index % 2 === 0 ? 1.5 : null, "žluť 漢字 🦊"];
        return index % 7 === 0 ? [...list, { some: index }] : list;
      });
      const listRow = (list: unknown[], index: number): LiveRow => ({
        n: 2 * index + 1,
        kind: "list",
        body: JSON.stringify(list),
      });
      const others = Array.from({ length: 1_500 }, (_, index) => row(2 * index + 2));
      const puts = [...lists.map(listRow), ...others];
      await store.commit(batch({ now: 1, puts }));
      const [rows, n, found]: [LiveRow[], number[], unknown[][]] = [[], [], []];
      await store.load({
        onRows(chunk) {
          assert.equal(n.length, 0);
          rows.push(...chunk);
        },
        lists: { kind: "list", repeating: [0, 4] },
        onLists(chunk) {
          n.push(...chunk.n);
          for (const at of chunk.n.keys()) found.push(chunk.columns.map((column) => column[at]));
        },
      });
      assert.deepEqual(rows, others);
      assert.deepEqual(
        n,
        lists.map((_, index) => 2 * index + 1),
      );
      const whole = found.map((list) => (list.at(-1) === undefined ? list.slice(0, -1) : list));
      assert.deepEqual(whole, lists);
    });

    check("the number of rows to load is known when it is open", async (f, store) => {
      await store.open();
      await store.commit(batch({ now: 1, puts: [row(1), row(2), row(3)], removes: [2] }));
      await store.close();
      const second = f.store();
      assert.equal((await second.open()).liveCount, 2);
      await second.close();
    });
  });

  describe(`${name}: committing`, () => {
    check("a put replaces, a remove deletes, and within a batch the remove comes last", async (_, store) => {
      await store.open();
      await store.commit(batch({ now: 1, puts: [row(1), row(2), row(3)] }));
      const changed = { n: 1, kind: "agent", body: '{"changed":true}' };
      await store.commit(batch({ now: 1, puts: [changed, row(4), row(5)], removes: [3, 5, 77] }));
      assert.deepEqual(await liveRows(store), [changed, row(2), row(4)]);
    });

    check("commits that do not wait for each other take effect in the order of the calls", async (_, store) => {
      await store.open();
      const body = (index: number): string => JSON.stringify({ index });
      const commits = Array.from({ length: 50 }, (_, index) =>
        store.commit(batch({ now: index, puts: [{ n: 1, kind: "lease", body: body(index) }] })),
      );
      await Promise.all(commits);
      assert.deepEqual(await liveRows(store), [{ n: 1, kind: "lease", body: body(49) }]);
    });

    check(
      "a writer whose epoch is over stores nothing, and is refused from then on (stale_epoch)",
      async (f, store) => {
        await store.open();
        await store.commit(batch({ now: 1, puts: [row(1)] }));
        assert.equal(await store.earliestSeq(), 1);
        await f.moveEpoch();
        const late = batch({ now: 2, puts: [row(2)], removes: [1], events: { firstSeq: 1, count: 1, body: "[1]" } });
        await assert.rejects(store.commit({ ...late, ended: [endedLease(1)] }), { code: "stale_epoch" });
        await assert.rejects(store.commit(batch({ now: 3 })), { code: "stale_epoch" });
        await assert.rejects(store.earliestSeq(), StoreFault);
        const { now, lastN, lastSeq } = await store.open();
        assert.deepEqual({ now, lastN, lastSeq }, { now: 1, lastN: 1, lastSeq: 0 });
        assert.deepEqual(await liveRows(store), [row(1)]);
        assert.deepEqual(await store.endedLease("t", [endedLease(1).id]), []);
      },
    );

    check("a batch whose time or numbers run backwards is a bug, not a fault (L7)", async (_, store) => {
      await store.open();
      const events = { firstSeq: 7, count: 2, body: "[7,8]" };
      await store.commit(batch({ now: 10, puts: [row(1)], events }));
      await assert.rejects(store.commit(batch({ now: 9, puts: [row(2)] })), assert.AssertionError);
      await assert.rejects(store.commit(batch({ now: 10, events })), assert.AssertionError);
      await assert.rejects(store.commit(batch({ now: 10, puts: [row(0.5)] })), assert.AssertionError);
      await store.commit(batch({ now: 10, puts: [row(3)] }));
      assert.deepEqual(await liveRows(store), [row(1), row(3)]);
    });

    check("large values and text in every script come back unchanged", async (_, store) => {
      await store.open();
      const bodies = [
        "x".repeat(3_000_000),
        "žluťoučký kůň 漢字 🦊 \u{10ffff}",
        '"\\u0000"',
        "'; DROP TABLE live; --",
        "{}",
      ];
      const puts = bodies.map((body, index) => ({ n: index + 1, kind: "lease", body }));
      const odd = { ...endedLease(1), tenant: "ténant 🦊", resource: "FILE:/漢/字", body: bodies[1] ?? "" };
      await store.commit(batch({ now: 100, puts, ended: [odd] }));
      assert.deepEqual(await liveRows(store), puts);
      assert.deepEqual(await store.endedLease(odd.tenant, [odd.id]), [odd]);
    });

    check("an empty batch moves the time", async (_, store) => {
      await store.open();
      await store.commit(batch({ now: 42 }));
      await store.close();
      assert.equal((await store.open()).now, 42);
    });
  });

  describeLeading(name, check);
  describeHistory(name, check);
  describeLedger(name, check);
  describePayloads(name, check);
  describeAudit(name, check);

  describe(`${name}: closing`, () => {
    check("a closed store refuses every call, and can be closed again and opened again", async (_, store) => {
      await assert.rejects(store.commit(batch({ now: 1 })), closed);
      await store.open();
      await store.close();
      await store.close();
      await assert.rejects(store.commit(batch({ now: 1 })), closed);
      await assert.rejects(liveRows(store), closed);
      await assert.rejects(store.endedLease("t", []), closed);
      await assert.rejects(store.youngestEnded(1), closed);
      await assert.rejects(store.prune({ eventsBefore: 0, endedBefore: 0, endedKeep: 0 }), closed);
      assert.equal((await store.open()).epoch, 2);
    });

    check("commits in flight are finished before it closes", async (_, store) => {
      await store.open();
      const commits = [1, 2, 3].map((n) => store.commit(batch({ now: n, puts: [row(n)] })));
      await store.close();
      await Promise.all(commits);
      await store.open();
      assert.deepEqual(await liveRows(store), [row(1), row(2), row(3)]);
    });
  });
}
