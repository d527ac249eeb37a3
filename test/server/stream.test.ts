import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { test } from "node:test";
import { serve } from "./harness.ts";
import { openStream } from "./stream-client.ts";

const acquire = (id: number, agentId: string, resource: string, more: object = {}) => ({
  id,
  op: "acquire",
  input: { agent_id: agentId, intents: [{ predicate: "MUTATES", resource }], ...more },
});

test("commands in one frame are answered by id, and replies that are ready together leave in one frame", async (t) => {
  const server = await serve(t);
  await server.register("a");
  const stream = await openStream(t, server.address.url);
  stream.send(Array.from({ length: 200 }, (_, index) => acquire(index, "a", `FILE:/${index}`)));
  await stream.until(() => stream.frames.length === 200);
  assert.deepEqual(
    stream.frames.map(({ id }) => id),
    Array.from({ length: 200 }, (_, index) => index),
  );
  assert.ok(stream.frames.every(({ status, body }) => status === 200 && body?.verdict === "GRANTED"));
  assert.ok(stream.sizes.length < 20, `${stream.sizes.length} frames for 200 answers`);
});

test("S3: a bad command in a frame is refused without affecting the others, and a bad frame does not end the connection", async (t) => {
  const server = await serve(t);
  await server.register("a");
  const stream = await openStream(t, server.address.url);
  stream.send([
    { id: 1, op: "acquire", input: { agent_id: "a", intents: [] } },
    { id: 2, op: "fly" },
    acquire(3, "a", "FILE:/x"),
  ]);
  assert.equal((await stream.answer(1)).body?.error, "empty_manifest");
  assert.equal((await stream.answer(2)).body?.error, "not_found");
  assert.equal((await stream.answer(3)).body?.verdict, "GRANTED");
  stream.send("{not json");
  stream.send("[]");
  stream.send([{ op: "acquire" }]);
  await stream.until(() => stream.frames.filter(({ id }) => id === null).length === 3);
  stream.socket.send(Buffer.from([1, 2, 3]), { binary: true });
  await stream.until(() => stream.frames.filter(({ id }) => id === null).length === 4);
  stream.send(acquire(4, "a", "FILE:/y"));
  assert.equal((await stream.answer(4)).status, 200);
});

test("W8: a held wait on the stream is answered when it is granted, and other commands are answered meanwhile", async (t) => {
  const server = await serve(t);
  await server.register("old");
  await server.register("young");
  const lease = await server.grant("young", "FILE:/x");
  const stream = await openStream(t, server.address.url);
  stream.send(acquire(1, "old", "FILE:/x", { hold_ms: 20_000 }));
  stream.send(acquire(2, "old", "FILE:/y"));
  assert.equal((await stream.answer(2)).status, 200);
  assert.ok(!stream.frames.some(({ id }) => id === 1));
  await server.post(`/v1/leases/${lease.id}/release`);
  assert.equal((await stream.answer(1)).body?.verdict, "GRANTED");
});

test("T2, W8: a command that is dropped while it is held brings nothing, and the connection goes on", async (t) => {
  const server = await serve(t);
  const stream = await openStream(t, server.address.url);
  const poll = { worker_id: "w.1", hold_ms: 30_000 };
  stream.send([
    { id: 1, op: "poll_tasks", input: poll },
    { id: 2, op: "poll_tasks", input: { ...poll, worker_id: "w.2" } },
  ]);
  await stream.until(() => server.service.polls.size === 2);
  stream.send({ id: 1, op: "drop" });
  await stream.until(() => server.service.polls.size === 1);
  const task = { task_type: "build", principal_ai: "p" };
  stream.send([
    { id: 3, op: "create_task", input: task },
    { id: 1, op: "drop" },
    { id: "never", op: "drop" },
  ]);
  assert.equal((await stream.answer(3)).status, 201);
  assert.equal((await stream.answer(2)).status, 200, "the other worker has it");
  assert.ok(!stream.frames.some(({ id }) => id === 1 || id === "never"));
  stream.send({ id: 1, op: "list_agents", input: {} });
  assert.equal((await stream.answer(1)).status, 200, "the id can be used again");
});

test("events come by subscription, in order and without gaps, from the past and then as they happen", async (t) => {
  const server = await serve(t);
  await server.register("a");
  await server.grant("a", "FILE:/before");
  const stream = await openStream(t, server.address.url);
  stream.send({ id: "sub", op: "events", input: { since: 0, types: ["lease.granted"] } });
  assert.equal((await stream.answer("sub")).body?.subscribed, true);
  await server.grant("a", "FILE:/after");
  await stream.until(() => stream.frames.filter(({ event }) => event !== undefined).length === 2);
  const seqs = stream.frames.flatMap(({ seq }) => (seq === undefined ? [] : [seq]));
  assert.ok((seqs[0] ?? 0) < (seqs[1] ?? 0));
  stream.send({ id: "late", op: "events", input: { types: ["no.such"] } });
  assert.equal((await stream.answer("late")).status, 400);
});

test("L13, S5: the stream enforces the same roles: a key that may only register agents gets no events", async (t) => {
  const server = await serve(t);
  const operator = (await server.post<{ key: string }>("/v1/keys", { role: "operator" })).body.key;
  const agentKey = (await server.post<{ key: string }>("/v1/keys", { role: "agent" }, { key: operator })).body.key;
  const stream = await openStream(t, server.address.url, agentKey);
  stream.send({ id: 1, op: "events", input: {} });
  assert.equal((await stream.answer(1)).body?.error, "forbidden");
  stream.send({ id: 2, op: "register_agent", input: { agent_id: "a" } });
  assert.equal((await stream.answer(2)).status, 201);
  await assert.rejects(openStream(t, server.address.url), /401/);
});

test("S4: commands on the stream are counted by the rate limit of their key", async (t) => {
  const server = await serve(t, { rateLimit: 5, rateBurst: 5 });
  const operator = (await server.post<{ key: string }>("/v1/keys", { role: "operator" })).body.key;
  const stream = await openStream(t, server.address.url, operator);
  stream.send(Array.from({ length: 40 }, (_, id) => ({ id, op: "list_agents", input: {} })));
  await stream.until(() => stream.frames.length === 40);
  assert.ok(stream.frames.some(({ body }) => body?.error === "rate_limited"));
});

test("a slow reader is disconnected without affecting the others", async (t) => {
  const server = await serve(t);
  await server.register("a");
  const { hostname, port } = new URL(server.address.url);
  const slow = connect(Number(port), hostname);
  t.after(() => slow.destroy());
  slow.write(
    `GET /v1/stream HTTP/1.1\r\nHost: ${hostname}:${port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
  );
  await once(slow, "data");
  slow.pause();
  const subscribe = Buffer.from(JSON.stringify({ id: 1, op: "events", input: {} }));
  const mask = Buffer.alloc(4);
  slow.write(Buffer.concat([Buffer.from([0x81, 0x80 | subscribe.length]), mask, subscribe]));
  const other = await openStream(t, server.address.url);
  let isCut = false;
  slow.on("close", () => {
    isCut = true;
  });
  slow.on("error", () => undefined);
  const purpose = "p".repeat(1_000);
  for (let round = 0; round < 400 && !isCut; round++) {
    const first = round * 100;
    other.send(
      Array.from({ length: 100 }, (_, index) => acquire(first + index, "a", `FILE:/${first + index}`, { purpose })),
    );
    await other.answer(first + 99);
    if (round === 300) slow.resume();
  }
  slow.resume();
  await other.until(() => isCut);
  assert.ok(other.frames.every(({ status }) => status === 200));
});
