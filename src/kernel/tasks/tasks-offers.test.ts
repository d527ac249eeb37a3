import assert from "node:assert/strict";
import { test } from "node:test";
import { createTaskWorld } from "../testing/tasks-world.ts";
import { found } from "../testing/test-world.ts";

test("T2: an offer that the server took back does not count, however often", () => {
  const world = createTaskWorld();
  const id = world.create({ maxOffers: 2 });
  for (let n = 0; n < 5; n++) {
    const { lease } = world.offered("w.1");
    world.ask({ type: "release_task", leaseId: lease.id, undelivered: true });
  }
  assert.deepEqual([world.task(id).status, world.task(id).offers], ["queued", 0]);
  const { lease } = world.start("w.1");
  world.ask({ type: "release_task", leaseId: lease.id, undelivered: true });
  assert.equal(world.phasesOf(id).at(-1), "escalate released", "an accepted one is given back as ever");
});

test("T7: a worker that declined a task has no claim to it; one that accepted it has", () => {
  for (const [declines, first] of [
    [true, "new"],
    [false, "old"],
  ] as const) {
    const world = createTaskWorld();
    const old = world.create();
    const offer = declines ? world.offered("w.1") : world.start("w.1");
    world.giveBack(offer);
    const urgent = world.create({ taskPriority: 5 });
    assert.equal(world.offered("w.1").task.id, first === "new" ? urgent : old);
  }
});

test("T8: a second attempt is announced to others than the worker that has the task", () => {
  const world = createTaskWorld();
  world.create({ speculative: true });
  world.start("w.1");
  const { lastWorker, runningOn } = found(world.ready.at(-1), "announcement");
  assert.deepEqual([lastWorker, runningOn], [null, "w.1"]);
});

test("G2: held polls are tried again when a lease ends under a full quota", () => {
  const world = createTaskWorld("a");
  const held = world.grant("a", "MUTATES FILE:/a");
  world.quotas({ leasesMax: 1 });
  world.create();
  world.idles("w.1");
  world.release(held.id);
  assert.equal(world.ready.length, 1);
  world.offered("w.1");
});

test("T7: of many tasks that a worker had, those that are due first come first", () => {
  const world = createTaskWorld();
  const created = [1, 2, 3, 4].map((taskPriority) => world.create({ taskPriority }));
  for (const offer of world.polls("w.1", { maxTasks: 100 })) {
    world.accept(offer);
    world.giveBack(offer);
  }
  world.create({ taskPriority: 5 });
  assert.deepEqual(
    world.polls("w.1", { maxTasks: 4 }).map(({ task }) => task.id),
    [...created].reverse(),
  );
});

test("T3: a poll that accepts has its `accepted` receipts in the ledger, and its offers name them", () => {
  const world = createTaskWorld();
  const ids = [world.create(), world.create({ intents: "MUTATES FILE:/a" })];
  const offers = world.polls("w.1", { maxTasks: 2, accept: true });
  assert.deepEqual(
    offers.map(({ task, attempt, acceptedAs }) => [task.id, task.status, attempt, acceptedAs]),
    ids.map((id) => [id, "accepted", 1, world.receiptsOf(id)[0]?.id]),
  );
  for (const offer of offers) {
    assert.deepEqual(world.phasesOf(offer.task.id), ["accepted"]);
    assert.equal(world.task(offer.task.id).obligation?.custodian, "w.1");
    world.succeed(offer);
    assert.equal(world.statusOf(offer.task.id), "succeeded");
  }
});

test("T1: a poll that accepted and is repeated by its key gets the same offers, with the same receipts", () => {
  const world = createTaskWorld();
  const id = world.create();
  const first = world.offered("w.1", { accept: true, requestKey: "k" });
  const again = world.offered("w.1", { accept: true, requestKey: "k" });
  assert.deepEqual([again.lease.id, again.attempt, again.acceptedAs], [first.lease.id, 1, first.acceptedAs]);
  assert.deepEqual(world.phasesOf(id), ["accepted"]);
});

test("R8: an offer that the ledger has no room for stays an offer, and costs nothing", () => {
  const world = createTaskWorld();
  const id = world.create();
  world.quotas({ receiptsMax: 0 });
  const offer = world.offered("w.1", { accept: true });
  assert.deepEqual([offer.acceptedAs, offer.attempt, world.task(id).status], [null, 1, "leased"]);
  world.refusedReceipt("quota_exceeded", "accepted", offer);
  world.giveBack(offer);
  assert.deepEqual([world.task(id).attempts, world.phasesOf(id)], [0, []]);
});

test("R3: a key that begins with a lease's id is for receipts of that lease alone", () => {
  const world = createTaskWorld();
  world.create();
  world.create();
  const [one, other] = world.polls("w.1", { maxTasks: 2, accept: true });
  const dedupeKey = `${found(one, "offer").lease.id}:done`;
  world.refusedReceipt("invalid_receipt", "progress", found(other, "offer"), { dedupeKey });
  world.refusedReceipt("invalid_receipt", "progress", found(one, "offer").task.id, { dedupeKey });
  world.succeed(found(one, "offer"), { dedupeKey });
  world.succeed(found(other, "offer"), { dedupeKey: "lse-like" });
});
