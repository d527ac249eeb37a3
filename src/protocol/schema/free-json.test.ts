import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { saveDigest } from "../agents/digests.ts";
import { findJsonFault } from "./free-json.ts";
import { limits } from "./limits.ts";

function nested(depth: number): unknown {
  return JSON.parse("[".repeat(depth) + "]".repeat(depth));
}

test("JSON of the caller's own making may nest so deep and no deeper, and the search for it cannot overflow", () => {
  assert.equal(findJsonFault(nested(limits.jsonDepthMax), "context"), null);
  assert.match(findJsonFault(nested(limits.jsonDepthMax + 1), "context")?.detail ?? "", /nests deeper than 64 levels/);
  assert.notEqual(findJsonFault(nested(100_000), "context"), null);
});

test("its keys and texts are storable, however deep they lie", () => {
  for (const text of [
    '{"a":[{"__proto__":1}]}',
    '{"constructor":1}',
    '[["\\u0000"]]',
    '{"\\ud800":1}',
    '{"a":"\\udc00"}',
  ]) {
    assert.notEqual(findJsonFault(JSON.parse(text), "context"), null, text);
  }
  const fine = fc.jsonValue({ stringUnit: "grapheme" });
  fc.assert(
    fc.property(
      fine,
      (value) =>
        /\\u0000|constructor|prototype|__proto__/.test(JSON.stringify(value)) ||
        findJsonFault(value, "context") === null,
    ),
  );
});

test("a digest's context is held to that (A2)", () => {
  const digest = { agent_id: "agt_1", checkpoint_id: "c", resume_point: "r" };
  assert.ok(saveDigest.check({ ...digest, context: { steps: [1, 2, { three: null }] } }).ok);
  const checked = saveDigest.check({ ...digest, context: nested(1_000) });
  assert.ok(!checked.ok);
  assert.deepEqual([checked.code, checked.field], ["invalid_request", "context"]);
});
