import assert from "node:assert/strict";
import { connect } from "node:net";
import { test } from "node:test";
import { startServer } from "../../src/server/start.ts";
import { createMemoryDisk, createMemoryStore } from "../../src/store/memory.ts";
import { follow } from "./event-client.ts";
import { clientOf, failingStore, held, mutates, pause, serve, until } from "./harness.ts";
import type { WireWaiting } from "./wire-types.ts";

const nothing = (): void => undefined;

test("a server that stops answers held requests with their present state, ends its streams and accepts no connections", async (t) => {
  const server = await serve(t);
  const { register, grant, post, address } = server;
  await register("old");
  await register("young");
  await grant("young", "FILE:/a");
  const answered = post<WireWaiting>("/v1/acquire", { agent_id: "old", intents: mutates("FILE:/a"), hold_ms: 50_000 });
  const following = await follow(address.url);
  await held(server, 1);
  const began = performance.now();
  const closed = server.close();
  const { status, body } = await answered;
  assert.deepEqual([status, body.verdict], [202, "WAIT"]);
  await following.ended;
  await closed;
  assert.ok(performance.now() - began < 8_000);
  await assert.rejects(fetch(`${address.url}/healthz`));
});

test("S1: commands in flight at a shutdown are committed before they are answered", async () => {
  const disk = createMemoryDisk();
  const server = await startServer({ port: 0, store: createMemoryStore(disk) });
  const { register } = clientOf(server.address.url);
  let letGo = nothing;
  let isStored = false;
  await register("alice");
  disk.beforeCommit = () =>
    new Promise((resolve) => {
      letGo = () => {
        isStored = true;
        resolve();
      };
    });
  const answered = register("bob").then(() => assert.ok(isStored));
  await until(() => (letGo === nothing ? null : true), "the commit is under way");
  const closed = server.close();
  await pause(50);
  letGo();
  await Promise.all([answered, closed]);
  disk.beforeCommit = null;
  const again = await startServer({ port: 0, store: createMemoryStore(disk) });
  assert.equal((await clientOf(again.address.url).get("/v1/agents/bob")).status, 200);
  await again.close();
});

test("a request on an open connection during a shutdown gets shutting_down, and the connection is closed", async () => {
  const disk = createMemoryDisk();
  const server = await startServer({ port: 0, store: createMemoryStore(disk) });
  let letGo = nothing;
  disk.beforeCommit = () => new Promise((resolve) => (letGo = resolve));
  const socket = connect(server.address.port, "127.0.0.1");
  let received = "";
  socket.on("data", (chunk) => (received += chunk.toString()));
  const ended = new Promise((resolve) => socket.once("close", resolve));
  const body = JSON.stringify({ agent_id: "alice" });
  socket.write(
    `POST /v1/agents HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  await until(() => (letGo === nothing ? null : true), "the commit is under way");
  const closed = server.close();
  socket.write("GET /v1/agents HTTP/1.1\r\nHost: localhost\r\n\r\n");
  await pause(30);
  letGo();
  await ended;
  await closed;
  assert.match(received, /^HTTP\/1\.1 201 /);
  assert.match(received, /HTTP\/1\.1 503 [\s\S]*"shutting_down"/);
});

test("a client that never finishes does not keep the server from stopping", async () => {
  const server = await startServer({ port: 0, store: "memory", shutdownTimeoutMs: 200 });
  const socket = connect(server.address.port, "127.0.0.1");
  socket.on("error", () => undefined);
  socket.write(
    "POST /v1/agents HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
  );
  await pause(100);
  const began = performance.now();
  await server.close();
  const took = performance.now() - began;
  assert.ok(took >= 190 && took < 8_000, `${took} ms`);
});

test("a WebSocket that ignores the close frame does not keep the server from stopping", async () => {
  const server = await startServer({ port: 0, store: "memory", shutdownTimeoutMs: 200 });
  const socket = connect(server.address.port, "127.0.0.1");
  socket.on("error", () => undefined);
  socket.write(
    "GET /v1/stream HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
  );
  await new Promise((resolve) => socket.once("data", resolve));
  const began = performance.now();
  await server.close();
  assert.ok(performance.now() - began < 8_000);
});

test("S2: while the store is unavailable callers get database_unavailable, and service resumes after that", async (t) => {
  const { store, failNextCommit, comeBack } = failingStore();
  const { register, grant, post, get } = await serve(t, { store });
  await register("alice");
  const lease = await grant("alice", "FILE:/a");
  failNextCommit("lost");
  const failed = await post("/v1/acquire", { agent_id: "alice", intents: mutates("FILE:/b") });
  assert.deepEqual([failed.status, failed.body.error], [503, "database_unavailable"]);
  assert.equal(failed.headers.get("retry-after"), "1");
  const meanwhile = await get("/v1/leases");
  assert.deepEqual([meanwhile.status, meanwhile.body.error], [503, "database_unavailable"]);
  assert.equal((await get("/readyz")).status, 503);
  assert.equal((await get("/healthz")).status, 200);
  comeBack();
  await until(async () => ((await get("/readyz")).status === 200 ? true : null), "it is ready again");
  const { body } = await get<{ leases: readonly { id: string }[] }>("/v1/leases");
  assert.deepEqual(
    body.leases.map(({ id }) => id),
    [lease.id],
  );
});

test("S2, S5: while the store is unavailable no caller becomes operator because no key is known", async (t) => {
  const { store, failNextCommit, comeBack } = failingStore();
  const server = await serve(t, { store });
  const made = await server.post<{ key: string }>("/v1/keys", { role: "operator" });
  const key = made.body.key;
  assert.equal((await server.get("/v1/keys")).status, 401);
  failNextCommit("lost");
  await server.post("/v1/agents", { agent_id: "x" }, { key });
  assert.equal((await server.get("/v1/keys")).status, 503);
  assert.equal((await server.get("/v1/keys", { key })).status, 503);
  comeBack();
  await until(() => (server.service.engine.isServing ? true : null), "it serves again");
  assert.equal((await server.get("/v1/keys")).status, 401);
  assert.equal((await server.get("/v1/keys", { key })).status, 200);
});
