import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { runRounds } from "../../torture/rounds.ts";
import { describeViolations } from "../../torture/violations.ts";

test("S1, L7, L11, W10: after each of six kill -9 under load the restarted server has kept every acknowledgement", async (t) => {
  const dataFolder = mkdtempSync(join(tmpdir(), "leasehold-kill-"));
  const seed = Date.now() % 1_000_000;
  const { findings, kills } = await runRounds({ dataFolder, rounds: 6, seconds: 1, seed, agents: 16 });
  const { tally, verified, violations, events, settled } = findings;
  assert.equal(violations.length, 0, `seed ${seed}, data in ${dataFolder}: ${describeViolations(violations)}`);
  assert.equal(kills, 6);
  assert.ok(tally.grants > 50 && tally.releases > 20 && verified > 50 && settled > 0, JSON.stringify(findings));
  t.diagnostic(`${tally.grants} grants, ${verified} checks of leases, ${events} events, seed ${seed}`);
  rmSync(dataFolder, { recursive: true });
});
