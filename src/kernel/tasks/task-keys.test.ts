import assert from "node:assert/strict";
import { test } from "node:test";
import { answerForRepeated } from "../kernel.ts";
import { createTaskWorld, plainTask } from "../testing/tasks-world.ts";
import { records } from "../testing/test-world.ts";

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
