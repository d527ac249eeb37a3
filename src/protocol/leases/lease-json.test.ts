import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Lease } from "../../kernel/contract/records.ts";
import { type Blocker, blocker } from "../../kernel/contract/replies.ts";
import { checkOf } from "../schema/check.ts";
import { formOf } from "../schema/convert.ts";
import { leaseStates, predicates } from "../schema/vocabulary.ts";
import { sampleBlocker, sampleLease, sampleNow } from "../testing/sample-records.ts";
import { expiresInMs, leaseForm, leaseObject, leaseText } from "./lease-json.ts";
import * as shapes from "./shapes.ts";

const anyText = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.string(),
  fc.constantFrom('"', "\\", "\u2028", "\ud800", "\0"),
);
const anyLease: fc.Arbitrary<Partial<Lease>> = fc.record({
  id: anyText,
  resource: anyText,
  agentId: anyText,
  predicate: fc.constantFrom(...predicates),
  state: fc.constantFrom(...leaseStates),
  fence: fc.maxSafeNat(),
  generation: fc.nat(),
  units: fc.nat(),
  purpose: fc.option(anyText, { nil: null }),
  coordinate: fc.option(anyText, { nil: null }),
  acquiredAt: fc.integer({ min: 0, max: 4e12 }),
  expiresAt: fc.integer({ min: 0, max: 4e12 }),
});

test("a lease as text is the lease as an object, whatever its texts hold", () => {
  fc.assert(
    fc.property(anyLease, fc.integer({ min: 0, max: 4e12 }), fc.option(anyText, { nil: null }), (over, now, token) => {
      const lease = sampleLease(over);
      assert.equal(leaseText(lease, now, token), JSON.stringify(leaseObject(lease, now, token)));
    }),
    { numRuns: 3_000 },
  );
});

test("a lease has L1's fields under API.md's names, times with milliseconds, and no others", () => {
  const value: unknown = JSON.parse(leaseText(sampleLease(), sampleNow + 1_234));
  assert.deepEqual(value, {
    id: "lse_01jcs8qm5t6w8y0a",
    resource: "FILE:/src/auth.ts",
    predicate: "MUTATES",
    agent_id: "agt_01jcs8qk2m9x4n7r",
    state: "ACTIVE",
    fence: 4711,
    generation: 1,
    units: 1,
    purpose: "rename login()",
    acquired_at: "2026-11-15T20:59:51.123Z",
    expires_at: "2026-11-15T21:00:51.123Z",
    expires_in_ms: 58_766,
    ttl: 60_000,
  });
  assert.ok(checkOf(shapes.lease)(value).ok);
});

test("a token and a coordinate are there only where the lease has them (G3)", () => {
  const bound = sampleLease({ cell: "cell-1", coordinate: "tcp://10.0.0.3:9000" });
  const { token, coordinate } = JSON.parse(leaseText(bound, sampleNow, "tok")) as Record<string, unknown>;
  assert.deepEqual([token, coordinate], ["tok", "tcp://10.0.0.3:9000"]);
  assert.ok(!leaseText(sampleLease(), sampleNow).includes("token"));
  const context = { now: sampleNow, tokenOf: () => "tok" };
  assert.ok("token" in leaseForm.object(bound, context) && !("token" in leaseForm.object(sampleLease(), context)));
  assert.equal(leaseForm.text(bound, context), JSON.stringify(leaseForm.object(bound, context)));
});

test("expires_in_ms counts down to 0 and no further, and is 0 for what cannot be used any more (L3, L9)", () => {
  const lease = sampleLease();
  assert.equal(expiresInMs(lease, lease.expiresAt - 1), 1);
  assert.equal(expiresInMs(lease, lease.expiresAt), 0);
  assert.equal(expiresInMs(lease, lease.expiresAt + 5), 0);
  for (const state of ["HELD", "CLOSING", "RELEASED", "EXPIRED", "REVOKED"] as const) {
    assert.equal(expiresInMs(sampleLease({ state }), sampleNow), 0, state);
  }
});

test("what stands in the way is named with agent, purpose and remaining time (W11)", () => {
  const form = formOf<Blocker>(blocker);
  const shown = [
    sampleBlocker(),
    sampleBlocker({ until: null }),
    sampleBlocker({ leaseId: null, requestId: "req_1", until: null, purpose: null }),
  ].map((one) => {
    const text = form.text(one, { now: sampleNow });
    assert.equal(text, JSON.stringify(form.object(one, { now: sampleNow })));
    return JSON.parse(text) as { readonly expires_in_ms?: number };
  });
  assert.deepEqual(
    shown.map((one) => one.expires_in_ms),
    [60_000, undefined, undefined],
  );
  assert.deepEqual(shown[2], {
    request_id: "req_1",
    agent_id: "agt_01jcs8qk2m9x4n7r",
    resource: "FILE:/src/auth.ts",
    predicate: "MUTATES",
    purpose: null,
  });
});
