/** Shards change their leaders one by one, and take nothing else with them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { OperationAnswers } from "../../src/sdk/wire.ts";
import { clientOf } from "../server/harness.ts";
import { type TestCluster, until } from "./cluster-harness.ts";
import { createTenants, evenly, isEven, leasesOf, ledBy, shards, tenants } from "./shards-harness.ts";

type Cluster = OperationAnswers["get_cluster"];

const epochsBy = async ({ data }: TestCluster): Promise<readonly number[]> =>
  (await data.query(`SELECT epoch FROM ${data.schema}.shards ORDER BY shard`)).map(({ epoch }) => Number(epoch));

test("when one of three servers leaves, only its shards move", async (t) => {
  const { cluster, servers, urls } = await evenly(t, 3);
  await createTenants(urls[0] ?? "");
  const leases = new Map<string, string>();
  for (const tenant of tenants) {
    await clientOf(urls[0] ?? "").register("a", { tenant });
    leases.set(tenant, (await clientOf(urls[1] ?? "").grant("a", "FILE:/x", { ttl_ms: 120_000 }, { tenant })).id);
  }
  const before = await epochsBy(cluster);
  const [first = assert.fail(), ...rest] = servers;
  const gone = ledBy(first);
  await first.close();
  await until(() => isEven(rest));
  const after = await epochsBy(cluster);
  for (let shard = 0; shard < shards; shard++)
    assert.equal(after[shard] !== before[shard], gone.includes(shard), `shard ${shard} of ${gone.join()}`);
  for (const tenant of tenants) {
    assert.deepEqual(await leasesOf(urls[2] ?? "", tenant), [leases.get(tenant)]);
  }
});

test("when a server joins, shards move one at a time until all servers lead about as many", async (t) => {
  const { cluster, servers } = await evenly(t, 1);
  const before = await epochsBy(cluster);
  let vacantAtOnce = 0;
  const { schema, query } = cluster.data;
  const joining = cluster.start();
  const all = [...servers, await joining];
  while (!isEven(all)) {
    const [row] = await query(
      `SELECT count(*)::int AS vacant FROM ${schema}.shards WHERE lease_until <= now() OR server IS NULL`,
    );
    vacantAtOnce = Math.max(vacantAtOnce, Number(row?.["vacant"]));
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  assert.equal(vacantAtOnce, 1);
  const after = await epochsBy(cluster);
  assert.equal(after.filter((epoch, shard) => epoch !== before[shard]).length, 2);
});

test("a leader that is deposed in one shard goes on in the others", async (t) => {
  const { cluster, servers, urls } = await evenly(t, 1);
  const [only = assert.fail()] = servers;
  await createTenants(urls[0] ?? "");
  const before = await epochsBy(cluster);
  const { schema, query } = cluster.data;
  await query(
    `UPDATE ${schema}.shards SET epoch = epoch + 1, journal_epoch = epoch + 1, server = NULL, lease_until = now() WHERE shard = 3`,
  );
  await until(() => only.leaderships[3]?.state !== "leading");
  for (const tenant of ["t3", "acme", "a"])
    assert.equal((await clientOf(urls[0] ?? "").get("/v1/leases", { tenant })).status, 200);
  await until(() => ledBy(only).length === shards);
  const after = await epochsBy(cluster);
  assert.deepEqual(
    after.map((epoch, shard) => epoch - (before[shard] ?? 0)),
    [0, 0, 0, 2],
  );
});

test("a server resigns all its shards, or one of them, when it is asked to", async (t) => {
  const { servers, urls } = await evenly(t, 2);
  const [one = assert.fail(), two = assert.fail()] = servers;
  const [moved = assert.fail()] = ledBy(two);
  const client = clientOf(urls[0] ?? "");
  const answer = await client.post<{ shards: number[] }>("/v1/cluster/resign", { shard: moved });
  assert.deepEqual([answer.status, answer.body.shards], [202, [moved]]);
  await until(() => ledBy(one).includes(moved));
  const { body } = await client.get<Cluster>("/v1/cluster");
  const other = body.servers.find(({ url }) => url === urls[0])?.server_id;
  const led = ledBy(one);
  const all = await client.post<{ shards: number[] }>("/v1/cluster/resign", { server_id: other });
  assert.deepEqual(all.body.shards, led);
  await until(() => all.body.shards.every((shard) => ledBy(two).includes(shard)));
  assert.equal((await client.post("/v1/cluster/resign", { shard: 99 })).status, 400);
});

test("a restart of all servers keeps every shard's data, and how many shards there are", async (t) => {
  const { cluster, servers, urls } = await evenly(t, 2);
  await createTenants(urls[0] ?? "");
  for (const tenant of tenants) {
    await clientOf(urls[0] ?? "").register("a", { tenant });
    await clientOf(urls[0] ?? "").grant("a", "FILE:/x", { ttl_ms: 120_000 }, { tenant });
  }
  for (const server of servers) await server.close();
  await assert.rejects(cluster.start({ shards: 8 }), /set up with 4 shards.*leave --shards 8 out/);
  const again = await cluster.start({ shards: null });
  assert.equal(again.leaderships.length, shards);
  for (const tenant of tenants) assert.equal((await leasesOf(again.address.url, tenant)).length, 1, tenant);
});
