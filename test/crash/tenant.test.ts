import assert from "node:assert/strict";
import { test } from "node:test";
import { tenantTrial } from "../../torture/tenant-trial.ts";
import { temporaryFolder } from "../temporary-folder.ts";

/** Far above what it needs; without the quotas it takes more. */
const memoryBytesMax = 768 * 2 ** 20;

test("S4: beside a hostile tenant with quotas another one is served, refusals have codes, and memory is bounded; after kill -9 too", async (t) => {
  const dataFolder = temporaryFolder("leasehold-tenant-");
  const { alone, beside, after, attacks } = await tenantTrial(dataFolder, { seconds: 2 });
  for (const [name, { all, failures, rssPeak }] of Object.entries({ alone, beside, after })) {
    assert.deepEqual(failures, [], name);
    assert.ok(all.calls > 0, name);
    assert.ok(rssPeak < memoryBytesMax, `${name}: ${rssPeak} bytes`);
  }
  let refusals = 0;
  for (const [name, { sent, refused }] of Object.entries(attacks)) {
    assert.ok(sent > 0, name);
    assert.equal(refused["untyped"], undefined, name);
    for (const count of Object.values(refused)) refusals += count;
  }
  assert.ok(refusals > 0, JSON.stringify(attacks));
  t.diagnostic(`${beside.all.calls} calls beside ${refusals} refusals, ${beside.rssPeak} bytes`);
});
