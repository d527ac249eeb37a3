import assert from "node:assert/strict";
import { test } from "node:test";
import { limits } from "../contract/limits.ts";
import { createWorld, type World } from "../testing/test-world.ts";

test("S4: a registration, a digest, a verdict that gives nothing and a transition are each a sign of an agent's life", () => {
  const week = limits.agentIdleMs;
  const signs: Readonly<Record<string, (world: World) => unknown>> = {
    "registered again": (world) => world.register("young"),
    "saved a digest": (world) => world.save("young"),
    died: (world) => world.dies("young", "MUTATES FILE:/x"),
    "made a transition": (world) => world.transition("young", "ABORTED"),
  };
  for (const [what, give] of Object.entries(signs)) {
    const world = createWorld("old", "young");
    world.later(week - 1);
    world.grant("old", "MUTATES FILE:/x", { ttlMs: 60_000 });
    give(world);
    world.pass(week - 1);
    assert.equal(world.agent("young").id, "young", `it has just ${what}`);
    assert.equal(world.digest("young") !== null, what === "saved a digest");
    world.pass(1);
    assert.throws(() => world.agent("young"), what);
  }
});

test("W1, S4: an agent that only dies for a week keeps its timestamp", () => {
  const world = createWorld("old", "young");
  const { priority } = world.agent("young");
  const lease = world.grant("old", "MUTATES FILE:/x", { ttlMs: 300_000 });
  for (let passed = 0; passed < 2 * limits.agentIdleMs; passed += 299_000) {
    world.later(299_000);
    world.heartbeat(lease.id);
    if (passed % (10 * 299_000) === 0) world.dies("young", "MUTATES FILE:/x");
  }
  assert.equal(world.agent("young").priority, priority);
});
