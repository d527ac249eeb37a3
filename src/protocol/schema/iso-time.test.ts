import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { isoTime } from "./text.ts";

test("a time is written as Date writes it, to the millisecond, for every time there is", () => {
  const times = fc.oneof(fc.integer({ min: 0, max: 4_102_444_800_000 }), fc.integer({ min: -8.64e15, max: 8.64e15 }));
  fc.assert(
    fc.property(times, (ms) => isoTime(ms) === new Date(ms).toISOString()),
    { numRuns: 20_000 },
  );
});

test("times whose seconds share a slot of the cache do not get each other's text", () => {
  const base = Date.UTC(2026, 10, 15);
  for (let round = 0; round < 3; round++) {
    for (const minutes of [0, 1024 / 60, 2048 / 60]) {
      const ms = base + Math.round(minutes * 60_000) + 7;
      assert.equal(isoTime(ms), new Date(ms).toISOString());
    }
  }
});
