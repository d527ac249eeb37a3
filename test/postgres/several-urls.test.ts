/** Clients that know several servers of a cluster, while servers die. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { connect } from "../../src/guard/control-plane.ts";
import { allowServer, readSettings, serverFor } from "../../src/guard/settings.ts";
import { createClient, type Transport } from "../../src/sdk/client.ts";
import { start } from "../cli/harness.ts";
import { type ServerProcess, testCluster, until } from "./cluster-harness.ts";

const intents = (resource: string) => [{ predicate: "MUTATES" as const, resource }];

async function kill({ child }: ServerProcess): Promise<void> {
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
}

for (const transport of ["http", "stream"] satisfies readonly Transport[])
  test(`calls, held requests and events go on at the next server when one is killed, over ${transport}`, async (t) => {
    const cluster = await testCluster(t);
    const first = await cluster.spawn(["--leader-lease-ms", "2500"]);
    const [second, third] = [await cluster.start(), await cluster.start()];
    const urls = [first.url, second.address.url, third.address.url];
    const client = createClient({ urls, transport });
    t.after(() => client.close());
    assert.equal(client.url, first.url);
    const seen: number[] = [];
    const stop = new AbortController();
    const opened = Promise.withResolvers<void>();
    const watching = (async () => {
      const options = { signal: stop.signal, types: ["lease.granted" as const], onOpen: () => opened.resolve() };
      for await (const { seq } of client.events(options)) seen.push(seq);
    })().catch((error: unknown) => assert.equal(stop.signal.aborted, true, String(error)));
    await opened.promise;
    await client.call("register_agent", { agent_id: "old" });
    await client.call("register_agent", { agent_id: "young" });
    const held = await client.call("acquire", { agent_id: "young", intents: intents("FILE:/x"), ttl_ms: 60_000 });
    const waits = client.call("acquire", { agent_id: "old", intents: intents("FILE:/x"), hold_ms: 20_000 });
    await until(async () => (await client.call("list_requests", {})).requests.length > 0);
    await kill(first);
    // Many at once, the leader gone: each is answered once there is another.
    const granted = await Promise.all(
      Array.from({ length: 40 }, (_, n) =>
        client.call("acquire", { agent_id: "young", intents: intents(`FILE:/${n}`) }),
      ),
    );
    assert.equal(new Set(granted.map((answer) => ("leases" in answer ? answer.leases[0]?.id : null))).size, 40);
    assert.notEqual(client.url, first.url);
    const stays = client.url;
    await client.call("list_leases", {});
    assert.equal(client.url, stays);
    const [lease] = "leases" in held ? held.leases : [];
    await client.call("release_lease", { lease_id: lease?.id ?? "" });
    const answer = await waits;
    assert.equal("leases" in answer && answer.leases.length, 1);
    await until(() => seen.length === 42);
    assert.deepEqual(
      seen,
      [...new Set(seen)].toSorted((a, b) => a - b),
    );
    stop.abort();
    await watching;
  });

test("a worker's heartbeats and its lease survive the server that it began with", async (t) => {
  const cluster = await testCluster(t);
  const first = await cluster.spawn(["--leader-lease-ms", "2500"]);
  const second = await cluster.start();
  const client = createClient({ url: `${first.url},${second.address.url}` });
  t.after(() => client.close());
  const begun = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  const worker = client.worker({
    workerId: "worker.1",
    types: ["build"],
    handler: async () => {
      begun.resolve();
      await goOn.promise;
      return { text: "done" };
    },
  });
  const { task_id: id } = await client.call("create_task", {
    task_type: "build",
    principal_ai: "planner",
    lease_duration_ms: 8_000,
  });
  await begun.promise;
  const before = await client.call("list_leases", { resource: `TASK:/${id}` });
  await kill(first);
  await until(async () => {
    const { leases } = await client.call("list_leases", { resource: `TASK:/${id}` });
    return (leases[0]?.expires_at ?? "") > (before.leases[0]?.expires_at ?? "");
  });
  goOn.resolve();
  await until(async () => (await client.call("get_task", { task_id: id })).status === "succeeded");
  await worker.drain();
});

test("the command line takes several addresses, a cell links to the next one, and commands inherit them", async (t) => {
  const cluster = await testCluster(t);
  const first = await cluster.spawn(["--leader-lease-ms", "2500"]);
  const second = await cluster.start();
  const urls = [first.url, second.address.url];
  const folder = mkdtempSync(join(tmpdir(), "leasehold-urls-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const config = join(folder, "cell.json");
  const resources = [{ resource: "FILE:/data", driver: "files", options: { folder } }];
  writeFileSync(config, JSON.stringify({ cell: "lab", resources }));
  const cell = start(["cell", "--config", config, "--server", urls.join(",")]);
  t.after(async () => {
    cell.child.kill("SIGTERM");
    await cell.ended;
  });
  const links = (): number => cell.output.stdout.split("is linked to").length - 1;
  await until(() => links() === 1);
  await kill(first);
  await until(() => second.leadership.state === "leading");
  await until(() => links() === 2);
  const repeated = await start(["ls", "--json", "--url", urls[0] ?? "", "--url", urls[1] ?? ""]).ended;
  assert.equal(repeated.code, 0, repeated.stderr);
  const script = "process.stdout.write(process.env.LEASEHOLD_URL)";
  const run = start(["run", "FILE:/x", "--", process.execPath, "-e", script], {
    env: { LEASEHOLD_URL: urls.join(",") },
  });
  const { code, stdout, stderr } = await run.ended;
  assert.equal(code, 0, stderr);
  assert.equal(stdout, urls.join(","));
});

test("a server that knows no leader is passed over, and a key is only taken where every server may get it", async (t) => {
  const cluster = await testCluster(t);
  const leader = await cluster.start();
  const asked: string[] = [];
  const lost = createServer((request, response) => {
    asked.push(request.url ?? "");
    response.writeHead(503, { "content-type": "application/json", "retry-after": "60" });
    response.end(JSON.stringify({ error: "no_leader", detail: "none", retry_after_ms: 60_000 }));
  }).listen(0, "127.0.0.1");
  await once(lost, "listening");
  t.after(() => lost.close());
  const url = `http://127.0.0.1:${(lost.address() as AddressInfo).port}`;
  const client = createClient({ urls: [url, leader.address.url], timeoutMs: 5_000 });
  t.after(() => client.close());
  await client.call("list_leases", {});
  await client.call("list_leases", {});
  assert.equal(asked.filter((path) => path !== "/healthz").length, 1);
  assert.equal((await client.fetch("/metrics")).status, 200);
  const away = createClient({ urls: [url, "http://127.0.0.1:9"], retries: 0 });
  t.after(() => away.close());
  await assert.rejects(away.call("list_leases", {}), { code: "unreachable" });
  const readable = ["https://a.example", "http://b.example:7117"];
  assert.throws(() => createClient({ urls: readable, key: "lhk_x" }), /b\.example:7117 is neither https nor/);
  assert.throws(() => createClient({ url: "http://127.0.0.1:1", urls: readable }), /not both/);
  assert.throws(() => createClient({ urls: [] }), /No server is named/);
  const line = await start(["ls", "--key", "lhk_x", "--url", readable.join(",")]).ended;
  assert.equal(line.code, 2);
  assert.match(line.stderr, /b\.example:7117 is neither https nor on this machine/);
});

test("a guard asks the next server, and sends a key only where each may get it", async (t) => {
  const cluster = await testCluster(t);
  const leader = await cluster.start();
  const folder = mkdtempSync(join(tmpdir(), "leasehold-urls-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const environment = { LEASEHOLD_STATE: folder, LEASEHOLD_URL: `http://127.0.0.1:9,${leader.address.url}/` };
  const plane = connect(readSettings(null, environment));
  assert.equal((await plane.call("GET", "/v1/leases")).status, 200);
  const readable = { ...environment, LEASEHOLD_KEY: "lhk_x", LEASEHOLD_URL: "https://a.example,http://b.example" };
  assert.throws(() => readSettings(null, readable), /b\.example is neither https nor/);
  const project = { url: "http://127.0.0.1:7117,https://c.example" };
  assert.throws(() => serverFor(project, { LEASEHOLD_STATE: folder }), /c\.example/);
  allowServer("https://c.example", environment);
  assert.equal(serverFor(project, { LEASEHOLD_STATE: folder }).isOwn, false);
});
