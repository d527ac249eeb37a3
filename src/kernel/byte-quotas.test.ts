import assert from "node:assert/strict";
import { test } from "node:test";
import { limits } from "./contract/limits.ts";
import { restore, snapshot } from "./kernel.ts";
import { createTaskWorld } from "./testing/tasks-world.ts";
import { createWorld } from "./testing/test-world.ts";
import { quotaUse } from "./views.ts";

type World = Pick<ReturnType<typeof createWorld>, "base" | "tenant">;

function use({ base, tenant }: World) {
  const now = quotaUse(base.state, tenant, base.now);
  assert.ok(now !== null);
  assert.deepEqual(quotaUse(restore(snapshot(base.state)), tenant, base.now), now, "a restored kernel counts the same");
  return now;
}

test("S4: bodies and inputs of tasks count in bytes, until the task is done", () => {
  const world = createTaskWorld();
  assert.equal(use(world).payloadBytesMax, 0);
  const task = world.create({ taskBody: "é".repeat(500), inputs: { a: 1 } });
  const { payloadBytesMax } = use(world);
  assert.equal(payloadBytesMax, 1_000 + '{"a":1}'.length);
  world.quotas({ payloadBytesMax: 1_500 });
  const refusal = world.refused("quota_exceeded", world.creation({ taskBody: "x".repeat(501) }));
  assert.deepEqual([refusal.quota, refusal.used, refusal.limit], ["payload_bytes_max", 1_007, 1_500]);
  world.create({ taskBody: "x".repeat(493) });
  world.create({});
  world.cancelTask(task);
  assert.equal(use(world).payloadBytesMax, 493);
});

test("S4: digests count in bytes, each agent's once", () => {
  const world = createWorld("a", "b");
  const save = (agentId: string, context: string) => ({
    type: "save_digest" as const,
    agentId,
    digest: {
      checkpointId: "c",
      resumePoint: "p",
      context,
      intentBacklog: [],
      resolutionStrategy: "RETRY",
      assumptions: [],
    },
  });
  world.ask(save("a", "x".repeat(1_000)));
  const first = use(world).digestBytesMax;
  assert.ok(first > 1_000 && first < 1_100, `${first}`);
  world.ask(save("a", "x".repeat(1_000)));
  assert.equal(use(world).digestBytesMax, first, "the one before is replaced");
  world.quotas({ digestBytesMax: first });
  const refusal = world.refused("quota_exceeded", save("b", ""));
  assert.deepEqual([refusal.quota, refusal.used, refusal.limit], ["digest_bytes_max", first, first]);
  world.ask(save("a", "x".repeat(10)));
  world.ask(save("b", "x".repeat(10)));
  world.pass(limits.agentIdleMs + 1);
  assert.equal(use(world).digestBytesMax, 0, "forgotten with its agent");
});

test("S4: what memory keeps of a tenant is counted, and refused beyond its quota; ends make room", () => {
  const world = createWorld("a");
  const before = use(world).memoryBytesMax;
  const name = `MUTATES FILE:/${"n".repeat(900)}`;
  const lease = world.grant("a", name);
  const { memoryBytesMax } = use(world);
  assert.ok(memoryBytesMax > before + 900);
  world.quotas({ memoryBytesMax });
  for (const ask of [
    world.acquire("a", "MUTATES FILE:/other"),
    { type: "register_agent", agentId: "b", labels: null } as const,
    { type: "declare_resource", refillMs: null, resource: "GPU:/1", capacity: 2, cell: null } as const,
  ]) {
    const refusal = world.refused("quota_exceeded", ask);
    assert.deepEqual([refusal.quota, refusal.limit], ["memory_bytes_max", memoryBytesMax], ask.type);
  }
  world.heartbeat(lease.id);
  world.release(lease.id);
  assert.ok(use(world).memoryBytesMax < memoryBytesMax);
  world.grant("a", "MUTATES FILE:/other");
});

test("S4: where memory is used up, work that is queued is still offered, accepted and completed", () => {
  const world = createTaskWorld();
  world.create({ intents: "MUTATES FILE:/x" });
  world.quotas({ memoryBytesMax: 1 });
  const refusal = world.refused("quota_exceeded", world.creation({}));
  assert.equal(refusal.quota, "memory_bytes_max");
  world.succeed(world.start("w.1"));
  assert.equal(use(world).tasksMax, 0);
});

test("S4: a progress that memory has no room for is not kept, and the lease goes on", () => {
  const world = createTaskWorld();
  const task = world.create({});
  const { lease } = world.start("w.1");
  world.quotas({ memoryBytesMax: 1 });
  const beat = { type: "heartbeat_task" as const, leaseId: lease.id, progress: { big: "x".repeat(1_000) } };
  assert.equal(world.ask(beat).type, "task_lease");
  assert.equal(world.task(task).progress, null);
  world.quotas({ memoryBytesMax: 1_000_000 });
  world.ask(beat);
  assert.ok(use(world).memoryBytesMax > 8_000);
});

test("S4: what was counted is exactly what is taken off again", () => {
  const world = createTaskWorld();
  const empty = use(world).memoryBytesMax;
  const task = world.create({ taskSummary: "s".repeat(300), intents: "MUTATES FILE:/x", taskBody: "b" });
  const full = use(world).memoryBytesMax;
  assert.ok(full > empty + 1_500);
  world.cancelTask(task);
  assert.equal(use(world).memoryBytesMax, empty);
});

test("S4: one poll is offered so much work that the bodies fit into one answer, and at least one task", () => {
  const world = createTaskWorld();
  const bodies = Math.ceil(limits.offerBytesMax / limits.taskBodyBytesMax);
  for (let nth = 0; nth < bodies + 5; nth++) world.create({ taskBody: "x".repeat(limits.taskBodyBytesMax) });
  assert.equal(world.polls("w.1", { maxTasks: 100 }).length, bodies);
  assert.equal(world.polls("w.1", { maxTasks: 100 }).length, 5);
});
