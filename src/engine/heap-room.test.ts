import assert from "node:assert/strict";
import { test } from "node:test";
import { heapRoomFor } from "./heap-room.ts";

test("room is made once, by a small factor, when a tenth of many records is there, and is given up once", () => {
  const flags: string[] = [];
  const room = heapRoomFor(1_000_000, (flag) => flags.push(flag));
  for (const restored of [1_000, 99_999]) room.note(restored);
  assert.deepEqual(flags, []);
  for (const restored of [100_000, 101_000, 1_000_000]) room.note(restored);
  assert.deepEqual(flags, ["--heap-growing-percent=1000"]);
  room.close();
  room.close();
  assert.deepEqual(flags, ["--heap-growing-percent=1000", "--heap-growing-percent=0"]);
});

test("for few records the collector is left alone", () => {
  const room = heapRoomFor(99_999, () => assert.fail("a flag was set"));
  for (const restored of [50_000, 99_999]) room.note(restored);
  room.close();
});
