import assert from "node:assert/strict";
import { test } from "node:test";
import { type Clock, Timekeeper } from "./clock.ts";

interface Hands {
  monotonic: number;
  wall: number;
  boot: number | null;
}

function clockOf(hands: Hands): Clock {
  return { monotonic: () => hands.monotonic, wall: () => hands.wall, boot: () => hands.boot };
}

function pass(hands: Hands, ms: number): void {
  hands.monotonic += ms;
  hands.wall += ms;
  if (hands.boot !== null) hands.boot += ms;
}

const hour = 3_600_000;

test("time that the machine sleeps counts, though the monotonic clock stands still", () => {
  const hands: Hands = { monotonic: 0, wall: 1e12, boot: 5e6 };
  const time = new Timekeeper(clockOf(hands));
  const since = time.mark();
  pass(hands, 100);
  hands.wall += 9_000;
  hands.boot = (hands.boot ?? 0) + 9_000;
  assert.equal(time.elapsedMs(since), 9_100);
  pass(hands, 100);
  assert.equal(time.elapsedMs(since), 9_200);
  assert.equal(time.elapsedMs(time.mark()), 0);
});

test("a wall clock that is set costs no time where a clock counts sleep, and counts as a jump", () => {
  const hands: Hands = { monotonic: 0, wall: 1e12, boot: 5e6 };
  const time = new Timekeeper(clockOf(hands));
  const since = time.mark();
  hands.wall += hour;
  assert.equal(time.elapsedMs(since), 0);
  assert.equal(time.jumps, 1);
  hands.wall -= 2 * hour;
  pass(hands, 50);
  assert.equal(time.elapsedMs(since), 50);
  assert.equal(time.jumps, 1);
});

test("where no clock counts sleep, a wall clock that runs ahead is believed, and one that runs back is not", () => {
  const hands: Hands = { monotonic: 0, wall: 1e12, boot: null };
  const time = new Timekeeper(clockOf(hands));
  const since = time.mark();
  hands.wall -= hour;
  pass(hands, 10);
  assert.equal(time.elapsedMs(since), 10);
  hands.wall += hour;
  assert.equal(time.elapsedMs(since), hour + 10);
});

test("small corrections of the wall clock are not time", () => {
  const hands: Hands = { monotonic: 0, wall: 1e12, boot: null };
  const time = new Timekeeper(clockOf(hands));
  const since = time.mark();
  hands.wall += 20;
  assert.equal(time.elapsedMs(since), 0);
});
