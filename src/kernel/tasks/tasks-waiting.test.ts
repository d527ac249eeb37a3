import assert from "node:assert/strict";
import { test } from "node:test";
import { limits } from "../contract/limits.ts";
import { createTaskWorld, type TaskWorld } from "../testing/tasks-world.ts";
import { found } from "../testing/test-world.ts";

const all = { maxTasks: limits.taskPollMax };
const ids = (offers: readonly { readonly task: { readonly id: string } }[]) => offers.map(({ task }) => task.id);

/** Polls until the task has been passed over so often that it queues for its resources. */
function passOver(world: TaskWorld, agentId: string, resource: string): void {
  for (let n = 0; n <= limits.taskPassedOverMax; n++) {
    const held = world.grant(agentId, `MUTATES ${resource}`);
    world.idles("w.1");
    if (n < limits.taskPassedOverMax) world.release(held.id);
  }
}

test("T10, W2: passed over a few times, an old task queues for its resources as a request of its age", () => {
  const world = createTaskWorld();
  const id = world.create({ intents: ["MUTATES FILE:/x", "MUTATES FILE:/free"] });
  world.register("young");
  passOver(world, "young", "FILE:/x");
  const [request] = world.requests();
  assert.deepEqual(
    [request?.state, request?.holder, request?.timeoutAt],
    ["WAITING", id, world.now + limits.taskWaitMs],
  );
  // A younger requester dies on it, also on what is free (W2); nothing is held meanwhile (W6).
  world.register("younger");
  world.dies("younger", "CONSUMES FILE:/free");
  assert.equal(world.leases().length, 1);
  world.releaseAll("young");
  world.dies("younger", "MUTATES FILE:/x");
  assert.equal(world.offered("w.1").task.id, id);
  assert.deepEqual([world.requests(), world.leases().length], [[], 3]);
});

test("T10, W2: a task that is younger than any in its way does not queue, however often it is passed over", () => {
  const world = createTaskWorld("old");
  world.grant("old", "CONSUMES FILE:/kept"); // So that its unit of work goes on, and its age with it.
  const id = world.create({ intents: ["MUTATES FILE:/x"] });
  passOver(world, "old", "FILE:/x");
  assert.deepEqual([world.requests(), world.placeOf(id)], [[], "parked"]);
});

test("T10, W4: its place in the queue ends after a while if no worker comes, and is taken again when one does", () => {
  const world = createTaskWorld();
  const id = world.create({ intents: ["MUTATES FILE:/x", "MUTATES FILE:/y"] });
  world.register("young");
  passOver(world, "young", "FILE:/x");
  world.register("younger");
  world.dies("younger", "MUTATES FILE:/y");
  world.heartbeatAll("young");
  world.pass(limits.taskWaitMs - 1);
  world.dies("younger", "MUTATES FILE:/y");
  world.grant("young", "CONSUMES FILE:/z");
  world.pass(1);
  assert.deepEqual([world.requests(), world.placeOf(id)], [[], "ready"]);
  world.grant("younger", "MUTATES FILE:/y");
  world.idles("w.1");
  assert.equal(world.requests().length, 1);
});

test("T10, W3: agents that wait behind a task are served when it gives up, is canceled or has what it wanted", () => {
  for (const end of ["canceled", "timeout", "granted"] as const) {
    const world = createTaskWorld("ancient");
    const id = world.create({ intents: ["MUTATES FILE:/x", "MUTATES FILE:/y"] });
    world.register("young");
    passOver(world, "young", "FILE:/x");
    const { requestId } = world.waits("ancient", "MUTATES FILE:/y", { waitTimeoutMs: 600_000 });
    if (end === "canceled") world.cancelTask(id);
    else if (end === "timeout") world.pass(limits.taskWaitMs);
    else {
      world.releaseAll("young");
      const offer = world.start("w.1");
      assert.equal(world.request(requestId)?.state, "WAITING");
      world.succeed(offer);
    }
    assert.equal(world.request(requestId)?.state, "GRANTED", end);
  }
});

test("T10, W3: a task that queues overtakes nobody who came before it, and is overtaken by nobody after", () => {
  const world = createTaskWorld("ancient");
  world.create({ intents: "MUTATES FILE:/x" });
  world.register("young");
  const held = world.grant("young", "MUTATES FILE:/x");
  const { requestId } = world.waits("ancient", "MUTATES FILE:/x", { waitTimeoutMs: 600_000 });
  world.release(held.id);
  world.idles("w.1");
  world.collect(requestId);
  world.releaseAll("ancient");
  world.offered("w.1");
});

for (const strategy of ["wait_die", "wound_wait"] as const) {
  test(`T10: a task with a large manifest does not starve among a stream of small ones (${strategy})`, () => {
    const world = createTaskWorld();
    world.settings({ strategy });
    const names = Array.from({ length: 8 }, (_, n) => `FILE:/f${n}`);
    const small = () => names.map((name) => world.create({ intents: `MUTATES ${name}`, taskPriority: 50 }));
    small();
    const running = [...world.polls("w.1", all)];
    const large = world.create({ intents: names.map((name) => `MUTATES ${name}`) });
    // One small task ends at a time, and urgent new ones come all the time: never are all eight files free by chance.
    for (let round = 0; round < 40 && world.task(large).status === "queued"; round++) {
      world.pass(1_000);
      small();
      const offer = found(running.shift(), "a small one");
      if (world.lease(offer.lease.id) !== undefined) {
        world.accept(offer);
        world.succeed(offer);
      }
      running.push(...world.polls(`w.${round}`, { maxTasks: 3 }));
    }
    assert.equal(world.task(large).status, "leased");
  });
}

test("T10, W7: under Wound-Wait a task that insists takes from the younger, and their attempts are not burned", () => {
  const world = createTaskWorld();
  world.settings({ strategy: "wound_wait" });
  const old = world.create({ intents: "MUTATES FILE:/x" });
  world.register("agent");
  for (let n = 0; n < limits.taskPassedOverMax; n++) {
    const held = world.grant("agent", "MUTATES FILE:/x");
    world.idles("w.1");
    world.release(held.id);
  }
  const young = world.create({ intents: ["MUTATES FILE:/x", "MUTATES FILE:/y"], maxAttempts: 1, taskPriority: 100 });
  const wounded = world.start("w.2");
  assert.equal(wounded.task.id, young);
  assert.equal(world.offered("w.1").task.id, old);
  assert.deepEqual([world.task(young).status, world.task(young).attempts], ["queued", 0]);
  assert.deepEqual(world.phasesOf(young), ["accepted", "escalate wounded"]);
  assert.equal(world.lease(wounded.lease.id), undefined);
  // T13: its late result does not count, because what it had was given to another.
  world.refusedReceipt("stale_fence", "complete", wounded, { status: "success" });
});

test("T10, W7: an older agent wounds a task's attempt: escalated as wounded, queued at once, no attempt, all its leases gone", () => {
  const world = createTaskWorld("old");
  world.settings({ strategy: "wound_wait" });
  const id = world.create({ intents: ["MUTATES FILE:/x", "MUTATES FILE:/y"], maxAttempts: 1 });
  world.start("w.1");
  world.register("young");
  const { requestId } = world.waits("young", "MUTATES FILE:/y");
  world.grant("old", "MUTATES FILE:/x");
  assert.deepEqual([world.task(id).status, world.task(id).attempts], ["queued", 0]);
  assert.deepEqual(world.phasesOf(id), ["accepted", "escalate wounded"]);
  assert.equal(world.request(requestId)?.state, "GRANTED", "what it held beside is served in the same step");
});

test("T10, W7: an unaccepted offer that is wounded costs nothing, not even an offer", () => {
  const world = createTaskWorld("old");
  world.settings({ strategy: "wound_wait" });
  const id = world.create({ intents: "MUTATES FILE:/x", maxOffers: 1 });
  world.offered("w.1");
  world.grant("old", "MUTATES FILE:/x");
  assert.deepEqual([world.task(id).status, world.task(id).offers, world.receipts], ["queued", 0, []]);
});

test("T10, W7: under Wound-Wait a task goes ahead of younger agents that wait, and behind older ones", () => {
  for (const [waits, goes] of [
    ["young", true],
    ["old", false],
  ] as const) {
    const world = createTaskWorld("ancient", "old");
    world.settings({ strategy: "wound_wait" });
    world.create({ intents: "MUTATES FILE:/y" });
    world.register("young");
    world.grant("ancient", "MUTATES FILE:/x");
    world.waits(waits, ["MUTATES FILE:/x", "MUTATES FILE:/y"]);
    assert.equal(world.polls("w.1").length === 1, goes, waits);
  }
});

test("T10, W7: what a poll offered and then took away for an older task is not in its answer", () => {
  const world = createTaskWorld("a");
  world.settings({ strategy: "wound_wait" });
  const old = world.create({ intents: ["MUTATES FILE:/x"] });
  for (let n = 0; n < limits.taskPassedOverMax; n++) {
    const held = world.grant("a", "MUTATES FILE:/x");
    world.idles("w.1");
    world.release(held.id);
  }
  const young = world.create({ intents: ["MUTATES FILE:/x"], taskPriority: 100 });
  assert.deepEqual(ids(world.polls("w.1", { ...all, requestKey: "k" })), [old]);
  assert.equal(world.task(young).status, "queued");
  assert.deepEqual(ids(world.polls("w.1", { ...all, requestKey: "k" })), [old]);
});
