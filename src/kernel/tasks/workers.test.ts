import assert from "node:assert/strict";
import { test } from "node:test";
import type { Actor } from "../contract/commands.ts";
import { limits } from "../contract/limits.ts";
import { createTaskWorld } from "../testing/tasks-world.ts";
import { found, supervisor } from "../testing/test-world.ts";

const key = (keyId: string): Actor => ({ role: "worker", agentId: null, epoch: null, keyId });

test("T1: worker_id is {type}.{instance}, and anything else is refused", () => {
  const world = createTaskWorld();
  for (const id of ["", "w", ".1", "w.", " w.1", "w. 1", "w.1\n", "é.1", `w.${"x".repeat(limits.idLengthMax)}`]) {
    const refusal = world.refused("invalid_worker_id", world.polling(id));
    assert.deepEqual([refusal.field, refusal.detail], ["worker_id", "must match pattern {type}.{instance}"]);
  }
  for (const id of ["w.1", "worker.codegen-123", "a_b-c.host:8080/1", "w.1.2"]) world.idles(id);
});

test("T1: a worker_id belongs to the key that used it first; no other worker's key may poll, heartbeat or give back", () => {
  const world = createTaskWorld();
  world.create();
  const offer = world.offered("w.1", { actor: key("k1") });
  world.refused("forbidden", world.polling("w.1", { actor: key("k2") }));
  const { id: leaseId } = offer.lease;
  world.refused("not_lease_holder", { type: "heartbeat_task", actor: key("k2"), leaseId, progress: null });
  world.refused("not_lease_holder", { type: "release_task", actor: key("k2"), leaseId });
  world.refused("not_lease_holder", { type: "heartbeat", actor: key("k2"), leaseId, activity: true });
  world.refused("not_lease_holder", { type: "release_lease", actor: key("k2"), leaseId, version: null });
  world.expect("task_lease", world.ask({ type: "heartbeat_task", actor: key("k1"), leaseId, progress: null }));
  world.expect("task_lease", world.ask({ type: "heartbeat_task", leaseId, progress: null }));
  world.polls("w.1");
  assert.equal(world.worker("w.1").keyId, "k1", "somebody above does not take it over");
});

test("L13, T1: a worker_id that somebody above used first, or that was used before there were keys, is for no worker's key", () => {
  const world = createTaskWorld();
  world.idles("w.keyless");
  world.idles("w.above", { actor: { ...supervisor, keyId: "boss" } });
  for (const [id, owner] of [
    ["w.keyless", null],
    ["w.above", "boss"],
  ] as const) {
    const refusal = world.refused("forbidden", world.polling(id, { actor: key("k1") }));
    assert.deepEqual([refusal.field, refusal.problem], ["worker_id", "owned_by_another"]);
    assert.equal(world.worker(id).keyId, owner);
    world.idles(id);
  }
});

test("T1: a restarted worker reclaims its orphaned leases with new fences, and its former self is locked out", () => {
  const world = createTaskWorld();
  world.create({ intents: ["MUTATES FILE:/a"] });
  world.create();
  world.create();
  const [one, two] = world.polls("w.1", { maxTasks: 2 });
  const [first, second] = [found(one, "one"), found(two, "two")];
  world.accept(first);
  world.pass(1_000);
  const reclaimed = world.polls("w.1", { reclaim: true });
  assert.deepEqual(
    reclaimed.map(({ lease, attempt, task }) => [lease.id, attempt, task.status]),
    [
      [first.lease.id, 1, "accepted"],
      [second.lease.id, 1, "leased"],
    ],
    "all of them, and no new ones",
  );
  const fences = reclaimed.flatMap(({ lease, leases }) => [lease, ...leases]).map(({ fence }) => fence);
  assert.equal(fences.length, 3);
  assert.ok(Math.min(...fences) > Math.max(first.lease.fence, second.lease.fence, first.leases[0]?.fence ?? 0));
  assert.deepEqual(
    [...fences].sort((a, b) => a - b),
    fences,
    "the task's own before its manifest's",
  );
  for (const { lease } of reclaimed) assert.deepEqual([lease.expiresAt, lease.generation], [world.now + 900_000, 2]);
  assert.deepEqual(world.happened, ["lease.reissued"], "of what is not a task's own lease");
  world.refusedReceipt("stale_fence", "complete", first.task.id, { status: "success", fence: first.lease.fence });
  world.succeed(first.task.id, { fence: reclaimed[0]?.lease.fence ?? 0 });
});

test("T1: a worker with nothing to reclaim is offered new work", () => {
  const world = createTaskWorld();
  const id = world.create();
  assert.equal(world.offered("w.1", { reclaim: true }).task.id, id);
});

test("T1: what was called off, or has ended, is not reclaimed", () => {
  const world = createTaskWorld();
  const id = world.create();
  world.start("w.1");
  world.cancelTask(id);
  world.idles("w.1", { reclaim: true });
  world.pass(limits.taskCancelMs);
  world.idles("w.1", { reclaim: true });
});

test("T1: with a request_id a lost answer is asked for again, and nothing is offered twice", () => {
  const world = createTaskWorld();
  for (let n = 0; n < 4; n++) world.create();
  const first = world.polls("w.1", { maxTasks: 2, requestKey: "k" });
  assert.deepEqual(world.polls("w.1", { maxTasks: 2, requestKey: "k" }), first);
  assert.equal(world.leases().length, 2);
  assert.equal(world.polls("w.2", { maxTasks: 2, requestKey: "k" }).length, 2, "known per worker");
});

test("T1: of a repeated poll, what has ended or was called off meanwhile is left out, and what was accepted says so", () => {
  const world = createTaskWorld();
  for (let n = 0; n < 3; n++) world.create();
  const [one, two, three] = world.polls("w.1", { maxTasks: 3, requestKey: "k" });
  world.giveBack(found(one, "one"));
  world.accept(found(two, "two"));
  world.cancelTask(found(two, "two").task.id);
  world.accept(found(three, "three"));
  const again = world.polls("w.1", { maxTasks: 3, requestKey: "k" });
  assert.deepEqual(
    again.map(({ task, attempt }) => [task.id, task.status, attempt]),
    [[three?.task.id, "accepted", 1]],
  );
});

test("T1: a poll that found nothing is not remembered, and of the others only the last few are", () => {
  const world = createTaskWorld();
  world.idles("w.1", { requestKey: "k" });
  for (let n = 0; n <= limits.workerPollsRemembered; n++) world.create();
  for (let n = 0; n < limits.workerPollsRemembered; n++) world.offered("w.1", { requestKey: `k${n}` });
  const before = world.leases().length;
  world.offered("w.1", { requestKey: "k0" });
  assert.equal(world.leases().length, before);
  world.offered("w.1", { requestKey: "k" });
  assert.equal(world.leases().length, before + 1);
});

test("T1: the key of a poll stays known when its leases have ended, and their ids are not kept", () => {
  const world = createTaskWorld();
  for (let n = 0; n < 4; n++) world.create();
  const [one, two] = world.polls("w.1", { maxTasks: 2, requestKey: "k1" });
  world.giveBack(found(one, "one"));
  const other = world.offered("w.1", { requestKey: "k2" });
  const before = world.leases().length;
  assert.deepEqual(
    world.polls("w.1", { maxTasks: 2, requestKey: "k1" }).map(({ lease }) => lease.id),
    [two?.lease.id],
  );
  world.giveBack(found(two, "two"));
  world.giveBack(other);
  world.offered("w.1", { requestKey: "k3" });
  world.idles("w.1", { requestKey: "k1" });
  assert.equal(world.leases().length, before - 1);
  assert.deepEqual(
    world.worker("w.1").polls.map(({ requestKey, leaseIds }) => [requestKey, leaseIds.length]),
    [
      ["k1", 0],
      ["k2", 0],
      ["k3", 1],
    ],
  );
});

test("T1: max_tasks is a whole number from 1 to its limit", () => {
  const world = createTaskWorld();
  for (const maxTasks of [0, -1, 1.5, Number.NaN, limits.taskPollMax + 1]) {
    assert.equal(world.refused("invalid_task", world.polling("w.1", { maxTasks })).field, "max_tasks");
  }
  world.idles("w.1", { maxTasks: limits.taskPollMax });
});

test("S4: a worker without a lease is forgotten after a week, and one with a lease is not", () => {
  const world = createTaskWorld();
  world.idles("w.2");
  world.create({ leaseDurationMs: limits.taskLeaseMsMax });
  const offer = world.start("w.1");
  for (let day = 0; day < 8; day++) {
    world.pass(limits.taskLeaseMsMax - 1);
    world.beat(offer);
  }
  assert.throws(() => world.worker("w.2"));
  assert.equal(world.worker("w.1").id, "w.1");
  world.succeed(offer);
  world.pass(limits.workerIdleMs);
  assert.throws(() => world.worker("w.1"));
});

test("S4: a worker's polls are noted every half minute, not each time", () => {
  const world = createTaskWorld();
  world.idles("w.1");
  const seen = world.worker("w.1").seenAt;
  world.pass(limits.workerSeenMs - 1);
  world.idles("w.1");
  assert.equal(world.worker("w.1").seenAt, seen);
  world.pass(1);
  world.idles("w.1");
  assert.equal(world.worker("w.1").seenAt, world.now);
});
