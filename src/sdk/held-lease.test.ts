import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock, Timekeeper } from "../keeper/clock.ts";
import { HeldLease } from "./held-lease.ts";
import type { Lease } from "./wire.ts";

const time = new Timekeeper(systemClock);

function leaseWith(change: Partial<Lease>): Lease {
  return {
    id: "lse_1",
    resource: "GPU:/lab/a",
    predicate: "MUTATES",
    agent_id: "agt_1",
    state: "ACTIVE",
    fence: 1,
    generation: 1,
    units: 1,
    purpose: null,
    acquired_at: "2026-01-01T00:00:00.000Z",
    expires_at: "2026-01-01T00:01:00.000Z",
    expires_in_ms: 60_000,
    ttl: 60_000,
    token: "one",
    ...change,
  };
}

test("an answer that comes late, or twice, never brings an older token or an earlier end back", async () => {
  const held = new HeldLease(leaseWith({}), time.mark(), time);
  const tokens: string[] = [];
  held.onToken((token) => tokens.push(token));
  const second = leaseWith({ generation: 2, fence: 2, token: "two" });
  held.note(second, time.mark());
  held.note(leaseWith({ expires_in_ms: 90_000 }), time.mark());
  held.note(second, time.mark());
  held.note({ ...second, expires_in_ms: 1_000 }, time.mark());
  assert.equal(held.lease.token, "two");
  assert.ok(held.leftMs > 50_000);
  await Promise.resolve();
  assert.deepEqual(tokens, ["two"]);
});

test("an answer that does not show the token leaves that of the same generation, and no older one", () => {
  const held = new HeldLease(leaseWith({ expires_in_ms: 1_000 }), time.mark(), time);
  const { token: _, ...bare } = leaseWith({});
  held.note(bare, time.mark());
  assert.equal(held.lease.token, "one");
  held.note({ ...bare, generation: 2 }, time.mark());
  assert.equal(held.lease.token, undefined);
});

test("a token is not counted on for longer than tokens live, however long the lease is", () => {
  const held = new HeldLease(leaseWith({ expires_in_ms: 900_000, ttl: 900_000 }), time.mark(), time);
  assert.ok(held.leftMs <= 300_000);
});
