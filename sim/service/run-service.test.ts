import assert from "node:assert/strict";
import { test } from "node:test";
import { type Counters, missingOfService } from "../counters.ts";
import { runService } from "./run-service.ts";

/** The long form, with 10,000 tasks, is part of `npm run sim -- --long`. */
test("of 300 tasks, under failing commits, dying processes and a bad network, each is done once or dead (T4, R6, S1, S2)", async () => {
  // Together they meet every kind of failure, whichever way a single one goes.
  const counters: Counters = new Map();
  for (const seed of [1, 2, 3]) {
    const { tasks, receipts } = await runService(seed, 300, counters);
    assert.equal(tasks, 300);
    assert.ok(receipts > 600);
  }
  assert.deepEqual(missingOfService(counters), []);
});

test("two runs of a seed are the same, whatever else the machine does", async () => {
  const [first, second]: [Counters, Counters] = [new Map(), new Map()];
  assert.deepEqual(await runService(2, 60, first), await runService(2, 60, second));
  assert.deepEqual(first, second);
});
