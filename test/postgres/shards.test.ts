import assert from "node:assert/strict";
import { request } from "node:http";
import { test } from "node:test";
import type { OperationAnswers } from "../../src/sdk/wire.ts";
import { shardOfTenant } from "../../src/server/cluster/shards.ts";
import { entry, joinCell } from "../server/cell-peer.ts";
import { follow } from "../server/event-client.ts";
import { clientOf, mutates } from "../server/harness.ts";
import { openStream } from "../server/stream-client.ts";
import { testCluster, until } from "./cluster-harness.ts";
import { createTenants, evenly, ledBy, shards, tenants } from "./shards-harness.ts";

type Cluster = OperationAnswers["get_cluster"];

test("the tenants of these tests are in different shards", () => {
  assert.deepEqual(
    tenants.map((tenant) => shardOfTenant(tenant, shards)),
    [0, 1, 2, 3],
  );
});

test("tenants are led by different servers, and any server takes any request", async (t) => {
  const { servers, urls } = await evenly(t, 3);
  assert.deepEqual(servers.flatMap(ledBy).sort(), [0, 1, 2, 3]);
  const clients = urls.map(clientOf);
  const [first = clientOf("")] = clients;
  await createTenants(urls[0] ?? "");
  for (const tenant of tenants) {
    for (const [index, client] of clients.entries()) {
      const agent = `${tenant}-${index}`;
      await client.register(agent, { tenant });
      await client.grant(agent, `FILE:/${index}`, {}, { tenant });
    }
    const leases = await first.get<{ leases: readonly { agent_id: string }[] }>("/v1/leases", { tenant });
    assert.equal(leases.body.leases.length, 3, tenant);
    // It is the tenant's own shard that has them.
    const led = servers.map(({ shardServices }) => shardServices.get(shardOfTenant(tenant, shards))?.engine.isServing);
    assert.equal(led.filter((isServing) => isServing === true).length, 1, tenant);
  }
  for (const client of clients) {
    const { body } = await client.get<{ tenants: readonly { tenant_id: string }[] }>("/v1/tenants");
    assert.deepEqual(body.tenants.map(({ tenant_id: id }) => id).sort(), [...tenants, "default"].sort());
    const shown = await client.get<Cluster>("/v1/cluster");
    assert.equal(shown.body.shards.length, shards);
    assert.ok(shown.body.shards.every(({ url }) => urls.includes(url ?? "")));
  }
});

test("every kind of request reaches its tenant's leader from any server", async (t) => {
  const { urls } = await evenly(t, 2);
  const [here = "", there = ""] = urls;
  await createTenants(here);
  for (const tenant of tenants) {
    for (const [own, other] of [
      [here, there],
      [there, here],
    ] as const) {
      const client = clientOf(own);
      const [holder, waiter] = [`h-${own.slice(-4)}`, `w-${own.slice(-4)}`];
      // The older one waits for the younger.
      await client.register(waiter, { tenant });
      await client.register(holder, { tenant });
      const events = await follow(own, { tenant });
      assert.equal(events.status, 200);
      const lease = await client.grant(holder, "FILE:/x", {}, { tenant });
      await until(() => events.events.some(({ type }) => type === "lease.granted"));
      const asked = { agent_id: waiter, intents: mutates("FILE:/x"), hold_ms: 20_000 };
      const held = client.post<{ leases: readonly { id: string }[] }>("/v1/acquire", asked, { tenant });
      const far = clientOf(other);
      const waiting = async () =>
        (await far.get<{ requests: readonly unknown[] }>("/v1/requests", { tenant })).body.requests.length > 0;
      await until(waiting);
      assert.equal((await far.post(`/v1/leases/${lease.id}/release`, {}, { tenant })).status, 200);
      const [granted] = (await held).body.leases;
      assert.ok(granted !== undefined);
      await far.post(`/v1/leases/${granted.id}/release`, {}, { tenant });
      events.stop();
    }
  }
});

test("WebSockets, MCP and cells of a tenant go to its leader", async (t) => {
  const { urls } = await evenly(t, 2);
  await createTenants(urls[0] ?? "");
  const operator = (await clientOf(urls[0] ?? "").post<{ key: string }>("/v1/keys", { role: "operator" })).body.key;
  for (const tenant of tenants) {
    const made = { role: "supervisor", tenant_id: tenant };
    const { key } = (await clientOf(urls[1] ?? "").post<{ key: string }>("/v1/keys", made, { key: operator })).body;
    const cells = { role: "cell", tenant_id: tenant };
    const cellKey = (await clientOf(urls[0] ?? "").post<{ key: string }>("/v1/keys", cells, { key: operator })).body
      .key;
    for (const [index, url] of urls.entries()) {
      const client = clientOf(url);
      await client.register(`s${index}`, { key });
      const stream = await openStream(t, url, key);
      stream.send({ id: 1, op: "acquire", input: { agent_id: `s${index}`, intents: mutates(`FILE:/${index}`) } });
      assert.equal((await stream.answer(1)).status, 200, `${tenant} by ${url}`);
      const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "list_leases", arguments: {} } };
      const mcp = await fetch(`${url}/mcp?toolsets=all`, {
        method: "POST",
        headers: {
          authorization: `Bearer ${key}`,
          accept: "application/json, text/event-stream",
          "content-type": "application/json",
          "mcp-protocol-version": "2025-11-25",
        },
        body: JSON.stringify(call),
      });
      const answer = await mcp.text();
      assert.ok(answer.includes(`FILE:/${index}`), answer);
      await joinCell(t, url, {
        key: cellKey,
        cell: `c${index}`,
        inventory: [entry(`GPU:/${tenant}/${index}`)],
      });

      const { body } = await client.get<{ cells: readonly { cell: string }[] }>("/v1/cells", { key });
      assert.ok(body.cells.some(({ cell }) => cell === `c${index}`));
    }
  }
});

/** On one connection, as a proxy sends for many clients. */
function onOneConnection(url: string) {
  const socket = new URL(url);
  return async (paths: readonly (readonly [path: string, tenant: string])[]): Promise<readonly number[]> => {
    const { Agent } = await import("node:http");
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const statuses: number[] = [];
    for (const [path, tenant] of paths) {
      statuses.push(
        await new Promise((resolve, reject) => {
          const headers = { "leasehold-tenant": tenant };
          request({ host: socket.hostname, port: socket.port, path, headers, agent }, (answer) => {
            answer.resume();
            answer.on("end", () => resolve(answer.statusCode ?? 0));
          })
            .on("error", reject)
            .end();
        }),
      );
    }
    agent.destroy();
    return statuses;
  };
}

test("requests about several tenants may come on one connection", async (t) => {
  const { urls } = await evenly(t, 2);
  await createTenants(urls[0] ?? "");
  for (const tenant of tenants) await clientOf(urls[0] ?? "").register(`only-${tenant}`, { tenant });
  for (const url of urls) {
    const send = onOneConnection(url);
    const own = tenants.flatMap((tenant) => [[`/v1/agents/only-${tenant}`, tenant] as const]);
    assert.deepEqual(await send([...own, ...own]), [200, 200, 200, 200, 200, 200, 200, 200]);
    // What is another tenant's is not found, whatever shard the connection began in.
    assert.deepEqual(
      await send([
        ["/v1/agents/only-acme", "t3"],
        ["/v1/agents/only-t3", "acme"],
      ]),
      [404, 404],
    );
  }
});

test("what says that it was passed on is believed only of servers, and is not passed on again", async (t) => {
  const cluster = await testCluster(t, undefined, shards);
  const one = await cluster.start();
  const two = await cluster.start({ noLead: true });
  await createTenants(one.address.url);
  const forged = { "leasehold-passed-on": `127.0.0.1 #1 ${"A".repeat(43)}`, "leasehold-tenant": "a" };
  // It names shard 1, and the tenant is in another: not served there, and not sent on.
  for (const { address } of [one, two]) {
    const answer = await fetch(`${address.url}/v1/leases`, { headers: forged });
    assert.deepEqual([answer.status, ((await answer.json()) as { error: string }).error], [503, "no_leader"]);
  }
});

test("while a shard has no leader its tenants get 503 no_leader, and others are served", async (t) => {
  const { cluster, servers, urls } = await evenly(t, 2);
  await createTenants(urls[0] ?? "");
  const { schema, query } = cluster.data;
  // Nobody may campaign while the row is another server's.
  await query(`UPDATE ${schema}.shards SET epoch = epoch + 1, journal_epoch = epoch + 1, server = 'x', url = 'http://127.0.0.1:1',
    lease_until = now() + interval '1 h' WHERE shard = 2`);
  await until(() => servers.every((server) => !ledBy(server).includes(2)));
  const ask = () => fetch(`${urls[0]}/v1/leases`, { headers: { "leasehold-tenant": "a" } });
  await until(async () => (await ask()).status === 503);
  const answer = await ask();
  const { error } = (await answer.json()) as { error: string };
  assert.deepEqual([error, answer.headers.get("retry-after")], ["no_leader", "1"]);
  for (const tenant of ["t3", "acme", "t2"]) {
    for (const url of urls) assert.equal((await clientOf(url).get("/v1/leases", { tenant })).status, 200, tenant);
  }
});

test("the metrics of a server name the shards that it leads", async (t) => {
  const { servers, urls } = await evenly(t, 2);
  for (const [index, url] of urls.entries()) {
    const text = await (await fetch(`${url}/metrics`)).text();
    const named = [...text.matchAll(/^leasehold_leader_epoch\{shard="(\d)"\} \d+$/gm)].map(([, shard]) =>
      Number(shard),
    );
    assert.deepEqual(named.sort(), [...ledBy(servers[index] ?? assert.fail())].sort());
    assert.equal(text.match(/^process_cpu_seconds_total/gm)?.length, 1);
    assert.equal(text.match(/^# TYPE leasehold_leases /gm)?.length, 1);
  }
});
