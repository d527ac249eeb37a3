import assert from "node:assert/strict";
import { test } from "node:test";
import { pauseTrial } from "../../torture/pause.ts";

test("five processes that are paused at random lose no addition where the fence is checked", async (t) => {
  const { fenced, plain } = await pauseTrial(28);
  t.diagnostic(`with the fence: ${JSON.stringify(fenced)}`);
  t.diagnostic(`as a plain lock: ${JSON.stringify(plain)}`);
  assert.ok(fenced.acknowledged > 0 && fenced.pauses > 0, "something happened");
  assert.equal(fenced.lost, 0);
});
