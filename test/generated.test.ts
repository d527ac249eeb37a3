import assert from "node:assert/strict";
import { test } from "node:test";
import { findStale } from "../scripts/generate.ts";

test("generated files are what their descriptions say", () => {
  const stale = findStale().map(({ path }) => path);
  assert.deepEqual(stale, [], "run npm run generate again");
});
