import assert from "node:assert/strict";
import { test } from "node:test";
import { limits } from "../contract/limits.ts";
import { createTaskWorld, type TaskWorld } from "../testing/tasks-world.ts";
import { found } from "../testing/test-world.ts";

const lease = limits.taskLeaseMsDefault;
const all = { maxTasks: limits.taskPollMax };
const ids = (offers: readonly { readonly task: { readonly id: string } }[]) => offers.map(({ task }) => task.id);

test("T10: task and resources are granted in one step, to the task as holder, the task's own fence the smallest", () => {
  const world = createTaskWorld("a");
  const id = world.create({ intents: ["MUTATES FILE:/a", "RENAMES FILE:/b > FILE:/c"], leaseDurationMs: 700_000 });
  const { lease: own, leases } = world.offered("w.1");
  assert.deepEqual(
    leases.map(({ resource, holder, agentId }) => [resource, holder, agentId]),
    ["FILE:/a", "FILE:/b", "FILE:/c"].map((resource) => [resource, id, "w.1"]),
  );
  assert.deepEqual(
    [own, ...leases].map(({ fence }) => fence),
    [1, 2, 3, 4],
  );
  assert.equal(leases[1]?.linkedTo, leases[2]?.id);
  // L2: the task's duration and cap are theirs too, not the agents' 300 s.
  for (const one of [own, ...leases]) assert.equal(one.expiresAt, world.now + 700_000);
  assert.deepEqual(world.happened, ["lease.granted", "lease.granted", "lease.granted", "task.offered"]);
  world.waits("a", "MUTATES FILE:/a");
});

test("T10: they are extended together, by whichever of them is heartbeaten", () => {
  const world = createTaskWorld();
  world.create({ intents: ["MUTATES FILE:/a", "CONSUMES FILE:/b"] });
  const offer = world.start("w.1");
  world.pass(1_000);
  assert.equal(world.beat(offer).leases.length, 2);
  for (const one of world.leases()) assert.equal(one.expiresAt, world.now + lease);
  world.pass(1_000);
  world.expect("lease", world.ask({ type: "heartbeat", leaseId: found(offer.leases[1], "b").id, activity: true }));
  for (const one of world.leases()) assert.equal(one.expiresAt, world.now + lease);
});

for (const [how, end] of [
  ["complete", (world: TaskWorld, offer: ReturnType<TaskWorld["start"]>) => void world.succeed(offer)],
  ["failure", (world: TaskWorld, offer: ReturnType<TaskWorld["start"]>) => void world.fail(offer)],
  ["escalation", (world: TaskWorld, offer: ReturnType<TaskWorld["start"]>) => void world.escalate(offer)],
  ["expiry", (world: TaskWorld) => void world.pass(500_000)],
  ["giving the task back", (world: TaskWorld, offer: ReturnType<TaskWorld["start"]>) => world.giveBack(offer)],
  [
    "release of one of its resources",
    (world: TaskWorld, { leases }: ReturnType<TaskWorld["start"]>) =>
      void world.expect(
        "lease",
        world.ask({ type: "release_lease", leaseId: found(leases[1], "b").id, version: null }),
      ),
  ],
  ["revocation of its worker", (world: TaskWorld) => void world.revoke({ agentId: "w.1" })],
  ["revocation of one of its resources", (world: TaskWorld) => void world.revoke({ resourcePrefix: "FILE:/b" })],
  ["a fence on one of its resources", (world: TaskWorld) => void world.fence("FILE:/b")],
  ["withdrawal of one of its resources", (world: TaskWorld) => void world.withdraw("FILE:/b", true)],
  [
    "cancellation, once the worker lets go",
    (world: TaskWorld, offer: ReturnType<TaskWorld["start"]>) => {
      world.cancelTask(offer.task.id);
      assert.equal(world.leases().length, 3);
      world.giveBack(offer);
    },
  ],
  [
    "cancellation, when its worker does not let go in time",
    (world: TaskWorld, offer: ReturnType<TaskWorld["start"]>) => {
      world.cancelTask(offer.task.id);
      world.pass(limits.taskCancelMs - 1);
      assert.equal(world.leases().length, 3);
      world.pass(1);
    },
  ],
] as const) {
  test(`T10: they end together, and who waits for one of them is served in the same step: ${how}`, () => {
    const world = createTaskWorld("old");
    world.create({ intents: ["MUTATES FILE:/a", "MUTATES FILE:/b"], leaseDurationMs: 500_000 });
    const offer = world.start("w.1");
    const { requestId } = world.waits("old", "MUTATES FILE:/a", { waitTimeoutMs: 600_000, ttlMs: 300_000 });
    end(world, offer);
    assert.equal(world.request(requestId)?.state, "GRANTED");
    assert.deepEqual(
      world.leases().map(({ agentId }) => agentId),
      ["old"],
    );
  });
}

test("T10: a task is offered only when all its resources can be granted, and takes none before", () => {
  const world = createTaskWorld("a");
  const held = world.grant("a", "MUTATES FILE:/b");
  const id = world.create({ intents: ["MUTATES FILE:/a", "MUTATES FILE:/b"] });
  const other = world.create();
  assert.deepEqual(ids(world.polls("w.1", all)), [other]);
  assert.deepEqual([world.placeOf(id), world.leases().length], ["parked", 2]);
  world.grant("a", "MUTATES FILE:/a");
  world.release(held.id);
  world.idles("w.1");
  world.releaseAll("a");
  assert.equal(world.ready.length, 1);
  assert.equal(world.offered("w.1").task.id, id);
});

/** Each way in which what a task is parked on can go, or no longer stand in its way. */
const ways: readonly (readonly [string, (world: TaskWorld) => string, (world: TaskWorld, held: string) => void])[] = [
  ["release", (world) => world.grant("a", "MUTATES FILE:/x").id, (world, held) => void world.release(held)],
  ["expiry", (world) => world.grant("a", "MUTATES FILE:/x", { ttlMs: 1_000 }).id, (world) => void world.pass(1_000)],
  ["revocation", (world) => world.grant("a", "MUTATES FILE:/x").id, (world) => void world.revoke({ agentId: "a" })],
  [
    "downgrade",
    (world) => world.grant("a", "MUTATES FILE:/x").id,
    (world, held) => void world.downgrade(held, "DEPENDS_ON"),
  ],
  [
    "transfer, and then release",
    (world) => world.grant("b", "MUTATES FILE:/x").id,
    (world, held) => {
      world.transfer(held, "a");
      world.idles("w.1");
      world.release(held);
    },
  ],
  ["completion", (world) => world.grant("a", "MUTATES FILE:/x").id, (world) => void world.transition("a", "COMPLETED")],
  ["a pattern's end", (world) => world.grant("a", "MUTATES FILE:/**").id, (world, held) => void world.release(held)],
  ["a waiter's cancellation", (world) => waiter(world), (world, requestId) => world.cancel(requestId)],
  ["a waiter's timeout", (world) => waiter(world), (world) => void world.pass(5_000)],
  [
    "a waiter's grant, and then its end",
    (world) => waiter(world),
    (world, requestId) => {
      world.releaseAll("b");
      world.idles("w.1");
      assert.equal(world.request(requestId)?.state, "GRANTED");
      world.collect(requestId);
      world.releaseAll("a");
    },
  ],
  [
    "an unclaimed grant (W8)",
    (world) => waiter(world),
    (world) => {
      world.releaseAll("b");
      world.idles("w.1");
      world.pass(10_000);
    },
  ],
  [
    "a fence's reset",
    (world) => {
      world.fence("FILE:/x");
      return "";
    },
    (world) => void world.reset("FILE:/x"),
  ],
  [
    "a withdrawn resource's return",
    (world) => {
      world.withdraw("FILE:/x");
      return "";
    },
    (world) => void world.declare("FILE:/x"),
  ],
  [
    "the end of another task",
    (world) => {
      world.create({ intents: "MUTATES FILE:/x", taskPriority: 100 });
      return world.start("w.9").task.id;
    },
    (world, taskId) => void world.succeed(taskId),
  ],
];

/** One that waits for FILE:/x and FILE:/y, of which only FILE:/y is taken. */
function waiter(world: TaskWorld): string {
  world.grant("b", "MUTATES FILE:/y", { ttlMs: 300_000 });
  return world.waits("a", ["MUTATES FILE:/x", "MUTATES FILE:/y"], { waitTimeoutMs: 5_000 }).requestId;
}

for (const [what, stand, go] of ways) {
  test(`T10: a task put aside because of its manifest is brought back by ${what}`, () => {
    const world = createTaskWorld("a", "b");
    const held = stand(world);
    const id = world.create({ intents: ["CONSUMES FILE:/x"] });
    world.idles("w.1");
    assert.notEqual(world.placeOf(id), "ready");
    go(world, held);
    assert.equal(world.placeOf(id), "ready");
    assert.ok(world.polls("w.1", all).some(({ task }) => task.id === id));
  });
}

test("T10, C6: units of a counted resource are taken by tasks as by agents, and a task comes when they are free", () => {
  const world = createTaskWorld("a");
  world.declare("GPU:/0", 4);
  world.grant("a", "MUTATES GPU:/0 x2");
  const [first, second, third] = [3, 2, 1].map((units) => world.create({ intents: `CONSUMES GPU:/0 x${units}` }));
  assert.deepEqual(ids(world.polls("w.1", all)), [second], "what fits is not held up by what does not");
  world.idles("w.1");
  world.releaseAll("a");
  assert.deepEqual(ids(world.polls("w.1", all)), [third]);
  world.cancelTask(second ?? "");
  assert.equal(world.offered("w.2").task.id, first);
});

test("T10, C6: a raised capacity brings back who waits for units, and who wanted more than there were", () => {
  const world = createTaskWorld();
  world.declare("GPU:/0", 2);
  const big = world.create({ intents: "MUTATES GPU:/0 x3" });
  const [one, two] = [world.create({ intents: "MUTATES GPU:/0 x2" }), world.create({ intents: "MUTATES GPU:/0 x2" })];
  assert.deepEqual(ids(world.polls("w.1", all)), [one]);
  assert.equal(world.placeOf(big), "barred");
  world.declare("GPU:/0", 4);
  assert.deepEqual(ids(world.polls("w.1", all)), [two]);
  world.declare("GPU:/0", 7);
  assert.deepEqual(ids(world.polls("w.1", all)), [big]);
});

test("T10, C2: two intents of one task never stand in each other's way, and two tasks of one worker do", () => {
  const world = createTaskWorld();
  world.create({ intents: ["MUTATES FILE:/a/**", "DELETES FILE:/a/b"] });
  world.create({ intents: "CONSUMES FILE:/a/b" });
  assert.equal(world.polls("w.1", all).length, 1);
});

test("T10: a task that is fenced off while it waits is brought back by the reset, and not before", () => {
  const world = createTaskWorld("a");
  world.grant("a", "MUTATES FILE:/x");
  const id = world.create({ intents: "MUTATES FILE:/x" });
  world.idles("w.1");
  world.fence("FILE:/x");
  world.idles("w.1");
  assert.equal(world.placeOf(id), "barred");
  world.reset("FILE:/x");
  assert.equal(world.offered("w.1").task.id, id);
});

test("T10: 20 workers on 500 tasks with overlapping files: none conflicts, dies or waits for ever, and none idles while anything can run", () => {
  const world = createTaskWorld();
  for (let n = 0; n < 500; n++) {
    const files = new Set([n % 37, (n * 7) % 41, (n * n) % 23]);
    world.create({ intents: [...files].map((file) => `MUTATES FILE:/src/${file}`) });
  }
  const running: {
    readonly offer: ReturnType<TaskWorld["offered"]>;
    readonly until: number;
    readonly worker: string;
  }[] = [];
  const free = Array.from({ length: 20 }, (_, n) => `w.${n}`);
  let done = 0;
  for (let tick = 0; done < 500; tick++) {
    assert.ok(tick < 5_000, "it comes to an end");
    for (const one of running.filter(({ until }) => until <= tick)) {
      running.splice(running.indexOf(one), 1);
      world.succeed(one.offer);
      free.push(one.worker);
      done++;
    }
    while (free.length > 0) {
      const worker = found(free.at(-1), "worker");
      const [offer] = world.polls(worker);
      if (offer === undefined) break;
      free.pop();
      world.accept(offer);
      running.push({ offer, worker, until: tick + 1 + ((tick * 31 + done) % 5) });
    }
    checkNoConflict(world);
    if (free.length > 0) checkNothingCanRun(world);
    world.pass(10);
  }
  assert.deepEqual(
    world.receipts.filter(({ phase }) => phase === "escalate"),
    [],
  );
});

function checkNoConflict(world: TaskWorld): void {
  const held = world.leases().map(({ resource }) => resource);
  assert.equal(new Set(held).size, held.length);
}

/** Each task that is left wants something that is leased, or that somebody who queues for it is before it in line for. */
function checkNothingCanRun(world: TaskWorld): void {
  const taken = new Map(world.leases().map(({ resource, holder }) => [resource, holder]));
  for (const { intents, holder } of world.requests()) for (const { resource } of intents) taken.set(resource, holder);
  for (const { id, status, spec } of world.tasks()) {
    if (status !== "queued") continue;
    const isFree = spec.intents.every(({ resource }) => [undefined, id].includes(taken.get(resource)));
    assert.ok(!isFree, `${id} could run`);
  }
}
