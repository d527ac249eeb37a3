import assert from "node:assert/strict";
import { test } from "node:test";
import { limits } from "./contract/limits.ts";
import { jumpAhead, numberBeyond, restore, snapshot } from "./kernel.ts";
import { createTaskWorld } from "./testing/tasks-world.ts";
import { beginning, createWorld, records } from "./testing/test-world.ts";

const hourMs = 3_600_000;

test("L11: one backup restored twice, each time into a fresh folder, never gives a fence twice", () => {
  const world = createWorld("a", "b");
  world.grant("a", "MUTATES FILE:/a");
  const backup = snapshot(world.base.state);
  const given = new Set<number>(world.leases().map(({ fence }) => fence));
  for (let fence = 0; fence < 50; fence++) given.add(world.grant("b", `MUTATES FILE:/b/${fence}`).fence);
  for (const wall of [beginning + 1_000, beginning + hourMs, beginning + hourMs + 1]) {
    world.base.state = restore(backup);
    jumpAhead(world.base.state, { wall, losses: 1 }, world.now);
    const fences = [...world.leases().map(({ fence }) => fence), world.grant("b", "MUTATES FILE:/c").fence];
    for (const fence of fences) {
      assert.ok(!given.has(fence), `fence ${fence} was given twice`);
      assert.ok(fence > Math.max(...given), "and it is above all that were");
    }
    for (const fence of fences) given.add(fence);
  }
});

test("L11: a backup of restored data, restored twice within a minute, never gives a fence twice", () => {
  const world = createWorld("a");
  jumpAhead(world.base.state, { wall: beginning, losses: 1 }, world.now);
  const backup = snapshot(world.base.state);
  const fences = [1_000, 31_000].map((ms) => {
    world.base.state = restore(backup);
    jumpAhead(world.base.state, { wall: beginning + ms, losses: 1 }, world.now);
    return world.grant("a", "MUTATES FILE:/a").fence;
  });
  assert.ok((fences[1] ?? 0) > (fences[0] ?? 0));
});

test("L11: behind a wall clock that proves nothing each known loss jumps on its own", () => {
  const known = numberBeyond(0, { wall: beginning, losses: 1 });
  const first = numberBeyond(known, { wall: beginning - hourMs, losses: 1 });
  assert.equal(first, known + limits.lossJump);
  assert.ok(numberBeyond(known, { wall: beginning - hourMs, losses: 2 }) > first + limits.lossJump / 2);
});

test("L11: numbers stay below 2^53 by every wall clock, and for thousands of losses", () => {
  for (const wall of [0, beginning, Date.UTC(2079, 0, 1), Date.UTC(2500, 0, 1), Number.MAX_SAFE_INTEGER]) {
    const number = numberBeyond(5_000, { wall, losses: 200 });
    assert.ok(Number.isSafeInteger(number) && number > 5_000, String(wall));
  }
  assert.ok(limits.lossJump * 1_000 <= 2 ** 53 - limits.lossNumberMax);
});

test("S6, L11: every live lease of agents and tasks is re-issued: next generation, a fence beyond the jump", () => {
  const world = createTaskWorld("a");
  world.grant("a", ["MUTATES FILE:/a", "RENAMES FILE:/b > FILE:/c"]);
  const taskId = world.create({ intents: "MUTATES FILE:/d" });
  world.offered("w.1");
  const before = new Map(world.leases().map((lease) => [lease.id, lease]));
  assert.equal(before.size, 5);
  const backup = snapshot(world.base.state);
  world.base.state = restore(backup);
  const { changes, events } = jumpAhead(world.base.state, { wall: beginning, losses: 1 }, world.now);
  const after = world.leases();
  const floor = numberBeyond(0, { wall: beginning, losses: 1 });
  for (const lease of after) {
    assert.equal(lease.generation, (before.get(lease.id)?.generation ?? 0) + 1);
    assert.ok(lease.fence > floor);
    assert.equal(lease.expiresAt, before.get(lease.id)?.expiresAt, "its time is what it was");
  }
  assert.equal(new Set(after.map(({ fence }) => fence)).size, 5);
  const own = after.find(({ resource }) => resource.startsWith("TASK:"));
  assert.equal(world.task(taskId).live[0]?.fence, own?.fence, "the task knows its new fence");
  assert.deepEqual(events, []);
  const kinds = new Set(changes.map(({ kind }) => kind));
  assert.deepEqual([...kinds].sort(), ["counters", "lease", "task"]);
  assert.equal(records(restore(snapshot(world.base.state))), records(world.base.state));
});
