import assert from "node:assert/strict";
import { test } from "node:test";
import { limits } from "../contract/limits.ts";
import { createTaskWorld } from "../testing/tasks-world.ts";

test("T11: a task that can run says so, and how many go first", () => {
  const world = createTaskWorld();
  world.idles("w.1");
  world.create({ taskType: "b" });
  const id = world.create();
  world.create();
  assert.deepEqual(world.explain(id), [
    { kind: "queue", detail: "It is offered to the next worker that asks; 1 others go first.", ahead: 1 },
  ]);
});

test("T11: no worker, or none with what it requires, has polled lately", () => {
  const world = createTaskWorld();
  const plain = world.create();
  const special = world.create({ requires: ["gpu", "x"] });
  assert.deepEqual(world.explain(plain), [{ kind: "worker", detail: "No worker has polled lately.", requires: [] }]);
  world.polls("w.1", { capabilities: ["gpu"] });
  assert.deepEqual(world.explain(special), [
    { kind: "worker", detail: "No worker with gpu, x has polled lately.", requires: ["gpu", "x"] },
  ]);
  world.idles("w.2", { capabilities: ["gpu"] });
  assert.deepEqual(world.kindsOf(special), ["worker"]);
  world.cancelTask(plain);
  world.pass(2 * limits.workerSeenMs + 60_001);
  const later = world.create();
  assert.deepEqual(world.kindsOf(later), ["worker"]);
});

test("T11: a delay, a retry's pause and what it depends on are named, all at once", () => {
  const world = createTaskWorld();
  world.idles("w.1");
  const first = world.create();
  const id = world.create({ delayMs: 5_000, dependsOn: [first] });
  assert.deepEqual(world.explain(id), [
    { kind: "dependency", detail: "It runs after 1 other tasks have succeeded.", taskIds: [first] },
    { kind: "delay", detail: "It is delayed for 5000 ms.", until: world.now + 5_000 },
  ]);
  world.fail(world.start("w.1"), { retryRequested: true });
  const [reason] = world.explain(first);
  assert.deepEqual([reason?.kind, reason?.detail], ["delay", "It is tried again in 30000 ms."]);
});

test("T11: a full concurrency key is named with its limit", () => {
  const world = createTaskWorld();
  world.create({ concurrencyKey: "repo" });
  const id = world.create({ concurrencyKey: "repo" });
  world.offered("w.1");
  assert.deepEqual(world.explain(id), [
    {
      kind: "concurrency_key",
      detail: "1 tasks with the concurrency key repo are running; 1 may.",
      key: "repo",
      limit: 1,
      running: 1,
    },
  ]);
});

test("T11: what stands in its manifest's way is named: lease, agent and resource, or the request ahead", () => {
  const world = createTaskWorld("a", "b");
  world.idles("w.1");
  const held = world.grant("b", "MUTATES FILE:/x");
  const id = world.create({ intents: ["CONSUMES FILE:/x"] });
  const other = world.create({ intents: ["CONSUMES FILE:/y"] });
  const [reason] = world.explain(id);
  assert.equal(reason?.detail, `Blocked by lease ${held.id} of b on FILE:/x.`);
  const { requestId } = world.waits("a", ["MUTATES FILE:/x", "MUTATES FILE:/y"]);
  assert.equal(world.explain(id)[0]?.detail, `Blocked by lease ${held.id} of b on FILE:/x, and 1 more.`);
  assert.equal(world.explain(other)[0]?.detail, `Behind request ${requestId} of a for FILE:/y.`);
  assert.deepEqual([...world.kindsOf(id), ...world.kindsOf(other)], ["resource", "resource"]);
});

test("T11: units that are taken, and more than there are at all", () => {
  const world = createTaskWorld("a");
  world.idles("w.1");
  world.declare("GPU:/0", 2);
  world.grant("a", "MUTATES GPU:/0 x2");
  assert.deepEqual(world.kindsOf(world.create({ intents: "MUTATES GPU:/0" })), ["resource"]);
  assert.deepEqual(world.kindsOf(world.create({ intents: "MUTATES GPU:/0 x3" })), ["quota"]);
});

test("T11: what somebody must act on: a fence, a withdrawal, a suspension, a quota", () => {
  const world = createTaskWorld();
  world.idles("w.1");
  const id = world.create({ intents: "MUTATES GPU:/1" });
  world.fence("GPU:/1");
  assert.equal(world.explain(id)[0]?.detail, "GPU:/1 is fenced; an operator must reset it.");
  world.reset("GPU:/1");
  world.withdraw("GPU:/1");
  assert.equal(world.explain(id)[0]?.detail, "GPU:/1 was withdrawn; declare it again.");
  world.declare("GPU:/1");
  world.quotas({ leasesMax: 0 });
  assert.equal(world.explain(id)[0]?.detail, "The tenant holds as many leases as it may.");
  world.suspend();
  assert.deepEqual(world.kindsOf(id), ["tenant_suspended", "quota"]);
});

test("T11, G6: a manifest on a resource that a cell hosts by now: the cell is named while it is not ready", () => {
  const world = createTaskWorld();
  world.idles("w.1");
  const id = world.create({ intents: "MUTATES GPU:/1" });
  const inventory = [
    { resource: "GPU:/1", driver: "tcp", capacity: null, hardware: [], ready: true, fault: null, fenced: null },
  ];
  const enrolled = { cellId: "c1", session: "s1", version: null, inventory, bindings: [] };
  world.expect("cell_enrolled", world.ask({ type: "enrol_cell", ...enrolled }));
  world.expect("cell", world.ask({ type: "cell_left", cellId: "c1", session: "s1", reason: "shut down" }));
  const detail = "The cell c1 of GPU:/1 is gone: shut down.";
  assert.deepEqual(world.explain(id)[0], { kind: "cell_not_ready", detail, resource: "GPU:/1" });
  world.idles("w.1");
  world.declare("GPU:/1");
  assert.equal(world.offered("w.1").task.id, id);
});

test("T11: who has it and until when, and that a dead one must be sent again", () => {
  const world = createTaskWorld();
  const id = world.create({ maxAttempts: 1, leaseDurationMs: 1_000 });
  const offer = world.offered("w.1");
  assert.deepEqual(world.explain(id), [
    { kind: "running", detail: "It is offered to w.1.", workerId: "w.1", until: world.now + 1_000 },
  ]);
  world.accept(offer);
  assert.equal(world.explain(id)[0]?.detail, "w.1 is working on it.");
  world.pass(1_000);
  assert.deepEqual(world.explain(id), [
    { kind: "redrive", detail: "It is among the dead letters (max_retries_exceeded); redrive sends it again." },
  ]);
  world.cancelTask(id);
});

test("T11: a task that was canceled and lingers waits for nothing", () => {
  const world = createTaskWorld();
  const id = world.create();
  world.start("w.1");
  world.cancelTask(id);
  assert.deepEqual(world.explain(id), []);
});
