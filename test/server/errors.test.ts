import assert from "node:assert/strict";
import { test } from "node:test";
import { DatabaseUnavailable, ShuttingDown } from "../../src/engine/engine-types.ts";
import { bodyText } from "../../src/protocol/answers/answer.ts";
import { answerForFault } from "../../src/server/answering/faults.ts";
import { answerForError } from "../../src/server/http/errors.ts";
import { StoreFault } from "../../src/store/faults.ts";
import { serve } from "./harness.ts";

test("a bug is answered with internal_error without internals, and the log has the details", async (t) => {
  const said: object[] = [];
  const log = { info: () => undefined, warn: () => undefined, error: (details: object) => void said.push(details) };
  const { service } = await serve(t, { log });
  const bug = new TypeError("cannot read secret.ts of undefined");
  for (const answer of [answerForError(bug, log), answerForFault(service, bug)]) {
    assert.equal(answer.status, 500);
    const body = bodyText(answer);
    assert.match(body, /^\{"error":"internal_error"/);
    assert.ok(!body.includes("secret"));
  }
  assert.deepEqual(said, [{ err: bug }, { err: bug }]);
});

test("S2: every storage error is answered as retryable, with a time", async (t) => {
  const { service } = await serve(t);
  const cases = [
    [new DatabaseUnavailable(), "database_unavailable"],
    [new StoreFault("disk I/O error"), "database_unavailable"],
    [new ShuttingDown(), "shutting_down"],
  ] as const;
  for (const [fault, code] of cases) {
    const answer = answerForFault(service, fault);
    assert.deepEqual([answer.status, answer.retryAfter, answer.code], [503, 1, code]);
    assert.ok(!bodyText(answer).includes("disk"));
  }
});
