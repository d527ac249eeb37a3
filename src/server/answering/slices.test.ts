import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { inSlices } from "./slices.ts";

test("S4: very many items of one call leave the loop a turn after each thousand, and stay in order", async () => {
  const done: number[] = [];
  inSlices(2_500, (index) => done.push(index) > 0);
  const counts = [done.length];
  for (let turn = 0; turn < 3; turn++) {
    await setImmediate();
    counts.push(done.length);
  }
  assert.deepEqual(counts, [1_000, 2_000, 2_500, 2_500]);
  assert.deepEqual(
    done,
    Array.from({ length: 2_500 }, (_, index) => index),
  );
});

test("S2: where the outcome of one is unknown, those of later turns are not begun", async () => {
  let done = 0;
  inSlices(5_000, () => ++done < 1_500);
  for (let turn = 0; turn < 5; turn++) await setImmediate();
  assert.equal(done, 1_500);
});
