import assert from "node:assert/strict";
import { test } from "node:test";
import { createWorld, type World } from "../testing/test-world.ts";

const x = "MUTATES FILE:/x";

/** The hint of the nth death in a row, without jitter. */
function hintAfter(world: World, deaths: number): number {
  let hint = 0;
  for (let nth = 0; nth < deaths; nth++) hint = world.dies("young", x).retryAfterMs;
  return hint;
}

test("W5: the hint does not outgrow how long the holders take", () => {
  const world = createWorld("old", "young");
  world.grant("old", x);
  world.later(80);
  assert.equal(hintAfter(world, 10), 160, "it has lived for 80 ms, and is likely to live as long again");
});

test("W5: where the holder takes long the hint doubles, up to the cap", () => {
  const world = createWorld("old", "young");
  world.grant("old", x, { ttlMs: 300_000 });
  world.later(100_000);
  assert.deepEqual([hintAfter(world, 1), hintAfter(world, 3), hintAfter(world, 9)], [50, 400, 5_000]);
});

test("W5: a hint is never below the base, and does not reach beyond the holder's end", () => {
  const world = createWorld("old", "young");
  world.grant("old", x, { ttlMs: 10_000 });
  assert.equal(hintAfter(world, 5), 50);
  world.later(9_900);
  assert.equal(hintAfter(world, 9), 5_000);
  world.settings({ retryMsCap: 1_000_000 });
  assert.equal(hintAfter(world, 9), 10_000);
});

test("W5: all that is in the way counts, waiters too", () => {
  const world = createWorld("oldest", "old", "young");
  world.grant("old", x);
  world.waits("oldest", x);
  world.later(80);
  assert.equal(hintAfter(world, 10), 320);
});
