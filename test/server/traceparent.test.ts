import assert from "node:assert/strict";
import { test } from "node:test";
import { serve } from "./harness.ts";
import { taskClientOf } from "./task-client.ts";
import type { WireCreatedTask } from "./wire-types.ts";

const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const other = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
const headers = { traceparent: trace };

test("the trace of a request stays with its task: on the task, its offers and all its receipts", async (t) => {
  const server = await serve(t);
  const { create, offered, accept, send, show } = taskClientOf(server);
  const taskId = await create({}, { headers });
  assert.equal((await show(taskId)).traceparent, trace);
  const offer = await offered("worker.a");
  assert.equal(offer.task.traceparent, trace);
  assert.deepEqual((await accept(offer)).metadata, { traceparent: trace });
  const { lease_id } = offer;
  const lost = await server.post("/v1/revoke", { lease_id, reason: "over" });
  assert.equal(lost.status, 200, lost.text);
  const again = await offered("worker.b");
  const metadata = { model: "m1" };
  await send({ phase: "accepted", lease_id: again.lease_id, metadata: { ...metadata, traceparent: "its own" } });
  const done = await send({ phase: "complete", lease_id: again.lease_id, status: "success", metadata });
  assert.equal(done.status, 201, done.text);
  const { receipts, traceparent } = await show(taskId);
  assert.equal(traceparent, trace, "it outlasts the task's end");
  assert.deepEqual(
    receipts.map((receipt) => [receipt.phase, receipt.metadata]),
    [
      ["accepted", { traceparent: trace }],
      ["escalate", { traceparent: trace }],
      ["accepted", { model: "m1", traceparent: "its own" }],
      ["complete", { model: "m1", traceparent: trace }],
    ],
  );
});

test("a task's own traceparent comes before that of its request, in a batch too", async (t) => {
  const server = await serve(t);
  const { create, show } = taskClientOf(server);
  assert.equal((await show(await create({ traceparent: other }, { headers }))).traceparent, other);
  const task = { task_type: "build", principal_ai: "boss" };
  const { body } = await server.post<{ readonly results: readonly { readonly body: WireCreatedTask }[] }>(
    "/v1/tasks/batch",
    { tasks: [task, { ...task, traceparent: other }] },
    { headers },
  );
  const traces = await Promise.all(body.results.map(async (one) => (await show(one.body.task_id)).traceparent));
  assert.deepEqual(traces, [trace, other]);
});

test("a creation that is sent again within another trace is the same task (T12)", async (t) => {
  const server = await serve(t);
  const { create, show } = taskClientOf(server);
  const first = await create({ idempotency_key: "k" }, { headers });
  assert.equal(await create({ idempotency_key: "k" }, { headers: { traceparent: other } }), first);
  assert.equal((await show(first)).traceparent, trace);
});

test("an invalid header is ignored, and one of a later version is read as version 00", async (t) => {
  const server = await serve(t);
  const { create, show } = taskClientOf(server);
  const ids = "0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331";
  const cases: readonly (readonly [header: string, kept: string | undefined])[] = [
    ["", undefined],
    ["nonsense", undefined],
    [trace.toUpperCase(), undefined],
    [`${trace}-00`, undefined],
    [`${trace}, ${other}`, undefined],
    [`ff-${ids}-01`, undefined],
    [`00-${"0".repeat(32)}-b7ad6b7169203331-01`, undefined],
    [`00-0af7651916cd43dd8448eb211c80319c-${"0".repeat(16)}-01`, undefined],
    [`01-${"0".repeat(32)}-b7ad6b7169203331-01`, undefined],
    [`01-${ids}-03`, trace],
    [`cc-${ids}-02-more`, `00-${ids}-00`],
    [`cc-${ids}-01more`, undefined],
  ];
  for (const [traceparent, kept] of cases) {
    const task = await show(await create({}, { headers: { traceparent } }));
    assert.equal(task.traceparent, kept, traceparent);
  }
});

test("an invalid field is refused, as other fields are", async (t) => {
  const { post } = await serve(t);
  const { status, body } = await post("/v1/tasks", { task_type: "build", principal_ai: "boss", traceparent: "x" });
  assert.deepEqual([status, body.error, body.field], [400, "invalid_task", "traceparent"]);
});
