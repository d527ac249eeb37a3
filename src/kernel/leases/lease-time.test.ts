import assert from "node:assert/strict";
import { test } from "node:test";
import { limits } from "../contract/limits.ts";
import { restore, snapshot } from "../kernel.ts";
import { createCellWorld } from "../testing/cell-world.ts";
import { createWorld, type World } from "../testing/test-world.ts";

const day = limits.leaseTimeWindowMs;
const x = "MUTATES FILE:/x";

const heartbeat = (world: World, agentId: string, leaseId: string, activity = false) =>
  ({ type: "heartbeat", actor: world.as(agentId), leaseId, activity }) as const;
const renew = (world: World, agentId: string, leaseId: string, activity = false) =>
  ({ type: "renew_lease", actor: world.as(agentId), leaseId, generation: null, activity }) as const;

/** At noon, so that no test runs into midnight by chance. */
function atNoon(...agents: readonly string[]): World {
  const world = createWorld(...agents);
  world.later(day - (world.now % day) + day / 2);
  return world;
}

test("L10: the tenant's quota counts live time: a squatter that only sends heartbeats uses it up", () => {
  const world = atNoon("a", "b");
  world.quotas({ tenantLeaseTimeMsMax: 60_000 });
  const lease = world.grant("a", x, { ttlMs: 20_000 });
  for (const _ of [1, 2, 3]) {
    world.later(15_000);
    world.heartbeat(lease.id);
  }
  world.later(15_000);
  const refusal = world.refused("lease_denied", heartbeat(world, "a", lease.id));
  assert.deepEqual([refusal.reason, refusal.leaseId], ["quota", lease.id]);
  world.refused("lease_denied", renew(world, "a", lease.id));
  assert.equal(world.lease(lease.id)?.expiresAt, lease.acquiredAt + 65_000, "it keeps its present end");
  const { leases, notExtended } = world.heartbeatAll("a");
  assert.deepEqual([leases.length, notExtended?.[0]?.code], [1, "lease_denied"]);
  world.pass(5_000);
  assert.equal(world.ended(lease.id).state, "EXPIRED");
  assert.equal(world.refused("lease_denied", world.acquire("b", "MUTATES FILE:/y")).reason, "quota");
});

test("L10: what is booked is booked once, whatever extends and ends the lease", () => {
  const world = atNoon("a");
  world.quotas({ tenantLeaseTimeMsMax: 1_000_000 });
  const lease = world.grant("a", x, { ttlMs: 20_000 });
  world.later(10_000);
  world.heartbeat(lease.id);
  world.later(10_000);
  world.renew(lease.id);
  world.later(10_000);
  world.release(lease.id);
  const used = () => world.base.state.tenants.get(world.tenant)?.counters.record.leaseTimeMs;
  assert.equal(used(), 30_000);
});

test("L10: a lease over midnight is booked on its days", () => {
  const world = createWorld("a");
  world.later(day - (world.now % day) + day - 60_000);
  world.quotas({ tenantLeaseTimeMsMax: 100_000 });
  const lease = world.grant("a", x, { ttlMs: 200_000 });
  world.later(50_000);
  world.heartbeat(lease.id);
  world.later(30_000);
  world.heartbeat(lease.id);
  const counters = () => world.base.state.tenants.get(world.tenant)?.counters.record;
  assert.deepEqual([counters()?.leaseTimeMs, counters()?.windowStart], [20_000, world.now - 20_000]);
  world.later(30_000);
  world.release(lease.id);
  assert.equal(counters()?.leaseTimeMs, 50_000);
});

test("L10: what is booked survives a restart", () => {
  const world = atNoon("a");
  world.quotas({ tenantLeaseTimeMsMax: 30_000 });
  const lease = world.grant("a", x, { ttlMs: 20_000 });
  world.later(15_000);
  world.heartbeat(lease.id);
  world.base.state = restore(snapshot(world.base.state));
  world.later(14_999);
  world.heartbeat(lease.id);
  world.later(1);
  world.refused("lease_denied", heartbeat(world, "a", lease.id));
});

test("L10: the tenant forces an idle timeout on a type: heartbeats and renewals do not avoid it, a reported change does", () => {
  const world = createWorld("a");
  world.settings({ idleTimeoutMsByType: { FILE: 5_000 } });
  const lease = world.grant("a", x, { ttlMs: 60_000 });
  const other = world.grant("a", "MUTATES GPU:/0", { ttlMs: 60_000 });
  world.later(4_000);
  world.heartbeat(lease.id, true);
  world.later(4_000);
  world.heartbeat(lease.id);
  world.renew(lease.id);
  assert.equal(world.lease(lease.id)?.state, "ACTIVE");
  world.pass(1_000);
  assert.deepEqual([world.ended(lease.id).state, world.ended(lease.id).endReason], ["REVOKED", "idle"]);
  assert.equal(world.lease(other.id)?.idleTimeout, null);
});

test("L10: a holder can ask for a shorter idle timeout than the forced one, not for a longer one", () => {
  const world = createWorld("a");
  world.settings({ idleTimeoutMsByType: { FILE: 5_000 } });
  const timeouts = [1_000, 60_000].map((idleTimeoutMs, at) =>
    world.grant("a", `MUTATES FILE:/${at}`, { idleTimeoutMs }),
  );
  assert.deepEqual(
    timeouts.map(({ idleTimeout }) => idleTimeout),
    [1_000, 5_000],
  );
});

test("L10: a lease from before the setting gets the forced timeout with its next heartbeat; a waiter's grant has it", () => {
  const world = createWorld("old", "a");
  const lease = world.grant("a", x);
  const { requestId } = world.waits("old", x);
  world.settings({ idleTimeoutMsByType: { FILE: 5_000 } });
  assert.equal(world.heartbeat(lease.id).idleTimeout, 5_000);
  world.release(lease.id);
  assert.equal(world.collect(requestId).leases[0]?.idleTimeout, 5_000);
});

test("S3: a forced idle timeout names types of resources, at least 100 ms", () => {
  const world = createWorld("a");
  const set = (idleTimeoutMsByType: Record<string, number>) =>
    ({ type: "set_tenant_settings", tenantId: world.tenant, settings: { idleTimeoutMsByType } }) as const;
  for (const wrong of [{ file: 5_000 }, { TASK: 5_000 }, { FILE: 99 }]) world.refused("invalid_settings", set(wrong));
});

test("L10: the holder of a bound lease reports activity by heartbeat, although it is not extended, or by renewal", () => {
  const world = createCellWorld("a");
  world.enrol("c1", ["GPU:/0"]);
  world.settings({ idleTimeoutMsByType: { GPU: 5_000 } });
  const lease = world.active("a", "MUTATES GPU:/0");
  world.later(4_000);
  assert.equal(world.expect("refused", world.ask({ ...heartbeatOf(lease.id), activity: true })).code, "renew_required");
  assert.equal(world.lease(lease.id)?.activeAt, world.now);
  world.later(4_000);
  world.ask({ type: "renew_lease", leaseId: lease.id, generation: null, activity: true });
  world.pass(4_000);
  assert.equal(world.lease(lease.id)?.state, "ACTIVE");
});

const heartbeatOf = (leaseId: string) => ({ type: "heartbeat", leaseId, activity: false }) as const;
