import assert from "node:assert/strict";
import { test } from "node:test";
import type { Client } from "../../src/sdk/client.ts";
import { AssumptionFailed, Denied, Died, LeaseholdError, Paused } from "../../src/sdk/errors.ts";
import { failingStore } from "../server/harness.ts";
import { clientFor, pause, proxyTo, serve, until, withCode } from "./harness.ts";

const mutates = (resource: string) => [{ predicate: "MUTATES" as const, resource }];

test("WAIT and GRANTED are results; DIE, PAUSED and denials are errors with their own classes", async (t) => {
  const server = await serve(t);
  const client = clientFor(t, server.address.url);
  await client.call("register_agent", { agent_id: "older" });
  await client.call("register_agent", { agent_id: "younger" });
  const resource = "FILE:/a";
  const granted = await client.call("acquire", { agent_id: "younger", intents: mutates(resource) });
  assert.equal(granted.verdict, "GRANTED");
  const waiting = await client.call("acquire", { agent_id: "older", intents: mutates(resource) });
  assert.equal(waiting.verdict, "WAIT");

  await client.call("register_agent", { agent_id: "youngest" });
  const died = await client.call("acquire", { agent_id: "youngest", intents: mutates(resource) }).catch(identity);
  assert.ok(died instanceof Died);
  assert.equal(died.code, "die");
  assert.equal(died.status, 409);
  assert.ok(died.retryable && died.retryAfterMs !== null && died.attempt === 1);
  assert.equal(died.blockedBy[0]?.agent_id, "younger");

  await client.call("pause_agent", { agent_id: "youngest" });
  const paused = await client.call("acquire", { agent_id: "youngest", intents: mutates("FILE:/b") }).catch(identity);
  assert.ok(paused instanceof Paused && paused.reason === "agent_paused" && !paused.retryable);

  await client.call("declare_resource", { resource: "GPU:/one", capacity: 1 });
  const denied = await client
    .call("acquire", { agent_id: "older", intents: [{ predicate: "CONSUMES", resource: "GPU:/one", units: 2 }] })
    .catch(identity);
  assert.ok(denied instanceof Denied && denied.reason === "capacity");
  assert.ok(!(denied instanceof AssumptionFailed));
});

test("an acquire whose reply is lost is sent again, and granted once", async (t) => {
  const server = await serve(t);
  const proxy = await proxyTo(t, server);
  const client = clientFor(t, proxy.url, { transport: "http" });
  await client.call("register_agent", { agent_id: "a" });
  proxy.loseAnswers(2);
  const granted = await client.call("acquire", { agent_id: "a", intents: mutates("FILE:/a") });
  assert.equal(granted.verdict, "GRANTED");
  const { leases } = await client.call("list_leases", { agent_id: "a" });
  assert.deepEqual(
    leases.map(({ id, fence }) => ({ id, fence })),
    granted.leases.map(({ id, fence }) => ({ id, fence })),
  );
});

test("a call that is not idempotent is not sent again when its outcome is unknown", async (t) => {
  const server = await serve(t);
  const proxy = await proxyTo(t, server);
  const client = clientFor(t, proxy.url);
  await client.call("healthz", {});
  proxy.loseAnswers(1);
  const failed = await client.call("create_tenant", { tenant_id: "acme" }).catch(identity);
  assert.ok(failed instanceof LeaseholdError);
  assert.equal(failed.code, "unreachable");
  assert.ok(failed.outcomeUnknown);
  const { tenants } = await client.call("list_tenants", {});
  assert.ok(tenants.some(({ tenant_id: id }) => id === "acme"));
});

test("while the server has lost its store, calls wait for it and are answered", async (t) => {
  const { store, failNextCommit, comeBack } = failingStore();
  const server = await serve(t, { store });
  const client = clientFor(t, server.address.url);
  await client.call("register_agent", { agent_id: "a" });
  failNextCommit("stored");
  const acquired = client.call("acquire", { agent_id: "a", intents: mutates("FILE:/a") });
  await pause(150);
  comeBack();
  const granted = await acquired;
  assert.equal(granted.verdict, "GRANTED");
  assert.equal((await client.call("list_leases", { agent_id: "a" })).leases.length, 1);
});

test("a call is aborted by its signal, its timeout or the client's close, each with its own code", async (t) => {
  const server = await serve(t);
  const proxy = await proxyTo(t, server);
  const client = clientFor(t, proxy.url);
  await client.call("healthz", {});
  proxy.hush();
  const controller = new AbortController();
  const given = client.call("healthz", {}, { signal: controller.signal });
  const late = client.call("healthz", {}, { timeoutMs: 60 });
  const open = client.call("healthz", {});
  controller.abort(new Error("enough"));
  await assert.rejects(given, withCode("aborted"));
  await assert.rejects(late, withCode("timeout"));
  const closed = assert.rejects(open, withCode("closed"));
  await client.close();
  await closed;
  await assert.rejects(client.call("healthz", {}), withCode("closed"));
  await assert.rejects(client.call("healthz", {}, { signal: AbortSignal.abort() }), withCode("closed"));
});

test("no server, a server that is not Leasehold, and an invalid address have different errors", async (t) => {
  const nobody = clientFor(t, "http://127.0.0.1:9", { retries: 1 });
  const unreachable = await nobody.call("healthz", {}).catch(identity);
  assert.ok(unreachable instanceof LeaseholdError && unreachable.code === "unreachable");
  const server = await serve(t);
  const elsewhere = clientFor(t, `${server.address.url}/other`);
  await assert.rejects(elsewhere.call("healthz", {}), withCode("not_found"));
  assert.throws(() => clientFor(t, "localhost:7117"), TypeError);
  assert.throws(() => clientFor(t, "nonsense"), TypeError);
});

test("many concurrent calls switch to the stream, and each gets its own reply", async (t) => {
  const server = await serve(t);
  const client = clientFor(t, server.address.url);
  const ids = Array.from({ length: 300 }, (_, index) => `agent-${index}`);
  const before = await Promise.all(ids.map((id) => client.call("register_agent", { agent_id: id })));
  assert.deepEqual(
    before.map(({ agent_id: id }) => id),
    ids,
  );
  await Promise.all(ids.map((id) => client.call("get_agent", { agent_id: id })));
  await until(async () => ((await streamsOf(client)) === 1 ? true : null), "the stream is open");
  const after = await Promise.all(ids.map((id) => client.call("get_agent", { agent_id: id })));
  assert.deepEqual(
    after.map(({ agent_id: id }) => id),
    ids,
  );
  const refused = await client.call("get_agent", { agent_id: "nobody" }).catch(identity);
  assert.ok(refused instanceof LeaseholdError && refused.code === "agent_unknown" && refused.status === 404);
});

test("a broken stream loses no call that may be sent again", async (t) => {
  const server = await serve(t);
  const proxy = await proxyTo(t, server);
  const client = clientFor(t, proxy.url, { transport: "stream" });
  await client.call("register_agent", { agent_id: "a" });
  const calls = Array.from({ length: 200 }, (_, index) =>
    client.call("acquire", { agent_id: "a", intents: mutates(`FILE:/f${index}`) }),
  );
  proxy.cut();
  const answers = await Promise.all(calls);
  assert.ok(answers.every(({ verdict }) => verdict === "GRANTED"));
  const { leases } = await client.call("list_leases", { agent_id: "a", limit: 1_000 });
  assert.equal(leases.length, 200);
});

test("a stream whose peer is silently gone is replaced", async (t) => {
  const server = await serve(t);
  const proxy = await proxyTo(t, server);
  const client = clientFor(t, proxy.url, { transport: "stream" });
  await client.call("register_agent", { agent_id: "a" });
  proxy.hush();
  await assert.rejects(
    client.call("get_agent", { agent_id: "a" }, { timeoutMs: 100, retries: 0 }),
    withCode("timeout"),
  );
  proxy.heal();
  assert.equal((await client.call("get_agent", { agent_id: "a" })).agent_id, "a");
});

test("a key, a tenant and an agent's token are sent over HTTP and the stream", async (t) => {
  const server = await serve(t);
  const open = clientFor(t, server.address.url);
  await open.call("create_tenant", { tenant_id: "acme" });
  const { key } = await open.call("create_key", { role: "operator" });
  for (const transport of ["http", "stream"] as const) {
    const client = clientFor(t, server.address.url, { key, tenant: "acme", transport });
    const { agent_token: token } = await client.call("register_agent", { agent_id: "a" });
    assert.equal((await client.call("list_agents", {})).agents.length, 1);
    const stranger = clientFor(t, server.address.url, { key: "wrong", transport: "http" });
    await assert.rejects(stranger.call("list_agents", {}), withCode("unauthorized"));
    const asAgent = clientFor(t, server.address.url, { key: token, transport });
    await assert.rejects(asAgent.call("list_tenants", {}), withCode("forbidden"));
    assert.equal((await client.call("get_agent", { agent_id: "a" }, { token })).agent_id, "a");
  }
});

async function streamsOf(client: Client): Promise<number> {
  const metrics = await (await client.fetch("/metrics")).text();
  return Number(/^leasehold_stream_connections (\d+)$/m.exec(metrics)?.[1]);
}

function identity<T>(value: T): T {
  return value;
}

test("G15: units of a limit are taken at once while there are some, and refused beyond the given time", async (t) => {
  const server = await serve(t);
  const client = clientFor(t, server.address.url);
  await client.call("declare_resource", { resource: "LIMIT:/model", capacity: 3, refill_ms: 3_600_000 });
  await client.limit("LIMIT:/model");
  await client.limit("LIMIT:/model", { units: 2 });
  const refused = await client.limit("LIMIT:/model", { timeoutMs: 0 }).catch(identity);
  assert.ok(refused instanceof LeaseholdError && refused.code === "would_wait", String(refused));
  const { resources } = await client.call("list_resources", { prefix: "LIMIT:/model" });
  assert.equal(resources[0]?.refill_ms, 3_600_000);
});
