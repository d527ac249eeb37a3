import assert from "node:assert/strict";
import { test } from "node:test";
import { clientFor, pause, serve, until } from "./harness.ts";

const task = { task_type: "code.generate", principal_ai: "delegate.root" };

test("T1: while work flows a second poll, which is not held, asks for the places that became free meanwhile", async (t) => {
  const server = await serve(t);
  let underWay = 0;
  let held = 0;
  const most = { underWay: 0, held: 0 };
  const counting: typeof fetch = async (url, init) => {
    if (!String(url).endsWith("/lease")) return fetch(url, init);
    const isHeld = String(init?.body).includes('"hold_ms"');
    most.underWay = Math.max(most.underWay, ++underWay);
    if (isHeld) most.held = Math.max(most.held, ++held);
    return await fetch(url, init).finally(() => {
      underWay--;
      if (isHeld) held--;
    });
  };
  const client = clientFor(t, server.address.url, { fetch: counting, transport: "http" });
  const count = 200;
  await client.call("create_tasks", { tasks: Array.from({ length: count }, (_, n) => ({ ...task, inputs: { n } })) });
  const done = new Map<string, number>();
  let running = 0;
  let runningMax = 0;
  const worker = client.worker({
    onError: (error) => t.diagnostic(String(error)),
    concurrency: 32,
    handler: async ({ task_id: id }, { leaseOf, progress, remainingMs }) => {
      assert.ok(typeof leaseOf === "function" && typeof progress === "function" && remainingMs() > 0);
      runningMax = Math.max(runningMax, ++running);
      await pause(1);
      running--;
      done.set(id, (done.get(id) ?? 0) + 1);
    },
  });
  t.after(() => worker.drain().catch(() => undefined));
  await until(() => (done.size === count ? true : null), "all tasks were worked on");
  await worker.drain();
  assert.deepEqual(new Set(done.values()), new Set([1]));
  assert.ok(runningMax <= 32, String(runningMax));
  assert.deepEqual(most, { underWay: 2, held: 1 });
});
