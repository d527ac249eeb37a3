/** What a poll has tried before is not stored. These are the answers that must not depend on it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { limits } from "../contract/limits.ts";
import { apply, restore, snapshot } from "../kernel.ts";
import { createTaskWorld, type TaskWorld } from "../testing/tasks-world.ts";
import { operator } from "../testing/test-world.ts";

/** The tasks that the worker is offered, by the kernel that goes on and by one that is restored. */
function offersOf(world: TaskWorld, workerId: string): readonly (readonly string[])[] {
  const states = [world.base.state, restore(snapshot(world.base.state))];
  const poll = { ...world.polling(workerId), tenant: world.tenant, actor: operator, entropy: [7, 7] as const };
  return states.map((state) => {
    const { reply } = apply(state, poll, world.now);
    assert.equal(reply.type, "offers");
    return reply.type === "offers" ? reply.offers.map(({ task }) => task.id) : [];
  });
}

test("T7, T12: of the tasks that wait for a key, a worker gets the one that it had before, also after a restart", () => {
  const world = createTaskWorld();
  const terms = { concurrencyKey: "k", requeueDelayMs: 0, leaseDurationMs: 1_000 };
  const had = world.create(terms);
  world.start("w.1");
  world.create({ ...terms, taskPriority: 1 });
  world.pass(1_000);
  const running = world.offered("w.2");
  world.idles("w.2", { maxTasks: 3 });
  assert.notEqual(running.task.id, had);
  assert.equal(world.placeOf(had), "keyed");
  world.create({ ...terms, taskPriority: 2 });
  world.idles("w.2", { maxTasks: 3 });
  world.cancelTask(running.task.id);
  assert.deepEqual(offersOf(world, "w.1"), [[had], [had]]);
});

test("T7: a worker that was forgotten meanwhile still gets first what it had before", () => {
  const world = createTaskWorld();
  const had = world.create({ requeueDelayMs: 0, leaseDurationMs: 1_000 });
  world.start("w.1");
  world.create({ taskPriority: 5 });
  world.pass(1_000);
  world.pass(limits.workerIdleMs + limits.workerSeenMs);
  assert.throws(() => world.worker("w.1"), "it is forgotten");
  assert.deepEqual(offersOf(world, "w.1"), [[had], [had]]);
});

test("G2: a task that cannot run does not hold up others because it is over the quota, also after a restart", () => {
  const world = createTaskWorld("a");
  world.grant("a", "MUTATES FILE:/a");
  const large = world.create({ taskPriority: 9, intents: ["MUTATES FILE:/a", "MUTATES FILE:/b", "MUTATES FILE:/c"] });
  world.idles("w.1");
  assert.equal(world.placeOf(large), "parked");
  const small = world.create();
  world.quotas({ leasesMax: 3 });
  assert.deepEqual(offersOf(world, "w.1"), [[small], [small]]);
});

test("L13: a worker's leases are revoked in the order of their fences, in whichever order they were restored", () => {
  const world = createTaskWorld();
  for (let nth = 0; nth < 3; nth++) world.create();
  const offered = world.polls("w.1", { maxTasks: 3 }).map(({ task }) => task.id);
  const revoke = { type: "revoke", target: { agentId: "w.1" }, reason: "test" } as const;
  for (const records of [snapshot(world.base.state), snapshot(world.base.state).reverse()]) {
    const asked = { ...revoke, tenant: world.tenant, actor: operator, entropy: [7, 7] as const };
    const { events } = apply(restore(records), asked, world.now);
    const requeued = events.flatMap((event) => (event.type === "task.requeued" ? [event.task.id] : []));
    assert.deepEqual(requeued, offered);
  }
});
