import assert from "node:assert/strict";
import { test } from "node:test";
import { limits } from "../contract/limits.ts";
import { answerForRepeated, apply, restore, snapshot } from "../kernel.ts";
import { createTaskWorld, plainTask } from "../testing/tasks-world.ts";
import { operator, records } from "../testing/test-world.ts";

test("T12: a repeated creation is answered with the first task, alive or over, and another body is refused", () => {
  const world = createTaskWorld();
  const wish = { idempotencyKey: "k", taskSummary: "once" };
  const first = world.create(wish);
  const again = world.expect("task", world.ask(world.creation(wish)));
  assert.deepEqual([again.task.id, again.created], [first, false]);
  const refusal = world.refused("idempotency_key_reused", world.creation({ ...wish, taskSummary: "twice" }));
  assert.deepEqual([refusal.taskId, refusal.field], [first, "idempotency_key"]);
  assert.equal(world.tasks().length, 1);
  world.succeed(world.start("w.1"));
  const asking = { ...world.creation(wish), asksHistory: true };
  assert.deepEqual(world.ask(asking), { type: "task_key_unknown", key: "k" }, "history is asked");
  const ended = world.endedTask(first);
  assert.deepEqual(answerForRepeated({ ...plainTask, ...wish }, ended), {
    type: "task",
    task: ended,
    created: false,
    warnings: [],
  });
  const other = answerForRepeated({ ...plainTask, ...wish, taskSummary: "twice" }, ended);
  assert.equal(other.type === "refused" && other.code, "idempotency_key_reused");
});

test("T12, S4: nothing of an ended task stays in the kernel, its idempotency key neither", () => {
  const world = createTaskWorld();
  world.create();
  world.succeed(world.start("w.1"));
  const before = records(world.base.state);
  const [tenant] = world.base.state.tenants.values();
  for (let task = 0; task < 100; task++) {
    world.create({ idempotencyKey: `key ${task}` });
    assert.equal(tenant?.book.created.size, 1);
    world.succeed(world.start("w.1"));
  }
  assert.equal(tenant?.book.created.size, 0);
  assert.equal(records(world.base.state).length - before.length < 20, true, "the counters' digits aside");
});

test("T12: a repeated creation stands, though it would not be admitted now", () => {
  const world = createTaskWorld();
  const wish = { idempotencyKey: "k", intents: "MUTATES GPU:/0" };
  const first = world.create(wish);
  world.declare("GPU:/0", null, "cell-1");
  world.quotas({ tasksMax: 0 });
  world.refused("lease_denied", world.creation({ ...wish, idempotencyKey: "other" }));
  assert.equal(world.create(wish), first);
});

test("T12: history is asked for keys that tasks which have ended may have had, and for no others", () => {
  const world = createTaskWorld();
  const asks = (idempotencyKey: string): boolean =>
    world.ask({ ...world.creation({ idempotencyKey }), asksHistory: true }).type === "task_key_unknown";
  for (const key of ["mine", "once_1"]) {
    world.create({ idempotencyKey: key });
    world.succeed(world.start("w.1"));
    assert.ok(asks(key), key);
  }
  assert.ok(!asks("yours"));
  assert.ok(!asks("once_2"));
  world.pass(limits.onceKeyMs);
  assert.ok(asks("mine"), "as long as history is");
  assert.ok(!asks("once_1"), "ten minutes");
});

test("T12: after a restart history is asked for all keys, and for those of a short life for a while", () => {
  const world = createTaskWorld();
  for (const key of ["mine", "once_1"]) {
    world.create({ idempotencyKey: key });
    world.succeed(world.start("w.1"));
  }
  const state = restore(snapshot(world.base.state));
  let count = 0;
  const asks = (idempotencyKey: string, after: number): boolean => {
    const asking = { ...world.creation({ idempotencyKey }), asksHistory: true };
    const command = { ...asking, tenant: world.tenant, actor: operator, entropy: [++count, 7] as const };
    return apply(state, command, world.now + after).reply.type === "task_key_unknown";
  };
  assert.deepEqual([asks("mine", 0), asks("yours", 0), asks("once_1", 0)], [true, true, true]);
  const later = 3 * limits.onceKeyMs;
  assert.deepEqual([asks("mine", later), asks("yours", later), asks("once_3", later)], [true, true, false]);
});
