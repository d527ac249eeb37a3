/** A short form of `npm run torture:bytes`. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { attack } from "../../torture/byte-attack.ts";

const count = 1_500;
const seed = 20_261_115;

for (const target of ["server", "gateway"] as const) {
  test(`S3, G14: malformed bytes neither crash the ${target}, nor get a 5xx, nor carry anything past it`, async (t) => {
    const { rows, blockedMs, violations } = await attack({ target, count, seed });
    t.diagnostic(`the loop was blocked for ${blockedMs.toFixed(1)} ms at most`);
    assert.deepEqual(violations, []);
    for (const [kind, { sent }] of rows) assert.ok(sent > 0, kind);
  });
}

test("a proxy that passes everything on, and stops to think, is found by the same attack", async () => {
  const { blockedMs, violations } = await attack({ target: "planted", count: 200, seed, warmUps: 0 });
  assert.ok(violations.some((text) => text.startsWith("the service saw")));
  assert.ok(blockedMs > 50, `${blockedMs} ms`);
});
