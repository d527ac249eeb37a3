import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { batch, endedLease, liveRows, receipt, row } from "../../src/store/contract-fixture.ts";
import { createPostgresStore } from "../../src/store/postgres.ts";
import type { Store } from "../../src/store/store.ts";
import { postgresUrl, type TestSchema, testSchema } from "../../src/store/testing/postgres-fixture.ts";
import { TcpProxy } from "../../torture/tcp-proxy.ts";

/** A store behind a network that can fail, and its data. */
async function behindProxy(
  run: (world: { readonly store: Store; readonly proxy: TcpProxy; readonly data: TestSchema }) => Promise<void>,
  outcomeMsMax = 20_000,
): Promise<void> {
  const proxy = await TcpProxy.start(Number(new URL(await postgresUrl()).port));
  const data = await testSchema();
  const store = createPostgresStore({ url: proxy.through(data.url), leaseMs: 60_000, outcomeMsMax });
  try {
    await run({ store, proxy, data });
  } finally {
    proxy.state = "pass";
    await store.close();
    proxy.close();
    await data.drop();
  }
}

const storedCount = async ({ query, schema }: TestSchema): Promise<number> =>
  Number((await query(`SELECT count(*)::int AS count FROM ${schema}.receipts`))[0]?.["count"]);

/** Waits for what it needs: the row that the database has, whatever the caller knows. */
async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 10));
}

describe("postgres: commits over a network that fails", () => {
  test("a commit whose acknowledgement is lost is found by its number, and stored once", () =>
    behindProxy(async ({ store, proxy, data }) => {
      await store.open();
      await store.commit(batch({ now: 1, receipts: [receipt(1)] }));
      proxy.state = "deaf";
      const commits = [2, 3].map((n) => store.commit(batch({ now: n, puts: [row(n)], receipts: [receipt(n)] })));
      await until(async () => (await storedCount(data)) === 3);
      proxy.state = "pass";
      proxy.reset();
      await Promise.all(commits);
      await store.commit(batch({ now: 4, receipts: [receipt(4)] }));
      assert.equal(await storedCount(data), 4);
      assert.deepEqual(await liveRows(store), [row(2), row(3)]);
    }));

  test("a commit that never arrived is sent again, and those after it keep their order", () =>
    behindProxy(async ({ store, proxy, data }) => {
      await store.open();
      await store.commit(batch({ now: 1, puts: [row(1)] }));
      proxy.state = "hold";
      const body = (index: number): string => JSON.stringify({ index });
      const commits = Array.from({ length: 20 }, (_, index) =>
        store.commit(
          batch({ now: 2, puts: [{ n: 1, kind: "lease", body: body(index) }], receipts: [receipt(index + 1)] }),
        ),
      );
      proxy.state = "pass";
      proxy.reset();
      await Promise.all(commits);
      assert.deepEqual(await liveRows(store), [{ n: 1, kind: "lease", body: body(19) }]);
      assert.equal(await storedCount(data), 20);
    }));

  test("an outcome that cannot be found out fails the store, and the same server opens it again at once (S2)", () =>
    behindProxy(async ({ store, proxy, data }) => {
      await store.open();
      proxy.state = "deaf";
      const lost = store.commit(batch({ now: 1, receipts: [receipt(1)] }));
      lost.catch(() => undefined);
      await until(async () => (await storedCount(data)) === 1);
      proxy.state = "refuse";
      await assert.rejects(lost, { name: "StoreFault" });
      await assert.rejects(store.commit(batch({ now: 2 })), { name: "StoreFault" });
      proxy.state = "pass";
      const { now, epoch } = await store.open();
      assert.deepEqual({ now, epoch }, { now: 1, epoch: 2 });
    }, 300));

  test("a statement that the database refuses is not repeated for ever, and stores nothing", () =>
    behindProxy(async ({ store, data }) => {
      await store.open();
      await store.commit(batch({ now: 1, receipts: [receipt(1)] }));
      const twice = store.commit(batch({ now: 2, puts: [row(7)], receipts: [receipt(1)] }));
      await assert.rejects(twice, /duplicate key|receipts_pkey/);
      await store.open();
      assert.deepEqual(await liveRows(store), []);
      assert.equal(await storedCount(data), 1);
    }));
});

describe("postgres: who leads", () => {
  test("a commit of a deposed leader is refused after its successor has loaded", async () => {
    const data = await testSchema();
    const [old, next] = [500, 60_000].map((leaseMs) => createPostgresStore({ url: data.url, leaseMs }));
    if (old === undefined || next === undefined) return;
    await old.open();
    await old.commit(batch({ now: 1, puts: [row(1)] }));
    await assert.rejects(next.open(), { code: "store_locked" });
    await until(() =>
      next.open().then(
        () => true,
        () => false,
      ),
    );
    assert.deepEqual(await liveRows(next), [row(1)]);
    await assert.rejects(old.commit(batch({ now: 2, puts: [row(2)], ended: [endedLease(1)] })), {
      code: "stale_epoch",
    });
    await assert.rejects(old.renew(3), { code: "stale_epoch" });
    assert.deepEqual(await liveRows(next), [row(1)]);
    await next.commit(batch({ now: 2, puts: [row(3)] }));
    await old.close();
    assert.equal((await next.watch())?.epoch, 2, "closing a deposed store does not end its successor's lease");
    await next.close();
    await data.drop();
  });

  test("the next leader goes on at the stored time plus what the database's clock advanced (L7)", async () => {
    const data = await testSchema();
    const store = createPostgresStore({ url: data.url, leaseMs: 60_000 });
    await store.open();
    await store.commit(batch({ now: 1_000 }));
    await store.renew(5_000);
    await store.close();
    await data.query(`UPDATE ${data.schema}.shards SET stored_at = stored_at - interval '1 hour'`);
    const { now, passedMs } = await store.open();
    assert.equal(now, 5_000);
    assert.ok(passedMs !== null && passedMs >= 3_600_000 && passedMs < 3_700_000, `${passedMs}`);
    await store.close();
    await data.drop();
  });

  test("another timeline ends every epoch: nobody leads for a lease, and then the epoch has jumped (L11)", async () => {
    const data = await testSchema();
    const [store, next] = [1, 2].map(() => createPostgresStore({ url: data.url, leaseMs: 300 }));
    if (store === undefined || next === undefined) return;
    await store.open();
    await store.commit(batch({ now: 1, puts: [row(1)] }));
    await data.query(`UPDATE ${data.schema}.shards SET timeline = '0000FFFF'`);
    await assert.rejects(store.commit(batch({ now: 2, puts: [row(2)] })), { code: "stale_epoch" });
    const began = Date.now();
    await assert.rejects(next.open(), { code: "store_locked" });
    await assert.rejects(next.open(), { code: "store_locked" });
    assert.equal(await next.watch(), null);
    await until(() =>
      next.open().then(
        () => true,
        () => false,
      ),
    );
    const leader = await next.watch();
    assert.ok((leader?.epoch ?? 0) >= began - 60_000, `${leader?.epoch}`);
    const [{ restores } = {}] = await data.query(`SELECT restores::int FROM ${data.schema}.shards`);
    assert.equal(restores, 1);
    assert.deepEqual(await liveRows(next), [row(1)]);
    await next.close();
    await data.drop();
  });
});

describe("postgres: its schema", () => {
  test("servers that start together make it once, and a newer one is left alone", async () => {
    const data = await testSchema();
    const stores = Array.from({ length: 4 }, () => createPostgresStore({ url: data.url }));
    await Promise.all(stores.map((store) => store.watch()));
    const [{ count } = {}] = await data.query(`SELECT count(*)::int AS count FROM ${data.schema}.shards`);
    assert.equal(count, 1);
    await data.query(`INSERT INTO ${data.schema}.schema_steps (step) VALUES (999)`);
    const older = createPostgresStore({ url: data.url });
    await assert.rejects(older.watch(), { code: "schema_too_new" });
    await Promise.all([older, ...stores].map((store) => store.close()));
    await data.drop();
  });

  test("operators can query leaders, leases, requests, tasks and the ledger", async () => {
    const data = await testSchema();
    const store = createPostgresStore({ url: data.url, serverUrl: "http://one:7117" });
    await store.open();
    const body = JSON.stringify(["acme", "lse_1", "agt_1"]);
    await store.commit(batch({ now: 1, puts: [{ n: 1, kind: "lease", body }], receipts: [receipt(1)] }));
    // What is loaded is in the tables, and plain SQL sees a commit that much later.
    assert.equal((await liveRows(store)).length, 1);
    const one = async (text: string) => (await data.query(text))[0];
    const leader = await one(`SELECT url, leads, epoch::int FROM ${data.schema}.leaders`);
    assert.deepEqual({ ...leader }, { url: "http://one:7117", leads: true, epoch: 1 });
    assert.deepEqual({ ...(await one(`SELECT tenant FROM ${data.schema}.leases`)) }, { tenant: "acme" });
    assert.deepEqual({ ...(await one(`SELECT status FROM ${data.schema}.ledger`)) }, { status: "success" });
    for (const view of ["requests", "tasks", "agents", "resources", "cells"])
      assert.deepEqual(await data.query(`SELECT * FROM ${data.schema}.${view}`), []);
    await store.close();
    await data.drop();
  });
});

describe("postgres: what an operator got wrong is one sentence", () => {
  const wrong = async (url: string, sentence: RegExp): Promise<void> => {
    const store = createPostgresStore({ url, connectMsMax: 5_000 });
    await assert.rejects(store.open(), (fault: Error & { code?: string }) => {
      assert.equal(fault.code, "store_refused");
      assert.match(fault.message, sentence);
      assert.doesNotMatch(fault.message, /\n|hunter2/);
      return true;
    });
    await store.close();
  };

  test("a wrong address, database or schema is named, and the password is not", async () => {
    const url = new URL(await postgresUrl());
    url.password = "hunter2";
    await wrong(Object.assign(new URL(url), { port: "1" }).href, /no PostgreSQL answers at 127\.0\.0\.1:1/);
    await wrong(Object.assign(new URL(url), { pathname: "/absent" }).href, /no such database/);
    assert.throws(() => createPostgresStore({ url: "postgres" }), { code: "store_refused" });
    assert.throws(() => createPostgresStore({ url: `${url}?schema=A-b` }), { code: "store_refused" });
  });

  test("a user without rights learns which it lacks", async () => {
    const data = await testSchema();
    const user = `u_${data.schema}`;
    await data.query(`CREATE ROLE ${user} LOGIN`);
    const url = Object.assign(new URL(data.url), { username: user });
    await wrong(url.href, /lacks rights.*grant CREATE/);
    await data.query(`DROP ROLE ${user}`);
  });
});
