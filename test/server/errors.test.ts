import assert from "node:assert/strict";
import { test } from "node:test";
import { DatabaseUnavailable, ShuttingDown } from "../../src/engine/faults.ts";
import { faultAnswer } from "../../src/server/dispatch.ts";
import { answerForError } from "../../src/server/http/errors.ts";
import { StoreFault } from "../../src/store/faults.ts";
import { serve } from "./harness.ts";

test("a bug is internal_error to the caller, without a word of its inside, and the log has all of it", async (t) => {
  const said: object[] = [];
  const log = { info: () => undefined, warn: () => undefined, error: (details: object) => void said.push(details) };
  const { service } = await serve(t, { log });
  const bug = new TypeError("cannot read secret.ts of undefined");
  for (const answer of [answerForError(bug, log), faultAnswer(service, bug)]) {
    assert.equal(answer.status, 500);
    assert.match(answer.body, /^\{"error":"internal_error"/);
    assert.ok(!answer.body.includes("secret"));
  }
  assert.deepEqual(said, [{ err: bug }, { err: bug }]);
});

test("S2: whatever the store says, the caller is told to try again, and when", async (t) => {
  const { service } = await serve(t);
  const cases = [
    [new DatabaseUnavailable(), "database_unavailable"],
    [new StoreFault("disk I/O error"), "database_unavailable"],
    [new ShuttingDown(), "shutting_down"],
  ] as const;
  for (const [fault, code] of cases) {
    const { status, body, retryAfter } = faultAnswer(service, fault);
    assert.deepEqual([status, retryAfter, JSON.parse(body).error], [503, 1, code]);
    assert.ok(!body.includes("disk"));
  }
});
