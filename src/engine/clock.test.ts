import assert from "node:assert/strict";
import { test } from "node:test";
import { describeWallOffset, startClock, wallOffsetMsMax } from "./clock.ts";

function sources(wall: number) {
  const now = { wall, monotonic: 5_000.4 };
  return { now, sources: { wall: () => now.wall, monotonic: () => now.monotonic } };
}

test("L7: the clock starts at the wall clock, and at the last committed time if that is later", () => {
  assert.equal(startClock(0, sources(1_000_000).sources).now(), 1_000_000);
  assert.equal(startClock(2_000_000, sources(1_000_000).sources).now(), 2_000_000);
});

test("L7: within a run it advances by the monotonic clock, whatever the wall clock does", () => {
  const { now, sources: time } = sources(1_000_000);
  const clock = startClock(0, time);
  now.wall -= 3_600_000;
  now.monotonic += 1_500.9;
  assert.equal(clock.now(), 1_001_500);
  now.wall += 7_200_000;
  assert.equal(clock.now(), 1_001_500);
});

test("L7: a wall clock that is far behind the stored time is reported, and one that is ahead is not", () => {
  assert.match(describeWallOffset(10_000_000, 10_000_000 - wallOffsetMsMax - 1) ?? "", /behind the stored time/);
  assert.equal(describeWallOffset(10_000_000, 10_000_000 - wallOffsetMsMax), null);
  assert.equal(describeWallOffset(10_000_000, 20_000_000), null);
  assert.equal(describeWallOffset(0, 5), null);
});
