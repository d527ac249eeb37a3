import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Refused } from "../../src/server/answering/faults.ts";
import { cursorFor, PageBuilder, readCursor } from "../../src/server/queries/paging.ts";

test("all pages together are the whole list in order, whatever the order of the items", () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.string({ maxLength: 6 }), { maxLength: 300 }),
      fc.integer({ min: 1, max: 40 }),
      (keys, limit) => {
        const collected: string[] = [];
        let after: string | null = null;
        do {
          const page: PageBuilder<string> = new PageBuilder<string>(limit, after);
          for (const key of keys) page.offer(key, key);
          const { items, lastKey } = page.build();
          assert.ok(items.length <= limit);
          collected.push(...items);
          after = lastKey;
        } while (after !== null);
        assert.deepEqual(
          collected,
          keys.toSorted((a, b) => (a < b ? -1 : 1)),
        );
      },
    ),
  );
});

test("a page of very many items is right, although most are dropped on the way", () => {
  const page = new PageBuilder<number>(10, "k00000005");
  for (let turn = 0; turn < 50_000; turn++) {
    const number = (turn * 7_919) % 50_000;
    page.offer(`k${String(number).padStart(8, "0")}`, number);
  }
  const { items, lastKey } = page.build();
  assert.deepEqual(items, [6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
  assert.equal(lastKey, "k00000015");
});

test("a cursor is valid for its own list only", () => {
  assert.equal(readCursor("leases", null), null);
  assert.equal(readCursor("leases", cursorFor("leases", "lse_1")), "lse_1");
  assert.equal(readCursor("resources", cursorFor("resources", "FILE:/ä/ö")), "FILE:/ä/ö");
  for (const cursor of [cursorFor("agents", "x"), "", "nonsense", "====", "\u0000", "bGVhc2Vz"]) {
    assert.throws(() => readCursor("leases", cursor), Refused, cursor);
  }
});
