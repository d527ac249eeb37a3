import assert from "node:assert/strict";
import { test } from "node:test";
import { serve } from "./harness.ts";
import { openStream } from "./stream-client.ts";
import { taskClientOf } from "./task-client.ts";

interface Results {
  readonly results: readonly { readonly status: number; readonly body: { readonly [field: string]: unknown } }[];
}

test("T7: one call extends the leases of many tasks, each with its own answer, and a bad one costs no other", async (t) => {
  const server = await serve(t);
  const { create, offered, accept, complete, show } = taskClientOf(server);
  for (let count = 0; count < 4; count++) await create();
  const offers = [];
  for (const worker of ["w.a", "w.a", "w.b", "w.b"]) offers.push(await offered(worker));
  const [first, second, third, ended] = offers;
  assert.ok(first !== undefined && second !== undefined && third !== undefined && ended !== undefined);
  for (const offer of offers) await accept(offer);
  await complete(ended);
  await server.post(`/v1/tasks/${third.task.task_id}/cancel`);
  const heartbeats = [
    { lease_id: first.lease_id, progress: { percent: 40 } },
    { lease_id: "lse_never" },
    { lease_id: second.lease_id, progress: "x".repeat(20_000) },
    { lease: "odd" },
    { lease_id: third.lease_id },
    { lease_id: ended.lease_id },
    { lease_id: second.lease_id },
  ];
  const { status, body } = await server.post<Results>("/v1/lease/heartbeats", { heartbeats });
  assert.equal(status, 200);
  assert.deepEqual(
    body.results.map((one) => one.status),
    [200, 404, 400, 400, 200, 410, 200],
  );
  assert.ok(Number(body.results[0]?.body["expires_in_ms"]) > 0);
  assert.deepEqual(body.results[4]?.body["directives"], ["cancel"]);
  assert.deepEqual((await show(first.task.task_id)).progress, { percent: 40 });
});

test("T7: heartbeats of many tasks are taken on the stream as over HTTP", async (t) => {
  const server = await serve(t);
  const { create, offered } = taskClientOf(server);
  await create();
  const { lease_id } = await offered("w.a");
  const stream = await openStream(t, server.address.url);
  stream.send({ id: 1, op: "heartbeat_tasks", input: { heartbeats: [{ lease_id }, { lease_id: "lse_never" }] } });
  const { status, body } = await stream.answer(1);
  assert.equal(status, 200);
  assert.deepEqual(
    (body as Results).results.map((one) => one.status),
    [200, 404],
  );
});
