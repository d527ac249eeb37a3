import assert from "node:assert/strict";
import { once } from "node:events";
import { request } from "node:http";
import { type TestContext, test } from "node:test";
import { WebSocket } from "ws";
import type { RunningServer } from "../../src/server/start.ts";
import { failingStore, pause, serve, until } from "./harness.ts";
import { taskClientOf } from "./task-client.ts";
import type { WireOffer } from "./wire-types.ts";

const hold = { hold_ms: 20_000 };

/** The number of polls held now. */
function waiting({ service }: RunningServer, count: number): Promise<true> {
  return until(() => (service.polls.size === count ? true : null), `${count} polls are held`);
}

test("a held poll is answered when a task is created, in its own batch", async (t) => {
  const server = await serve(t);
  const { create, offered } = taskClientOf(server);
  const answered = offered("worker.a", hold);
  await waiting(server, 1);
  const taskId = await create();
  assert.equal((await answered).task.task_id, taskId);
  await waiting(server, 0);
});

test("at the end of its hold a poll is answered with 204", async (t) => {
  const server = await serve(t);
  const { poll } = taskClientOf(server);
  assert.equal(await poll("worker.a", { hold_ms: 60 }), null);
  await waiting(server, 0);
});

test("one task wakes one worker, and the others keep waiting", async (t) => {
  const server = await serve(t);
  const { create, offered } = taskClientOf(server);
  const polls = Array.from({ length: 5 }, (_, index) => offered(`worker.${index}`, hold));
  await waiting(server, 5);
  await create();
  await waiting(server, 4);
  const tasks = Array.from({ length: 4 }, () => ({ task_type: "t", principal_ai: "p" }));
  await server.post("/v1/tasks/batch", { tasks });
  const offers = await Promise.all(polls);
  assert.equal(new Set(offers.map(({ task }) => task.task_id)).size, 5);
});

test("T9: only a worker with the required capabilities is woken", async (t) => {
  const server = await serve(t);
  const { create, offered } = taskClientOf(server);
  const plain = offered("worker.plain", hold);
  const able = offered("worker.able", { ...hold, capabilities: ["gpu", "python"] });
  await waiting(server, 2);
  const gpu = await create({ requires: ["gpu"] });
  assert.equal((await able).task.task_id, gpu);
  await waiting(server, 1);
  const other = await create();
  assert.equal((await plain).task.task_id, other);
});

test("T7, T8: the worker that had accepted the task before is woken first, then the healthiest", async (t) => {
  const server = await serve(t);
  const { create, offered, accept, send } = taskClientOf(server);
  // "bad" loses one task, and is less healthy from then on.
  const lost = await create({ lease_duration_ms: 2_000, requeue_delay_ms: 4_000 });
  await accept(await offered("worker.bad"));
  await until(async () => ((await taskClientOf(server).show(lost)).status === "retry_pending" ? true : null), "lost");
  const good = offered("worker.good", hold);
  await waiting(server, 1);
  const bad = offered("worker.bad", hold);
  await waiting(server, 2);
  const retried = await bad;
  assert.equal(retried.task.task_id, lost, "who had it is asked first");
  await accept(retried);
  await send({ phase: "complete", status: "success", lease_id: retried.lease_id });
  const badAgain = offered("worker.bad", hold);
  await waiting(server, 2);
  const fresh = await create();
  assert.equal((await good).task.task_id, fresh, "the healthier one goes first");
  await create();
  await badAgain;
});

test("a delayed task, a freed slot and a freed resource wake a held poll as a new task does", async (t) => {
  const server = await serve(t);
  const { create, offered, accept, complete } = taskClientOf(server);
  const delayed = await create({ delay_ms: 80 });
  assert.equal((await offered("worker.a", hold)).task.task_id, delayed);

  const running = await create({ concurrency_key: "one" });
  const first = await offered("worker.a");
  assert.equal(first.task.task_id, running);
  const next = await create({ concurrency_key: "one" });
  const second = offered("worker.b", hold);
  await waiting(server, 1);
  await accept(first);
  await complete(first);
  assert.equal((await second).task.task_id, next);

  await server.register("alice");
  const lease = await server.grant("alice", "FILE:/a");
  const blocked = await create({ intents: [{ predicate: "MUTATES", resource: "FILE:/a" }] });
  const third = offered("worker.c", hold);
  await waiting(server, 1);
  await server.post(`/v1/leases/${lease.id}/release`);
  assert.equal((await third).task.task_id, blocked);
});

test("T8: a second waiting worker is woken for a speculative task, even if the first one polls twice", async (t) => {
  const server = await serve(t);
  const { create, offered } = taskClientOf(server);
  const first = offered("worker.a", hold);
  await waiting(server, 1);
  const again = offered("worker.a", hold);
  await waiting(server, 2);
  const other = offered("worker.b", hold);
  await waiting(server, 3);
  const taskId = await create({ speculative: true });
  assert.equal((await first).task.task_id, taskId);
  assert.equal((await other).task.task_id, taskId);
  await waiting(server, 1);
  await create();
  await again;
});

test("the poll of a disconnected client is dropped, and the next worker gets the offer", async (t) => {
  const server = await serve(t);
  const { create, offered } = taskClientOf(server);
  const gone = new AbortController();
  const first = server.post("/lease", { worker_id: "worker.gone", ...hold }, { signal: gone.signal });
  await waiting(server, 1);
  gone.abort();
  await assert.rejects(first);
  await waiting(server, 0);
  const second = offered("worker.b", hold);
  await waiting(server, 1);
  const taskId = await create();
  assert.equal((await second).task.task_id, taskId);
});

test("T2: an offer for a client that disconnects before the reply is given back at once", async (t) => {
  const { store, disk } = failingStore();
  const server = await serve(t, { store });
  const { create, offered, show } = taskClientOf(server);
  const taskId = await create();
  let letGo: (() => void) | null = null;
  disk.beforeCommit = () =>
    new Promise((resolve) => {
      letGo = resolve;
    });
  const { port } = server.address;
  const body = JSON.stringify({ worker_id: "worker.gone" });
  const headers = { "content-type": "application/json", "content-length": body.length };
  const asking = request({ port, host: "127.0.0.1", path: "/lease", method: "POST", headers });
  asking.on("error", () => undefined);
  asking.end(body);
  const commit = await until<() => void>(() => letGo, "the offer is on its way to the disk");
  asking.destroy();
  await pause(50);
  disk.beforeCommit = null;
  commit();
  await until(async () => ((await show(taskId)).status === "queued" ? true : null), "it is given back");
  assert.equal((await show(taskId)).offers, 0, "and does not count");
  assert.equal((await offered("worker.b")).task.task_id, taskId);
});

test("S2: polls that waited during a commit of unknown outcome get the tasks that became ready in it", async (t) => {
  const { store, failNextCommit, comeBack } = failingStore();
  const server = await serve(t, { store });
  const { offered } = taskClientOf(server);
  const answered = offered("worker.a", { ...hold, capabilities: ["x"] });
  await waiting(server, 1);
  failNextCommit("stored");
  // The poll that it wakes is in the same commit, and is answered that its outcome is unknown.
  const created = await server.post("/v1/tasks", { task_type: "t", principal_ai: "p", requires: ["y"] });
  assert.equal(created.status, 503);
  comeBack();
  await until(() => (server.service.engine.isServing ? true : null), "it serves again");
  await server.post("/v1/tasks", { task_type: "t", principal_ai: "p" });
  assert.equal((await answered).task.task_type, "t");
});

test("polls are held on the stream as over HTTP, beside other commands, and end with the connection", async (t) => {
  const server = await serve(t);
  const { create } = taskClientOf(server);
  const stream = await openStream(t, server.address.url);
  stream.send({ id: 1, op: "poll_tasks", input: { worker_id: "worker.s", ...hold } });
  stream.send({ id: 2, op: "poll_tasks", input: { worker_id: "worker.s" } });
  assert.deepEqual(await stream.answer(2), { id: 2, status: 204, body: null });
  await waiting(server, 1);
  const taskId = await create();
  const { status, body } = await stream.answer(1);
  assert.deepEqual([status, (body as WireOffer).task.task_id], [200, taskId]);
  stream.send({ id: 3, op: "poll_tasks", input: { worker_id: "worker.s", ...hold } });
  await waiting(server, 1);
  stream.socket.terminate();
  await waiting(server, 0);
});

test("a server that stops answers held polls with 204", async (t) => {
  const server = await serve(t);
  const { poll } = taskClientOf(server);
  const answered = poll("worker.a", hold);
  await waiting(server, 1);
  await server.close();
  assert.equal(await answered, null);
});

test("ten thousand idle polls cause no work, and a new task wakes the right one", async (t) => {
  const server = await serve(t);
  const { create } = taskClientOf(server);
  const streams = [await openStream(t, server.address.url), await openStream(t, server.address.url)];
  const count = 10_000;
  for (let first = 0; first < count; first += 500) {
    streams[first < count / 2 ? 0 : 1]?.send(
      Array.from({ length: 500 }, (_, index) => ({
        id: first + index,
        op: "poll_tasks",
        input: { worker_id: `worker.${first + index}`, capabilities: [`can-${(first + index) % 50}`], hold_ms: 55_000 },
      })),
    );
  }
  await waiting(server, count);
  const { engine } = server.service;
  const before = engine.lastSeq;
  const cpu = process.cpuUsage();
  await new Promise((resolve) => setTimeout(resolve, 300));
  const { user, system } = process.cpuUsage(cpu);
  t.diagnostic(`${count} held polls used ${(user + system) / 1_000} ms of processor in 300 ms`);
  assert.equal(engine.lastSeq, before, "nothing happens for them");
  const taskId = await create({ requires: ["can-7"] });
  await waiting(server, count - 1);
  const told = () => streams.flatMap(({ frames }) => frames).find(({ status }) => status === 200) ?? null;
  const answer = await until(told, "its worker is notified");
  assert.equal((answer.body as WireOffer).task.task_id, taskId);
  assert.equal(Number(answer.id) % 50, 7);
});

interface Frame {
  readonly id: number;
  readonly status: number;
  readonly body: unknown;
}

async function openStream(t: TestContext, url: string) {
  const socket = new WebSocket(`${url.replace("http", "ws")}/v1/stream`);
  const frames: Frame[] = [];
  socket.on("message", (data) => {
    const frame = JSON.parse(String(data)) as Frame | Frame[];
    frames.push(...(Array.isArray(frame) ? frame : [frame]));
  });
  t.after(() => socket.terminate());
  await once(socket, "open");
  return {
    socket,
    frames,
    send: (frame: unknown) => socket.send(JSON.stringify(frame)),
    answer: (id: number) => until(() => frames.find((frame) => frame.id === id) ?? null, `an answer to ${id}`),
  };
}
