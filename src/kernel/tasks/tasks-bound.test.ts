/** Tasks whose manifests name resources of cells: set up before the offer, torn down after the end (T10, G6, G8). */
import assert from "node:assert/strict";
import { test } from "node:test";
import { limits } from "../contract/limits.ts";
import type { Lease } from "../contract/records.ts";
import { restore, snapshot } from "../kernel.ts";
import { createTaskWorld, type TaskWorld } from "../testing/tasks-world.ts";
import { found } from "../testing/test-world.ts";

const claimMs = 10_000;

function createBoundWorld(...agents: readonly string[]): TaskWorld {
  const world = createTaskWorld(...agents);
  world.declare("GPU:/1", null, "cell-1");
  return world;
}

/** The live leases on a resource, the youngest last. */
function leasesOn(world: TaskWorld, resource: string): readonly Lease[] {
  const tenant = found(world.base.state.tenants.get(world.tenant), "tenant");
  return Array.from(tenant.leases.values(), ({ record }) => record)
    .filter((lease) => lease.resource === resource)
    .sort((a, b) => a.fence - b.fence);
}

function leaseOn(world: TaskWorld, resource: string): Lease {
  return found(leasesOn(world, resource).at(-1), `lease on ${resource}`);
}

/** A worker asks for it, its cell sets it up, and the worker gets it. */
function startBound(world: TaskWorld, resource = "GPU:/1") {
  world.idles("w.1");
  world.bound(leaseOn(world, resource), "gpu-1:7000");
  return world.start("w.1");
}

function restart(world: TaskWorld): void {
  const tenant = found(world.base.state.tenants.get(world.tenant), "tenant");
  const state = restore(snapshot(world.base.state));
  assert.ok(tenant.tasks.size === found(state.tenants.get(world.tenant), "tenant").tasks.size);
  world.base.state = state;
}

test("T4, T13: after a restart a task that is over and waits for its cell expects no late result, and ends once", () => {
  const world = createBoundWorld("a");
  world.create({ intents: ["MUTATES GPU:/1", "MUTATES FILE:/a"], leaseDurationMs: 5_000, requeueDelayMs: 0 });
  const offer = startBound(world);
  world.pass(5_000);
  // Late, while nobody else had what it held.
  world.succeed(offer);
  assert.equal(leaseOn(world, "GPU:/1").state, "CLOSING");
  restart(world);
  const tenant = found(world.base.state.tenants.get(world.tenant), "tenant");
  assert.equal(tenant.book.lateResults.size, 0);
});

test("T10, G6: a task on a bound resource is offered when its cell has set it up, with the coordinate, and ends with it", () => {
  const world = createBoundWorld();
  const id = world.create({ intents: ["MUTATES GPU:/1", "MUTATES FILE:/a"], leaseDurationMs: 60_000 });
  world.idles("w.1");
  assert.deepEqual([world.task(id).status, world.placeOf(id)], ["queued", "binding"]);
  assert.equal(leaseOn(world, "GPU:/1").state, "BINDING");
  assert.equal(leaseOn(world, "FILE:/a").state, "BINDING", "all of the manifest waits for the cell");
  world.pass(1_000);
  world.bound(leaseOn(world, "GPU:/1"), "gpu-1:7000");
  assert.deepEqual(world.ready.at(-1)?.lastWorker, "w.1", "its poll is woken first");
  world.pass(2_000);
  const offer = world.offered("w.1");
  assert.equal(offer.task.id, id);
  assert.deepEqual(
    offer.leases.map(({ resource, state, coordinate, agentId, claimBy }) => [
      resource,
      state,
      coordinate,
      agentId,
      claimBy,
    ]),
    [
      ["GPU:/1", "ACTIVE", "gpu-1:7000", "w.1", null],
      ["FILE:/a", "ACTIVE", null, "w.1", null],
    ],
  );
  assert.equal(offer.lease.expiresAt, world.now + 58_000, "the time of what is bound began when it was");
  assert.deepEqual([offer.task.offers, offer.attempt], [0, 1]);
  world.accept(offer);
  world.succeed(offer);
  assert.equal(world.ended(offer.lease.id).state, "RELEASED");
  const closing = leaseOn(world, "GPU:/1");
  assert.deepEqual([closing.state, closing.closingAs], ["CLOSING", "RELEASED"]);
  assert.deepEqual(leasesOn(world, "FILE:/a"), []);
  assert.equal(world.task(id).status, "succeeded", "it stays until the cell has confirmed the end");
  restart(world);
  world.tornDown(leaseOn(world, "GPU:/1"));
  assert.equal(world.taskIfAlive(id), undefined);
});

test("T10, G6: the next task on a bound resource waits until the cell has torn the last one's down", () => {
  const world = createBoundWorld();
  const [first, second] = [world.create({ intents: "MUTATES GPU:/1" }), world.create({ intents: "MUTATES GPU:/1" })];
  const offer = startBound(world);
  assert.equal(offer.task.id, first);
  world.succeed(offer);
  world.idles("w.2");
  assert.equal(world.placeOf(second), "parked");
  world.tornDown(leaseOn(world, "GPU:/1"));
  world.idles("w.2");
  assert.equal(world.placeOf(second), "binding");
  world.bound(leaseOn(world, "GPU:/1"));
  assert.equal(world.offered("w.2").task.id, second);
});

test("T10, G6: a retry waits for the teardown of its own last attempt too, and explain says so", () => {
  const world = createBoundWorld();
  const id = world.create({ intents: "MUTATES GPU:/1", leaseDurationMs: 5_000, requeueDelayMs: 0 });
  startBound(world);
  world.pass(5_000);
  assert.deepEqual([world.task(id).status, world.task(id).attempts], ["queued", 1]);
  world.idles("w.1");
  assert.equal(world.placeOf(id), "parked");
  assert.deepEqual(world.kindsOf(id), ["binding"]);
  assert.match(world.explain(id)[0]?.detail ?? "", /^The cell cell-1 is tearing down GPU:\/1/);
  restart(world);
  world.idles("w.1");
  world.tornDown(leaseOn(world, "GPU:/1"));
  world.idles("w.1");
  world.bound(leaseOn(world, "GPU:/1"));
  assert.equal(world.offered("w.1").attempt, 2);
});

test("T10, G6: where a cell fails, the task is tried again after a pause that doubles; neither offers nor attempts count", () => {
  const world = createBoundWorld();
  const id = world.create({ intents: ["MUTATES GPU:/1", "MUTATES FILE:/a"], maxOffers: 1, maxAttempts: 1 });
  for (const pause of [1_000, 2_000, 4_000]) {
    world.idles("w.1");
    const lease = leaseOn(world, "GPU:/1");
    world.bindFails(lease, "no driver");
    assert.deepEqual(leasesOn(world, "FILE:/a"), [], "the whole manifest is undone");
    world.tornDown(lease);
    assert.deepEqual([world.placeOf(id), world.task(id).notBefore], ["delayed", world.now + pause]);
    assert.match(world.explain(id)[0]?.detail ?? "", /could not set its resources up \(no driver\)/);
    restart(world);
    world.idles("w.1");
    world.pass(pause);
  }
  assert.deepEqual([world.task(id).offers, world.task(id).attempts, world.task(id).bindFailures], [0, 0, 3]);
  const offer = startBound(world);
  assert.deepEqual([world.task(id).bindFailures, offer.attempt], [0, 1]);
});

test("T10: a cell that does not answer in time has failed", () => {
  const world = createBoundWorld();
  const id = world.create({ intents: "MUTATES GPU:/1" });
  world.idles("w.1");
  world.pass(limits.bindMs);
  assert.deepEqual([world.placeOf(id), world.task(id).bindFailure], ["delayed", "bind_timeout"]);
});

test("T10: a prepared task that no worker collects in time gives its resources back and is queued again", () => {
  const world = createBoundWorld();
  const id = world.create({ intents: ["MUTATES GPU:/1", "MUTATES FILE:/a"], concurrencyKey: "k" });
  world.idles("w.1");
  world.bound(leaseOn(world, "GPU:/1"));
  world.pass(claimMs);
  assert.equal(leaseOn(world, "GPU:/1").state, "CLOSING");
  assert.deepEqual(leasesOn(world, "FILE:/a"), []);
  assert.deepEqual([world.placeOf(id), world.task(id).offers], ["ready", 0]);
  world.tornDown(leaseOn(world, "GPU:/1"));
  assert.equal(startBound(world).task.id, id);
});

test("T10: another worker may collect what was prepared, and the one that asked gets other work", () => {
  const world = createBoundWorld();
  const bound = world.create({ intents: "MUTATES GPU:/1" });
  world.idles("w.1");
  const plain = world.create({ taskPriority: 9, taskType: "other" });
  world.bound(leaseOn(world, "GPU:/1"));
  const offer = world.offered("w.2");
  assert.deepEqual([offer.task.id, offer.leases[0]?.agentId], [bound, "w.2"], "what holds resources goes first");
  assert.equal(world.offered("w.1").task.id, plain);
});

test("T10: a worker that asks again while its task is set up gets other work, but no second task is set up for it", () => {
  const world = createBoundWorld();
  world.declare("GPU:/2", null, "cell-1");
  world.create({ intents: "MUTATES GPU:/1" });
  const second = world.create({ intents: "MUTATES GPU:/2" });
  world.idles("w.1");
  world.idles("w.1");
  assert.equal(world.placeOf(second), "ready");
  const plain = world.create({ taskType: "other" });
  assert.equal(world.offered("w.1").task.id, plain);
  world.idles("w.2");
  assert.equal(world.placeOf(second), "binding");
});

test("T10, T12: a task that is being set up takes the slot of its key", () => {
  const world = createBoundWorld();
  world.create({ intents: "MUTATES GPU:/1", concurrencyKey: "k" });
  const second = world.create({ concurrencyKey: "k" });
  world.idles("w.1");
  world.idles("w.2");
  assert.equal(world.placeOf(second), "keyed");
  restart(world);
  world.idles("w.2");
  world.bindFails(leaseOn(world, "GPU:/1"));
  assert.equal(world.offered("w.2").task.id, second);
});

test("T13: cancelled while its cell sets it up, or before it is collected, the task is over when that is torn down", () => {
  for (const isBound of [false, true]) {
    const world = createBoundWorld();
    const id = world.create({ intents: "MUTATES GPU:/1", concurrencyKey: "k" });
    world.idles("w.1");
    if (isBound) world.bound(leaseOn(world, "GPU:/1"));
    world.cancelTask(id);
    assert.equal(leaseOn(world, "GPU:/1").state, "CLOSING");
    const next = world.create({ concurrencyKey: "k" });
    assert.equal(world.offered("w.1").task.id, next, "its key is free at once");
    restart(world);
    world.tornDown(leaseOn(world, "GPU:/1"));
    assert.equal(world.statusOf(id), "canceled");
    assert.equal(world.taskIfAlive(id), undefined);
  }
});

test("T10, S1: a restart finds a task that is being set up, and one that waits to be collected", () => {
  const world = createBoundWorld();
  const id = world.create({ intents: "MUTATES GPU:/1" });
  world.idles("w.1");
  restart(world);
  assert.equal(world.placeOf(id), "binding");
  world.bound(leaseOn(world, "GPU:/1"));
  restart(world);
  assert.equal(world.placeOf(id), "ready");
  assert.equal(world.offered("w.1").task.id, id);
});

test("T10, G8: a heartbeat of the task renews what is bound: next generation, new fence; the rest is extended", () => {
  const world = createBoundWorld();
  world.create({ intents: ["MUTATES GPU:/1", "MUTATES FILE:/a"], leaseDurationMs: 60_000 });
  const offer = startBound(world);
  const [gpu, file] = offer.leases;
  world.pass(20_000);
  const beat = world.beat(offer);
  const [renewed, extended] = beat.leases;
  assert.deepEqual([renewed?.generation, extended?.generation], [2, file?.generation]);
  assert.ok((renewed?.fence ?? 0) > (gpu?.fence ?? 0));
  assert.equal(extended?.fence, file?.fence);
  for (const lease of [beat.lease, ...beat.leases]) assert.equal(lease.expiresAt, world.now + 60_000);
  assert.ok(
    world.events.some(({ type }) => type === "lease.renewed"),
    "its cell gets the new end",
  );
  world.ask({ type: "heartbeat", leaseId: offer.lease.id, activity: true });
  assert.equal(leaseOn(world, "GPU:/1").generation, 3, "so does a heartbeat on the task's lease itself");
  assert.equal(
    world.refused("renew_required", { type: "heartbeat", leaseId: renewed?.id ?? "", activity: false }).code,
    "renew_required",
  );
  assert.equal(world.task(offer.task.id).status, "accepted");
});

test("T10, G8: while a cell is not ready a heartbeat extends nothing of its task, and says which cell", () => {
  const world = createBoundWorld();
  world.create({ intents: "MUTATES GPU:/1", leaseDurationMs: 60_000 });
  const offer = startBound(world);
  const cell = { cellId: "cell-1", session: "s1" };
  const inventory = [
    { resource: "GPU:/1", driver: "tcp", capacity: null, hardware: [], ready: true, fault: null, fenced: null },
  ];
  const { id: leaseId, generation, fence } = leaseOn(world, "GPU:/1");
  const bindings = [{ leaseId, generation, fence, endedAs: null }];
  world.expect("cell_enrolled", world.ask({ type: "enrol_cell", ...cell, version: null, inventory, bindings }));
  world.ask({ type: "cell_left", ...cell, reason: "shut down" });
  world.pass(1_000);
  const before = world.lease(offer.lease.id)?.expiresAt;
  const refused = world.expect(
    "paused",
    world.ask({ type: "heartbeat_task", leaseId: offer.lease.id, progress: null }),
  );
  assert.deepEqual([refused.reason, refused.resource], ["cell_not_ready", "GPU:/1"]);
  assert.equal(world.lease(offer.lease.id)?.expiresAt, before);
});

test("T5, T10: when what is bound is lost, the attempt is, with all else that it has", () => {
  const world = createBoundWorld();
  const id = world.create({ intents: ["MUTATES GPU:/1", "MUTATES FILE:/a"] });
  const offer = startBound(world);
  world.ask({ type: "revoke", target: { leaseId: leaseOn(world, "GPU:/1").id }, reason: "maintenance" });
  assert.deepEqual([world.task(id).status, world.task(id).attempts], ["queued", 0]);
  assert.equal(world.ended(offer.lease.id).state, "REVOKED");
  assert.deepEqual(leasesOn(world, "FILE:/a"), []);
  assert.deepEqual(world.phasesOf(id), ["accepted", "escalate maintenance"]);
  world.tornDown(leaseOn(world, "GPU:/1"));
  assert.deepEqual(world.phasesOf(id), ["accepted", "escalate maintenance"], "once");
});

test("T13: a late success of a task on a bound resource counts until it is offered again", () => {
  for (const isSetUp of [false, true]) {
    const world = createBoundWorld();
    const id = world.create({ intents: "MUTATES GPU:/1", leaseDurationMs: 5_000, requeueDelayMs: 0 });
    const offer = startBound(world);
    world.pass(5_000);
    world.tornDown(leaseOn(world, "GPU:/1"));
    world.pass(1);
    world.idles("w.2");
    world.bound(leaseOn(world, "GPU:/1"));
    if (isSetUp) {
      world.offered("w.2");
      world.refusedReceipt("stale_fence", "complete", offer, { status: "success" });
    } else {
      world.succeed(offer);
      assert.equal(leaseOn(world, "GPU:/1").state, "CLOSING", "what was set up for the next attempt is given back");
      assert.equal(world.task(id).status, "succeeded");
    }
  }
});

test("T1, T10: a worker that was restarted gets its bound leases back with new fences", () => {
  const world = createBoundWorld();
  world.create({ intents: "MUTATES GPU:/1" });
  const offer = startBound(world);
  const [again] = world.polls("w.1", { reclaim: true });
  assert.equal(again?.leases[0]?.generation, 2);
  assert.ok((again?.leases[0]?.fence ?? 0) > (offer.leases[0]?.fence ?? 0));
});

test("T10, W2: a task that is passed over too often queues for its bound resource, and binds when its turn has come", () => {
  const world = createBoundWorld("a", "b");
  const id = world.create({ intents: "MUTATES GPU:/1" });
  for (let nth = 0; nth <= limits.taskPassedOverMax; nth++) {
    const { requestId } = world.waits("a", "MUTATES GPU:/1");
    world.bound(leaseOn(world, "GPU:/1"));
    world.collect(requestId);
    world.idles("w.1");
    const lease = leaseOn(world, "GPU:/1");
    world.release(lease.id);
    world.tornDown(lease);
  }
  assert.equal(world.placeOf(id), "ready");
  assert.equal(found(world.base.state.tenants.get(world.tenant), "tenant").waitingCount, 1, "it keeps its place");
  world.idles("w.1");
  assert.equal(world.placeOf(id), "binding");
  world.bound(leaseOn(world, "GPU:/1"));
  assert.equal(world.offered("w.1").task.id, id);
});

test("G12: a withdrawal of the cell ends what it was setting up; the task waits for it to be readmitted", () => {
  const world = createTaskWorld();
  const inventory = [
    { resource: "GPU:/1", driver: "tcp", capacity: null, hardware: [], ready: true, fault: null, fenced: null },
  ];
  const enrolment = { cellId: "c1", session: "s1", version: null, inventory, bindings: [] };
  world.expect("cell_enrolled", world.ask({ type: "enrol_cell", ...enrolment }));
  const id = world.create({ intents: "MUTATES GPU:/1" });
  world.idles("w.1");
  assert.deepEqual(world.kindsOf(id), ["binding"]);
  world.ask({ type: "withdraw_cell", cellId: "c1", revoke: false });
  assert.equal(leaseOn(world, "GPU:/1").state, "CLOSING");
  world.tornDown(leaseOn(world, "GPU:/1"));
  world.idles("w.1");
  assert.deepEqual([world.placeOf(id), world.kindsOf(id)], ["barred", ["cell_not_ready"]]);
  world.ask({ type: "readmit_cell", cellId: "c1" });
  assert.equal(startBound(world).task.id, id);
});

test("T10, G6: however often it is tried while its own last attempt is torn down, it does not take that for its own", () => {
  for (const strategy of ["wait_die", "wound_wait"] as const) {
    const world = createBoundWorld();
    world.settings({ strategy });
    const id = world.create({ intents: "MUTATES GPU:/1" });
    world.giveBack(startBound(world));
    for (let nth = 0; nth < 2 * limits.taskPassedOverMax; nth++) {
      restart(world);
      world.idles("w.1");
      assert.equal(world.placeOf(id), "parked");
    }
    restart(world);
    const tenant = found(world.base.state.tenants.get(world.tenant), "tenant");
    for (const task of tenant.tasks.values()) task.passedOver = limits.taskPassedOverMax;
    world.idles("w.1");
    assert.deepEqual([world.placeOf(id), tenant.waitingCount], ["parked", 0]);
    assert.equal(leasesOn(world, "GPU:/1").length, 1);
  }
});
