import assert from "node:assert/strict";
import { test } from "node:test";
import { limits } from "../contract/limits.ts";
import { createTaskWorld, type TaskWorld } from "../testing/tasks-world.ts";
import { found } from "../testing/test-world.ts";

const ids = (offers: readonly { readonly task: { readonly id: string } }[]) => offers.map(({ task }) => task.id);
const all = { maxTasks: limits.taskPollMax };

/** Tasks that are parked on an agent's lease on FILE:/x. */
function createParked(count: number, wish: (n: number) => Parameters<TaskWorld["create"]>[0] = () => ({})) {
  const world = createTaskWorld("a");
  world.grant("a", "MUTATES FILE:/x");
  const created = Array.from({ length: count }, (_, n) => world.create({ intents: "MUTATES FILE:/x", ...wish(n) }));
  world.idles("w.1");
  assert.ok(created.every((id) => world.placeOf(id) === "parked"));
  return { world, created };
}

const readyIn = (world: TaskWorld, created: readonly string[]) =>
  created.filter((id) => world.statusOf(id) === "queued" && world.placeOf(id) === "ready");

test("T10, S4: the end of what a thousand tasks are parked on makes one of them ready, not a thousand", () => {
  const { world, created } = createParked(1_000);
  world.releaseAll("a");
  assert.deepEqual(readyIn(world, created), created.slice(0, 1));
  assert.equal(world.ready.length, 1);
});

test("T10, S4: who takes what all want stands in for it: the others are not even looked at", () => {
  const { world, created } = createParked(1_000);
  world.releaseAll("a");
  for (const id of created.slice(0, 5)) {
    const offer = world.start("w.1");
    assert.equal(offer.task.id, id, "in their order");
    assert.deepEqual(readyIn(world, created), []);
    world.idles("w.2");
    world.succeed(offer);
  }
});

test("T10: of each kind of work one is woken, the most urgent, and the oldest of all", () => {
  const { world, created } = createParked(6, (n) => ({ taskType: n < 3 ? "a" : "b", taskPriority: n }));
  world.releaseAll("a");
  assert.deepEqual(new Set(readyIn(world, created)), new Set([created[0], created[2], created[5]]));
  assert.equal(world.offered("w.1").task.id, created[5]);
});

test("T10: a woken task that cannot run wakes the next, until one can", () => {
  const { world, created } = createParked(5, (n) => ({
    intents: n < 3 ? ["MUTATES FILE:/x", "MUTATES FILE:/y"] : ["MUTATES FILE:/x"],
  }));
  world.register("b");
  world.grant("b", "MUTATES FILE:/y");
  world.releaseAll("a");
  assert.deepEqual(ids(world.polls("w.1", all)), [created[3]]);
  world.cancelTask(created[3] ?? "");
  world.releaseAll("b");
  assert.equal(world.offered("w.1").task.id, created[0]);
});

test("T10: a woken task that leaves before a worker polls is followed by the next", () => {
  const { world, created } = createParked(4);
  world.releaseAll("a");
  for (const [index, id] of created.entries()) {
    assert.deepEqual(readyIn(world, created.slice(index)), [id]);
    world.cancelTask(id);
  }
});

test("T10: one that is canceled while it is parked is gone, and is not woken", () => {
  const { world, created } = createParked(3);
  world.cancelTask(created[0] ?? "");
  world.releaseAll("a");
  assert.equal(world.offered("w.1").task.id, created[1]);
});

test("T10: readers behind a writer all run together, each bringing the next", () => {
  const { world, created } = createParked(50, () => ({ intents: "CONSUMES FILE:/x" }));
  world.releaseAll("a");
  assert.equal(world.ready.length, 1);
  assert.deepEqual(ids(world.polls("w.1", all)), created);
});

test("T10: a weaker successor does not keep tasks parked that it lets pass", () => {
  const world = createTaskWorld("a");
  world.grant("a", "MUTATES FILE:/x");
  const reader = world.create({ intents: "CONSUMES FILE:/x", taskPriority: 1 });
  const readers = [1, 2].map(() => world.create({ intents: "CONSUMES FILE:/x" }));
  const writer = world.create({ intents: "MUTATES FILE:/x" });
  world.idles("w.1");
  world.releaseAll("a");
  assert.equal(world.offered("w.1").task.id, reader);
  assert.deepEqual(ids(world.polls("w.1", all)), readers);
  assert.equal(world.placeOf(writer), "parked");
});

test("T10, C6: freed units wake one; who wants more than is free stays, and who wants less is not held up by it", () => {
  const world = createTaskWorld("a");
  world.declare("GPU:/0", 4);
  world.grant("a", "MUTATES GPU:/0 x4");
  const big = world.create({ intents: "MUTATES GPU:/0 x4" });
  const small = Array.from({ length: 10 }, () => world.create({ intents: "MUTATES GPU:/0 x1" }));
  world.idles("w.1");
  world.releaseAll("a");
  world.grant("a", "MUTATES GPU:/0 x2");
  assert.deepEqual(ids(world.polls("w.1", all)), small.slice(0, 2));
  assert.equal(world.placeOf(big), "parked");
  world.cancelTask(found(small[0], "small"));
  assert.deepEqual(ids(world.polls("w.1", all)), small.slice(2, 3));
  assert.ok(world.ready.length <= 2, "the rest is parked again as it was");
});

test("T7: one that a worker had before is woken with the first, so that its worker finds it", () => {
  const world = createTaskWorld("a");
  const first = world.create({ intents: "MUTATES FILE:/x" });
  const second = world.create({ intents: "MUTATES FILE:/x", taskPriority: 1 });
  const offer = world.offered("w.1");
  assert.equal(offer.task.id, second);
  world.cancelTask(world.create());
  world.giveBack(offer);
  world.grant("a", "MUTATES FILE:/x");
  world.idles("w.2");
  world.releaseAll("a");
  assert.deepEqual(new Set(readyIn(world, [first, second])), new Set([first, second]));
});

test("T10: a task that joined because of a strong successor is not kept by a weak one after it", () => {
  const world = createTaskWorld("a");
  world.grant("a", "CONSUMES FILE:/x");
  const writers = [1, 2].map(() => world.create({ intents: "MUTATES FILE:/x", taskPriority: 1 }));
  world.idles("w.1");
  world.releaseAll("a");
  assert.equal(world.offered("w.1").task.id, writers[0]);
  const provider = world.create({ intents: "PROVIDES FILE:/x" });
  const reader = world.create({ intents: "CONSUMES FILE:/x", taskPriority: 9 });
  world.idles("w.2");
  world.cancelTask(writers[0] ?? "");
  assert.equal(world.offered("w.2").task.id, reader);
  assert.deepEqual(ids(world.polls("w.2", all)), [provider]);
});
