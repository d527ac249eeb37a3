import assert from "node:assert/strict";
import { test } from "node:test";
import { limits } from "../contract/limits.ts";
import type { Reply } from "../contract/replies.ts";
import { createTaskWorld, type TaskWorld } from "../testing/tasks-world.ts";
import { type Ask, found } from "../testing/test-world.ts";

const lease = limits.taskLeaseMsDefault;
const success = { status: "success" } as const;

/** Its code, and which receipt won. */
function refusalOf(reply: Reply): readonly [string, string | undefined] {
  if (reply.type !== "refused") throw new Error(`Expected a refusal, got ${JSON.stringify(reply)}`);
  return [reply.code, reply.winningReceiptId];
}

for (const [status, reach] of [
  ["queued", () => undefined],
  ["dependent", (world: TaskWorld, id: string) => void world.task(id)],
  ["leased", (world: TaskWorld) => void world.offered("w.1")],
  [
    "dead",
    (world: TaskWorld) => {
      world.giveBack(world.offered("w.1"));
    },
  ],
] as const) {
  test(`T13: a ${status} task that is cancelled is canceled at once, with a receipt only if somebody answered for it`, () => {
    const world = createTaskWorld();
    const first = status === "dependent" ? [world.create({ delayMs: 60_000 })] : [];
    const id = world.create({ maxOffers: 1, dependsOn: first });
    reach(world, id);
    const task = world.cancelTask(id, "not needed");
    assert.deepEqual([task.status, task.endReason], ["canceled", "not needed"]);
    // A dead one is its supervisor's to answer for (T2), and that ends with a receipt.
    const completes = world.receiptsOf(id).filter(({ phase }) => phase === "complete");
    assert.deepEqual(
      completes.map((one) => one.status),
      status === "dead" ? ["canceled"] : [],
    );
    assert.equal(task.winningReceiptId, completes[0]?.id ?? null);
    assert.deepEqual([world.endedTask(id).status, world.leases()], ["canceled", []]);
    assert.deepEqual(world.happened.at(-1), "task.canceled");
    world.idles("w.1");
  });
}

test("T13: an accepted task that is cancelled: a complete (canceled) receipt closes the obligation, and the worker learns it", () => {
  const world = createTaskWorld();
  const id = world.create({ intents: "MUTATES FILE:/a" });
  const offer = world.start("w.1");
  const task = world.cancelTask(id, "not needed");
  assert.deepEqual([task.status, task.obligation?.state], ["canceled", "CLOSED"]);
  const receipt = found(world.receiptsOf(id).at(-1), "receipt");
  assert.deepEqual([receipt.phase, receipt.status, receipt.outcomeText], ["complete", "canceled", "not needed"]);
  assert.deepEqual([receipt.id, receipt.obligationId], [task.winningReceiptId, task.obligation?.id]);
  // It has half a minute to let go, however long its lease was, and a heartbeat gives it no more.
  const beat = world.beat(offer);
  assert.deepEqual([beat.directives, beat.lease.expiresAt], [["cancel"], world.now + limits.taskCancelMs]);
  world.pass(10_000);
  assert.equal(world.beat(offer).lease.expiresAt, beat.lease.expiresAt);
  assert.equal(world.leases().length, 2, "nobody else gets what it may be working on");
  world.idles("w.2");
  world.giveBack(offer);
  assert.deepEqual([world.leases(), world.endedTask(id).status], [[], "canceled"]);
});

test("T13: a lease that would have ended sooner is not prolonged by a cancellation", () => {
  const world = createTaskWorld();
  const id = world.create({ leaseDurationMs: 1_000 });
  const offer = world.start("w.1");
  world.cancelTask(id);
  assert.equal(world.beat(offer).lease.expiresAt, world.now + 1_000);
  world.pass(1_000);
  assert.deepEqual([world.leases(), world.endedTask(id).attempts], [[], 1]);
  assert.equal(world.worker("w.1").lost, 0);
});

test("T13: cancelling twice, or what has ended, answers with the task as it is", () => {
  const world = createTaskWorld();
  const id = world.create();
  world.start("w.1");
  world.cancelTask(id, "first");
  assert.equal(world.cancelTask(id, "second").endReason, "first");
  world.pass(limits.taskCancelMs);
  const reply = world.expect("task", world.askHistory({ type: "cancel_task", taskId: id, reason: null }));
  assert.deepEqual([reply.task.status, reply.task.endReason], ["canceled", "first"]);
  const done = world.create();
  world.succeed(world.start("w.1"));
  const late = world.expect("task", world.askHistory({ type: "cancel_task", taskId: done, reason: null }));
  assert.equal(late.task.status, "succeeded");
});

test("T13: only who created a task, or somebody above, cancels or redrives it, alive or over", () => {
  const world = createTaskWorld("a", "b");
  const { task } = world.expect("task", world.ask({ ...world.creation(), actor: world.as("a") }));
  const cancel = (who: string): Ask => ({ type: "cancel_task", actor: world.as(who), taskId: task.id, reason: null });
  world.refused("forbidden", cancel("b"));
  world.refused("forbidden", { type: "redrive_task", actor: world.as("b"), taskId: task.id });
  world.expect("task", world.ask(cancel("a")));
  assert.equal(refusalOf(world.askHistory(cancel("b")))[0], "forbidden");
  world.expect("task", world.askHistory(cancel("a")));
});

test("T5: a dead letter can be sent again, with all its attempts and offers, and only a dead one", () => {
  const world = createTaskWorld();
  const id = world.create({ maxAttempts: 1 });
  world.refused("task_not_dead", { type: "redrive_task", taskId: id });
  world.start("w.1");
  world.pass(lease);
  assert.equal(world.statusOf(id), "dead");
  const task = world.redrive(id);
  assert.deepEqual([task.status, task.attempts, task.offers, task.endReason], ["queued", 0, 0, null]);
  assert.deepEqual(world.happened, ["task.redriven"]);
  world.refused("task_not_dead", { type: "redrive_task", taskId: id });
  const offer = world.start("w.2");
  assert.deepEqual([offer.attempt, world.task(id).obligation?.state], [1, "OPEN"]);
  world.succeed(offer);
  assert.equal(refusalOf(world.askHistory({ type: "redrive_task", taskId: id }))[0], "task_not_dead");
});

test("T13: a late success counts while nobody else has the task: queued, retry_pending or dead", () => {
  for (const status of ["queued", "retry_pending", "dead"] as const) {
    const world = createTaskWorld();
    const id = world.create({ maxAttempts: status === "dead" ? 1 : 3, requeueDelayMs: 30_000 });
    const offer = world.start("w.1");
    world.pass(lease);
    if (status === "queued") world.pass(30_000);
    assert.equal(world.statusOf(id), status);
    const receipt = world.succeed(offer);
    assert.deepEqual([world.statusOf(id), world.endedTask(id).winningReceiptId], ["succeeded", receipt.id]);
    assert.equal(world.endedTask(id).obligation?.state, "CLOSED");
    world.idles("w.2");
  }
});

test("T13: of a lease that has ended only a success counts, and only if it was accepted", () => {
  const world = createTaskWorld();
  world.create();
  const offer = world.start("w.1");
  world.pass(lease);
  for (const change of [{ status: "failure" }, { status: "canceled" }])
    world.refusedReceipt("lease_expired", "complete", offer, change);
  world.refusedReceipt("lease_expired", "progress", offer);
  world.refusedReceipt("lease_expired", "accepted", offer);
  const escalation = { escalationClass: "other", escalationReason: "late" };
  world.refusedReceipt("lease_expired", "escalate", offer, escalation);
  world.create();
  const ignored = world.offered("w.2");
  world.pass(lease);
  world.refusedReceipt("complete_without_accept", "complete", ignored, success);
});

test("T4, T13: a zombie that completes while another has the task is refused, and again after the other has finished", () => {
  const world = createTaskWorld();
  const id = world.create();
  const zombie = world.start("w.1");
  world.pass(lease);
  world.pass(30_000);
  const offer = world.offered("w.2");
  world.refusedReceipt("stale_fence", "complete", zombie, success);
  world.accept(offer);
  world.refusedReceipt("stale_fence", "complete", zombie, success);
  world.refusedReceipt("stale_fence", "complete", id, { ...success, fence: zombie.lease.fence });
  world.refusedReceipt("stale_fence", "complete", id, { ...success, sourceSystem: "w.1" });
  const { id: winning } = world.succeed(offer, { outcomeText: "the right one" });
  const before = world.endedTask(id);
  const late = world.askHistory(world.receipt("complete", zombie, success));
  assert.deepEqual(refusalOf(late), ["already_completed", winning]);
  assert.deepEqual([world.endedTask(id), world.receipts.length], [before, 4]);
});

test("T4: the same worker's second lease is not completed under its first one's name", () => {
  const world = createTaskWorld();
  world.create({ requeueDelayMs: 0 });
  const first = world.start("w.1");
  world.pass(lease);
  const second = world.start("w.1");
  world.refusedReceipt("stale_fence", "complete", first, success);
  world.succeed(second);
});

test("T13: a late success does not count once a later attempt has answered for the obligation", () => {
  const world = createTaskWorld();
  const id = world.create({ requeueDelayMs: 0 });
  const zombie = world.start("w.1");
  world.pass(lease);
  world.fail(world.start("w.2"), { retryRequested: true });
  world.refusedReceipt("stale_fence", "complete", zombie, success);
  world.succeed(world.start("w.3"));
  assert.equal(world.statusOf(id), "succeeded");
});

for (const [what, grant, counts] of [
  ["an agent's writing lease", "MUTATES FILE:/x", false],
  ["an agent's reading lease", "CONSUMES FILE:/x", false],
  ["a pattern over it", "CONSUMES FILE:/**", false],
  ["something else", "MUTATES FILE:/y", true],
] as const) {
  test(`T13: a late success of a task with a manifest ${counts ? "counts" : "does not count"} after ${what} was granted`, () => {
    const world = createTaskWorld("a");
    const id = world.create({ intents: "MUTATES FILE:/x" });
    const zombie = world.start("w.1");
    world.pass(lease);
    world.grant("a", grant);
    world.releaseAll("a");
    if (counts) world.succeed(zombie);
    else world.refusedReceipt("stale_fence", "complete", zombie, success);
    assert.equal(world.statusOf(id), counts ? "succeeded" : "retry_pending");
  });
}

test("T13: readers get along: a late success of a reader counts after other readers", () => {
  const world = createTaskWorld("a");
  world.create({ intents: ["CONSUMES FILE:/x", "RENAMES FILE:/y > FILE:/z"] });
  const zombie = world.start("w.1");
  world.pass(lease);
  world.grant("a", "CONSUMES FILE:/x");
  world.succeed(zombie);
  world.create({ intents: ["CONSUMES FILE:/x", "RENAMES FILE:/y > FILE:/z"] });
  const other = world.start("w.1");
  world.pass(lease);
  world.grant("a", "CONSUMES FILE:/z");
  world.refusedReceipt("stale_fence", "complete", other, success);
});

test("T13, C6: other units of a counted resource are other things, and a late success counts", () => {
  const world = createTaskWorld("a");
  world.declare("GPU:/0", 4);
  world.create({ intents: "MUTATES GPU:/0 x4" });
  const zombie = world.start("w.1");
  world.pass(lease);
  world.grant("a", "MUTATES GPU:/0 x4");
  world.succeed(zombie);
});

test("T13: offered again with its manifest, a task takes no late success any more, also when that offer came to nothing", () => {
  const world = createTaskWorld();
  world.create({ intents: "MUTATES FILE:/x", requeueDelayMs: 0 });
  const zombie = world.start("w.1");
  world.pass(lease);
  world.giveBack(world.offered("w.2"));
  world.refusedReceipt("stale_fence", "complete", zombie, success);
});

test("T13: a task without a manifest takes a late success also after another's offer came to nothing", () => {
  const world = createTaskWorld();
  const id = world.create({ requeueDelayMs: 0 });
  const zombie = world.start("w.1");
  world.pass(lease);
  world.giveBack(world.offered("w.2"));
  world.succeed(zombie);
  assert.equal(world.statusOf(id), "succeeded");
});

test("T13, S4: of more tasks with lost holders than are watched, the oldest counts as contested, and the newest does not", () => {
  const world = createTaskWorld();
  for (let n = 0; n <= limits.taskLateResultsMax; n++) world.create({ intents: `MUTATES FILE:/f${n}` });
  const offers = Array.from({ length: 2 }, () => world.polls("w.1", { maxTasks: limits.taskPollMax })).flat();
  for (const offer of offers) world.accept(offer);
  world.pass(lease);
  world.refusedReceipt("stale_fence", "complete", found(offers[0], "oldest"), success);
  world.succeed(found(offers.at(-1), "newest"));
});

test("T4: a duplicate complete is refused with the winner; the same dedupe_key and content is the first answer", () => {
  const world = createTaskWorld();
  world.create();
  const offer = world.start("w.1");
  const said = { ...success, dedupeKey: "k", outcomeText: "done" };
  const { id: winning } = world.succeed(offer, said);
  const again = world.askHistory(world.receipt("complete", offer, said));
  assert.deepEqual(again, { type: "receipt_known", receiptId: winning });
  const other = world.askHistory(world.receipt("complete", offer, { ...said, outcomeText: "other" }));
  assert.equal(refusalOf(other)[0], "dedupe_conflict");
  const keyless = world.askHistory(world.receipt("complete", offer, success));
  assert.deepEqual(refusalOf(keyless), ["already_completed", winning]);
  assert.equal(world.receipts.length, 2);
});

test("T4: the same holds while the task lingers because a called-off attempt has not let go", () => {
  const world = createTaskWorld();
  const id = world.create({ speculative: true });
  const [winner, loser] = [world.offered("w.1"), world.offered("w.2")];
  world.accept(winner);
  world.accept(loser);
  const said = { ...success, dedupeKey: "k" };
  const { id: winning } = world.succeed(winner, said);
  assert.deepEqual(world.ask(world.receipt("complete", winner, said)), { type: "receipt_known", receiptId: winning });
  world.refusedReceipt("dedupe_conflict", "complete", winner, { ...said, outcomeText: "x" });
  assert.equal(world.refusedReceipt("already_completed", "complete", loser, success).winningReceiptId, winning);
  world.refusedReceipt("already_completed", "progress", id);
});

test("T8, W: a wounded, lost or given-back worker learns with its next heartbeat that the lease has ended", () => {
  const world = createTaskWorld();
  world.create();
  const offer = world.start("w.1");
  world.revoke({ leaseId: offer.lease.id });
  const beat = world.askHistory({ type: "heartbeat_task", leaseId: offer.lease.id, progress: null });
  assert.equal(refusalOf(beat)[0], "lease_revoked");
});
