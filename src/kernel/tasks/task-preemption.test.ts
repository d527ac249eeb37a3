import assert from "node:assert/strict";
import { test } from "node:test";
import { limits } from "../contract/limits.ts";
import { apply, restore, snapshot } from "../kernel.ts";
import { createTaskWorld, type TaskWish } from "../testing/tasks-world.ts";
import { operator } from "../testing/test-world.ts";

const { taskPreemptAfterMs: after, taskPreemptGraceMs: grace } = limits;

/** w.1 works on a preemptible task, and is asked to make room for an urgent one. */
function createAsked(wish: TaskWish = {}) {
  const world = createTaskWorld("a");
  const running = world.create({ preemptible: true, ...wish });
  const offer = world.start("w.1");
  const urgent = world.create({ taskPriority: 5 });
  world.pass(after);
  assert.deepEqual(world.beat(offer).directives, ["preempt"]);
  return { world, running, offer, urgent };
}

test("T8: a worker that does not make room within the grace time loses its lease, and the attempt does not count", () => {
  const { world, running, offer } = createAsked();
  assert.equal(world.lease(offer.lease.id)?.expiresAt, world.now + grace, "its lease says how long it has");
  world.pass(grace / 2);
  assert.deepEqual(world.beat(offer).directives, ["preempt"]);
  assert.equal(world.lease(offer.lease.id)?.expiresAt, world.now + grace / 2, "a heartbeat does not win time");
  world.pass(grace / 2);
  const ended = world.ended(offer.lease.id);
  assert.deepEqual([ended.state, ended.endReason], ["REVOKED", "preempted"]);
  const { status, attempts } = world.task(running);
  assert.deepEqual([status, attempts], ["queued", 0]);
  assert.deepEqual(world.phasesOf(running), ["accepted", "escalate preempted"]);
});

test("T8: renewing or reclaiming does not win time either", () => {
  const { world, offer } = createAsked();
  const by = world.now + grace;
  world.pass(1_000);
  world.ask({ type: "renew_lease", activity: false, leaseId: offer.lease.id, generation: null });
  assert.equal(world.lease(offer.lease.id)?.expiresAt, by);
  world.polls("w.1", { reclaim: true });
  assert.equal(world.lease(offer.lease.id)?.expiresAt, by);
});

test("T8: a worker keeps its lease if the urgent task no longer needs the room", () => {
  for (const beats of [true, false]) {
    const { world, running, offer } = createAsked();
    world.offered("w.2");
    world.pass(1_000);
    if (beats) assert.deepEqual(world.beat(offer).directives, []);
    world.pass(grace);
    assert.deepEqual([world.task(running).status, world.lease(offer.lease.id)?.state], ["accepted", "ACTIVE"]);
    assert.ok((world.lease(offer.lease.id)?.expiresAt ?? 0) > world.now + 60_000, "as if it had not been asked");
  }
});

test("T8: the resources of a preempted task go with it", () => {
  const { world } = createAsked({ intents: "MUTATES FILE:/a" });
  world.pass(grace);
  assert.equal(world.grant("a", "MUTATES FILE:/a").state, "ACTIVE");
});

test("T8: a delayed task is urgent from when it is ready, not from its creation", () => {
  const world = createTaskWorld();
  world.create({ preemptible: true });
  const offer = world.start("w.1");
  world.create({ taskPriority: 5, delayMs: 60_000 });
  world.pass(60_000);
  assert.deepEqual(world.beat(offer).directives, []);
  world.pass(after);
  assert.deepEqual(world.beat(offer).directives, ["preempt"]);
});

test("T8: a restored kernel revokes at the same time, and asks no other worker for the same task", () => {
  const { world, offer } = createAsked();
  const restored = restore(snapshot(world.base.state));
  const tenant = restored.tenants.get(world.tenant);
  const urgent = [...(tenant?.tasks.values() ?? [])].find(({ record }) => record.spec.taskPriority === 5);
  assert.deepEqual(urgent?.record.roomRequest, { leaseId: offer.lease.id, workerId: "w.1", by: world.now + grace });
  assert.equal(tenant?.leases.get(offer.lease.id)?.record.expiresAt, world.now + grace);
});

test("T8: a task that cannot run does not hide an urgent one behind it, whether a poll has tried it or not", () => {
  const world = createTaskWorld("a");
  world.create({ preemptible: true });
  const offer = world.start("w.1");
  world.grant("a", "MUTATES FILE:/a");
  const first = world.create({ taskPriority: 9, intents: "MUTATES FILE:/a" });
  world.create({ taskPriority: 5 });
  world.pass(after);
  assert.equal(world.placeOf(first), "ready", "nobody has tried it");
  assert.deepEqual(world.beat(offer).directives, ["preempt"]);
  assert.equal(world.placeOf(first), "parked");
});

test("T8: a worker that made room gets the urgent task first, also from a restored kernel", () => {
  const { world, offer, urgent } = createAsked();
  world.giveBack(offer);
  const restored = restore(snapshot(world.base.state));
  const poll = { ...world.polling("w.1"), tenant: world.tenant, actor: operator, entropy: [7, 7] as const };
  for (const state of [world.base.state, restored]) {
    const { reply } = apply(state, poll, world.now);
    assert.deepEqual(reply.type === "offers" && reply.offers.map(({ task }) => task.id), [urgent]);
  }
});
