import assert from "node:assert/strict";
import { test } from "node:test";
import {
  batch,
  endedLease,
  endedRequest,
  endedTask,
  liveRows,
  packedEvents,
  row,
} from "../../src/store/contract-fixture.ts";
import { createPostgresStore } from "../../src/store/postgres.ts";
import { type JournalEntry, readJournalEntry } from "../../src/store/postgres-commit.ts";
import { Database } from "../../src/store/postgres-connection.ts";
import { Folder, foldStatement } from "../../src/store/postgres-fold.ts";
import type { Store } from "../../src/store/store.ts";
import { postgresUrl, type TestSchema, testSchema } from "../../src/store/testing/postgres-fixture.ts";
import { TcpProxy } from "../../torture/tcp-proxy.ts";

/** A leader that was cut off before it folded its commits, and whose lease ends soon. */
async function cutOff(
  run: (world: { readonly store: Store; readonly data: TestSchema }) => Promise<void>,
  commits: (store: Store) => Promise<unknown>,
): Promise<void> {
  const proxy = await TcpProxy.start(Number(new URL(await postgresUrl()).port));
  const data = await testSchema();
  const store = createPostgresStore({ url: proxy.through(data.url), leaseMs: 500 });
  try {
    await store.open();
    await commits(store);
    proxy.state = "refuse";
    proxy.reset();
    await run({ store, data });
  } finally {
    await store.close();
    proxy.close();
    await data.drop();
  }
}

async function opened(data: TestSchema): Promise<Store> {
  const store = createPostgresStore({ url: data.url, leaseMs: 60_000 });
  for (;;) {
    try {
      await store.open();
      return store;
    } catch (error) {
      assert.equal((error as { readonly code?: string }).code, "store_locked");
    }
  }
}

const ids = (rows: readonly { readonly id: string }[]): string[] => rows.map(({ id }) => id).sort();

test("S1: the next leader has what a leader that was cut off had not folded", () =>
  cutOff(
    async ({ data }) => {
      const next = await opened(data);
      assert.deepEqual(await liveRows(next), [row(2, "agent"), row(4)]);
      assert.deepEqual(ids(await next.endedLease("t", [endedLease(1).id, endedLease(2).id])), [
        endedLease(1).id,
        endedLease(2).id,
      ]);
      assert.deepEqual(await next.youngestEnded(9), [endedLease(2).body, endedLease(1).body]);
      assert.deepEqual(ids(await next.endedTasks("t", [endedTask(1).id])), [endedTask(1).id]);
      const [request] = await next.endedRequests("t", [["agt_1", "k\u0000"]]);
      assert.equal(request?.key, "k\u0000");
      const { texts } = await next.eventsAfter({ tenant: "t", seq: 0, limit: 100 });
      assert.equal(texts.length, 42, "short and long rows of events are read alike");
      assert.deepEqual(await data.query(`SELECT number FROM ${data.schema}.journal`), []);
      await next.close();
    },
    async (store) => {
      await store.commit(batch({ now: 1, puts: [row(1), row(2)], events: packedEvents(1, 2) }));
      const [end, other] = [endedLease(1), endedLease(2)];
      await store.commit(batch({ now: 2, puts: [row(2, "agent"), row(3)], removes: [1], ended: [end] }));
      await store.commit(
        batch({
          ...{ now: 3, puts: [row(4)], removes: [3], ended: [other], endedTasks: [endedTask(1)] },
          ...{ endedRequests: [endedRequest("agt_1", "k\u0000")], events: packedEvents(3, 40, "filler".repeat(20)) },
        }),
      );
    },
  ));

test("a fold is whole or not at all, once, and only in its epoch", async () => {
  const entriesIn = async (db: Database): Promise<JournalEntry[]> =>
    (await db.read(`SELECT number, body FROM ${db.schema}.journal ORDER BY number`)).map(readJournalEntry);
  await cutOff(
    async ({ data }) => {
      const db = new Database({ url: data.url });
      const target = { schema: data.schema, shard: 0, epoch: 1 };
      const entries = await entriesIn(db);
      assert.equal(entries.length, 3);
      const fold = async (epoch: number, some: readonly JournalEntry[]): Promise<unknown> => {
        const { text, values } = foldStatement({ ...target, epoch }, some);
        return await db.read(text, values);
      };
      const isRefused = async (folding: Promise<unknown>): Promise<void> =>
        await assert.rejects(folding, (error: Error) => (error.cause as { code: string }).code === "22012");
      await isRefused(fold(2, entries));
      await fold(1, entries.slice(0, 1));
      await isRefused(fold(1, entries));
      assert.equal((await entriesIn(db)).length, 2, "what it would have folded is still there");
      assert.deepEqual(await data.query(`SELECT n::int FROM ${data.schema}.live`), [{ n: 1 }]);
      await new Folder(target, db).recover();
      assert.deepEqual(await entriesIn(db), []);
      assert.deepEqual(await data.query(`SELECT n::int FROM ${data.schema}.live ORDER BY n`), [{ n: 1 }, { n: 3 }]);
      await db.close();
    },
    async (store) => {
      await store.commit(batch({ now: 1, puts: [row(1), row(2)], removes: [2] }));
      await store.commit(batch({ now: 2, puts: [row(3)], ended: [endedLease(1)] }));
      await store.commit(batch({ now: 3, puts: [row(1, "agent")] }));
    },
  );
});

test("a version that does not know the journal cannot lead: it would not load what is there", async () => {
  const data = await testSchema();
  const store = await opened(data);
  await assert.rejects(data.query(`UPDATE ${data.schema}.shards SET epoch = epoch + 1`), /knows_journal/);
  await store.close();
  await data.drop();
});

test("a leader that resigns leaves nothing to fold, and queries see what is not folded yet", async () => {
  const data = await testSchema();
  const store = await opened(data);
  for (let n = 1; n <= 20; n++) await store.commit(batch({ now: n, puts: [row(n)], ended: [endedLease(n)] }));
  assert.equal((await store.endedPage({ tenant: "t", limit: 50 })).length, 20);
  await store.commit(batch({ now: 21, removes: [1], ended: [endedLease(21)] }));
  await store.resign();
  assert.deepEqual(await data.query(`SELECT number FROM ${data.schema}.journal`), []);
  assert.deepEqual(await data.query(`SELECT count(*)::int AS count FROM ${data.schema}.live`), [{ count: 19 }]);
  await store.close();
  await data.drop();
});
