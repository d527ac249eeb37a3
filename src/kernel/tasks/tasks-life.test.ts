import assert from "node:assert/strict";
import { test } from "node:test";
import { limits } from "../contract/limits.ts";
import type { Task } from "../contract/task-records.ts";
import { createTaskWorld, type TaskWorld } from "../testing/tasks-world.ts";
import { found } from "../testing/test-world.ts";

const lease = limits.taskLeaseMsDefault;

/** A world with one task, and what became of it. */
function withTask(wish: Parameters<TaskWorld["create"]>[0] = {}) {
  const world = createTaskWorld();
  const id = world.create(wish);
  const now = (): Task => world.task(id);
  return { world, id, now };
}

test("T6: defaults are 900 s, 3 attempts, 30 s, 10 offers; the type's settings come before them, the task's own before those", () => {
  const world = createTaskWorld();
  const specOf = (wish: Parameters<TaskWorld["create"]>[0]) => {
    const { leaseDurationMs, maxAttempts, requeueDelayMs, maxOffers } = world.task(world.create(wish)).spec;
    return [leaseDurationMs, maxAttempts, requeueDelayMs, maxOffers];
  };
  assert.deepEqual(specOf({}), [900_000, 3, 30_000, 10]);
  world.setType("build", { leaseDurationMs: 1_000, maxAttempts: 5, requeueDelayMs: 0, maxOffers: 2 });
  assert.deepEqual(specOf({}), [1_000, 5, 0, 2]);
  assert.deepEqual(specOf({ leaseDurationMs: 200, maxAttempts: 1, requeueDelayMs: 7, maxOffers: 1 }), [200, 1, 7, 1]);
  assert.deepEqual(specOf({ taskType: "other" }), [900_000, 3, 30_000, 10]);
  const { maxAttempts, leaseDuration } = world.setType("build", { maxAttempts: null });
  assert.deepEqual([maxAttempts, leaseDuration], [null, 1_000], "what is not named stays");
});

test("L2: a task's lease has a cap of its own, and the reply says that it was capped, for a type's default too", () => {
  const world = createTaskWorld();
  const leaseDurationMs = limits.taskLeaseMsMax + 1;
  const capped = ["lease_duration_ms was capped at 86400000."];
  const { task, warnings } = world.expect("task", world.ask(world.creation({ leaseDurationMs })));
  assert.deepEqual([task.spec.leaseDurationMs, warnings], [limits.taskLeaseMsMax, capped]);
  const set = world.ask({ type: "set_task_type", taskType: "build", settings: { leaseDurationMs } });
  assert.deepEqual(world.expect("task_type", set).warnings, capped);
  assert.equal(world.task(world.create()).spec.leaseDurationMs, limits.taskLeaseMsMax);
  assert.deepEqual(world.expect("task", world.ask(world.creation())).warnings, []);
});

test("T13 leased: an offer that expires goes back to the queue: no receipt, no attempt, one offer (T2)", () => {
  const { world, id, now } = withTask();
  world.offered("w.1");
  world.pass(lease - 1);
  assert.equal(now().status, "leased");
  world.pass(1);
  assert.deepEqual([now().status, now().attempts, now().offers, now().live], ["queued", 0, 1, []]);
  assert.deepEqual(world.receipts, []);
  assert.deepEqual(world.happened, ["task.requeued"]);
  assert.equal(world.offered("w.2").task.id, id, "at once, not after a delay");
});

test("T13 leased: an offer that is given back is in the queue at once: no receipt, no attempt, one offer (T2)", () => {
  const { world, now } = withTask();
  world.giveBack(world.offered("w.1"));
  assert.deepEqual([now().status, now().attempts, now().offers], ["queued", 0, 1]);
  assert.deepEqual(world.receipts, []);
  assert.equal(world.ready.length, 1);
});

test("T2: after max_offers the task is dead, and in its principal's inbox by an escalation by policy", () => {
  const { world, id, now } = withTask({ maxOffers: 3 });
  for (const end of ["expires", "given back", "expires"]) {
    const offer = world.offered("w.1");
    if (end === "expires") world.pass(lease);
    else world.giveBack(offer);
  }
  assert.deepEqual([now().status, now().endReason], ["dead", "never_accepted"]);
  const [receipt, ...more] = world.receiptsOf(id);
  assert.deepEqual(more, []);
  const { phase, escalationClass, escalationReason, escalationTo, recipientAi, obligationId } = found(
    receipt,
    "receipt",
  );
  assert.deepEqual([phase, escalationClass, escalationReason], ["escalate", "policy", "never_accepted"]);
  assert.deepEqual([escalationTo, recipientAi], ["delegate.root", "delegate.root"]);
  const obligation = found(now().obligation, "obligation");
  assert.deepEqual([obligation.id, obligation.state, obligation.custodian], [obligationId, "OPEN", "delegate.root"]);
  world.idles("w.1");
});

test("T2: an acceptance resets the count of offers, and a revocation does not count", () => {
  const { world, now } = withTask({ maxOffers: 2 });
  world.giveBack(world.offered("w.1"));
  world.offered("w.1");
  world.revoke({ agentId: "w.1" });
  assert.equal(now().offers, 1);
  const offer = world.start("w.1");
  assert.equal(now().offers, 0);
  world.giveBack(offer);
  world.giveBack(world.offered("w.1"));
  assert.deepEqual([now().status, now().offers], ["queued", 1]);
});

test("T13 leased: completing, or telling of progress, without accepting is refused", () => {
  const { world } = withTask();
  const offer = world.offered("w.1");
  world.refusedReceipt("complete_without_accept", "complete", offer, { status: "success" });
  world.refusedReceipt("complete_without_accept", "progress", offer);
});

test("T13 leased: a worker that cannot may say so: an escalation, an offer that came to nothing, no attempt", () => {
  const { world, id, now } = withTask({ maxOffers: 2 });
  world.escalate(world.offered("w.1"), { escalationReason: "no such type" });
  assert.deepEqual([now().status, now().offers, now().attempts], ["queued", 1, 0]);
  world.escalate(world.offered("w.1"));
  assert.deepEqual([now().status, now().endReason], ["dead", "never_accepted"]);
  assert.deepEqual(world.phasesOf(id), ["escalate no such type", "escalate cannot", "escalate never_accepted"]);
});

test("T3: accepted creates the obligation, counts the attempt, and needs the task's live lease", () => {
  const { world, id, now } = withTask();
  world.refusedReceipt("lease_expired", "accepted", id);
  world.refusedReceipt("not_lease_holder", "accepted", id, { sourceSystem: "w.1" });
  const offer = world.offered("w.1");
  const receipt = world.accept(offer);
  const { status, attempts, obligation, live } = now();
  assert.deepEqual([status, attempts], ["accepted", 1]);
  assert.deepEqual([obligation?.state, obligation?.custodian, obligation?.openedAt], ["OPEN", "w.1", world.now]);
  assert.equal(receipt.obligationId, obligation?.id);
  assert.deepEqual([live[0]?.acceptedAt, live[0]?.receiptId], [world.now, receipt.id]);
  assert.deepEqual(world.happened, ["receipt.stored", "task.accepted"]);
});

test("T3: an acceptance after the lease has ended is refused, also before any timer fired (L3)", () => {
  const { world } = withTask();
  const offer = world.offered("w.1");
  world.later(lease);
  const reply = world.ask(world.receipt("accepted", offer));
  assert.deepEqual([reply.type, reply.type === "refused" && reply.code], ["refused", "lease_expired"]);
});

test("T3: accepted twice is accepted once, and the first receipt is the answer", () => {
  const { world, now } = withTask();
  const offer = world.offered("w.1");
  const { id: receiptId } = world.accept(offer);
  assert.deepEqual(world.ask(world.receipt("accepted", offer)), { type: "receipt_known", receiptId });
  assert.deepEqual([now().attempts, world.receipts.length], [1, 1]);
});

for (const [status, ended] of [
  ["success", "succeeded"],
  ["canceled", "canceled"],
  ["failure", "failed"],
] as const) {
  test(`T13 accepted: complete (${status}) ends it as ${ended}, closes the obligation, frees the lease`, () => {
    const { world, id } = withTask({ taskBody: "body" });
    const offer = world.start("w.1");
    const receipt = world.submit("complete", offer, { status });
    const task = world.endedTask(id);
    assert.deepEqual([task.status, task.winningReceiptId, task.endedAt], [ended, receipt.id, world.now]);
    assert.equal(task.obligation?.state, "CLOSED");
    assert.equal(task.payload?.taskBody, "body", "history keeps what it carried");
    assert.deepEqual([world.leases(), world.tasks()], [[], []]);
    assert.equal(world.ended(offer.lease.id).state, "RELEASED");
    assert.deepEqual(world.happened, ["receipt.stored", "task.completed"]);
  });
}

test("T13 accepted: a failure with retry_requested is tried again after the delay, while attempts are left", () => {
  const { world, id, now } = withTask({ maxAttempts: 2, requeueDelayMs: 500 });
  world.fail(world.start("w.1"), { retryRequested: true });
  assert.deepEqual([now().status, now().notBefore, now().attempts], ["retry_pending", world.now + 500, 1]);
  assert.equal(now().obligation?.state, "CLOSED");
  world.pass(499);
  world.idles("w.1");
  world.pass(1);
  const second = world.start("w.1");
  assert.deepEqual([second.attempt, now().attempts, now().obligation?.state], [2, 2, "OPEN"]);
  assert.notEqual(
    now().obligation?.id,
    world.receiptsOf(id)[0]?.obligationId,
    "another acceptance, another obligation",
  );
  world.fail(second, { retryRequested: true });
  assert.equal(world.statusOf(id), "failed", "no attempts left");
});

test("T13 accepted: a failure without retry_requested ends it, though attempts are left", () => {
  const { world, id } = withTask();
  world.fail(world.start("w.1"), { retryRequested: false });
  assert.equal(world.statusOf(id), "failed");
});

test("T13 accepted: an escalation ends the lease; with retry_requested and attempts left it is tried again", () => {
  const { world, now } = withTask({ maxAttempts: 2 });
  const offer = world.start("w.1");
  world.escalate(offer, { retryRequested: true, escalationTo: "boss" });
  assert.deepEqual([now().status, world.leases().length], ["retry_pending", 0]);
  assert.deepEqual([now().obligation?.state, now().obligation?.custodian], ["OPEN", "boss"]);
  world.pass(limits.taskRequeueMsDefault);
  world.escalate(world.start("w.1"), { retryRequested: true, escalationTo: "boss" });
  assert.deepEqual([now().status, now().endReason], ["dead", "escalated"]);
});

test("T13 accepted: an escalation without retry_requested is dead, custody with whom it was escalated to", () => {
  const { world, id, now } = withTask();
  const { obligationId } = world.escalate(world.start("w.1"), { escalationTo: "boss" });
  assert.equal(now().status, "dead");
  assert.deepEqual(now().obligation, { ...now().obligation, id: obligationId, state: "OPEN", custodian: "boss" });
  assert.deepEqual(world.phasesOf(id), ["accepted", "escalate cannot"], "one receipt says it");
});

test("T13 accepted: given back (a drain) is escalated as released and queued at once, and the attempt does not count", () => {
  const { world, id, now } = withTask({ maxAttempts: 1 });
  world.giveBack(world.start("w.1"));
  assert.deepEqual([now().status, now().attempts, now().notBefore], ["queued", 0, null]);
  assert.deepEqual([now().obligation?.state, now().obligation?.custodian], ["OPEN", "delegate.root"]);
  assert.deepEqual(world.phasesOf(id), ["accepted", "escalate released"]);
  assert.deepEqual(world.happened, ["receipt.stored", "task.escalated", "task.requeued"]);
  const second = world.start("w.2");
  assert.deepEqual([second.attempt, now().obligation?.custodian], [1, "w.2"]);
  world.succeed(second);
});

test("T13 accepted: revoked by an operator is escalated with the reason and queued at once, and the attempt does not count", () => {
  const { world, id, now } = withTask({ maxAttempts: 1 });
  world.start("w.1");
  world.revoke({ agentId: "w.1" }, "maintenance");
  assert.deepEqual([now().status, now().attempts], ["queued", 0]);
  assert.deepEqual(world.phasesOf(id), ["accepted", "escalate maintenance"]);
});

test("T5: an accepted task whose lease expires is escalated and tried again after 30 s; the obligation is OVERDUE", () => {
  const { world, id, now } = withTask();
  world.start("w.1");
  world.pass(lease);
  assert.deepEqual([now().status, now().attempts, now().notBefore], ["retry_pending", 1, world.now + 30_000]);
  assert.deepEqual([now().obligation?.state, now().obligation?.custodian], ["OVERDUE", "delegate.root"]);
  assert.deepEqual(world.phasesOf(id), ["accepted", "escalate lease_expired"]);
  const [accepted, escalated] = world.receiptsOf(id);
  assert.equal(escalated?.causedByReceiptId, accepted?.id);
  assert.deepEqual([escalated?.fromPrincipal, escalated?.forPrincipal], ["delegate.root", "w.1"]);
  assert.equal(escalated?.sourceSystem, "leasehold");
  world.pass(29_999);
  world.idles("w.2");
  world.pass(1);
  assert.equal(world.start("w.2").attempt, 2);
  assert.deepEqual([now().obligation?.state, now().obligation?.custodian], ["OPEN", "w.2"]);
});

test("T5: after 3 attempts it is escalated as max_retries_exceeded, and dead", () => {
  const { world, id, now } = withTask();
  for (let attempt = 1; attempt <= 3; attempt++) {
    assert.equal(world.start("w.1").attempt, attempt);
    world.pass(lease);
    world.pass(30_000);
  }
  assert.deepEqual([now().status, now().endReason, now().attempts], ["dead", "max_retries_exceeded", 3]);
  assert.deepEqual(world.phasesOf(id).slice(-2), ["escalate lease_expired", "escalate max_retries_exceeded"]);
  assert.equal(now().obligation?.state, "OVERDUE");
  world.idles("w.1");
});

test("T7: a heartbeat extends the lease to now + its duration, keeps what it says of progress, and is in no receipt (R4)", () => {
  const { world, now } = withTask({ leaseDurationMs: 1_000 });
  const offer = world.start("w.1");
  world.pass(999);
  const { lease: extended, directives } = world.beat(offer, { done: 1 });
  assert.deepEqual([extended.expiresAt, directives], [world.now + 1_000, []]);
  assert.equal(extended.fence, offer.lease.fence, "the same lease, not another");
  assert.deepEqual(now().progress, { done: 1 });
  world.beat(offer);
  assert.deepEqual(now().progress, { done: 1 }, "nothing said is nothing taken back");
  assert.equal(world.receipts.length, 1);
  world.pass(1_000);
  assert.equal(now().progress, null);
  assert.equal(world.askHistory({ type: "heartbeat_task", leaseId: offer.lease.id, progress: null }).type, "refused");
});

test("T7: progress receipts are kept, and change nothing of the task's fate", () => {
  const { world, id, now } = withTask();
  const offer = world.start("w.1");
  const { status, recipientAi, outcomeText } = world.submit("progress", offer, { outcomeText: "half" });
  assert.deepEqual([status, recipientAi, outcomeText], [null, "delegate.root", "half"]);
  assert.deepEqual([now().status, now().obligation?.state], ["accepted", "OPEN"]);
  assert.deepEqual(world.phasesOf(id), ["accepted", "progress"]);
});

test("T4, L11: every lease on a task has a fence greater than any before", () => {
  const { world } = withTask({ maxOffers: 9 });
  const fences: number[] = [];
  for (let n = 0; n < 5; n++) {
    const offer = world.offered("w.1");
    fences.push(offer.lease.fence);
    world.giveBack(offer);
  }
  assert.deepEqual(
    [...fences].sort((a, b) => a - b),
    fences,
  );
  assert.equal(new Set(fences).size, 5);
});

test("T10: what works on leases works on a task's: renewed, released and revoked by the same commands", () => {
  const { world, id, now } = withTask();
  const offer = world.start("w.1");
  const renewed = world.expect(
    "lease",
    world.ask({ type: "renew_lease", activity: false, leaseId: offer.lease.id, generation: 1 }),
  ).lease;
  assert.ok(renewed.fence > offer.lease.fence);
  assert.equal(now().live[0]?.fence, renewed.fence);
  world.refusedReceipt("stale_fence", "complete", id, { status: "success", fence: offer.lease.fence });
  world.refused("transfer_refused", {
    type: "downgrade_lease",
    version: null,
    leaseId: offer.lease.id,
    predicate: "CONSUMES",
  });
  world.expect("lease", world.ask({ type: "release_lease", leaseId: offer.lease.id, version: null }));
  assert.deepEqual([now().status, now().attempts], ["queued", 0]);
  world.offered("w.1");
  assert.equal(world.revoke({ resourcePrefix: `TASK:/${id}` }), 1);
  assert.equal(now().status, "queued");
});

test("A3: an instance that was taken over creates no tasks for its agent", () => {
  const world = createTaskWorld("a");
  const before = world.as("a");
  world.expect("task", world.ask({ ...world.creation(), actor: before }));
  world.register("a");
  world.refused("stale_epoch", { ...world.creation(), actor: before });
});
