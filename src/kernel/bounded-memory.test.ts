import assert from "node:assert/strict";
import { test } from "node:test";
import { NameIndex } from "./index/name-index.ts";
import { canonicalName } from "./names/resource-name.ts";
import { createTaskWorld } from "./testing/tasks-world.ts";
import { createWorld, found } from "./testing/test-world.ts";

const many = 500;

test("S4: types of resources that nothing is leased, waited for or declared on leave nothing behind", () => {
  const world = createWorld("old", "young");
  const tenant = found(world.base.state.tenants.get(world.tenant), "tenant");
  for (let nth = 0; nth < many; nth++) {
    const lease = world.grant("young", `MUTATES T${nth}:/x`);
    const { requestId } = world.waits("old", `MUTATES T${nth}:/x`);
    world.cancel(requestId);
    world.release(lease.id);
    world.fence(`F${nth}:/x`);
    world.reset(`F${nth}:/x`);
  }
  assert.ok(tenant.roots.size <= 64, `${tenant.roots.size} trees`);
  world.grant("young", "MUTATES T7:/x");
  world.waits("old", "MUTATES T7:/**");
});

test("S4, G2: only types with a quota are counted", () => {
  const world = createWorld("a");
  world.quotas({ kinds: { GPU: 2 } });
  for (let nth = 0; nth < many; nth++) world.release(world.grant("a", `MUTATES T${nth}:/x`).id);
  const tenant = found(world.base.state.tenants.get(world.tenant), "tenant");
  assert.deepEqual([...(tenant.kindUnits?.keys() ?? [])], ["GPU"]);
});

test("S4, T13: names of late results of other types are forgotten with them", () => {
  const world = createTaskWorld();
  for (let nth = 0; nth < 100; nth++) {
    const task = world.create({ intents: `MUTATES T${nth}:/x`, leaseDurationMs: 1_000, requeueDelayMs: 1_000 });
    world.start("w.1");
    world.pass(1_000);
    world.cancelTask(task);
  }
  const { book } = found(world.base.state.tenants.get(world.tenant), "tenant");
  assert.deepEqual([book.lateResults.size, book.lateNames.size], [0, 0]);
});

test("S4: an index of names drops the trees of types that nobody names any more", () => {
  const index = new NameIndex<string>();
  for (let nth = 0; nth < many; nth++) {
    const name = canonicalName(`T${nth}:/x`);
    index.add(name, "one");
    index.delete(name, "one");
    index.delete(name, "one");
  }
  assert.equal((index as unknown as { readonly roots: Map<string, unknown> }).roots.size, 0);
});

test("L10, G2: leases that requests wait for count against the quota, so that no grant to a waiter exceeds it", () => {
  const world = createWorld("a", "b", "c", "d");
  world.quotas({ leasesMax: 3 });
  const lease = world.grant("c", "MUTATES FILE:/1");
  world.waits("a", ["MUTATES FILE:/1", "MUTATES FILE:/2"]);
  world.refused("lease_denied", world.acquire("b", "MUTATES FILE:/3"));
  world.release(lease.id);
  assert.equal(world.leases().length, 2);
  world.grant("d", "MUTATES FILE:/3");
  world.refused("lease_denied", world.acquire("d", "MUTATES FILE:/4"));
});

test("C5, G2: a quota by type wakes the tasks that wait for it one by one, and other types wake none", () => {
  const world = createTaskWorld("a");
  world.quotas({ kinds: { GPU: 2 } });
  const other = world.grant("a", "MUTATES FILE:/x");
  const tasks = Array.from({ length: many }, (_, nth) => world.create({ intents: `MUTATES GPU:/${nth}` }));
  const running = [world.start("w.1"), world.start("w.2")];
  world.idles("w.3");
  assert.ok(tasks.slice(2).every((id) => world.placeOf(id) === "parked"));
  world.release(other.id);
  assert.deepEqual(world.ready, [], "a lease of another type has ended");
  for (let nth = 2; nth < 10; nth++) {
    world.succeed(found(running.shift(), "offer"));
    assert.ok(world.ready.length <= 2, `${world.ready.length} tasks were woken for one unit`);
    running.push(world.start(`w.${nth}`));
    world.idles("w.idle");
  }
  assert.equal(tasks.filter((id) => world.statusOf(id) === "succeeded").length, 8);
});

test("G2: a raised or dropped quota lets parked tasks run, and one that no task can meet bars it", () => {
  const world = createTaskWorld();
  world.quotas({ kinds: { GPU: 1 } });
  const tasks = Array.from({ length: 6 }, (_, nth) => world.create({ intents: `MUTATES GPU:/${nth}` }));
  const greedy = world.create({ intents: ["MUTATES GPU:/a", "MUTATES GPU:/b"] });
  world.start("w.0");
  world.idles("w.1");
  assert.equal(world.placeOf(greedy), "barred");
  world.quotas({ kinds: { GPU: 3 } });
  world.start("w.1");
  world.start("w.2");
  world.idles("w.3");
  world.quotas({ kinds: {} });
  for (let nth = 3; nth < 7; nth++) world.start(`w.${nth}`);
  assert.ok([...tasks, greedy].every((id) => world.statusOf(id) === "accepted"));
});
