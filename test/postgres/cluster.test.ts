import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { follow } from "../server/event-client.ts";
import { clientOf } from "../server/harness.ts";
import { openStream } from "../server/stream-client.ts";
import { testCluster, until } from "./cluster-harness.ts";

const intent = (resource: string) => [{ predicate: "MUTATES", resource }];

test("any server takes any request: answers, held ones, events and the stream come from the leader", async (t) => {
  const cluster = await testCluster(t);
  const leader = await cluster.start();
  const follower = await cluster.start();
  assert.deepEqual([leader.leadership.state, follower.leadership.state], ["leading", "standby"]);
  const { url } = follower.address;
  const [near, far] = [clientOf(leader.address.url), clientOf(url)];
  // The older one waits for the younger.
  await far.register("b");
  await far.register("a");
  const events = await follow(url);
  assert.equal(events.status, 200);
  const lease = await far.grant("a", "FILE:/x");
  await until(() => events.events.some(({ type }) => type === "lease.granted"));
  const asked = { agent_id: "b", intents: intent("FILE:/x"), hold_ms: 20_000 };
  const held = far.post<{ leases: readonly { id: string }[] }>("/v1/acquire", asked);
  await until(async () => (await near.get<{ requests: readonly unknown[] }>("/v1/requests")).body.requests.length > 0);
  assert.equal((await near.post(`/v1/leases/${lease.id}/release`, {})).status, 200);
  assert.equal((await held).body.leases.length, 1);
  const stream = await openStream(t, url);
  stream.send({ id: 1, op: "acquire", input: { agent_id: "a", intents: intent("FILE:/y") } });
  assert.equal((await stream.answer(1)).status, 200);
  // A large body, and a refusal, pass as they are.
  assert.equal((await far.post("/v1/acquire", { agent_id: "a" })).status, 400);
  const bytes = Buffer.alloc(3_000_000, 7);
  const put = await fetch(`${url}/v1/artifacts`, { method: "PUT", body: bytes });
  assert.ok(put.ok, await put.text());
  events.stop();
});

test("a leader that closes hands over: leases go on as they were, and fences grow", async (t) => {
  const cluster = await testCluster(t);
  const first = await cluster.start();
  const second = await cluster.start();
  const client = clientOf(second.address.url);
  await client.register("a");
  const lease = await client.grant("a", "FILE:/x", { ttl_ms: 60_000 });
  await first.close();
  await until(() => second.leadership.state === "leading");
  const { body } = await client.get<{ leases: readonly (typeof lease)[] }>("/v1/leases");
  const [kept] = body.leases;
  assert.deepEqual([kept?.id, kept?.fence, kept?.expires_at], [lease.id, lease.fence, lease.expires_at]);
  assert.ok((await client.grant("a", "FILE:/y")).fence > lease.fence);
  const beat = await client.post(`/v1/leases/${lease.id}/renew`, {});
  assert.equal(beat.status, 200, beat.text);
});

test("without a leader there is 503 no_leader with Retry-After, and no request goes in circles", async (t) => {
  const cluster = await testCluster(t);
  const [one, two] = [await cluster.start({ noLead: true }), await cluster.start({ noLead: true })];
  const answer = await fetch(`${one.address.url}/v1/leases`);
  assert.equal(answer.status, 503);
  assert.equal(answer.headers.get("retry-after"), "1");
  assert.equal(((await answer.json()) as { error: string }).error, "no_leader");
  assert.equal((await fetch(`${one.address.url}/readyz`)).status, 503);
  assert.equal((await fetch(`${one.address.url}/healthz`)).status, 200);
  // The row names a server that does not lead: each would pass it to the other.
  const { schema, query } = cluster.data;
  await query(
    `UPDATE ${schema}.shards SET server = 'x', url = '${two.address.url}', lease_until = now() + interval '1 h'`,
  );
  await until(() => one.leadership.leader !== null && two.leadership.leader !== null);
  assert.equal((await fetch(`${one.address.url}/v1/leases`)).status, 503);
  const page = await fetch(`${one.address.url}/v1/leases`, { headers: { origin: "https://elsewhere.example" } });
  assert.equal(page.status, 403);
});

for (const pausedMs of [0, 1_000])
  test(`a leader that is paused past its lease${pausedMs > 0 ? " for longer" : ""} answers nothing and commits nothing when it wakes`, async (t) => {
    const cluster = await testCluster(t);
    const { child, url } = await cluster.spawn(["--leader-lease-ms", "2500"]);
    const second = await cluster.start();
    const old = clientOf(url);
    const client = clientOf(second.address.url);
    await old.register("a");
    await old.register("b");
    child.kill("SIGSTOP");
    // Its connection is open already, so that it finds this request when it wakes.
    const late = old.post("/v1/acquire", { agent_id: "a", intents: intent("FILE:/x") }).catch(() => null);
    await until(() => second.leadership.state === "leading");
    await client.grant("b", "FILE:/x", { ttl_ms: 120_000 });
    await new Promise((resolve) => setTimeout(resolve, pausedMs));
    child.kill("SIGCONT");
    const answer = await late;
    assert.notEqual(answer?.status, 200, answer?.text ?? "");
    // As a standby it passes on what comes.
    await until(
      async () => (await old.get<{ leases: readonly unknown[] }>("/v1/leases").catch(() => null))?.status === 200,
    );
    const { body } = await old.get<{ leases: readonly { agent_id: string }[] }>("/v1/leases");
    assert.deepEqual(
      body.leases.map((lease) => lease.agent_id),
      ["b"],
    );
  });

test("a killed leader is followed by another, with everything that it had acknowledged", async (t) => {
  const cluster = await testCluster(t);
  const { child, url } = await cluster.spawn(["--leader-lease-ms", "2500"]);
  const second = await cluster.start();
  const client = clientOf(url);
  await client.register("a");
  const granted: string[] = [];
  for (let n = 0; n < 20; n++) granted.push((await client.grant("a", `FILE:/${n}`, { ttl_ms: 120_000 })).id);
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
  await until(() => second.leadership.state === "leading");
  const { body } = await clientOf(second.address.url).get<{ leases: readonly { id: string }[] }>("/v1/leases");
  assert.deepEqual(body.leases.map(({ id }) => id).sort(), granted.sort());
});

test("secrets are encrypted in the database, and another master key opens nothing", async (t) => {
  const cluster = await testCluster(t);
  const first = await cluster.start();
  await clientOf(first.address.url).register("a");
  const { schema, query } = cluster.data;
  const rows = await query(`SELECT name, encode(sealed, 'escape') AS text FROM ${schema}.secrets ORDER BY name`);
  assert.deepEqual(
    rows.map(({ name }) => name),
    ["check", "ledger-key.pem", "token-keys.json"],
  );
  assert.doesNotMatch(JSON.stringify(rows), /PRIVATE KEY|created_at|leasehold/);
  const find = () => query(`SELECT body FROM ${schema}.live WHERE kind = 'engine'`);
  // It comes from the journal.
  await until(async () => (await find()).length > 0);
  const [engine] = await find();
  const { secret } = JSON.parse(String(engine?.["body"])) as { secret: string };
  assert.ok(secret.length > 43, "sealed, and so longer than what is in it");
  const other = await testCluster(t);
  await assert.rejects(
    cluster.start({ masterKeyFile: other.masterKeyFile }),
    /the master key does not open the secrets/,
  );
  await assert.rejects(cluster.start({ masterKeyFile: null }), /needs --master-key-file/);
});

test("a database that may lose commits, and a clock that is an hour off, are refused", async (t) => {
  const cluster = await testCluster(t);
  const url = new URL(cluster.data.url);
  url.searchParams.set("options", "-c synchronous_commit=off");
  await assert.rejects(cluster.start({ store: url.href }), /synchronous_commit is off.*--accept-volatile/);
  const accepted = await cluster.start({ store: url.href, acceptVolatile: true });
  await accepted.close();
  const wall = () => Date.now() + 3_600_000;
  await assert.rejects(cluster.start({ wall } as object), /clock is 60 min ahead of the database's/);
});
