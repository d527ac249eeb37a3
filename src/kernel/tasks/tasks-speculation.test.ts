import assert from "node:assert/strict";
import { test } from "node:test";
import { limits } from "../contract/limits.ts";
import { createTaskWorld, type TaskWorld } from "../testing/tasks-world.ts";
import { found } from "../testing/test-world.ts";

const lease = limits.taskLeaseMsDefault;

/** A speculative task that two workers have accepted. */
function createRace(wish: Parameters<TaskWorld["create"]>[0] = {}) {
  const world = createTaskWorld();
  const id = world.create({ speculative: true, ...wish });
  const [one, two] = [world.start("w.1"), world.start("w.2")];
  return { world, id, one, two };
}

test("T8: asked for, a task is offered to a second worker at once, never to a third, nor twice to one", () => {
  const world = createTaskWorld();
  const id = world.create({ speculative: true });
  const plain = world.create();
  world.offered("w.1");
  assert.equal(world.ready.length, 1, "held polls are notified");
  assert.equal(world.offered("w.2").task.id, plain, "what nobody has goes first");
  world.idles("w.1");
  assert.equal(world.offered("w.2").task.id, id);
  world.idles("w.3");
  assert.deepEqual(
    world.task(id).live.map(({ workerId }) => workerId),
    ["w.1", "w.2"],
  );
});

test("T8: the second worker must have what the task requires, and the oldest task is given away first", () => {
  const world = createTaskWorld();
  const first = world.create({ speculative: true, taskType: "b" });
  const second = world.create({ speculative: true, taskType: "a" });
  const special = world.create({ speculative: true, requires: ["gpu"] });
  world.polls("w.1", { maxTasks: 9, capabilities: ["gpu"] });
  assert.equal(world.offered("w.2").task.id, first);
  assert.equal(world.offered("w.2").task.id, second);
  world.idles("w.2");
  assert.equal(world.offered("w.2", { capabilities: ["gpu"] }).task.id, special);
});

test("T8: the first complete wins; the other is called off, learns it with its heartbeat, and is not blamed", () => {
  const { world, id, one, two } = createRace();
  const { id: winning } = world.succeed(two);
  assert.deepEqual([world.statusOf(id), world.task(id).winningReceiptId], ["succeeded", winning]);
  assert.deepEqual(world.beat(one).directives, ["cancel"]);
  world.pass(limits.taskCancelMs);
  assert.equal(world.endedTask(id).status, "succeeded");
  assert.deepEqual([world.worker("w.1").lost, world.worker("w.1").health, world.leases()], [0, 1, []]);
  assert.deepEqual(world.phasesOf(id), ["accepted", "accepted", "complete success"]);
});

test("T8: a second acceptance counts as neither a second attempt nor a second obligation", () => {
  const { world, id } = createRace();
  const { attempts, obligation } = world.task(id);
  assert.deepEqual([attempts, obligation?.custodian, obligation?.state], [1, "w.1", "OPEN"]);
  assert.equal(new Set(world.receiptsOf(id).map(({ obligationId }) => obligationId)).size, 1);
});

test("T8: with one of two gone, the task stands as the other one does, and who is left owes it (R5)", () => {
  const ways: readonly (readonly [string, (race: ReturnType<typeof createRace>) => void])[] = [
    [
      "lost",
      ({ world, two }) => {
        world.pass(lease - 1);
        world.beat(two);
        world.pass(1);
      },
    ],
    ["given back", ({ world, one }) => world.giveBack(one)],
    ["revoked", ({ world, one }) => void world.revoke({ leaseId: one.lease.id })],
    ["escalated", ({ world, one }) => void world.escalate(one, { escalationTo: "boss" })],
    ["failed, to be tried again", ({ world, one }) => void world.fail(one, { retryRequested: true })],
  ];
  for (const [how, leave] of ways) {
    const race = createRace();
    const { world, id, two } = race;
    leave(race);
    const { status, attempts, obligation, live } = world.task(id);
    assert.deepEqual([status, attempts, live.length], ["accepted", 1, 1], how);
    assert.deepEqual([obligation?.state, obligation?.custodian], ["OPEN", "w.2"], how);
    world.succeed(two);
    assert.equal(world.endedTask(id).obligation?.state, "CLOSED", how);
  }
});

test("T8: a failure that asks for no retry wins like any other complete", () => {
  const { world, id, one, two } = createRace();
  world.fail(one);
  assert.equal(world.statusOf(id), "failed");
  assert.deepEqual(world.beat(two).directives, ["cancel"]);
});

test("T8: with one gone another may try in its place", () => {
  const { world, id, one } = createRace();
  world.idles("w.3");
  world.giveBack(one);
  assert.equal(world.offered("w.3").task.id, id);
  world.idles("w.4");
});

test("T5, T8: two attempts side by side count as one, however they come and go", () => {
  const world = createTaskWorld();
  const id = world.create({ speculative: true, maxAttempts: 1, leaseDurationMs: 1_000 });
  world.start("w.1");
  world.pass(500);
  const second = world.offered("w.2");
  world.pass(500);
  assert.deepEqual([world.task(id).status, world.task(id).obligation?.state], ["leased", "OVERDUE"]);
  const third = world.start("w.3");
  world.accept(second);
  assert.deepEqual([world.task(id).attempts, world.task(id).obligation?.state], [1, "OPEN"]);
  world.pass(999);
  world.beat(third);
  world.pass(1);
  world.succeed(third);
  assert.equal(world.statusOf(id), "succeeded");
});

test("T5, T8: where the accepted one was lost and the other only offered, the last attempt is over when that comes to nothing", () => {
  const world = createTaskWorld();
  const id = world.create({ speculative: true, maxAttempts: 1, leaseDurationMs: 1_000 });
  world.start("w.1");
  world.pass(500);
  const second = world.offered("w.2");
  world.pass(500);
  world.giveBack(second);
  assert.deepEqual([world.task(id).status, world.task(id).endReason], ["dead", "max_retries_exceeded"]);
});

test("T8: with two workers on it, a receipt must say whose it is", () => {
  const { world, id } = createRace();
  assert.equal(world.refusedReceipt("invalid_receipt", "progress", id).field, "source_system");
  assert.equal(world.submit("progress", id, { sourceSystem: "w.2" }).sourceSystem, "w.2");
});

test("T8: cancelling calls both off", () => {
  const world = createTaskWorld();
  const id = world.create({ speculative: true });
  const accepted = world.start("w.1");
  world.offered("w.2");
  world.cancelTask(id);
  assert.deepEqual(
    world.task(id).live.map(({ workerId, canceled }) => [workerId, canceled]),
    [["w.1", true]],
  );
  world.giveBack(accepted);
  assert.equal(world.endedTask(id).status, "canceled");
});

test("T8: a task with a manifest is never run twice", () => {
  const world = createTaskWorld();
  world.refused("invalid_task", world.creation({ speculative: true, intents: "MUTATES FILE:/x" }));
  world.setType("build", { speculateShare: 1 });
  learn(world, 1_000);
  world.create({ intents: "MUTATES FILE:/x" });
  world.start("w.1");
  world.pass(5_000);
  world.idles("w.2");
});

/** Runs N tasks of a duration, so that the type's usual duration is known. */
function learn(world: TaskWorld, ms: number): void {
  for (let n = 0; n < limits.taskSamplesMin; n++) {
    world.create();
    const offer = world.start("w.1");
    world.pass(ms);
    world.succeed(offer);
  }
}

test("T8: past a share of the type's usual duration an accepted task is offered to a second worker, to the millisecond", () => {
  const world = createTaskWorld();
  world.setType("build", { speculateShare: 1.5 });
  learn(world, 1_000);
  const id = world.create();
  world.start("w.1");
  world.pass(1_499);
  world.idles("w.2");
  world.pass(1);
  assert.equal(world.ready.length, 1);
  assert.equal(world.offered("w.2").task.id, id);
  world.idles("w.3");
});

test("T8: without a share, or before enough is known, nothing is run twice", () => {
  const world = createTaskWorld();
  learn(world, 1_000);
  const unset = world.create();
  const running = world.start("w.1");
  world.pass(100_000);
  world.idles("w.2");
  world.cancelTask(unset);
  world.giveBack(running);
  world.setType("build", { speculateShare: 1 });
  world.create();
  world.start("w.1");
  world.pass(100_000);
  world.idles("w.2");
});

test("T8: a second worker that came to nothing leaves room for another, at once since the time has passed", () => {
  const world = createTaskWorld();
  world.setType("build", { speculateShare: 1 });
  learn(world, 1_000);
  const id = world.create();
  const first = world.start("w.1");
  world.pass(1_000);
  world.giveBack(world.offered("w.2"));
  assert.equal(world.task(id).offers, 0, "nobody was waiting for it");
  assert.equal(world.offered("w.3").task.id, id);
  world.succeed(first);
});

test("T12: a task that two workers have takes one slot of its key", () => {
  const world = createTaskWorld();
  world.create({ speculative: true, concurrencyKey: "k", concurrencyLimit: 2 });
  world.create({ concurrencyKey: "k", concurrencyLimit: 2 });
  assert.equal(world.polls("w.1", { maxTasks: 9 }).length, 2);
  const [offer] = world.polls("w.2", { maxTasks: 9 });
  const waiting = world.create({ concurrencyKey: "k", concurrencyLimit: 2 });
  world.idles("w.3");
  world.giveBack(found(offer, "second"));
  world.idles("w.1");
  world.revoke({ agentId: "w.1" });
  assert.equal(world.polls("w.3", { maxTasks: 9 }).length, 2);
  assert.equal(world.task(waiting).status, "queued");
});

test("T8: a waiting urgent task takes a running preemptible one's worker, which learns it with its heartbeat", () => {
  const world = createTaskWorld();
  const lowly = world.create({ preemptible: true });
  const offer = world.start("w.1");
  const urgent = world.create({ taskPriority: 5 });
  assert.deepEqual(world.beat(offer).directives, [], "it has not waited yet");
  world.pass(limits.taskPreemptAfterMs);
  assert.deepEqual(world.beat(offer).directives, ["preempt"]);
  assert.deepEqual(world.beat(offer).directives, ["preempt"], "until it acts");
  world.giveBack(offer);
  assert.deepEqual([world.task(lowly).attempts, world.task(lowly).status], [0, "queued"]);
  // Though the lowly one is older, and was this worker's own (T7).
  assert.equal(world.offered("w.1").task.id, urgent);
  assert.equal(world.offered("w.1").task.id, lowly);
});

test("T8: only one worker is asked to make room for one task; another once that one has not used its grace time", () => {
  const world = createTaskWorld();
  for (let n = 0; n < 2; n++) world.create({ preemptible: true });
  const [one, two] = [world.start("w.1"), world.start("w.2")];
  world.create({ taskPriority: 5 });
  world.pass(limits.taskPreemptAfterMs);
  assert.deepEqual(world.beat(one).directives, ["preempt"]);
  assert.deepEqual(world.beat(two).directives, []);
  world.giveBack(one);
  assert.deepEqual(world.beat(two).directives, [], "the first is about to poll");
  world.pass(limits.taskPreemptGraceMs);
  assert.deepEqual(world.beat(two).directives, ["preempt"]);
});

test("T8: nobody is asked to make room for what is no more urgent, what it could not do, or what cannot run", () => {
  for (const wish of [
    { taskPriority: 1 },
    { taskPriority: 5, requires: ["gpu"] },
    { taskPriority: 5, concurrencyKey: "taken" },
    { taskPriority: 5, intents: "MUTATES FILE:/taken" },
    { taskPriority: 5, delayMs: 60_000 },
  ]) {
    const world = createTaskWorld("a");
    world.grant("a", "MUTATES FILE:/taken");
    world.create({ concurrencyKey: "taken" });
    world.offered("w.9");
    world.create({ preemptible: true, taskPriority: 1 });
    const offer = world.start("w.1");
    world.create(wish);
    world.pass(limits.taskPreemptAfterMs);
    assert.deepEqual(world.beat(offer).directives, [], JSON.stringify(wish));
  }
  const world = createTaskWorld();
  world.create();
  const offer = world.start("w.1");
  world.create({ taskPriority: 5 });
  world.pass(limits.taskPreemptAfterMs);
  assert.deepEqual(world.beat(offer).directives, [], "not preemptible");
});

test("T8: room is made for the most urgent that waits", () => {
  const world = createTaskWorld();
  world.create({ preemptible: true });
  const offer = world.start("w.1");
  const [less, more] = [world.create({ taskPriority: 5 }), world.create({ taskPriority: 9, taskType: "other" })];
  world.pass(limits.taskPreemptAfterMs);
  assert.deepEqual(world.beat(offer).directives, ["preempt"]);
  world.giveBack(offer);
  assert.equal(world.offered("w.1").task.id, more);
  assert.equal(world.offered("w.2").task.id, less);
});
