import assert from "node:assert/strict";
import { test } from "node:test";
import { tortureCells } from "../../torture/cells.ts";

test("G6, G7: under random faults nobody has access after a lease's end, no two holders overlap, and nothing is free before its teardown", async () => {
  const { violations, operations, tally, rounds } = await tortureCells(6, Date.now() % 1_000_000, () => {});
  assert.deepEqual(violations, []);
  assert.ok(tally.grants > 0 && operations.tcp > 0, "somebody was let in");
  assert.ok(operations.udp > 0 && operations.memory > 0, "also to what is not a connection");
  assert.ok(Object.values(rounds).reduce((sum, count) => sum + count, 0) >= 6);
});
