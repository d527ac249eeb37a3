import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { textHash } from "../names/resource-name.ts";
import { TextMap } from "./hash-tables.ts";

interface Thing {
  readonly text: string;
  readonly number: number;
}
const textOf = ({ text }: Thing): string => text;

/** From texts that never meet to texts that all do. */
const anyHash = fc.constantFrom(
  textHash,
  (text: string) => textHash(text) & 3,
  () => 0,
  (text: string) => textHash(text) << 28,
);
const anySteps = fc.array(
  fc.record({ text: fc.integer({ min: 0, max: 2_000 }).map((n) => `t${n}`), deletes: fc.boolean() }),
  { maxLength: 3_000, size: "max" },
);

test("a text map answers as the language's own does, whatever the hashes are", () => {
  fc.assert(
    fc.property(anyHash, anySteps, (hash, steps) => {
      const model = new Map<string, Thing>();
      const map = new TextMap<Thing>(textOf, hash);
      for (const [number, { text, deletes }] of steps.entries()) {
        const thing = { text, number };
        if (deletes) {
          model.delete(text);
          map.delete(text);
        } else {
          model.set(text, thing);
          map.set(text, thing);
        }
        assert.equal(map.get(text), model.get(text));
        assert.equal(map.has(text), model.has(text));
        assert.equal(map.size, model.size);
      }
      assert.deepEqual(new Set(map.values()), new Set(model.values()));
      for (let n = 0; n <= 2_000; n++) assert.equal(map.get(`t${n}`), model.get(`t${n}`));
    }),
  );
});

test("who looks through a text map sees what stays exactly once, whatever comes and goes meanwhile", () => {
  fc.assert(
    fc.property(anyHash, fc.array(anySteps, { minLength: 1, maxLength: 20 }), (hash, changes) => {
      const map = new TextMap<Thing>(textOf, hash);
      const stays = Array.from({ length: 50 }, (_, number) => ({ text: `stays-${number}`, number }));
      for (const thing of stays) {
        map.set(thing.text, thing);
        map.set(`t${thing.number}`, { text: `t${thing.number}`, number: -1 });
      }
      const seen: Thing[] = [];
      let looked = 0;
      for (const thing of map.values()) {
        if (thing.text.startsWith("stays")) seen.push(thing);
        for (const { text, deletes } of changes[looked++] ?? []) {
          if (deletes) map.delete(text);
          else map.set(text, { text, number: looked });
        }
      }
      assert.deepEqual(
        seen.sort((a, b) => a.number - b.number),
        stays,
      );
    }),
  );
});
