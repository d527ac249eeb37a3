import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { errorCodes, errors } from "../src/protocol/answers/errors.ts";
import { errorsDocument } from "../src/protocol/documents/errors-doc.ts";

const page = readFileSync("docs/errors.md", "utf8");

test("docs/errors.md has one row for each code, and none for any other", () => {
  const rows = [...page.matchAll(/^\| `(\w+)` \|/gm)].map(([, code]) => code);
  assert.deepEqual(rows.toSorted(), errorCodes.toSorted());
});

test("each row says the statuses, whether to retry, and what to do, as the code does", () => {
  for (const code of errorCodes) {
    const { statuses, retryable, whatToDo } = errors[code];
    const row = `| \`${code}\` | ${statuses.join(", ")} | ${retryable ? "yes" : "no"} | ${whatToDo} |`;
    assert.ok(
      page.includes(row),
      `docs/errors.md differs on ${code}; node src/protocol/documents/errors-doc.ts > docs/errors.md`,
    );
  }
  assert.equal(page, errorsDocument());
});

test("the advice for each code is a sentence", () => {
  for (const code of errorCodes) assert.match(errors[code].whatToDo, /^[A-Z`].*\.$/, code);
});
