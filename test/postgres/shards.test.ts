import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { OperationAnswers } from "../../src/sdk/wire.ts";
import { shardOfTenant } from "../../src/server/cluster/shards.ts";
import type { ClusterServer } from "../../src/server/cluster/start-cluster.ts";
import { follow } from "../server/event-client.ts";
import { clientOf } from "../server/harness.ts";
import { openStream } from "../server/stream-client.ts";
import { testCluster, until } from "./cluster-harness.ts";

type Cluster = OperationAnswers["get_cluster"];

const intent = (resource: string) => [{ predicate: "MUTATES", resource }];
const shards = 4;
/** One tenant in each shard. */
const tenants = ["t3", "acme", "a", "t2"];

test("the tenants of these tests are in different shards", () => {
  assert.deepEqual(
    tenants.map((tenant) => shardOfTenant(tenant, shards)),
    [0, 1, 2, 3],
  );
});

const ledBy = (server: ClusterServer): number[] =>
  server.leaderships.flatMap(({ state }, shard) => (state === "leading" ? [shard] : []));

async function spread(t: TestContext, count: number) {
  const cluster = await testCluster(t, undefined, shards);
  const servers: ClusterServer[] = [];
  for (let n = 0; n < count; n++) servers.push(await cluster.start());
  const isEven = (): boolean => {
    const counts = servers.map((server) => ledBy(server).length);
    const sum = counts.reduce((all, one) => all + one, 0);
    return sum === shards && Math.max(...counts) - Math.min(...counts) <= 1;
  };
  await until(isEven);
  return { cluster, servers, urls: servers.map(({ address }) => address.url) };
}

test("tenants are led by different servers, and any server takes any request", async (t) => {
  const { servers, urls } = await spread(t, 3);
  const led = servers.map(ledBy);
  assert.deepEqual(led.flat().sort(), [0, 1, 2, 3]);
  const clients = urls.map(clientOf);
  const [first] = clients;
  assert(first !== undefined);
  for (const tenant of tenants) assert.equal((await first.post("/v1/tenants", { tenant_id: tenant })).status, 201);
  for (const tenant of tenants) {
    for (const [index, client] of clients.entries()) {
      const agent = `${tenant}-${index}`;
      await client.register(agent, { tenant });
      await client.grant(agent, `FILE:/${index}`, {}, { tenant });
    }
    const seen = await first.get<{ leases: readonly { agent_id: string }[] }>("/v1/leases", { tenant });
    assert.equal(seen.body.leases.length, 3, tenant);
  }
  const { body } = await first.get<{ tenants: readonly { tenant_id: string }[] }>("/v1/tenants");
  assert.deepEqual(body.tenants.map(({ tenant_id: id }) => id).sort(), [...tenants, "default"].sort());
  const shown = await first.get<Cluster>("/v1/cluster");
  assert.equal(shown.body.shards.length, shards);
  assert.ok(shown.body.shards.every(({ url }) => urls.includes(url ?? "")));
});
