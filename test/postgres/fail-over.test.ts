import assert from "node:assert/strict";
import { test } from "node:test";
import { tryCluster } from "../../torture/cluster-trial.ts";

test("S1, L7, L11: five fail-overs under load lose nothing, and no two holders are ever acknowledged", async () => {
  const faults = ["kill", "pause", "deaf", "restart", "resign"] as const;
  const { violations, acknowledged } = await tryCluster({ faults, lasting: 300, leaseMs: 1_500 });
  assert.deepEqual(violations, []);
  assert.ok(acknowledged > 0);
});
