/** Every row of T13's table, over HTTP. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { mutates, serve, until } from "./harness.ts";
import { taskClientOf } from "./task-client.ts";
import type { WireTask, WireTaskLease } from "./wire-types.ts";

/** Long enough to accept in time, also on a busy machine. */
const brief = { lease_duration_ms: 1_000, requeue_delay_ms: 0 };
/** Long enough that nothing is retried during a test. */
const patient = { lease_duration_ms: 1_000, requeue_delay_ms: 600_000 };

test("T13: leased, and completed without accept: refused, complete_without_accept, and nothing is stored", async (t) => {
  const server = await serve(t);
  const { create, offered, send, show } = taskClientOf(server);
  const taskId = await create();
  const { lease_id } = await offered("worker.a");
  const { status, body } = await send({ phase: "complete", status: "success", lease_id });
  assert.deepEqual([status, body.error], [409, "complete_without_accept"]);
  const task = await show(taskId);
  assert.deepEqual([task.status, task.receipts], ["leased", []]);
});

test("T13: accepted, complete success: succeeded; complete canceled: canceled", async (t) => {
  const server = await serve(t);
  const { create, offered, accept, complete, show } = taskClientOf(server);
  for (const [said, becomes] of [
    ["success", "succeeded"],
    ["canceled", "canceled"],
  ] as const) {
    const taskId = await create();
    const offer = await offered("worker.a");
    await accept(offer);
    const receipt = await complete(offer, { status: said });
    const task = await show(taskId);
    assert.deepEqual([task.status, task.winning_receipt_id], [becomes, receipt.receipt_id]);
  }
});

test("T13: accepted, complete failure: retry_pending if a retry is requested and attempts are left, else failed", async (t) => {
  const server = await serve(t);
  const { create, offered, accept, complete, show } = taskClientOf(server);
  const failing = async (more: object, receipt: object) => {
    const taskId = await create({ requeue_delay_ms: 600_000, ...more });
    const offer = await offered("worker.a");
    await accept(offer);
    await complete(offer, { status: "failure", ...receipt });
    return (await show(taskId)).status;
  };
  assert.equal(await failing({}, { retry_requested: true }), "retry_pending");
  assert.equal(await failing({}, {}), "failed");
  assert.notEqual(await failing({ max_attempts: 1 }, { retry_requested: true }), "retry_pending");
});

test("T13: accepted, escalated by the worker: its lease ends; retried if requested, else dead with a new custodian", async (t) => {
  const server = await serve(t);
  const { create, offered, accept, send, show } = taskClientOf(server);
  const escalating = async (receipt: object) => {
    const taskId = await create({ requeue_delay_ms: 600_000 });
    const offer = await offered("worker.a");
    await accept(offer);
    const { status, text } = await send({
      phase: "escalate",
      lease_id: offer.lease_id,
      escalation_class: "scope",
      escalation_reason: "needs a decision",
      ...receipt,
    });
    assert.equal(status, 201, text);
    const beat = await server.post(`/lease/${offer.lease_id}/heartbeat`);
    assert.equal(beat.status, 410);
    return show(taskId);
  };
  assert.equal((await escalating({ retry_requested: true })).status, "retry_pending");
  const dead = await escalating({ escalation_to: "human.ops" });
  assert.deepEqual([dead.status, dead.obligation?.custodian, dead.obligation?.state], ["dead", "human.ops", "OPEN"]);
});

test("T13: accepted, given back: an escalate receipt (policy, released), queued at once, no attempt", async (t) => {
  const server = await serve(t);
  const { create, offered, accept, show, phases } = taskClientOf(server);
  const taskId = await create({ requeue_delay_ms: 600_000 });
  const offer = await offered("worker.a");
  await accept(offer);
  assert.equal((await server.post(`/lease/${offer.lease_id}/release`)).status, 200);
  const task = await show(taskId);
  assert.deepEqual([task.status, task.attempts], ["queued", 0]);
  assert.deepEqual(await phases(taskId), ["accepted", "escalate released"]);
  assert.equal((await offered("worker.b")).attempt, 1);
});

test("T13: cancelled by its principal: canceled, a receipt closes the obligation, and the worker gets the directive", async (t) => {
  const server = await serve(t);
  const { create, offered, accept, show, phases, send } = taskClientOf(server);
  const taskId = await create();
  const offer = await offered("worker.a");
  await accept(offer);
  const canceled = await server.post<WireTask>(`/v1/tasks/${taskId}/cancel`, { reason: "no longer needed" });
  assert.deepEqual([canceled.status, canceled.body.status], [200, "canceled"]);
  assert.deepEqual(await phases(taskId), ["accepted", "complete canceled"]);
  assert.equal((await show(taskId)).obligation?.state, "CLOSED");
  const beat = await server.post<WireTaskLease>(`/lease/${offer.lease_id}/heartbeat`);
  assert.deepEqual([beat.status, beat.body.directives], [200, ["cancel"]]);
  const late = await send({ phase: "complete", status: "success", lease_id: offer.lease_id });
  assert.deepEqual([late.status, late.body.error], [409, "already_completed"]);
  const again = await server.post<WireTask>(`/v1/tasks/${taskId}/cancel`);
  assert.deepEqual([again.status, again.body.status], [200, "canceled"]);
});

test("T13: queued, retry_pending or dead: a late success of an ended lease still counts", async (t) => {
  const server = await serve(t);
  const { create, offered, accept, reach, send, show } = taskClientOf(server);
  for (const [more, status] of [
    [patient, "retry_pending"],
    [{ ...brief, max_attempts: 1 }, "dead"],
    [brief, "queued"],
  ] as const) {
    const taskId = await create(more);
    const offer = await offered("worker.slow");
    await accept(offer);
    await reach(taskId, status);
    const late = await send({ phase: "complete", status: "success", lease_id: offer.lease_id });
    assert.equal(late.status, 201, `${status} ${late.text}`);
    assert.equal((await show(taskId)).status, "succeeded", status);
  }
});

test("T13: a late failure of an ended lease does not count", async (t) => {
  const server = await serve(t);
  const { create, offered, accept, reach, send } = taskClientOf(server);
  const taskId = await create(patient);
  const offer = await offered("worker.slow");
  await accept(offer);
  await reach(taskId, "retry_pending");
  const late = await send({ phase: "complete", status: "failure", lease_id: offer.lease_id });
  assert.deepEqual([late.status, late.body.error], [409, "lease_expired"]);
});

test("T13: a late success is stale_fence where its resources were granted to others since", async (t) => {
  const server = await serve(t);
  const { create, offered, accept, reach, send, show } = taskClientOf(server);
  const taskId = await create({ ...patient, intents: mutates("FILE:/a") });
  const offer = await offered("worker.slow");
  assert.deepEqual(
    offer.leases?.map(({ resource }) => resource),
    ["FILE:/a"],
  );
  await accept(offer);
  await reach(taskId, "retry_pending");
  await server.register("alice");
  const lease = await server.grant("alice", "FILE:/a");
  await server.post(`/v1/leases/${lease.id}/release`);
  const late = await send({ phase: "complete", status: "success", lease_id: offer.lease_id });
  assert.deepEqual([late.status, late.body.error], [409, "stale_fence"]);
  assert.equal((await show(taskId)).result, null);
});

test("T13: leased or accepted by another: a late complete is refused, stale_fence", async (t) => {
  const server = await serve(t);
  const { create, offered, accept, reach, send, complete } = taskClientOf(server);
  const taskId = await create({ ...brief, lease_duration_ms: 2_000 });
  const first = await offered("worker.slow");
  await accept(first);
  await reach(taskId, "queued");
  const second = await offered("worker.quick");
  const late = () => send({ phase: "complete", status: "success", lease_id: first.lease_id });
  assert.deepEqual([(await late()).status, (await late()).body.error], [409, "stale_fence"]);
  await accept(second);
  assert.equal((await late()).body.error, "stale_fence");
  await complete(second);
});

test("T13: ended: any complete is refused with the winning receipt; the same key and content gets the first answer", async (t) => {
  const server = await serve(t);
  const { create, offered, accept, send, complete, show } = taskClientOf(server);
  const taskId = await create();
  const offer = await offered("worker.a");
  await accept(offer);
  const won = await complete(offer, { dedupe_key: "k", outcome_text: "first" });
  const receipt = { phase: "complete", status: "success", lease_id: offer.lease_id, outcome_text: "first" };
  const same = await send({ ...receipt, dedupe_key: "k" });
  assert.deepEqual([same.status, same.body.receipt_id], [200, won.receipt_id]);
  const byTask = await send({ phase: "complete", status: "success", task_id: taskId, outcome_text: "second" });
  assert.deepEqual(
    [byTask.status, byTask.body.error, byTask.body.winning_receipt_id],
    [409, "already_completed", won.receipt_id],
  );
  // Named by its lease alone, the task is found through the ended lease.
  const byLease = await send({ ...receipt, outcome_text: "third" });
  assert.deepEqual([byLease.body.error, byLease.body.winning_receipt_id], ["already_completed", won.receipt_id]);
  const task = await show(taskId);
  assert.deepEqual([task.result?.outcome_text, task.receipts.length], ["first", 2]);
});

test("T8: of two workers with the same task the first to complete wins, and the other gets the directive to stop", async (t) => {
  const server = await serve(t);
  const { create, offered, accept, complete, send, show } = taskClientOf(server);
  const taskId = await create({ speculative: true });
  const first = await offered("worker.a");
  const second = await offered("worker.b");
  assert.deepEqual([first.task.task_id, second.task.task_id], [taskId, taskId]);
  await accept(first);
  await accept(second);
  const won = await complete(second);
  assert.equal((await show(taskId)).winning_receipt_id, won.receipt_id);
  const beat = await server.post<WireTaskLease>(`/lease/${first.lease_id}/heartbeat`);
  assert.deepEqual([beat.status, beat.body.directives], [200, ["cancel"]]);
  const late = await send({ phase: "complete", status: "success", lease_id: first.lease_id });
  assert.deepEqual([late.body.error, late.body.winning_receipt_id], ["already_completed", won.receipt_id]);
});

test("T8: an urgent task that has waited preempts a preemptible one through its worker's heartbeat", async (t) => {
  const server = await serve(t);
  const { create, offered, accept } = taskClientOf(server);
  await create({ preemptible: true });
  const offer = await offered("worker.a");
  await accept(offer);
  const urgent = await create({ task_priority: 100 });
  await until(async () => {
    const { body } = await server.post<WireTaskLease>(`/lease/${offer.lease_id}/heartbeat`);
    return body.directives.includes("preempt") ? true : null;
  }, "the worker is asked to make room");
  assert.equal((await server.post(`/lease/${offer.lease_id}/release`)).status, 200);
  assert.equal((await offered("worker.a")).task.task_id, urgent);
});
