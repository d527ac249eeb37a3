import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { textHash } from "../names/resource-name.ts";
import { type Segment, SegmentTable } from "./hash-tables.ts";

/** From segments that never meet to segments that all do. */
const anyHash = fc.constantFrom(
  textHash,
  (text: string) => textHash(text) & 3,
  () => 0,
  (text: string) => textHash(text) << 28,
);
const anySteps = fc.array(
  fc.record({ segment: fc.integer({ min: 0, max: 200 }).map((n) => `s${n}`), deletes: fc.boolean() }),
  { maxLength: 600, size: "max" },
);

test("a segment table holds what was added and not deleted, whatever the hashes are", () => {
  fc.assert(
    fc.property(anyHash, anySteps, (hashOf, steps) => {
      const model = new Map<string, Segment>();
      const table = new SegmentTable<Segment>();
      for (const { segment, deletes } of steps) {
        const known = model.get(segment);
        if (deletes && known !== undefined) {
          model.delete(segment);
          table.delete(known);
        } else if (!deletes && known === undefined) {
          const node = { segment, hash: hashOf(segment) };
          model.set(segment, node);
          table.add(node);
        }
        assert.equal(table.size, model.size);
        assert.equal(table.get(segment, hashOf(segment)), model.get(segment));
      }
      for (let n = 0; n <= 200; n++) assert.equal(table.get(`s${n}`, hashOf(`s${n}`)), model.get(`s${n}`));
      assert.deepEqual(bySegment([...table.values()]), bySegment([...model.values()]));
    }),
  );
});

function bySegment(nodes: Segment[]): Segment[] {
  return nodes.sort((a, b) => (a.segment < b.segment ? -1 : 1));
}
