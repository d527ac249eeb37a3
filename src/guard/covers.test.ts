import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { nameCovers } from "../kernel/names/pattern.ts";
import { parseResourceName } from "../kernel/names/resource-name.ts";
import { covers } from "./targets.ts";

test("a leased name covers a file exactly where the kernel says so", () => {
  const segment = fc.stringMatching(/^[ab*?]{1,3}$/);
  const literal = fc.stringMatching(/^[ab]{1,3}$/);
  fc.assert(
    fc.property(
      fc.array(fc.oneof(segment, fc.constant("**")), { minLength: 1, maxLength: 4 }),
      fc.array(literal, { minLength: 1, maxLength: 4 }),
      (pattern, name) => {
        const [a, b] = [`FILE:/${pattern.join("/")}`, `FILE:/${name.join("/")}`].map(parseResourceName);
        assert.ok(a !== undefined && b !== undefined && !("problem" in a) && !("problem" in b));
        assert.equal(covers(a.text, b.text), nameCovers(a, b), `${a.text} over ${b.text}`);
      },
    ),
    { numRuns: 2_000 },
  );
});
