import assert from "node:assert/strict";
import { test } from "node:test";
import { tortureCells } from "../../torture/cells.ts";

test("a few rounds of torture: no access after the end, no two holders, nothing free before it was torn down", async () => {
  const { violations, operations, tally, rounds } = await tortureCells(6, Date.now() % 1_000_000, () => {});
  assert.deepEqual(violations, []);
  assert.ok(tally.grants > 0 && operations.tcp > 0, "somebody was let in");
  assert.ok(Object.values(rounds).reduce((sum, count) => sum + count, 0) >= 6);
});
