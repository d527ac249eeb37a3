/** Attacks on the edge that once worked, done as they were. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { isJsonInUtf8 } from "../../src/server/http/http.ts";
import { serve, until } from "./harness.ts";
import { sendRaw } from "./raw-client.ts";
import { openStream } from "./stream-client.ts";

async function open(t: TestContext, port: number, bytes = ""): Promise<Socket> {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  t.after(() => socket.destroy());
  socket.on("error", () => undefined);
  await once(socket, "connect");
  if (bytes !== "") socket.write(bytes);
  return socket;
}

const upgrade = (path: string, more = "") =>
  `GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
  `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n${more}\r\n`;

const head = (path: string, length: number) =>
  `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`;

test("N1: where no route is, nothing of a body is read, let alone parsed, before the answer", async (t) => {
  const { address } = await serve(t);
  for (const path of ["/nowhere", "/v1/leases/x/y", "/healthz", "/openapi.json"]) {
    const { status, head: answered } = await sendRaw(address.port, head(path, 1_000_000));
    assert.ok(status === 404 || status === 405, `${path} ${status}`);
    assert.match(answered, /connection: close/i, "what is left of the body is not waited for");
  }
});

test("N1, S5: without a credential no body is read, and Host is checked first", async (t) => {
  const { address, post } = await serve(t);
  await post("/v1/keys", { role: "operator" });
  for (const path of ["/v1/acquire", "/v1/tasks/batch", "/mcp"]) {
    assert.equal((await sendRaw(address.port, head(path, 1_000_000))).status, 401, path);
    const elsewhere = head(path, 1_000_000).replace("localhost", "evil.example");
    assert.equal((await sendRaw(address.port, elsewhere)).status, 403, path);
  }
});

test("M3: four million blanks in a Content-Type are judged at once, and only JSON in UTF-8 passes", () => {
  assert.equal(isJsonInUtf8(`application/json;${" ".repeat(4_000_000)}x`), false);
  assert.equal(isJsonInUtf8(`application/json;${" ".repeat(4_000_000)}`), true);
  for (const good of ['; charset="UTF-8"', ";charset=utf8", "; charset = utf-8 ;", ""])
    assert.equal(isJsonInUtf8(`application/json${good}`), true, good);
  for (const bad of ["; charset=latin1", "; charset", "; boundary=x", "; charset=utf-8=x", '; charset="utf-8'])
    assert.equal(isJsonInUtf8(`application/json${bad}`), false, bad);
});

test("N2: after a 408, a refused upgrade, CONNECT or nonsense the server lets go, though the client does not", async (t) => {
  const server = await serve(t, { requestTimeoutMs: 300 });
  const { port } = server.address;
  const last = [
    "GET /v1/leases HTT",
    `${head("/v1/agents", 50)}{"agent_id":`,
    upgrade("/v1/elsewhere"),
    upgrade("/v1/stream", "Authorization: Bearer lhk_wrong\r\n"),
    "CONNECT evil.example:443 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "nonsense\r\n\r\n",
    "GET /healthz HTTP/1.1\r\nHost: localhost\r\nExpect: miracles\r\n\r\n",
  ];
  for (const bytes of last) {
    const socket = await open(t, port, bytes);
    socket.resume();
    await until(() => (server.connections() === 0 ? true : null), `it is gone after ${bytes.slice(0, 30)}`);
  }
});

test("N2: silent sockets never keep out others: the oldest stranger makes room for the next", async (t) => {
  const server = await serve(t, { connectionsMax: 40 });
  const silent: Socket[] = [];
  for (let count = 0; count < 60; count++) silent.push(await open(t, server.address.port));
  assert.equal((await server.get("/v1/leases")).status, 200);
  await until(() => (server.connections() <= 11 ? true : null), "strangers have a quarter of all");
});

test("N5: event streams that are pipelined on one connection end it, and leave none behind", async (t) => {
  const server = await serve(t);
  const request = "GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n";
  for (const bytes of [request.repeat(500), `GET /v1/leases HTTP/1.1\r\nHost: localhost\r\n\r\n${request}`]) {
    const socket = await open(t, server.address.port, bytes);
    socket.resume();
    await until(() => (server.connections() === 0 ? true : null), "the connection is gone");
  }
  const later = await open(t, server.address.port, request);
  await once(later, "data");
  later.write(request);
  later.resume();
  await until(() => (server.connections() === 0 ? true : null), "a request behind a stream ends it");
  assert.equal(server.service.uses.used("default", "subscriptionsMax"), 0);
  assert.equal(server.service.events.size, 0);
});

test("M2: a connection has at most 16 subscriptions, a tenant as many as its quota, and the rest are refused by name", async (t) => {
  const server = await serve(t);
  await server.post("/v1/tenants", { tenant_id: "acme" });
  const make = async (role: string) =>
    (await server.post<{ key: string }>("/v1/keys", { role, tenant_id: "acme" }, { key: operator })).body.key;
  const operator = (await server.post<{ key: string }>("/v1/keys", { role: "operator" })).body.key;
  const key = await make("supervisor");
  const first = await openStream(t, server.address.url, key);
  first.send(Array.from({ length: 300 }, (_, id) => ({ id, op: "events", input: { since: 0, agent_id: "nobody" } })));
  await first.until(() => first.frames.length >= 300);
  const refused = first.frames.filter(({ status }) => status === 403);
  assert.equal(refused.length, 284);
  assert.deepEqual(refused[0]?.body, {
    ...refused[0]?.body,
    error: "quota_exceeded",
    quota: "subscriptions_per_connection_max",
    used: 16,
    limit: 16,
  });
  await server.call("PUT", "/v1/tenants/acme/quotas", { subscriptions_max: 18 }, { key: operator });
  const second = await openStream(t, server.address.url, key);
  second.send(Array.from({ length: 4 }, (_, id) => ({ id, op: "events", input: {} })));
  await second.until(() => second.frames.length === 4);
  assert.deepEqual(second.frames.map(({ status }) => status).toSorted(), [200, 200, 403, 403]);
  const stream = await fetch(`${server.address.url}/v1/events`, { headers: { authorization: `Bearer ${key}` } });
  assert.deepEqual([stream.status, ((await stream.json()) as { quota: string }).quota], [403, "subscriptions_max"]);
  first.socket.terminate();
  await until(() => (server.service.uses.used("acme", "subscriptionsMax") === 2 ? true : null), "they end with it");
});

test("M7: connections count for their tenant, however many tokens they come with, and another tenant gets in", async (t) => {
  const server = await serve(t);
  const operator = (await server.post<{ key: string }>("/v1/keys", { role: "operator" })).body.key;
  await server.post("/v1/tenants", { tenant_id: "acme" }, { key: operator });
  await server.call("PUT", "/v1/tenants/acme/quotas", { connections_max: 3 }, { key: operator });
  const keyOf = async (tenant_id: string) =>
    (await server.post<{ key: string }>("/v1/keys", { role: "supervisor", tenant_id }, { key: operator })).body.key;
  const ask = async (key: string) => {
    const request = `GET /v1/leases HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\n\r\n`;
    const socket = await open(t, server.address.port, request);
    const [answer] = (await once(socket, "data")) as [Buffer];
    return answer.toString();
  };
  const acme = await keyOf("acme");
  for (let count = 0; count < 3; count++) assert.match(await ask(await keyOf("acme")), /^HTTP\/1\.1 200 /);
  const full = await ask(acme);
  assert.match(full, /^HTTP\/1\.1 403 /);
  assert.match(full, /"quota":"connections_max","used":3,"limit":3/);
  assert.match(full, /connection: close/i);
  assert.match(await ask(await keyOf("default")), /^HTTP\/1\.1 200 /);
  const forAcme = `GET /v1/leases HTTP/1.1\r\nHost: localhost\r\nLeasehold-Tenant: acme\r\nAuthorization: Bearer ${operator}\r\n\r\n`;
  assert.equal((await sendRaw(server.address.port, forAcme)).status, 200, "an operator is let in all the same");
});

test("M7: held answers count for their tenant, polls and acquires alike, and end with their clients", async (t) => {
  const server = await serve(t);
  await server.call("PUT", "/v1/tenants/default/quotas", { held_max: 3 });
  await server.register("alice");
  await server.register("bob");
  await server.grant("bob", "FILE:/a", { ttl_ms: 300_000 });
  const poll = (worker: number, signal?: AbortSignal) =>
    server.post<{ quota?: string }>(
      "/v1/lease",
      { worker_id: `w.${worker}`, hold_ms: 30_000 },
      signal === undefined ? {} : { signal },
    );
  const gone = new AbortController();
  const held = [1, 2].map((worker) => poll(worker, gone.signal).catch(() => null));
  const intents = [{ predicate: "MUTATES", resource: "FILE:/a" }];
  const waiting = server
    .post("/v1/acquire", { agent_id: "alice", intents, hold_ms: 30_000 }, { signal: gone.signal })
    .catch(() => null);
  await until(() => (server.service.uses.used("default", "heldMax") === 3 ? true : null), "three are held");
  const full = await poll(3);
  assert.deepEqual([full.status, full.body.quota], [403, "held_max"]);
  const more = await server.post<{ quota?: string }>("/v1/acquire", { agent_id: "alice", intents, hold_ms: 10 });
  assert.deepEqual([more.status, more.body.quota], [403, "held_max"]);
  gone.abort();
  await Promise.all([...held, waiting]);
  await until(() => (server.service.uses.used("default", "heldMax") === 0 ? true : null), "none is left");
});

test("M7: a batch of tasks and the intents of an acquire are counted one by one", async (t) => {
  const server = await serve(t, { rateLimit: 1, rateBurst: 20 });
  const key = (await server.post<{ key: string }>("/v1/keys", { role: "operator" })).body.key;
  const tasks = Array.from({ length: 15 }, () => ({ task_type: "a", principal_ai: "p" }));
  assert.equal((await server.post("/v1/tasks/batch", { tasks }, { key })).status, 200);
  const second = await server.post("/v1/tasks/batch", { tasks }, { key });
  assert.deepEqual([second.status, second.body.error], [429, "rate_limited"]);
  const token = (await server.register("alice", { key })).agent_token;
  const intents = (from: number) =>
    Array.from({ length: 15 }, (_, index) => ({ predicate: "MUTATES", resource: `FILE:/${from + index}` }));
  const acquire = (from: number) =>
    server.post("/v1/acquire", { agent_id: "alice", intents: intents(from) }, { key: token });
  assert.equal((await acquire(0)).status, 200);
  assert.equal((await acquire(100)).status, 429);
});

test("M7, S5: past the limit failed logins of an address are 429, and a valid credential still gets in", async (t) => {
  const server = await serve(t, { authFailureLimit: 1 });
  const key = (await server.post<{ key: string }>("/v1/keys", { role: "operator" })).body.key;
  const statuses = new Set<number>();
  for (let count = 0; count < 15; count++) statuses.add((await server.get("/v1/leases", { key: "lhk_wrong" })).status);
  assert.deepEqual([...statuses], [401, 429]);
  assert.equal((await server.get("/v1/leases", { key })).status, 200);
});

test("N4: readers that take nothing are cut off, at the tenant's limit and after a while, and others are not", async (t) => {
  const server = await serve(t, { slowReaderMs: 1_000 });
  await server.register("alice");
  const purpose = "p".repeat(1_000);
  for (let count = 0; count < 30; count++) {
    const intents = Array.from({ length: 50 }, (_, index) => ({
      predicate: "MUTATES",
      resource: `FILE:/${count}/${index}`,
    }));
    await server.post("/v1/acquire", { agent_id: "alice", intents, purpose, ttl_ms: 300_000 });
  }
  await server.call("PUT", "/v1/tenants/default/quotas", { unread_bytes_max: 20_000_000 });
  const mask = Buffer.alloc(4);
  // More than the system takes for a socket that nobody reads.
  const commands = Buffer.from(
    JSON.stringify(Array.from({ length: 16 }, (_, id) => ({ id, op: "list_leases", input: { limit: 1_000 } }))),
  );
  const frame = Buffer.concat([Buffer.from([0x81, 0xfe, commands.length >> 8, commands.length & 255]), mask, commands]);
  const before = server.connections();
  for (let count = 0; count < 10; count++) {
    const socket = await open(t, server.address.port, upgrade("/v1/stream"));
    await once(socket, "data");
    socket.pause();
    socket.write(frame);
  }
  const reader = await openStream(t, server.address.url);
  reader.send({ id: 1, op: "list_leases", input: { limit: 1_000 } });
  assert.equal((await reader.answer(1)).status, 200);
  await until(() => (server.connections() <= before + 1 ? true : null), "all that do not read are gone");
  assert.ok((server.service.counts.refusals.get("slow_reader") ?? 0) >= 10);
  reader.send({ id: 2, op: "list_agents", input: {} });
  assert.equal((await reader.answer(2)).status, 200);
});

test("M7: the calls of an MCP batch are counted one by one", async (t) => {
  const server = await serve(t, { rateLimit: 1, rateBurst: 5 });
  const key = (await server.post<{ key: string }>("/v1/keys", { role: "operator" })).body.key;
  const calls = Array.from({ length: 30 }, (_, id) => ({
    jsonrpc: "2.0",
    id,
    method: "tools/call",
    params: { name: "who_holds", arguments: { resource: "FILE:/a" } },
  }));
  const { status, text } = await server.post("/mcp", calls, { key, headers: { "mcp-protocol-version": "2025-03-26" } });
  assert.equal(status, 200, text);
  const refused = text.split('"rate_limited"').length - 1;
  assert.ok(refused >= 20, `${refused} of 30 were refused: ${text.slice(0, 500)}`);
});
