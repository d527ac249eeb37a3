/** Tasks that leave the choice of a resource open (`pick`, T10). */
import assert from "node:assert/strict";
import { test } from "node:test";
import { limits } from "../contract/limits.ts";
import { restore, snapshot } from "../kernel.ts";
import { createTaskWorld, type TaskWorld } from "../testing/tasks-world.ts";

function createPool(...agents: readonly string[]): TaskWorld {
  const world = createTaskWorld(...agents);
  for (const name of ["GPU:/1", "GPU:/2"]) world.declare(name);
  return world;
}

const any = "MUTATES GPU:/* any";

test("T10: a task that leaves the choice open gets one that is free, and the offer names it", () => {
  const world = createPool("a");
  world.grant("a", "MUTATES GPU:/1");
  world.create({ intents: any });
  const offer = world.offered("w.1");
  assert.deepEqual(
    offer.leases.map(({ resource }) => resource),
    ["GPU:/2"],
  );
  assert.deepEqual(offer.task.picked, ["GPU:/2"]);
});

test("T10: where all are taken it waits for any of them, and whichever is freed first is its own", () => {
  for (const freed of ["GPU:/1", "GPU:/2"]) {
    const world = createPool("a");
    const leases = ["GPU:/1", "GPU:/2"].map((name) => world.grant("a", `MUTATES ${name}`));
    const id = world.create({ intents: any });
    world.idles("w.1");
    assert.deepEqual([world.placeOf(id), world.kindsOf(id)], ["parked", ["resource"]]);
    world.release(leases.find(({ resource }) => resource === freed)?.id ?? "");
    assert.equal(world.placeOf(id), "ready");
    assert.deepEqual(
      world.offered("w.1").leases.map(({ resource }) => resource),
      [freed],
    );
  }
});

test("T10: of many that wait for any, one is tried for each that is freed, and none is forgotten", () => {
  const world = createPool("a");
  const leases = ["GPU:/1", "GPU:/2"].map((name) => world.grant("a", `MUTATES ${name}`));
  for (let nth = 0; nth < 10; nth++) world.create({ intents: any });
  world.idles("w.1");
  for (const { id } of leases) world.release(id);
  for (let done = 0; done < 10; done++) {
    const offer = world.start("w.1");
    world.succeed(offer);
  }
  assert.equal(world.tasks().length, 0);
  assert.equal(world.base.state.tenants.get(world.tenant)?.book.choices.size, 0);
});

test("T10: one that wants more units does not keep those from it that want fewer", () => {
  const world = createTaskWorld("a");
  world.declare("GPU:/1", 4);
  world.declare("GPU:/2", 4);
  const lease = world.grant("a", "MUTATES GPU:/1 x4");
  world.grant("a", "MUTATES GPU:/2 x3");
  const large = world.create({ intents: "MUTATES GPU:/* x3 any", taskPriority: 1 });
  world.idles("w.1");
  const small = world.create({ intents: "MUTATES GPU:/* x2 any" });
  world.idles("w.1");
  world.release(lease.id);
  world.grant("a", "MUTATES GPU:/1 x2");
  assert.equal(world.offered("w.1").task.id, small);
  assert.equal(world.placeOf(large), "parked");
});

test("T10, W3: passed over too often, it queues for one of them and may still have another", () => {
  const world = createPool("a", "b");
  const id = world.create({ intents: any });
  let [one, other] = [world.grant("a", "MUTATES GPU:/1"), world.grant("b", "MUTATES GPU:/2")];
  for (let nth = 0; nth <= limits.taskPassedOverMax; nth++) {
    world.idles("w.1");
    world.release(one.id);
    if (nth < limits.taskPassedOverMax) one = world.grant("a", "MUTATES GPU:/1");
  }
  const tenant = world.base.state.tenants.get(world.tenant);
  assert.equal(tenant?.waitingCount, 1);
  assert.equal(world.placeOf(id), "ready");
  world.release(other.id);
  other = world.grant("b", "MUTATES GPU:/2");
  assert.equal(world.offered("w.1").task.id, id);
});

test("T10: a task may be created before there is anything to choose from, and is warned", () => {
  const world = createTaskWorld();
  const { task, warnings } = world.expect("task", world.ask(world.creation({ intents: any })));
  assert.deepEqual(warnings, ["No declared resource matches GPU:/* yet; the task waits for one."]);
  world.idles("w.1");
  assert.equal(world.placeOf(task.id), "barred");
  assert.deepEqual(world.explain(task.id)[0], {
    kind: "cell_not_ready",
    detail: "No declared resource matches GPU:/*.",
    resource: "GPU:/*",
  });
  world.declare("GPU:/7");
  assert.equal(world.offered("w.1").leases[0]?.resource, "GPU:/7");
});

test("T13: what counts for a late success is the resource that the attempt had, not all that it could have had", () => {
  for (const [taken, isLate] of [
    ["GPU:/1", true],
    ["GPU:/2", false],
  ] as const) {
    const world = createPool("a");
    world.create({ intents: any, leaseDurationMs: 5_000 });
    const offer = world.start("w.1");
    assert.equal(offer.leases[0]?.resource, "GPU:/1");
    world.pass(5_000);
    const state = restore(snapshot(world.base.state));
    world.base.state = state;
    world.grant("a", `MUTATES ${taken}`);
    if (isLate) world.refusedReceipt("stale_fence", "complete", offer, { status: "success" });
    else world.succeed(offer);
  }
});

test("T10, G6: chosen from what cells host, it is set up first", () => {
  const world = createTaskWorld();
  for (const name of ["GPU:/1", "GPU:/2"]) world.declare(name, null, "cell-1");
  const id = world.create({ intents: any });
  world.fence("GPU:/1");
  world.idles("w.1");
  assert.equal(world.placeOf(id), "binding");
  const [lease] = [...(world.base.state.tenants.get(world.tenant)?.leases.values() ?? [])];
  assert.equal(lease?.record.resource, "GPU:/2");
  if (lease !== undefined) world.bound(lease.record);
  assert.deepEqual(world.offered("w.1").task.picked, ["GPU:/2"]);
});
