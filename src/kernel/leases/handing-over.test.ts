import assert from "node:assert/strict";
import { test } from "node:test";
import { createWorld } from "../testing/test-world.ts";

test("L15: a lease handed over keeps its id and end, gets a new fence and generation, and a new holder", () => {
  const world = createWorld("a", "b");
  const lease = world.grant("a", "MUTATES FILE:/a", { ttlMs: 9_000 });
  world.later(1_000);
  const moved = world.transfer(lease.id, "b");
  assert.deepEqual(moved, { ...lease, agentId: "b", holder: "b", generation: 2, fence: lease.fence + 1 });
  assert.equal(world.agent("b").state, "EXECUTING");
  const release = { type: "release_lease", actor: world.as("a"), leaseId: lease.id, version: null } as const;
  world.refused("not_lease_holder", release);
});

test("L15: a transfer to oneself changes nothing", () => {
  const world = createWorld("a");
  const lease = world.grant("a", "MUTATES FILE:/a");
  assert.deepEqual(world.transfer(lease.id, "a"), lease);
  assert.deepEqual(world.events, []);
});

test("L15: a transfer that would conflict with what the giver keeps is refused", () => {
  const world = createWorld("a", "b");
  const [first, second] = world.grants("a", ["MUTATES FILE:/a", "CONSUMES FILE:/a"]).leases;
  const transfer = { type: "transfer_lease", version: null, actor: world.as("a"), toAgentId: "b" } as const;
  world.refused("transfer_refused", { ...transfer, leaseId: first?.id ?? "" });
  world.refused("transfer_refused", { ...transfer, leaseId: second?.id ?? "" });
  const [wide, narrow] = world.grants("a", ["MUTATES FILE:/d/**", "MUTATES FILE:/d/x"]).leases;
  world.refused("transfer_refused", { ...transfer, leaseId: narrow?.id ?? "" });
  world.release(wide?.id ?? "");
  assert.equal(world.transfer(narrow?.id ?? "", "b").agentId, "b");
});

test("L15, W2: a transfer that would turn a wait round is refused, one that keeps its direction is not", () => {
  const world = createWorld("oldest", "waiter", "holder", "youngest");
  const lease = world.grant("holder", "MUTATES FILE:/a");
  const wait = world.waits("waiter", "MUTATES FILE:/a");
  const transfer = { type: "transfer_lease", version: null, actor: world.as("holder"), leaseId: lease.id } as const;
  world.refused("transfer_refused", { ...transfer, toAgentId: "oldest" }); // waiter would wait for an older one
  world.transfer(lease.id, "youngest");
  world.release(lease.id);
  assert.equal(world.collect(wait.requestId).leases.length, 1);
});

test("L15, W7: under Wound-Wait the direction is the other one", () => {
  const world = createWorld("oldest", "holder", "waiter", "youngest");
  world.settings({ strategy: "wound_wait" });
  const lease = world.grant("holder", "MUTATES FILE:/a");
  world.waits("waiter", "MUTATES FILE:/a");
  const transfer = { type: "transfer_lease", version: null, actor: world.as("holder"), leaseId: lease.id } as const;
  world.refused("transfer_refused", { ...transfer, toAgentId: "youngest" });
  assert.equal(world.transfer(lease.id, "oldest").agentId, "oldest");
});

test("L15: a transfer to the one who waits for it serves that wait", () => {
  const world = createWorld("waiter", "holder");
  const lease = world.grant("holder", "CONSUMES FILE:/a");
  const wait = world.waits("waiter", "MUTATES FILE:/a");
  world.transfer(lease.id, "waiter");
  assert.equal(world.request(wait.requestId)?.state, "GRANTED");
  assert.equal(world.leases().length, 2);
});

test("L15: a receiver between units begins a new one, and a PAUSED receiver stays PAUSED", () => {
  const world = createWorld("a", "b", "c");
  const [first, second] = world.grants("a", ["MUTATES FILE:/a", "MUTATES FILE:/b"]).leases;
  world.transition("b", "ABORTED");
  const before = world.agent("b").priority;
  world.transfer(first?.id ?? "", "b");
  assert.equal(world.agent("b").state, "EXECUTING");
  assert.ok(world.agent("b").priority > before);
  world.dies("c", "MUTATES FILE:/b");
  world.transfer(second?.id ?? "", "c");
  assert.equal(world.agent("c").state, "PAUSED");
});

test("L15: a receiver at work goes on as it was, and its deaths are not forgiven: nothing was granted to it", () => {
  const world = createWorld("a", "b", "c");
  const { leases } = world.grants("a", ["MUTATES FILE:/a", "MUTATES FILE:/b"]);
  world.grant("b", "MUTATES FILE:/c");
  world.transition("b", "VERIFYING");
  world.transfer(leases[0]?.id ?? "", "b");
  assert.equal(world.agent("b").state, "VERIFYING");
  world.dies("c", "MUTATES FILE:/b");
  world.transfer(leases[1]?.id ?? "", "c");
  assert.equal(world.dies("c", "MUTATES FILE:/c").attempt, 2);
});

test("L15, C7: a rename is handed over as a whole", () => {
  const world = createWorld("a", "b");
  const { leases } = world.grants("a", "RENAMES FILE:/a > FILE:/b");
  world.transfer(leases[1]?.id ?? "", "b");
  assert.deepEqual(
    world.leases().map(({ agentId, generation }) => [agentId, generation]),
    [
      ["b", 2],
      ["b", 2],
    ],
  );
  assert.equal(new Set(world.leases().map(({ fence }) => fence)).size, 2);
});

test("L15: a downgrade serves those who now fit, in the same step, and the holder never lets go", () => {
  const world = createWorld("reader", "provider", "holder");
  const lease = world.grant("holder", "MUTATES FILE:/a");
  const provider = world.waits("provider", "PROVIDES FILE:/a");
  const reader = world.waits("reader", "CONSUMES FILE:/a");
  const provided = world.downgrade(lease.id, "PROVIDES");
  assert.deepEqual(provided, { ...lease, predicate: "PROVIDES" });
  assert.deepEqual(world.happened, ["lease.downgraded", "lease.granted", "request.granted"]);
  assert.equal(world.request(reader.requestId)?.state, "GRANTED");
  assert.equal(world.request(provider.requestId)?.state, "WAITING");
  world.downgrade(lease.id, "DEPENDS_ON");
  assert.equal(world.request(provider.requestId)?.state, "GRANTED");
  assert.equal(world.lease(lease.id)?.state, "ACTIVE");
});

test("L15: only a weaker predicate is a downgrade; the same one changes nothing", () => {
  const world = createWorld("a");
  const own = { actor: world.as("a"), version: null };
  const weakened = { MUTATES: 2, DELETES: 2, RENAMES: 2, PROVIDES: 1, CONSUMES: 0, DEPENDS_ON: 0 } as const;
  const predicates = Object.keys(weakened) as (keyof typeof weakened)[];
  for (const from of predicates) {
    for (const to of predicates) {
      const intent = from === "RENAMES" ? "RENAMES FILE:/a > FILE:/b" : `${from} FILE:/a`;
      const lease = world.grant("a", intent);
      if (from === to) {
        assert.deepEqual(world.downgrade(lease.id, to), lease);
        assert.deepEqual(world.events, []);
      } else if (weakened[to] < weakened[from]) assert.equal(world.downgrade(lease.id, to).predicate, to);
      else world.refused("not_weaker", { ...own, type: "downgrade_lease", leaseId: lease.id, predicate: to });
      world.releaseAll("a");
    }
  }
});

test("L15, C7: both halves of a rename are downgraded together", () => {
  const world = createWorld("a", "b");
  const { leases } = world.grants("a", "RENAMES FILE:/a > FILE:/b");
  world.downgrade(leases[0]?.id ?? "", "CONSUMES");
  world.grants("b", ["CONSUMES FILE:/a", "CONSUMES FILE:/b"]);
});
