import assert from "node:assert/strict";
import { test } from "node:test";
import { runDay } from "./day-of-tasks.ts";

/** The long form, 8.6 million tasks, is `npm run sim:day`. */
test("S4, T12: what is alive does not grow with the tasks that were created with idempotency keys and are over", () => {
  const { tasks, recordsEarly, records } = runDay(0.01, 100);
  assert.equal(tasks, 3_600);
  assert.equal(records, recordsEarly);
  assert.ok(records < 10, `${records} live records`);
});
