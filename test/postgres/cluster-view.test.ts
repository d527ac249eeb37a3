import assert from "node:assert/strict";
import { test } from "node:test";
import type { OperationAnswers } from "../../src/sdk/wire.ts";
import { clientOf } from "../server/harness.ts";
import { testCluster, until } from "./cluster-harness.ts";

type Cluster = OperationAnswers["get_cluster"];

test("any server shows all of them, and who leads, since when and in which epoch", async (t) => {
  const cluster = await testCluster(t);
  const leader = await cluster.start();
  const follower = await cluster.start();
  const bystander = await cluster.start({ noLead: true });
  for (const { address } of [leader, follower]) {
    const { body } = await clientOf(address.url).get<Cluster>("/v1/cluster");
    assert.equal(body.store, "postgres");
    const rows = body.servers.map(({ url, alive, may_lead: mayLead }) => [url, alive, mayLead]);
    assert.deepEqual(rows, [
      [leader.address.url, true, true],
      [follower.address.url, true, true],
      [bystander.address.url, true, false],
    ]);
    const [shard] = body.shards;
    assert.deepEqual([shard?.url, shard?.epoch, shard?.server_id], [leader.address.url, 1, body.server_id]);
    assert.ok(shard?.since != null && shard.lease_left_ms !== null);
  }
  const metrics = await (await fetch(`${leader.address.url}/metrics`)).text();
  assert.match(metrics, /^leasehold_leader_epoch 1$/m);
  // One that closes is not shown; one that is silent is shown as gone, and later not at all.
  await bystander.close();
  const { schema, query } = cluster.data;
  await query(`INSERT INTO ${schema}.servers (server, url, version, may_lead, seen_at)
    VALUES ('gone', 'http://gone', '1', 1, now() - interval '10 s'), ('old', 'http://old', '1', 1, now() - interval '2 min')`);
  await until(async () => {
    const { body } = await clientOf(leader.address.url).get<Cluster>("/v1/cluster");
    const states = body.servers.map(({ server_id: id, alive }) => [id === "gone" || id === "old" ? id : "", alive]);
    const sorted = JSON.stringify(states.sort());
    return sorted === JSON.stringify([["", true], ["", true], ["gone", false]]); // biome-ignore format: one row
  });
});

test("a leader resigns when it is asked to, but not where nobody else could lead", async (t) => {
  const cluster = await testCluster(t);
  const first = await cluster.start();
  const client = clientOf(first.address.url);
  const bystander = await cluster.start({ noLead: true });
  const alone = await client.post<{ error: string; detail: string }>("/v1/cluster/resign", {});
  assert.deepEqual([alone.status, alone.body.error], [400, "invalid_request"]);
  assert.match(alone.body.detail, /No other server could lead/);
  assert.equal(first.leadership.state, "leading");
  const second = await cluster.start();
  await client.register("a");
  const lease = await client.grant("a", "FILE:/x", { ttl_ms: 60_000 });
  // By way of a server that does not lead.
  const answer = await clientOf(bystander.address.url).post<{ epoch: number }>("/v1/cluster/resign", {});
  assert.deepEqual([answer.status, answer.body.epoch], [202, 1]);
  await until(() => second.leadership.state === "leading");
  assert.equal(first.leadership.state, "standby");
  await until(() => first.leadership.leader?.epoch === 2);
  const { body } = await client.get<Cluster>("/v1/cluster");
  assert.deepEqual([body.shards[0]?.url, body.shards[0]?.epoch], [second.address.url, 2]);
  const { body: kept } = await client.get<{ leases: readonly { id: string }[] }>("/v1/leases");
  assert.deepEqual(
    kept.leases.map(({ id }) => id),
    [lease.id],
  );
  const { body: audit } = await client.get<{ entries: readonly { action: string }[] }>("/v1/audit");
  assert.ok(audit.entries.some(({ action }) => action === "resign_leader"));
});
