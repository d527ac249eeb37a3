import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { escaped } from "./text.ts";

test("escaped text between quotes is what JSON.stringify writes, whatever the text holds", () => {
  const everyUnit = fc.string({ unit: fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code)) });
  fc.assert(
    fc.property(fc.oneof(everyUnit, fc.string()), (text) => `"${escaped(text)}"` === JSON.stringify(text)),
    { numRuns: 5_000 },
  );
  for (let code = 0; code <= 0xffff; code++) {
    const text = String.fromCharCode(code);
    assert.equal(`"${escaped(text)}"`, JSON.stringify(text));
  }
});
