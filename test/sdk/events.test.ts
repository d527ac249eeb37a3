import assert from "node:assert/strict";
import { test } from "node:test";
import { HistoryPruned } from "../../src/sdk/errors.ts";
import { startServer } from "../../src/server/start.ts";
import { createMemoryDisk, createMemoryStore } from "../../src/store/memory.ts";
import { clientFor, proxyTo, serve, withCode } from "./harness.ts";

test("events come without gaps or repetition however often the connection breaks", async (t) => {
  const server = await serve(t);
  const proxy = await proxyTo(t, server);
  const near = clientFor(t, server.address.url);
  const far = clientFor(t, proxy.url);
  const ids = Array.from({ length: 400 }, (_, index) => `agent-${index}`);
  const told: string[] = [];
  let breaks = 0;
  const reading = (async () => {
    for await (const { agent } of far.events({ since: 0, types: ["agent.registered"], onReconnect: () => breaks++ })) {
      told.push(agent?.agent_id ?? "");
      if (told.length === ids.length) return;
    }
  })();
  for (const [index, id] of ids.entries()) {
    await near.call("register_agent", { agent_id: id });
    if (index % 60 === 30) proxy.cut();
  }
  await reading;
  assert.deepEqual(told, ids);
  assert.ok(breaks > 0);
});

test("a reader whose connection broke before its first event misses none", async (t) => {
  const server = await serve(t);
  const proxy = await proxyTo(t, server);
  const near = clientFor(t, server.address.url);
  let isFollowing = (): void => undefined;
  const following = new Promise<void>((resolve) => {
    isFollowing = resolve;
  });
  const far = clientFor(t, proxy.url, {
    fetch: async (...asked) => {
      const response = await fetch(...asked);
      // Its position is in the first bytes.
      const heard = new TransformStream<Uint8Array, Uint8Array>({
        transform(chunk, controller) {
          controller.enqueue(chunk);
          isFollowing();
        },
      });
      return new Response(response.body?.pipeThrough(heard) ?? null, response);
    },
  });
  const next = far.events({ types: ["agent.registered"] }).next();
  await following;
  // They have been read by the next turn of the event loop.
  await new Promise((resolve) => setImmediate(resolve));
  proxy.cut();
  await near.call("register_agent", { agent_id: "first" });
  const { value } = await next;
  assert.equal(value?.agent?.agent_id, "first");
});

test("a reader continues after a restart of the server", async (t) => {
  const disk = createMemoryDisk();
  const first = await startServer({ port: 0, store: createMemoryStore(disk), shutdownTimeoutMs: 200 });
  const client = clientFor(t, first.address.url);
  await client.call("register_agent", { agent_id: "before" });
  const events = client.events({ since: 0, types: ["agent.registered"] });
  const one = await events.next();
  await first.close();
  const second = await startServer({ port: first.address.port, store: createMemoryStore(disk) });
  t.after(() => second.close());
  await client.call("register_agent", { agent_id: "after" });
  const two = await events.next();
  assert.equal(two.value?.agent?.agent_id, "after");
  assert.ok((two.value?.seq ?? 0) > (one.value?.seq ?? 0));
  await events.return();
});

test("pruned history, an invalid filter and an abort signal end the iteration with their codes", async (t) => {
  const server = await serve(t);
  const client = clientFor(t, server.address.url);
  const pruned = await client
    .events({ since: 1_000_000 })
    .next()
    .catch((error: unknown) => error);
  assert.ok(pruned instanceof HistoryPruned, String(pruned));
  assert.equal(typeof pruned.earliest, "number");
  await assert.rejects(client.events({ resource: "nonsense" }).next(), withCode("invalid_resource"));
  const controller = new AbortController();
  const next = client.events({ signal: controller.signal }).next();
  setTimeout(() => controller.abort(), 30);
  await assert.rejects(next, withCode("aborted"));
});

test("a silent connection is considered dead and replaced", async (t) => {
  const server = await serve(t);
  const proxy = await proxyTo(t, server);
  const near = clientFor(t, server.address.url);
  const far = clientFor(t, proxy.url);
  await near.call("register_agent", { agent_id: "one" });
  const events = far.events({ since: 0, types: ["agent.registered"], silenceMs: 150 });
  await events.next();
  proxy.hush();
  const next = events.next();
  await near.call("register_agent", { agent_id: "two" });
  setTimeout(() => proxy.heal(), 100);
  const { value } = await next;
  assert.equal(value?.agent?.agent_id, "two");
  await events.return();
});
