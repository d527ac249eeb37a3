import assert from "node:assert/strict";
import { test } from "node:test";
import { limits } from "../contract/limits.ts";
import { createTaskWorld, type TaskWorld } from "../testing/tasks-world.ts";
import { actor, found, records } from "../testing/test-world.ts";

const ids = (offers: readonly { readonly task: { readonly id: string } }[]) => offers.map(({ task }) => task.id);
const all = { maxTasks: limits.taskPollMax };

test("T1: with nothing to do there is no offer, and a worker is known from its first poll on", () => {
  const world = createTaskWorld();
  world.idles("build.1", { capabilities: ["gpu"] });
  assert.deepEqual(world.worker("build.1").capabilities, ["gpu"]);
  assert.deepEqual(world.receipts, []);
});

test("T13: an offered task is leased, by an ordinary lease on TASK:/<id> whose holder is the task (T10, L2)", () => {
  const world = createTaskWorld();
  const id = world.create({ taskBody: "make it", inputs: { a: 1 }, taskSummary: "Make it" });
  const { task, lease, leases, payload, attempt } = world.offered("build.1");
  assert.equal(task.id, id);
  assert.equal(task.status, "leased");
  assert.deepEqual([lease.resource, lease.holder, lease.agentId], [`TASK:/${id}`, id, "build.1"]);
  assert.equal(lease.expiresAt, world.now + 900_000);
  assert.deepEqual([leases, attempt], [[], 1]);
  assert.deepEqual(payload, { tenant: "t1", taskId: id, taskBody: "make it", inputs: { a: 1 } });
  assert.deepEqual(world.happened, ["task.offered"]);
  assert.equal(world.lease(lease.id)?.fence, lease.fence);
  world.idles("build.2");
});

test("T7: tasks of one priority are offered in the order in which they were created, though of one millisecond", () => {
  const world = createTaskWorld();
  const created = [1, 2, 3, 4, 5].map(() => world.create());
  assert.deepEqual(ids(world.polls("w.1", { maxTasks: 2 })), created.slice(0, 2));
  assert.deepEqual(ids(world.polls("w.2", all)), created.slice(2));
});

test("T7: a higher task_priority goes first, whatever the type", () => {
  const world = createTaskWorld();
  const low = world.create({ taskPriority: -1, taskType: "a" });
  const plain = world.create({ taskType: "b" });
  const high = world.create({ taskPriority: 5, taskType: "c" });
  const highest = world.create({ taskPriority: 6, taskType: "a" });
  assert.deepEqual(ids(world.polls("w.1", all)), [highest, high, plain, low]);
});

test("T7: an old task of low priority is not starved: each level is worth a minute, to the millisecond", () => {
  const world = createTaskWorld();
  const old = world.create({ taskType: "a" });
  world.pass(2 * limits.taskAgeingMsPerLevel - 1);
  const urgent = world.create({ taskPriority: 2, taskType: "b" });
  world.pass(1);
  const later = world.create({ taskPriority: 2, taskType: "b" });
  world.pass(1);
  const latest = world.create({ taskPriority: 2, taskType: "b" });
  assert.deepEqual(ids(world.polls("w.1", all)), [urgent, old, later, latest]);
});

test("T12: a delayed task is offered when its time has come, to the millisecond, without a timer having fired", () => {
  const world = createTaskWorld();
  const delayed = world.create({ delayMs: 5_000 });
  world.later(4_999);
  world.idles("w.1");
  world.later(1);
  assert.equal(world.offered("w.1").task.id, delayed);
  assert.equal(world.task(delayed).notBefore, null);
});

test("T12: a delayed task that becomes ready is announced to held polls", () => {
  const world = createTaskWorld();
  world.create({ delayMs: 5_000, taskType: "night", requires: ["gpu"] });
  assert.deepEqual(world.ready, []);
  world.pass(5_000);
  assert.deepEqual(world.ready, [
    { tenant: "t1", taskType: "night", requires: ["gpu"], lastWorker: null, runningOn: null },
  ]);
});

test("T12: a task runs after all that it depends on have succeeded, and not before", () => {
  const world = createTaskWorld();
  const [a, b] = [world.create(), world.create()];
  const after = world.create({ dependsOn: [a, b, a] });
  const [first, second] = world.polls("w.1", all);
  world.accept(found(first, "first"));
  world.accept(found(second, "second"));
  world.idles("w.2");
  world.succeed(found(first, "first"));
  assert.deepEqual(world.task(after).waitingOn, [b]);
  world.idles("w.2");
  world.succeed(found(second, "second"));
  assert.deepEqual(world.ready.length, 1);
  assert.equal(world.offered("w.2").task.id, after);
});

test("T12: a delay and a dependency are both waited for, whichever is longer", () => {
  const world = createTaskWorld();
  const short = world.create();
  const long = world.create();
  const afterShort = world.create({ dependsOn: [short], delayMs: 10_000 });
  const afterLong = world.create({ dependsOn: [long], delayMs: 10_000 });
  const [one, other] = world.polls("w.1", all);
  world.accept(found(one, "one"));
  world.succeed(found(one, "one"));
  world.pass(9_999);
  world.idles("w.2");
  world.pass(1);
  assert.equal(world.offered("w.2").task.id, afterShort);
  world.accept(found(other, "other"));
  world.succeed(found(other, "other"));
  assert.equal(world.offered("w.2").task.id, afterLong);
});

for (const [how, end] of [
  ["fails", (world: TaskWorld, id: string) => void world.fail(world.start("w.1"), { taskId: id })],
  ["is canceled", (world: TaskWorld, id: string) => void world.cancelTask(id)],
] as const) {
  test(`T12: what depends on a task that ${how} is canceled, down the whole chain, and says why`, () => {
    const world = createTaskWorld();
    const first = world.create();
    const second = world.create({ dependsOn: [first] });
    const third = world.create({ dependsOn: [second] });
    const other = world.create({ delayMs: 1 });
    const both = world.create({ dependsOn: [other, third] });
    end(world, first);
    for (const id of [second, third, both]) {
      assert.deepEqual([world.statusOf(id), world.endedTask(id).endReason], ["canceled", "dependency_failed"]);
    }
    assert.equal(world.events.filter(({ type }) => type === "task.canceled").length, how === "fails" ? 3 : 4);
    world.pass(1);
    assert.deepEqual(ids(world.polls("w.2", all)), [other]);
  });
}

test("T12: a dead task keeps those waiting that depend on it: it can be sent again", () => {
  const world = createTaskWorld();
  const first = world.create({ maxOffers: 1 });
  const second = world.create({ dependsOn: [first] });
  world.giveBack(world.offered("w.1"));
  assert.equal(world.statusOf(first), "dead");
  world.idles("w.1");
  world.redrive(first);
  world.succeed(world.start("w.1"));
  assert.equal(world.offered("w.1").task.id, second);
});

test("T12: what is not alive is asked for once, and then the answer of history counts", () => {
  const world = createTaskWorld();
  const done = world.create();
  world.succeed(world.start("w.1"));
  const ask = world.creation({ dependsOn: [done, "T-never"] });
  const refusal = world.refused("dependency_unknown", ask);
  assert.deepEqual([refusal.field, refusal.missing], ["depends_on", [done, "T-never"]]);
  world.refused("dependency_unknown", { ...ask, endedDependencies: { [done]: "succeeded" } });
  const good = world.creation({ dependsOn: [done] });
  const { task } = world.expect("task", world.ask({ ...good, endedDependencies: { [done]: "succeeded" } }));
  assert.equal(world.offered("w.1").task.id, task.id);
  const born = world.expect("task", world.ask({ ...good, endedDependencies: { [done]: "failed" } }));
  assert.equal(born.task.status, "canceled");
  assert.deepEqual(world.happened, ["task.created", "task.canceled"]);
  assert.equal(world.endedTask(born.task.id).endReason, "dependency_failed");
});

test("T12: no more tasks of a concurrency key run than its limit, and each end lets the next one in", () => {
  const world = createTaskWorld();
  const created = [1, 2, 3, 4, 5].map(() => world.create({ concurrencyKey: "repo", concurrencyLimit: 2 }));
  const free = world.create();
  assert.deepEqual(ids(world.polls("w.1", all)), [created[0], created[1], free]);
  world.idles("w.2");
  world.pass(900_000); // All three offers expire, and come back.
  const [one, two] = world.polls("w.2", all);
  assert.deepEqual([one?.task.id, two?.task.id], created.slice(0, 2));
  world.accept(found(one, "one"));
  world.succeed(found(one, "one"));
  assert.deepEqual(world.ready.length, 1);
  assert.equal(world.offered("w.3").task.id, created[2]);
  world.cancelTask(created[1] ?? "");
  assert.deepEqual(ids(world.polls("w.4", all)), [created[3]]);
});

test("T12: a key's next task that is canceled, or completed late, before a worker came leaves its slot to the one behind", () => {
  const world = createTaskWorld();
  const [running, next, third] = [1, 2, 3].map(() => world.create({ concurrencyKey: "k", taskType: "a" }));
  const offer = world.offered("w.1");
  world.idles("w.2"); // The others were looked at, and wait for the key.
  world.giveBack(offer);
  world.cancelTask(running ?? "");
  world.cancelTask(next ?? "");
  assert.equal(world.offered("w.2").task.id, third);
});

test("T12: with a slot free, the kind for which there is a worker gets it, whichever came first", () => {
  const world = createTaskWorld();
  world.create({ concurrencyKey: "k" });
  const running = world.offered("w.1");
  const first = world.create({ concurrencyKey: "k", requires: ["gpu"] });
  const second = world.create({ concurrencyKey: "k" });
  world.idles("w.1");
  world.idles("w.2", { capabilities: ["gpu"] });
  world.accept(running);
  world.succeed(running);
  assert.equal(world.offered("w.1").task.id, second, "no worker with a GPU asks");
  world.idles("w.2");
  world.cancelTask(second);
  world.pass(limits.taskCancelMs);
  assert.equal(world.offered("w.2").task.id, first);
});

test("T12: tasks of one key with different limits each have their own", () => {
  const world = createTaskWorld();
  const wide = [1, 2].map(() => world.create({ concurrencyKey: "k", concurrencyLimit: 3 }));
  const offers = world.polls("w.1", all);
  const narrow = world.create({ concurrencyKey: "k" });
  const another = world.create({ concurrencyKey: "k", concurrencyLimit: 3 });
  const last = world.create({ concurrencyKey: "k", concurrencyLimit: 3 });
  assert.deepEqual(ids(offers), wide);
  assert.deepEqual(ids(world.polls("w.2", all)), [another]);
  world.giveBack(found(offers[0], "offer"));
  world.cancelTask(wide[0] ?? "");
  assert.deepEqual(ids(world.polls("w.2", all)), [last], "the narrow one does not hide it");
  for (const { id, live } of world.tasks()) if (live.length > 0) world.cancelTask(id);
  assert.deepEqual(ids(world.polls("w.2", all)), [narrow]);
});

test("T9: `requires` is enforced: only a worker that has all of it is offered the task", () => {
  const world = createTaskWorld();
  const id = world.create({ requires: ["gpu", "linux", "gpu"] });
  assert.deepEqual(world.task(id).spec.requires, ["gpu", "linux"]);
  world.idles("w.1");
  world.idles("w.1", { capabilities: ["gpu"] });
  world.idles("w.2", { capabilities: ["GPU", "linux"] });
  assert.equal(world.offered("w.1", { capabilities: ["x", "linux", "gpu"] }).task.id, id);
});

test("T9: a worker is taken at its last word about its capabilities", () => {
  const world = createTaskWorld();
  world.idles("w.1", { capabilities: ["gpu"] });
  world.create({ requires: ["gpu"] });
  world.idles("w.1", { capabilities: [] });
  world.idles("w.1");
  world.polls("w.1", { capabilities: ["gpu"], maxTasks: 2 });
  assert.equal(world.leases().length, 1);
});

test("T9: preferred kinds steer and are not enforced: they are worth some levels, and no more", () => {
  const world = createTaskWorld();
  const urgent = world.create({ taskType: "a", taskPriority: limits.taskPreferredLevels + 1 });
  const plain = world.create({ taskType: "a", taskPriority: limits.taskPreferredLevels - 1 });
  const preferred = world.create({ taskType: "b" });
  assert.deepEqual(ids(world.polls("w.1", { ...all, preferredKinds: ["b", "c"] })), [urgent, preferred, plain]);
});

test("T7: a retry prefers the worker that had it, and goes to any other that asks first", () => {
  const world = createTaskWorld();
  const retried = world.create({ requeueDelayMs: 0 });
  const offer = world.start("w.1");
  const other = world.create({ taskPriority: limits.taskAffinityLevels - 1 });
  world.fail(offer, { retryRequested: true });
  world.pass(0);
  assert.deepEqual(
    world.ready.map(({ lastWorker }) => lastWorker),
    ["w.1"],
  );
  assert.deepEqual(ids(world.polls("w.1", all)), [retried, other]);
  world.revoke({ agentId: "w.1" });
  assert.deepEqual(ids(world.polls("w.2", all)), [other, retried], "it is nobody's own");
});

test("T8: a worker whose attempts are lost is given one task at a time, until it completes again", () => {
  const world = createTaskWorld();
  for (let n = 0; n < 4; n++) {
    world.create({ maxAttempts: 1 });
    world.start("w.1");
    world.pass(900_000);
  }
  const { lost, health } = world.worker("w.1");
  assert.deepEqual([lost, health < 0.5], [4, true]);
  for (let n = 0; n < 8; n++) world.create();
  assert.equal(world.polls("w.2", { maxTasks: 3 }).length, 3);
  const [only, ...more] = world.polls("w.1", { maxTasks: 3 });
  assert.deepEqual(more, []);
  world.accept(found(only, "offer"));
  world.succeed(found(only, "offer"));
  assert.equal(world.worker("w.1").health > 0.5, true);
  assert.equal(world.polls("w.1", { maxTasks: 3 }).length, 3);
});

test("T8: an attempt that was given back, revoked or called off is not held against its worker", () => {
  const world = createTaskWorld();
  for (let n = 0; n < 3; n++) world.create();
  const [one, two, three] = world.polls("w.1", all);
  for (const offer of [one, two, three]) world.accept(found(offer, "offer"));
  world.giveBack(found(one, "offer"));
  world.revoke({ leaseId: found(two, "offer").lease.id });
  world.cancelTask(found(three, "offer").task.id);
  world.pass(limits.taskCancelMs);
  const { health, lost, failed } = world.worker("w.1");
  assert.deepEqual([health, lost, failed], [1, 0, 0]);
});

test("G2: no more is offered than the tenant's quota on leases allows, its manifest counted in", () => {
  const world = createTaskWorld();
  world.quotas({ leasesMax: 3 });
  world.create({ intents: ["MUTATES FILE:/a", "RENAMES FILE:/b > FILE:/c"] });
  world.idles("w.1");
  world.quotas({ leasesMax: 4 });
  assert.equal(world.offered("w.1").leases.length, 3);
  world.create();
  world.idles("w.1");
  world.quotas({ leasesMax: 5 });
  world.offered("w.1");
});

test("L10: a tenant whose lease time for today is used up is offered nothing until tomorrow", () => {
  const world = createTaskWorld();
  world.quotas({ tenantLeaseTimeMsMax: 1_000 });
  world.create();
  world.create();
  const offer = world.offered("w.1");
  world.pass(1_000);
  world.giveBack(offer);
  world.idles("w.1");
  world.pass(86_400_000);
  world.offered("w.1");
});

test("W9: a suspended tenant's tasks are taken back, offered to nobody and announced again when it is resumed", () => {
  const world = createTaskWorld();
  const id = world.create();
  world.start("w.1");
  world.suspend();
  assert.deepEqual([world.statusOf(id), world.task(id).attempts], ["queued", 0]);
  world.idles("w.1");
  world.refused("tenant_suspended", world.creation());
  world.unsuspend();
  assert.equal(world.ready.length, 1);
  assert.equal(world.offered("w.2").task.id, id);
});

test("S4: a poll tries a limited number of tasks, says so, and the next one goes on from there", () => {
  const world = createTaskWorld("a");
  world.grant("a", "MUTATES FILE:/x");
  for (let n = 0; n < limits.taskExaminedMax + 1; n++) world.create({ intents: "CONSUMES FILE:/x" });
  const free = world.create();
  const first = world.expect("offers", world.ask(world.polling("w.1")));
  assert.deepEqual([ids(first.offers), first.more], [[], true]);
  const second = world.expect("offers", world.ask(world.polling("w.1")));
  assert.deepEqual([ids(second.offers), second.more], [[free], false]);
});

test("S3: a caller that may not create, poll or set a type is refused, and nothing changes", () => {
  const world = createTaskWorld("a");
  world.create();
  const before = records(world.base.state);
  world.refused("forbidden", { ...world.creation(), actor: actor("reader") });
  for (const who of [actor("reader"), world.as("a")])
    world.refused("forbidden", { ...world.polling("w.1"), actor: who });
  world.refused("forbidden", { type: "set_task_type", actor: actor("worker"), taskType: "a", settings: {} });
  assert.equal(records(world.base.state), before);
});

test("T9 (+): a worker that accepts some types only is offered no others, and those wait for somebody else", () => {
  const world = createTaskWorld();
  const other = world.create({ taskType: "b" });
  const wanted = world.create({ taskType: "a" });
  assert.deepEqual(ids(world.polls("build.1", { ...all, acceptTypes: ["a"] })), [wanted]);
  world.idles("build.1", { acceptTypes: ["c"] });
  assert.deepEqual(ids(world.polls("build.2", all)), [other]);
});
