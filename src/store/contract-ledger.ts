/** The part of the contract about the ledger and the tasks that have ended. */
import assert from "node:assert/strict";
import { describe } from "node:test";
import { batch, type Check, endedTask, liveRows, receipt, row, signedHead } from "./contract-fixture.ts";
import { StoreFault } from "./faults.ts";

export function describeLedger(name: string, check: Check): void {
  describe(`${name}: the ledger`, () => {
    check("receipts are found by id, by key and by task, by their own tenant only (R3, R5)", async (_, store) => {
      await store.open();
      const mine = [1, 2, 3, 4].map((sequence) => receipt(sequence, sequence === 2 ? { dedupe: "key" } : {}));
      const [first, second, third, fourth] = mine;
      const other = receipt(1, { tenant: "other", dedupe: "key" });
      await store.commit(batch({ now: 1, receipts: [...mine, other] }));
      assert.deepEqual(await store.receiptsById("t", [receipt(3).id, receipt(1).id, "rcp_none"]), [first, third]);
      assert.deepEqual(await store.receiptsById("other", [receipt(3).id, receipt(1).id]), [other]);
      assert.deepEqual(await store.receiptsByDedupe("t", ["key", "none"]), [second]);
      const ofTask = async (tenant: string) =>
        (await store.receiptsPage({ tenant, taskId: receipt(3).taskId, limit: 10 })).receipts;
      assert.deepEqual(await ofTask("t"), [third, fourth]);
      assert.deepEqual(await ofTask("other"), []);
    });

    check("an id or a key that was used twice is found twice, the first one first", async (_, store) => {
      await store.open();
      const twice = [1, 2].map((sequence) => receipt(sequence, { id: "same", dedupe: "same" }));
      await store.commit(batch({ now: 1, receipts: twice }));
      assert.deepEqual(await store.receiptsById("t", ["same"]), twice);
      assert.deepEqual(await store.receiptsByDedupe("t", ["same"]), twice);
    });

    check("a search goes from the oldest on, by every filter, page by page", async (_, store) => {
      await store.open();
      const all = Array.from({ length: 40 }, (_, index) =>
        receipt(index + 1, {
          phase: index % 2 === 0 ? "accepted" : "complete",
          recipientAi: index % 4 < 2 ? "planner" : "reviewer",
          sourceSystem: index % 8 < 4 ? "code.1" : "code.2",
        }),
      );
      await store.commit(batch({ now: 50, receipts: [...all, receipt(1, { tenant: "other" })] }));
      const found = async (query: object) => (await store.receiptsPage({ tenant: "t", limit: 100, ...query })).receipts;
      assert.deepEqual(await found({}), all);
      assert.deepEqual(
        await found({ phase: "complete" }),
        all.filter(({ phase }) => phase === "complete"),
      );
      assert.deepEqual(
        await found({ recipientAi: "reviewer", sourceSystem: "code.2", phase: "accepted" }),
        all.filter(
          (one) => one.recipientAi === "reviewer" && one.sourceSystem === "code.2" && one.phase === "accepted",
        ),
      );
      assert.deepEqual(await found({ since: 35 }), all.slice(34));
      assert.deepEqual(await found({ since: 41 }), []);
      assert.deepEqual(await found({ taskId: receipt(7).taskId, phase: "complete" }), [all[7]]);
      const first = await store.receiptsPage({ tenant: "t", limit: 15, phase: "accepted" });
      assert.deepEqual([first.receipts.length, first.next], [15, 29]);
      const second = await store.receiptsPage({ tenant: "t", limit: 15, phase: "accepted", after: first.next ?? 0 });
      assert.deepEqual([second.receipts.map(({ sequence }) => sequence), second.next], [[31, 33, 35, 37, 39], null]);
      const newestFirst = { newestFirst: true };
      assert.deepEqual(await found(newestFirst), all.toReversed());
      assert.deepEqual(await found({ ...newestFirst, since: 35, before: 38 }), all.slice(34, 37).reverse());
      assert.deepEqual(await found({ ...newestFirst, taskId: receipt(7).taskId, after: 7 }), [all[7]]);
      const last = await store.receiptsPage({ tenant: "t", limit: 15, phase: "accepted", ...newestFirst });
      assert.deepEqual([last.receipts.length, last.next], [15, 11]);
      const earlier = await store.receiptsPage({
        tenant: "t",
        limit: 15,
        phase: "accepted",
        ...newestFirst,
        before: 11,
      });
      assert.deepEqual([earlier.receipts.map(({ sequence }) => sequence), earlier.next], [[9, 7, 5, 3, 1], null]);
    });

    check("it is read as it was written, in order, and never pruned (R1)", async (_, store) => {
      await store.open();
      for (let from = 1; from <= 100; from += 10) {
        const receipts = Array.from({ length: 10 }, (_, index) => receipt(from + index));
        await store.commit(batch({ now: from, receipts }));
      }
      const everything = { eventsBefore: 1_000, endedBefore: 1_000, endedKeep: 0 };
      await store.prune({ ...everything, endedTasksBefore: 1_000, endedTasksKeep: 0 });
      const read: number[] = [];
      for (;;) {
        const rows = await store.receiptsAfter({ tenant: "t", sequence: read.at(-1) ?? 0, limit: 7 });
        if (rows.length === 0) break;
        for (const one of rows) {
          assert.deepEqual(one, receipt(one.sequence));
          read.push(one.sequence);
        }
      }
      assert.deepEqual(
        read,
        Array.from({ length: 100 }, (_, index) => index + 1),
      );
    });

    check("the next to open it learns where each ledger ends, and how far it is signed", async (fixture, store) => {
      await store.open();
      assert.deepEqual(await store.ledgerHeads(), []);
      const receipts = [receipt(1), receipt(1, { tenant: "a" }), receipt(2), receipt(3)];
      await store.commit(batch({ now: 1, receipts, heads: [signedHead(1), signedHead(2)] }));
      await store.close();
      const next = fixture.store();
      await next.open();
      assert.deepEqual(await next.ledgerHeads(), [
        { tenant: "a", sequence: 1, hash: receipt(1).hash, signedSequence: 0 },
        { tenant: "t", sequence: 3, hash: receipt(3).hash, signedSequence: 2 },
      ]);
      await next.close();
    });

    check("signed heads come in order, after a number", async (_, store) => {
      await store.open();
      const receipts = [1, 2, 3, 4].map((sequence) => receipt(sequence));
      const heads = [1, 2, 4].map((sequence) => signedHead(sequence));
      await store.commit(batch({ now: 1, receipts, heads: [...heads, signedHead(1, { tenant: "other" })] }));
      assert.deepEqual(await store.signedHeads({ tenant: "t", sequence: 0, limit: 2 }), heads.slice(0, 2));
      assert.deepEqual(await store.signedHeads({ tenant: "t", sequence: 2, limit: 2 }), heads.slice(2));
    });

    check("large receipts, and text in every script, come back unchanged", async (_, store) => {
      await store.open();
      const odd = { id: "rcp ' \u0000 漢 🦊", taskId: "T-žluťoučký", dedupe: '"; DROP TABLE receipts; --' };
      const large = Array.from({ length: 40 }, (_, index) =>
        receipt(index + 1, index === 0 ? odd : { body: "x".repeat(500_000) }),
      );
      await store.commit(batch({ now: 1, receipts: large }));
      assert.deepEqual(await store.receiptsById("t", [odd.id]), large.slice(0, 1));
      assert.deepEqual(await store.receiptsByDedupe("t", [odd.dedupe]), large.slice(0, 1));
      let read = 0;
      for (let rows = large.slice(0, 0); ; read += rows.length) {
        rows = [...(await store.receiptsAfter({ tenant: "t", sequence: read, limit: 1_000 }))];
        if (rows.length === 0) break;
        assert.deepEqual(rows, large.slice(read, read + rows.length));
      }
      assert.equal(read, 40);
    });
  });

  describe(`${name}: ended tasks`, () => {
    check("an ended task is answerable by its id, to its tenant only", async (_, store) => {
      await store.open();
      const other = endedTask(2, { tenant: "other" });
      await store.commit(batch({ now: 100, endedTasks: [endedTask(1), other] }));
      const ids = [endedTask(1).id, endedTask(2).id, "T-none"];
      assert.deepEqual(await store.endedTasks("t", ids), [endedTask(1)]);
      assert.deepEqual(await store.endedTasks("other", ids), [other]);
    });

    check("T12: they are found by the idempotency key of their creation, within their tenant", async (_, store) => {
      await store.open();
      const keyed = endedTask(1, { idempotencyKey: "k" });
      const other = endedTask(2, { idempotencyKey: "k", tenant: "other" });
      await store.commit(batch({ now: 100, endedTasks: [keyed, other, endedTask(3)] }));
      assert.deepEqual(await store.endedTasksByKey("t", ["k", "none"]), [keyed]);
      assert.deepEqual(await store.endedTasksByKey("other", ["k"]), [other]);
      await store.prune({ eventsBefore: 0, endedBefore: 0, endedKeep: 0, endedTasksBefore: 101, endedTasksKeep: 0 });
      assert.deepEqual(await store.endedTasksByKey("t", ["k"]), [], "the key is forgotten with its task");
    });

    check("they come in pages, youngest first, by status and by type", async (_, store) => {
      await store.open();
      const mine = Array.from({ length: 20 }, (_, index) =>
        endedTask(index + 1, { status: index % 2 === 0 ? "failed" : "succeeded", taskType: index % 4 < 2 ? "a" : "b" }),
      );
      await store.commit(batch({ now: 100, endedTasks: [...mine, endedTask(30, { tenant: "other" })] }));
      const first = await store.endedTaskPage({ tenant: "t", limit: 15 });
      assert.deepEqual([first.tasks, first.next], [mine.toReversed().slice(0, 15), endedTask(6).id]);
      const second = await store.endedTaskPage({ tenant: "t", limit: 15, before: first.next ?? "" });
      assert.deepEqual(second, { tasks: mine.toReversed().slice(15), next: null });
      const some = await store.endedTaskPage({ tenant: "t", limit: 100, status: "failed", taskType: "b" });
      const wanted = mine.filter(({ status, taskType }) => status === "failed" && taskType === "b");
      assert.deepEqual(some, { tasks: wanted.toReversed(), next: null });
    });

    check(
      "they are pruned by age and by count, separately from ended leases, and only on request",
      async (_, store) => {
        await store.open();
        await store.commit(batch({ now: 1, puts: [row(1, "task")] }));
        for (let now = 1; now <= 1_000; now += 1) await store.commit(batch({ now, endedTasks: [endedTask(now)] }));
        const others = { eventsBefore: 0, endedBefore: 2_000, endedKeep: 0 };
        assert.equal((await store.prune(others)).endedTasks, 0);
        const byAge = await store.prune({ ...others, endedTasksBefore: 301, endedTasksKeep: 10_000 });
        assert.equal(byAge.endedTasks, 300);
        const byCount = await store.prune({ ...others, endedTasksBefore: 0, endedTasksKeep: 100 });
        assert.equal(byCount.endedTasks, 600);
        const ids = [900, 901].map((number) => endedTask(number).id);
        assert.deepEqual(await store.endedTasks("t", ids), [endedTask(901)]);
        assert.equal((await store.prune({ ...others, endedTasksBefore: 2_000 })).endedTasks, 100);
        await store.commit(batch({ now: 1_001, endedTasks: [endedTask(1_001)] }));
        assert.equal((await store.prune({ ...others, endedTasksKeep: 1 })).endedTasks, 0);
        assert.deepEqual(await liveRows(store), [row(1, "task")]);
      },
    );

    check("S4: of ended tasks, the tenant that has the most loses the most", async (_, store) => {
      await store.open();
      const quiet = Array.from({ length: 20 }, (_, index) => endedTask(index, { tenant: "quiet" }));
      const flood = Array.from({ length: 600 }, (_, index) => endedTask(index, { tenant: "loud" }));
      await store.commit(batch({ now: 1, endedTasks: quiet }));
      await store.commit(batch({ now: 2, endedTasks: flood }));
      const limits = { eventsBefore: 0, endedBefore: 0, endedKeep: 0, endedTasksBefore: 0, endedTasksKeep: 100 };
      assert.equal((await store.prune(limits)).endedTasks, 520);
      const kept = async (tenant: string) => (await store.endedTaskPage({ tenant, limit: 1_000 })).tasks.toReversed();
      assert.deepEqual(await kept("quiet"), quiet);
      assert.deepEqual(await kept("loud"), flood.slice(-80));
    });

    check("a writer whose epoch is over adds nothing to the ledger", async (fixture, store) => {
      await store.open();
      await store.commit(batch({ now: 1, receipts: [receipt(1)] }));
      await fixture.moveEpoch();
      const late = batch({ now: 2, receipts: [receipt(2)], endedTasks: [endedTask(1)], heads: [signedHead(2)] });
      await assert.rejects(store.commit(late), StoreFault);
      await store.open();
      assert.deepEqual(await store.receiptsAfter({ tenant: "t", sequence: 0, limit: 10 }), [receipt(1)]);
      assert.deepEqual(await store.endedTasks("t", [endedTask(1).id]), []);
      assert.deepEqual(await store.signedHeads({ tenant: "t", sequence: 0, limit: 10 }), []);
    });
  });
}
