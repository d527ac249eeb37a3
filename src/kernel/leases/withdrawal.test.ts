import assert from "node:assert/strict";
import { test } from "node:test";
import { limits } from "../contract/limits.ts";
import { createCellWorld } from "../testing/cell-world.ts";
import { createWorld } from "../testing/test-world.ts";

const heartbeatOf = (leaseId: string) => ({ type: "heartbeat", leaseId, activity: false }) as const;

test("G12: a withdrawn resource gives no new leases; the live ones run out, or are revoked on demand", () => {
  const world = createWorld("a", "b", "c");
  world.declare("GPU:/0", 4);
  const lease = world.grant("a", "MUTATES GPU:/0", { ttlMs: 10_000 });
  world.withdraw("GPU:/0");
  assert.equal(world.pauses("b", "MUTATES GPU:/0").reason, "resource_withdrawn");
  assert.equal(world.pauses("b", "CONSUMES GPU:/**").reason, "resource_withdrawn");
  world.later(5_000);
  for (const type of ["heartbeat", "renew_lease"] as const) {
    const ask = { type, actor: world.as("a"), leaseId: lease.id, activity: false, generation: null } as const;
    world.refused("resource_withdrawn", ask);
  }
  const { leases, notExtended } = world.heartbeatAll("a");
  assert.deepEqual([leases[0]?.expiresAt, notExtended?.[0]?.code], [lease.expiresAt, "resource_withdrawn"]);
  world.pass(5_000);
  assert.equal(world.ended(lease.id).state, "EXPIRED", "a drain ends within one TTL");
  world.declare("GPU:/0", 4);
  const next = world.grant("b", "MUTATES GPU:/0");
  world.withdraw("GPU:/0", true);
  assert.deepEqual([world.ended(next.id).state, world.ended(next.id).endReason], ["REVOKED", "resource_withdrawn"]);
  world.declare("GPU:/0", 4);
  world.grant("c", "MUTATES GPU:/0");
});

test("G12: what covers a withdrawn resource by a pattern is not extended either, and lives on beside it", () => {
  const world = createWorld("a");
  const broad = world.grant("a", "CONSUMES FILE:/src/**");
  const beside = world.grant("a", "CONSUMES FILE:/docs/a");
  world.withdraw("FILE:/src/x");
  world.refused("resource_withdrawn", heartbeatOf(broad.id));
  world.heartbeat(beside.id);
});

test("G8: a renewal passes admission again: readiness, withdrawal of its cell, quotas", () => {
  const world = createCellWorld("a");
  world.enrol("c1", ["GPU:/0"]);
  const lease = world.active("a", "MUTATES GPU:/0", { ttlMs: 60_000 });
  const ask = { type: "renew_lease", leaseId: lease.id, generation: null, activity: false } as const;
  world.quotas({ kinds: { GPU: 0 } });
  assert.equal(world.refused("lease_denied", ask).reason, "quota");
  world.quotas({ kinds: {}, leasesMax: 0 });
  assert.equal(world.refused("lease_denied", ask).reason, "quota");
  world.quotas({ leasesMax: 10 });
  world.pass(limits.cellAliveMs);
  assert.equal(world.expect("paused", world.ask(ask)).reason, "cell_not_ready");
  world.beat("c1");
  assert.equal(world.renew(lease.id).generation, 2);
  world.ask({ type: "withdraw_cell", cellId: "c1", revoke: false });
  world.refused("resource_withdrawn", ask);
  world.refused("resource_withdrawn", heartbeatOf(lease.id));
});
