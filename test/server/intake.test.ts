/** A burst on the stream: the number of commands decided at once is bounded, and none is lost or reordered. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { type TestContext, test } from "node:test";
import { createMemoryDisk, createMemoryStore } from "../../src/store/memory.ts";
import { serve, until } from "./harness.ts";
import { openStream } from "./stream-client.ts";

/** A server whose commits wait until the test releases them. */
async function serveHeld(t: TestContext) {
  const disk = createMemoryDisk();
  const server = await serve(t, { store: createMemoryStore(disk) });
  await server.register("a");
  const gate = Promise.withResolvers<void>();
  disk.beforeCommit = () => gate.promise;
  const letGo = (): void => {
    disk.beforeCommit = null;
    gate.resolve();
  };
  t.after(letGo);
  const decided = (): number =>
    server.service.engine.peek(({ tenants }) => tenants.get("default")?.leases.size ?? Number.NaN);
  return { server, disk, letGo, decided };
}

/** A frame of acquires, the first with this number. */
function frameOf(first: number, count: number): string {
  return JSON.stringify(
    Array.from({ length: count }, (_, index) => ({
      id: first + index,
      op: "acquire",
      input: { agent_id: "a", intents: [{ predicate: "MUTATES", resource: `FILE:/${first + index}` }] },
    })),
  );
}

test("a burst larger than a batch is decided over several batches, in order, and every command is answered", async (t) => {
  const { server, letGo, decided } = await serveHeld(t);
  const { socket, frames } = await openStream(t, server.address.url);
  for (let frame = 0; frame < 40; frame++) socket.send(frameOf(frame * 100, 100));
  await until(() => (server.service.engine.isFull ? true : null), "a batch is full");
  // One batch may be in flight while the next fills; a frame is never split.
  const most = decided();
  assert.ok(most < 1_500, `${most} of 4,000 were decided at once`);
  letGo();
  await until(() => (frames.length === 4_000 ? true : null), "all are answered");
  const fenceBy = new Map(frames.map(({ id, body }) => [id, body?.leases?.[0]?.fence]));
  const fences = Array.from({ length: 4_000 }, (_, id) => fenceBy.get(id) ?? Number.NaN);
  assert.ok(fences.every((fence, index) => index === 0 || fence > (fences[index - 1] ?? Number.NaN)));
});

test("a queued poll whose client has disconnected is dropped", async (t) => {
  const { server, letGo } = await serveHeld(t);
  const [busy, gone] = [await openStream(t, server.address.url), await openStream(t, server.address.url)];
  for (let frame = 0; frame < 20; frame++) busy.socket.send(frameOf(frame * 100, 100));
  await until(() => (server.service.engine.isFull ? true : null), "a batch is full");
  gone.socket.send(`{"id":1,"op":"poll_tasks","input":{"worker_id":"w.1","hold_ms":50000}}`, () =>
    gone.socket.terminate(),
  );
  await once(gone.socket, "close");
  letGo();
  await until(() => (busy.frames.length === 2_000 ? true : null), "the others are answered");
  await until(() => (server.service.polls.size === 0 ? true : null), "no poll is held");
});

test("S2: commands that waited while a commit failed are answered too, and the stream goes on", async (t) => {
  const { server, disk, letGo } = await serveHeld(t);
  const { socket, frames, answer } = await openStream(t, server.address.url);
  for (let frame = 0; frame < 20; frame++) socket.send(frameOf(frame * 100, 100));
  await until(() => (server.service.engine.isFull ? true : null), "a batch is full");
  disk.failNextCommit = "lost";
  letGo();
  await until(() => (frames.length === 2_000 ? true : null), "all are answered");
  const said = new Set(frames.map(({ body }) => body?.error ?? "granted"));
  said.delete("granted");
  assert.deepEqual([...said], ["database_unavailable"]);
  await until(async () => ((await server.get("/readyz")).status === 200 ? true : null), "the service goes on");
  socket.send(frameOf(5_000, 1));
  assert.equal((await answer(5_000)).status, 200);
});
