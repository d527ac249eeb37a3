import assert from "node:assert/strict";
import { test } from "node:test";
import { CellClock } from "./clock.ts";

function times(): { monotonic: number; wall: number; clock: CellClock } {
  const state = { monotonic: 1_000, wall: 1_800_000_000_000 };
  const clock = new CellClock({ monotonic: () => state.monotonic, wall: () => state.wall });
  return Object.assign(state, { clock });
}

test("G11: a cell's time advances by the monotonic clock", () => {
  const time = times();
  time.monotonic += 500;
  time.wall += 500;
  assert.equal(time.clock.now(), 1_800_000_000_500);
});

test("G11: a wall clock that is set back gives no lease more time", () => {
  const time = times();
  time.monotonic += 500;
  time.wall -= 3_600_000;
  assert.equal(time.clock.now(), 1_800_000_000_500);
  time.monotonic += 100;
  time.wall += 100;
  assert.equal(time.clock.now(), 1_800_000_000_600);
});

test("G11: time that the machine slept through has passed, though the monotonic clock stood still", () => {
  const time = times();
  time.wall += 90_000;
  assert.equal(time.clock.now(), 1_800_000_090_000);
});

test("G11: small corrections of the wall clock do not count", () => {
  const time = times();
  time.wall += 49;
  assert.equal(time.clock.now(), 1_800_000_000_000);
});

test("G11: a cell is never behind the control plane, and by no more than an answer takes ahead of it", () => {
  const time = times();
  const mark = time.clock.mark();
  time.monotonic += 30;
  time.wall += 30;
  // The server stamped 5_000 somewhere within these 30 ms.
  time.clock.observe(5_000, mark);
  assert.equal(time.clock.now(), 5_030);
  const next = time.clock.mark();
  time.monotonic += 10;
  time.wall += 10;
  time.clock.observe(5_033, next);
  assert.equal(time.clock.now(), 5_040, "a looser bound does not replace a tighter one");
  const tight = time.clock.mark();
  time.clock.observe(5_036, tight);
  assert.equal(time.clock.now(), 5_036);
});

test("G11: an old observation gives way to a newer one, and so does a guess", () => {
  const time = times();
  time.clock.observe(5_000, time.clock.mark());
  time.monotonic += 70_000;
  time.wall += 70_000;
  time.clock.observe(75_100, time.clock.mark());
  assert.equal(time.clock.now(), 75_100);
  time.wall += 10_000;
  assert.equal(time.clock.now(), 85_100);
  time.clock.observe(75_200, time.clock.mark());
  assert.equal(time.clock.now(), 75_200);
});
