import assert from "node:assert/strict";
import { test } from "node:test";
import { createWorld, found } from "../testing/test-world.ts";

const count = 10;
const names = Array.from({ length: count }, (_, nth) => `MUTATES FILE:/d/${nth}`);
const everyone = { leaseIds: null } as const;

test("L14, A3: very many leases are re-issued in slices; the older instance is refused from the first, the newer is answered after the last", () => {
  const world = createWorld("a", "b");
  const { leases } = world.grants("a", names);
  const older = world.as("a");
  const fence = Math.max(...leases.map((lease) => lease.fence));
  const taking = world.begin({ type: "register_agent", agentId: "a", labels: null }, 3);
  assert.ok(!taking.isAnswered());
  const first = found(leases[0], "a lease");
  const late = world.ask({ type: "heartbeat", actor: older, leaseId: first.id, activity: false });
  assert.equal(late.type === "refused" ? late.code : late.type, "stale_epoch");
  assert.ok(taking.slice());
  const stale = world.leases().filter((lease) => lease.fence <= fence).length;
  assert.ok(stale > 0 && stale < count, `${stale} are left`);
  const fresh = world.grant("a", "MUTATES FILE:/fresh");
  const reply = taking.finish();
  assert.equal(reply.type === "agent" ? reply.agent.epoch : reply.type, (older.epoch ?? 0) + 1);
  for (const { id, generation } of leases) {
    const now = found(
      world.leases().find((lease) => lease.id === id),
      "it lives on",
    );
    assert.ok(now.fence > fence);
    assert.equal(now.generation, generation + 1, "once each");
  }
  assert.equal(
    world.leases().find(({ id }) => id === fresh.id)?.generation,
    1,
    "what came after it is the newer one's",
  );
});

test("L14, L4: very many leases are extended in slices, those too whose time runs out before their slice", () => {
  const world = createWorld("a", "b");
  const { leases } = world.grants("a", names, { ttlMs: 1_000 });
  world.grants("b", ["MUTATES FILE:/other"], { ttlMs: 1_000 });
  world.pass(900);
  const beating = world.begin({ type: "heartbeat_all", agentId: "a", ...everyone, activity: false }, 3);
  assert.ok(!beating.isAnswered());
  beating.slice();
  world.pass(500);
  assert.deepEqual(
    world.leases().map(({ agentId }) => agentId),
    leases.map(() => "a"),
    "the command came in time; the other agent's lease has ended",
  );
  const reply = world.expect("leases", beating.finish());
  assert.deepEqual([reply.leases.length, reply.lost.length, reply.total], [count, 0, null]);
  world.pass(1_001);
  assert.equal(world.leases().length, 0, "once each");
});

test("L14, L8, L9: very many held leases are verified in slices, and can be revived then", () => {
  const world = createWorld("a");
  world.grants("a", names, { ttlMs: 1_000 });
  world.ask({ type: "restart_agent", agentId: "a" });
  world.pass(1_000);
  assert.ok(world.leases().every(({ state, verified }) => state === "HELD" && !verified));
  const verifying = world.begin({ type: "verify_all", agentId: "a", ...everyone }, 3);
  const reply = world.expect("leases", verifying.finish());
  assert.deepEqual([reply.leases.length, reply.leases.every(({ verified }) => verified)], [count, true]);
  const beating = world.begin({ type: "heartbeat_all", agentId: "a", ...everyone, activity: false }, 3);
  beating.finish();
  assert.ok(world.leases().every(({ state }) => state === "ACTIVE"));
});

test("L14: what is revoked while very many are extended is not extended, and what is handed over is the other's", () => {
  const world = createWorld("a", "b");
  const { leases } = world.grants("a", names, { ttlMs: 1_000 });
  const [first, second] = leases;
  world.pass(500);
  const beating = world.begin({ type: "heartbeat_all", agentId: "a", ...everyone, activity: false }, 2);
  world.ask({ type: "revoke", target: { leaseId: found(first, "a lease").id }, reason: "test" });
  world.ask({ type: "transfer_lease", leaseId: found(second, "a lease").id, toAgentId: "b", version: null });
  const reply = world.expect("leases", beating.finish());
  assert.equal(reply.leases.length, count - 2);
  world.pass(500);
  assert.equal(world.leases().length, count - 2);
});

test("S4: an answer lists 10,000 leases and says how many there are", () => {
  const world = createWorld("a");
  const many = 10_050;
  for (let at = 0; at < many; at += 50)
    world.grants(
      "a",
      Array.from({ length: 50 }, (_, nth) => `MUTATES FILE:/d/${at + nth}`),
    );
  for (const type of ["heartbeat_all", "verify_all", "release_all"] as const) {
    const more = type === "heartbeat_all" ? { activity: false } : type === "release_all" ? { versions: null } : {};
    const command = { type, agentId: "a", ...everyone, ...more } as Parameters<typeof world.begin>[0];
    const reply = world.expect("leases", world.begin(command, 500).finish());
    assert.deepEqual([reply.leases.length, reply.total], [10_000, many], type);
  }
  assert.equal(world.leases().length, 0);
});
