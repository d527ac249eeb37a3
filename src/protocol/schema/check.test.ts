import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Check } from "typebox/value";
import { registerAgent } from "../agents/agents.ts";
import { isErrorCode } from "../answers/errors.ts";
import { acquire } from "../leases/acquiring.ts";
import type { Input } from "../operation.ts";
import { operations } from "../operations.ts";
import { type Checked, checkOf } from "./check.ts";
import { explain } from "./explain.ts";
import { limits } from "./limits.ts";
import type { Node } from "./schema.ts";

const body = { agent_id: "agt_1", intents: [{ predicate: "MUTATES", resource: "FILE:/a" }] };

/** Through JSON, as it comes in: what is not JSON never gets here. */
function check(text: string): Checked<Input> {
  return acquire.check(JSON.parse(text));
}

function faultOf(over: object) {
  const checked = check(JSON.stringify({ ...body, ...over }));
  assert.ok(!checked.ok);
  return checked;
}

test("a value that passes is handed on as it is", () => {
  const checked = acquire.check(body);
  assert.ok(checked.ok);
  assert.equal(checked.value, body);
});

test("a wrong type is named with its field, what it is and what to send (S3)", () => {
  const cases: readonly (readonly [object, string, string])[] = [
    [{ ttl_ms: "60000" }, "ttl_ms", "ttl_ms is a string; send an integer or null."],
    [{ ttl_ms: 1.5 }, "ttl_ms", "ttl_ms is a number that is not whole; send an integer or null."],
    [{ tokens: 1 }, "tokens", "tokens is an integer; send a boolean or null."],
    [{ intents: {} }, "intents", "intents is an object; send an array."],
    [{ intents: [[]] }, "intents.0", "intents.0 is an array; send an object."],
    [{ agent_id: null }, "agent_id", "agent_id is null; send a string."],
    [
      { intents: [{ predicate: 7, resource: "FILE:/a" }] },
      "intents.0.predicate",
      "intents.0.predicate is an integer; send a string.",
    ],
  ];
  for (const [over, field, detail] of cases) {
    const fault = faultOf(over);
    assert.deepEqual([fault.code, fault.field, fault.detail], ["invalid_request", field, detail]);
  }
});

test("a missing field is named, with what to send", () => {
  const checked = check("{}");
  assert.ok(!checked.ok);
  assert.deepEqual([checked.field, checked.detail], ["agent_id", "agent_id is missing; send a string."]);
});

test("a value out of bounds has the code that the kernel would give it, and the bound", () => {
  const long = "x".repeat(limits.purposeLengthMax + 1);
  const many = Array.from({ length: limits.intentsMax + 1 }, () => body.intents[0]);
  const cases: readonly (readonly [object, string, string])[] = [
    [{ ttl_ms: limits.ttlMsMin - 1 }, "invalid_ttl", "ttl_ms is 99; send at least 100."],
    [{ wait_timeout_ms: -1 }, "invalid_wait_timeout", "wait_timeout_ms is -1; send at least 0."],
    [{ hold_ms: 55_001 }, "invalid_request", "hold_ms is 55001; send at most 55000."],
    [{ purpose: long }, "invalid_purpose", "purpose has 1025 characters; shorten it to 1024."],
    [{ intents: [] }, "empty_manifest", "intents is empty; send at least 1 item."],
    [{ intents: many }, "manifest_too_large", "intents has 257 items; send at most 256."],
    [{ request_id: "" }, "invalid_request_id", "request_id is empty; send at least 1 character."],
  ];
  for (const [over, code, detail] of cases) {
    const fault = faultOf(over);
    assert.deepEqual([fault.code, fault.detail], [code, detail]);
  }
  const { code, field, detail } = faultOf({ intents: [{ predicate: "WRITES", resource: "FILE:/a" }] });
  assert.deepEqual([code, field], ["invalid_predicate", "intents.0.predicate"]);
  assert.match(detail, /PROVIDES, CONSUMES, MUTATES, DELETES, DEPENDS_ON, RENAMES/);
});

test("an unknown field is refused by name, deep down too, with those that are known", () => {
  const { field, detail } = faultOf({ ttl: 5 });
  assert.equal(field, "ttl");
  assert.match(detail, /^"ttl" is not a known field; leave it out\. Known here: agent_id, intents, ttl_ms,/);
  assert.equal(faultOf({ intents: [{ ...body.intents[0], ttl_ms: 5 }] }).field, "intents.0.ttl_ms");
});

test("__proto__, constructor and their like are unknown fields, and no keys of maps either", () => {
  for (const key of ["__proto__", "constructor", "prototype", "toString", "hasOwnProperty"]) {
    const outer = check(`{"agent_id":"a","intents":[{"predicate":"MUTATES","resource":"FILE:/a"}],"${key}":{"x":1}}`);
    assert.ok(!outer.ok);
    assert.equal(outer.field, key);
    const inner = check(`{"agent_id":"a","intents":[{"predicate":"MUTATES","resource":"FILE:/a","${key}":1}]}`);
    assert.ok(!inner.ok);
    assert.equal(inner.field, `intents.0.${key}`);
  }
  for (const key of ["__proto__", "constructor", "prototype"]) {
    const checked = registerAgent.check(JSON.parse(`{"labels":{"${key}":"x"}}`));
    assert.ok(!checked.ok);
    assert.equal(checked.field, `labels.${key}`);
  }
});

test("the name of an unknown field is cut short before it is said again", () => {
  const { field, detail } = faultOf({ ["k".repeat(100_000)]: 1 });
  assert.ok(field.length < 200);
  assert.ok(detail.length < 600);
});

test("text that a store could not give back as it was is refused", () => {
  for (const purpose of ["\0", "a\ud800", "\udc00b"]) assert.equal(faultOf({ purpose }).field, "purpose");
  assert.ok(check(JSON.stringify({ ...body, purpose: "🙂 fine\n" })).ok);
});

test("numbers beyond exactness are refused", () => {
  for (const number of ["1e400", "9007199254740992", "-0.5", "1e16"]) {
    assert.ok(
      !check(`{"agent_id":"a","intents":[{"predicate":"MUTATES","resource":"FILE:/a"}],"ttl_ms":${number}}`).ok,
      number,
    );
  }
});

test("what is not an object is refused as a whole", () => {
  for (const [text, kind] of [
    ["null", "null"],
    ["[]", "an array"],
    ['"x"', "a string"],
    ["5", "an integer"],
  ] as const) {
    const checked = check(text);
    assert.ok(!checked.ok);
    assert.deepEqual([checked.field, checked.detail], ["", `The input is ${kind}; send an object.`]);
  }
});

const junk = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }),
  fc.constantFrom<unknown>(
    null,
    0,
    -1,
    1.5,
    2 ** 53,
    "",
    "x".repeat(2_000),
    "\ud800",
    "\0",
    [],
    {},
    true,
    JSON.parse('{"__proto__":1}'),
  ),
);
const key = fc.oneof(
  fc.string(),
  fc.constantFrom("__proto__", "constructor", "agent_id", "intents", "labels", "hold_ms"),
);

/** Puts junk at some place of a good input, or adds it under some key. */
function damaged(good: unknown): fc.Arbitrary<unknown> {
  const places = placesIn(good);
  return fc.tuple(fc.constantFrom(...places), junk, fc.option(key, { nil: null })).map(([place, value, extra]) => {
    const copy = structuredClone(good);
    if (place.length === 0 && extra === null) return value;
    let at = copy as Record<string, unknown>;
    for (const step of extra === null ? place.slice(0, -1) : place) {
      const next = at[step];
      if (typeof next !== "object" || next === null) return value;
      at = next as Record<string, unknown>;
    }
    const name = Array.isArray(at) ? String(at.length) : (extra ?? place.at(-1) ?? "");
    Object.defineProperty(at, name, { value, enumerable: true, configurable: true, writable: true });
    return JSON.parse(JSON.stringify(copy)) as unknown; // What comes in has been JSON, and arrays have no holes.
  });
}

function placesIn(value: unknown, path: readonly string[] = []): readonly (readonly string[])[] {
  if (typeof value !== "object" || value === null) return [path];
  return [path, ...Object.entries(value).flatMap(([name, inner]) => placesIn(inner, [...path, name]))];
}

test("for every operation and any damage: never a throw, always a code, field and sentence, never a pass that JSON Schema denies", () => {
  for (const { name, input, example } of operations) {
    const checkInput = checkOf(input);
    const property = fc.property(damaged(example), (value) => {
      const checked = checkInput(value);
      const fault = explain(input, value);
      assert.equal(checked.ok, fault === null, `${name}: the compiled check and the explanation differ`);
      if (checked.ok) {
        // The items of some lists are checked one by one, later.
        assert.ok(hasApart(input) || Check(input, value), `${name}: passed what its schema refuses`);
        return;
      }
      assert.ok(isErrorCode(checked.code));
      assert.match(checked.detail, /\S.*\.$/s);
      assert.ok(checked.detail.isWellFormed() && checked.field.isWellFormed());
    });
    fc.assert(property, { numRuns: 400 });
  }
});

function hasApart({ properties = {} }: Node): boolean {
  return Object.values(properties).some((one) => one["x-apart"] === true);
}
