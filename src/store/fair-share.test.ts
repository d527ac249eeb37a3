import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { excessOf, halves, type Share } from "./fair-share.ts";

const rowsOf = (...counts: readonly number[]): Share[] =>
  counts.map((rows, index) => ({ tenant: `t${index}`, rows, rowBytes: 1 }));

test("S4: a tenant that has less than its share loses nothing, however many rows another has", () => {
  assert.deepEqual([...excessOf(rowsOf(1_000_000, 40, 60), 200)], [["t0", 999_900]]);
  assert.deepEqual([...excessOf(rowsOf(500, 90, 500), 290)].sort(), [
    ["t0", 400],
    ["t2", 400],
  ]);
});

test("S4: a tenant that is alone keeps everything that may be kept, and nothing goes while there is room", () => {
  assert.deepEqual(halves(601), { youngest: 301, shared: 300 });
  assert.deepEqual([...excessOf(rowsOf(1_000), 300)], [["t0", 700]]);
  assert.deepEqual([...excessOf(rowsOf(100, 200), 300)], []);
  assert.deepEqual([...excessOf([], 0)], []);
});

test("S4: few large rows are as many bytes as many small ones", () => {
  const shares: Share[] = [
    { tenant: "large", rows: 100, rowBytes: 1_000_000 },
    { tenant: "small", rows: 1_000, rowBytes: 1_000 },
  ];
  assert.deepEqual([...excessOf(shares, 10_000, 11_000_000)], [["large", 90]]);
});

test("S4: for all shares, what is kept fits, and no tenant keeps less than another that loses rows", () => {
  const counts = fc.array(fc.nat(1_000), { minLength: 1, maxLength: 8 });
  fc.assert(
    fc.property(counts, fc.nat(4_000), (rows, most) => {
      const shares = rowsOf(...rows);
      const excess = excessOf(shares, most);
      const kept = shares.map((share) => share.rows - (excess.get(share.tenant) ?? 0));
      const sum = kept.reduce((a, b) => a + b, 0);
      assert.ok(sum <= most || excess.size === 0);
      if (excess.size > 0) assert.ok(sum > most - shares.length);
      for (const [index, share] of shares.entries()) {
        if (excess.has(share.tenant)) assert.ok(kept.every((other) => other <= (kept[index] ?? 0)));
      }
    }),
  );
});
