import assert from "node:assert/strict";
import { test } from "node:test";
import type { Predicate } from "../contract/predicates.ts";
import { createWorld, type World } from "../testing/test-world.ts";

/** A world in which GPU:/0 has this capacity. */
function createGpus(units: number, ...agents: readonly string[]): World {
  const world = createWorld(...agents);
  world.declare("GPU:/0", units);
  return world;
}

const stateOf = (world: World, { requestId }: { readonly requestId: string }) => world.request(requestId)?.state;

test("C6: intents on a counted resource conflict only when the units run out, whatever their predicates", () => {
  const world = createGpus(4, "a", "b", "c", "d", "e");
  for (const [agent, predicate] of [
    ["a", "MUTATES"],
    ["b", "DELETES"],
    ["c", "CONSUMES"],
    ["d", "PROVIDES"],
  ] as const satisfies readonly (readonly [string, Predicate])[]) {
    world.grant(agent, `${predicate} GPU:/0`);
  }
  for (const predicate of ["MUTATES", "CONSUMES", "DEPENDS_ON", "PROVIDES"]) {
    assert.equal(world.dies("e", `${predicate} GPU:/0`).blockersTotal, 4);
  }
});

test("C6: units are taken as wished, exactly up to the capacity", () => {
  const world = createGpus(4, "a", "b", "c");
  const lease = world.grant("a", "MUTATES GPU:/0 x3");
  assert.equal(lease.units, 3);
  world.dies("b", "MUTATES GPU:/0 x2");
  world.grant("b", "MUTATES GPU:/0 x1");
  world.dies("c", "MUTATES GPU:/0");
});

test("C6: an older one waits for units, a younger one dies, and all unit holders stand in the way", () => {
  const world = createGpus(4, "old", "a", "b", "young");
  world.grant("a", "MUTATES GPU:/0 x2");
  world.grant("b", "MUTATES GPU:/0 x2");
  assert.equal(world.waits("old", "MUTATES GPU:/0").blockersTotal, 2);
  assert.equal(world.dies("young", "MUTATES GPU:/0").blockersTotal, 3);
});

test("C6: one older unit holder among younger ones is a DIE, though a younger one's end would make room", () => {
  const world = createGpus(4, "old", "mid", "young");
  world.grant("old", "MUTATES GPU:/0 x1");
  world.grant("young", "MUTATES GPU:/0 x3");
  world.dies("mid", "MUTATES GPU:/0 x2");
});

test("C6: a waiter's units are reserved in its turn: a smaller request does not slip past it", () => {
  const world = createGpus(4, "c", "b", "a", "young");
  const lease = world.grant("a", "MUTATES GPU:/0 x3");
  const big = world.waits("b", "MUTATES GPU:/0 x2");
  world.dies("young", "MUTATES GPU:/0 x1");
  const small = world.waits("c", "MUTATES GPU:/0 x1");
  assert.deepEqual([big.position, small.position], [1, 2]);
  world.release(lease.id);
  assert.deepEqual([stateOf(world, big), stateOf(world, small)], ["GRANTED", "GRANTED"]);
});

test("C6: freed units go to those who wait in order, as far as they reach, and to nobody behind", () => {
  const world = createGpus(4, "d", "c", "b", "a");
  const lease = world.grant("a", "MUTATES GPU:/0 x4");
  const [b, c, d] = [
    world.waits("b", "MUTATES GPU:/0 x1"),
    world.waits("c", "MUTATES GPU:/0 x4"),
    world.waits("d", "MUTATES GPU:/0 x1"),
  ];
  world.release(lease.id);
  assert.deepEqual(
    [b, c, d].map((wait) => stateOf(world, wait)),
    ["GRANTED", "WAITING", "WAITING"],
  );
  world.cancel(c.requestId);
  assert.equal(stateOf(world, d), "GRANTED");
});

test("C6: a reserved unit is free again when its waiter gives up, times out or is granted elsewhere", () => {
  const world = createGpus(2, "old", "mid", "young");
  world.grant("mid", "MUTATES GPU:/0 x1");
  world.grant("young", "MUTATES FILE:/x");
  world.waits("mid", ["MUTATES GPU:/0 x1", "MUTATES FILE:/x"], { waitTimeoutMs: 1_000 });
  const old = world.waits("old", "MUTATES GPU:/0 x1");
  world.pass(1_000);
  assert.equal(stateOf(world, old), "GRANTED");
});

test("C6: a manifest's units are added up, within and over several intents", () => {
  const world = createGpus(4, "a", "b");
  const refusal = world.refused("lease_denied", world.acquire("a", ["MUTATES GPU:/0 x3", "CONSUMES GPU:/0 x2"]));
  assert.equal(refusal.reason, "capacity");
  world.grants("a", ["MUTATES GPU:/0 x2", "CONSUMES GPU:/0 x1"]);
  world.dies("b", ["MUTATES GPU:/0 x1", "CONSUMES GPU:/0 x1"]);
  world.grant("b", "MUTATES GPU:/0 x1");
});

test("C6: more units than there are at all is denied for capacity, at once and for everybody", () => {
  const world = createGpus(4, "a");
  const refusal = world.refused("lease_denied", world.acquire("a", "MUTATES GPU:/0 x5"));
  assert.equal(refusal.reason, "capacity");
  world.grant("a", "MUTATES GPU:/0 x4");
  assert.equal(world.refused("lease_denied", world.acquire("a", "MUTATES GPU:/0 x5")).reason, "capacity");
});

test("C6: one's own units count too: who would wait for itself is denied as self_blocked", () => {
  const world = createGpus(4, "old", "young");
  world.grant("old", "MUTATES GPU:/0 x3");
  assert.equal(world.refused("lease_denied", world.acquire("old", "MUTATES GPU:/0 x2")).reason, "self_blocked");
  world.grant("old", "MUTATES GPU:/0 x1");
  assert.equal(world.refused("lease_denied", world.acquire("old", "MUTATES GPU:/0 x1")).reason, "self_blocked");
});

test("C6: units one waits for oneself count as one's own", () => {
  const world = createGpus(4, "old", "young");
  const lease = world.grant("young", "MUTATES GPU:/0 x4");
  world.waits("old", "MUTATES GPU:/0 x3");
  assert.equal(world.refused("lease_denied", world.acquire("old", "MUTATES GPU:/0 x2")).reason, "self_blocked");
  const second = world.waits("old", "MUTATES GPU:/0 x1");
  assert.equal(second.position, 1, "one's own waiting request is not ahead of one");
  world.release(lease.id);
  assert.equal(world.leases().length, 2);
});

test("C6, W6: what is held of a counted resource covers nothing more of it", () => {
  const world = createGpus(2, "a", "b");
  world.grant("a", "MUTATES GPU:/0 x1");
  world.grant("b", "MUTATES GPU:/0 x1");
  world.refused("would_wait", world.acquire("a", "MUTATES GPU:/0 x1", { waitTimeoutMs: 0 }));
});

test("C6: a pattern over a counted resource takes all its units, whatever the predicate", () => {
  for (const pattern of ["CONSUMES GPU:/**", "CONSUMES GPU:/*", "DEPENDS_ON GPU:/?"]) {
    const world = createGpus(4, "old", "mid", "young");
    const lease = world.grant("mid", "CONSUMES GPU:/0 x1");
    world.dies("young", pattern);
    const wait = world.waits("old", pattern);
    world.dies("young", "CONSUMES GPU:/0 x1");
    world.release(lease.id);
    assert.equal(stateOf(world, wait), "GRANTED");
    assert.equal(world.dies("young", "CONSUMES GPU:/0 x1").blockersTotal, 1);
  }
});

test("C6: one's own pattern and one's own units do not conflict, but the units still run out", () => {
  const world = createGpus(2, "a");
  world.grant("a", "MUTATES GPU:/**");
  world.grant("a", "MUTATES GPU:/0 x2");
  assert.equal(world.refused("lease_denied", world.acquire("a", "MUTATES GPU:/0 x1")).reason, "self_blocked");
});

test("C6: readers' patterns get along with each other over a counted resource, and with no unit of it", () => {
  const world = createGpus(4, "a", "b", "c");
  world.grant("a", "CONSUMES GPU:/**");
  world.grant("b", "CONSUMES GPU:/*");
  world.dies("c", "CONSUMES GPU:/0");
  world.dies("b", "CONSUMES GPU:/0");
});

test("C6: what is not declared takes units in name only; the matrix decides there", () => {
  const world = createWorld("a", "b");
  world.grant("a", "MUTATES GPU:/0 x3");
  world.dies("b", "CONSUMES GPU:/0 x1");
  world.grant("b", "CONSUMES GPU:/1 x9");
});

test("C6: a greater capacity serves those who wait, in the same step", () => {
  const world = createGpus(2, "old", "young");
  world.grant("young", "MUTATES GPU:/0 x2");
  const wait = world.waits("old", "MUTATES GPU:/0 x2");
  world.declare("GPU:/0", 3);
  assert.equal(stateOf(world, wait), "WAITING");
  world.declare("GPU:/0", 4);
  assert.equal(stateOf(world, wait), "GRANTED");
});

test("C6: a smaller capacity applies to new grants only", () => {
  const world = createGpus(4, "a", "b");
  const lease = world.grant("a", "MUTATES GPU:/0 x4");
  world.declare("GPU:/0", 2);
  assert.equal(world.lease(lease.id)?.state, "ACTIVE");
  world.heartbeat(lease.id);
  assert.equal(world.refused("lease_denied", world.acquire("b", "MUTATES GPU:/0 x3")).reason, "capacity");
  world.dies("b", "MUTATES GPU:/0 x1");
  world.release(lease.id);
  world.grant("b", "MUTATES GPU:/0 x2");
});

test("C6, W2: a smaller capacity that would make a waiter wait for an older one is refused", () => {
  const world = createGpus(4, "oldest", "mid", "young");
  world.grant("oldest", "MUTATES GPU:/0 x2");
  world.grant("young", "MUTATES FILE:/x");
  world.waits("mid", ["MUTATES GPU:/0 x2", "MUTATES FILE:/x"]); // Waits for the file alone: the units fit.
  const declare = { type: "declare_resource", refillMs: null, resource: "GPU:/0", cell: null } as const;
  assert.equal(world.refused("resource_in_use", { ...declare, capacity: 3 }).field, "capacity");
  world.declare("GPU:/0", 5);
  world.declare("GPU:/0", 4);
});

test("C6, W7: under Wound-Wait the forbidden direction is the other one", () => {
  const world = createGpus(4, "oldest", "mid", "young");
  world.settings({ strategy: "wound_wait" });
  world.grant("young", "MUTATES GPU:/0 x2");
  world.grant("oldest", "MUTATES FILE:/x");
  world.waits("mid", ["MUTATES GPU:/0 x2", "MUTATES FILE:/x"]);
  world.refused("resource_in_use", {
    type: "declare_resource",
    refillMs: null,
    resource: "GPU:/0",
    cell: null,
    capacity: 3,
  });
});

test("C6: whether a resource is counted changes only while nothing is leased or waited for on it", () => {
  const world = createGpus(4, "old", "a");
  const declare = { type: "declare_resource", refillMs: null, cell: null } as const;
  const lease = world.grant("a", "MUTATES GPU:/0");
  world.refused("resource_in_use", { ...declare, resource: "GPU:/0", capacity: null });
  world.release(lease.id);
  world.declare("GPU:/0", null);
  const pattern = world.grant("a", "CONSUMES GPU:/**");
  world.refused("resource_in_use", { ...declare, resource: "GPU:/0", capacity: 2 });
  world.refused("resource_in_use", { ...declare, resource: "GPU:/new", capacity: 2 });
  world.release(pattern.id);
  world.declare("GPU:/new", 2);
});

test("C6: a downgrade of a unit lease frees no unit", () => {
  const world = createGpus(1, "old", "a");
  const lease = world.grant("a", "MUTATES GPU:/0");
  const wait = world.waits("old", "CONSUMES GPU:/0");
  world.downgrade(lease.id, "CONSUMES");
  assert.equal(stateOf(world, wait), "WAITING");
  world.release(lease.id);
  assert.equal(stateOf(world, wait), "GRANTED");
});

test("C6: a transferred unit is neither freed nor taken twice", () => {
  const world = createGpus(2, "a", "b", "c");
  const lease = world.grant("a", "MUTATES GPU:/0 x2");
  world.transfer(lease.id, "b");
  world.dies("c", "MUTATES GPU:/0");
  world.release(lease.id);
  world.grant("c", "MUTATES GPU:/0 x2");
});

test("C6, L15: units are not handed to one who waits for some and would then wait for its own", () => {
  const world = createGpus(3, "old", "a", "young");
  const lease = world.grant("a", "MUTATES GPU:/0 x2");
  world.grant("young", "MUTATES GPU:/0 x1");
  const wait = world.waits("old", "MUTATES GPU:/0 x2");
  const transfer = {
    type: "transfer_lease",
    version: null,
    actor: world.as("a"),
    leaseId: lease.id,
    toAgentId: "old",
  } as const;
  world.refused("transfer_refused", transfer);
  world.cancel(wait.requestId);
  world.transfer(lease.id, "old");
});

test("C6: a lease that expires gives its units back, to the last", () => {
  const world = createGpus(3, "a", "b");
  world.grants("a", ["MUTATES GPU:/0 x1", "CONSUMES GPU:/0 x2"], { ttlMs: 1_000 });
  world.later(1_000);
  world.grant("b", "MUTATES GPU:/0 x3");
});

test("C6, W7: of unit holders only as many as needed are wounded, the youngest first", () => {
  const world = createGpus(4, "old", "a", "b", "c");
  world.settings({ strategy: "wound_wait" });
  const [a, b, c] = ["a", "b", "c"].map((agent) => world.grant(agent, "MUTATES GPU:/0"));
  world.grant("old", "MUTATES GPU:/0 x2");
  assert.equal(world.ended(c?.id ?? "").endReason, "wounded");
  assert.deepEqual([world.lease(a?.id ?? "")?.state, world.lease(b?.id ?? "")?.state], ["ACTIVE", "ACTIVE"]);
});

test("C6, W7: where wounding cannot suffice, all younger unit holders are wounded, and the requester waits", () => {
  const world = createGpus(4, "oldest", "old", "a", "b");
  world.settings({ strategy: "wound_wait" });
  world.grant("oldest", "MUTATES GPU:/0 x2");
  world.grant("a", "MUTATES GPU:/0");
  world.grant("b", "MUTATES GPU:/0");
  const wait = world.waits("old", "MUTATES GPU:/0 x3");
  assert.deepEqual(
    world.leases().map(({ agentId }) => agentId),
    ["oldest"],
  );
  assert.equal(stateOf(world, wait), "WAITING");
});

test("C6, W7: who goes ahead of an older waiter makes room for it too: no older one is left waiting for a younger", () => {
  const world = createGpus(4, "oldest", "old", "waiter", "young");
  world.settings({ strategy: "wound_wait" });
  const lease = world.grant("young", "MUTATES GPU:/0 x2");
  world.grant("oldest", "MUTATES FILE:/x");
  const wait = world.waits("waiter", ["MUTATES FILE:/x", "MUTATES GPU:/0 x2"]);
  world.grant("old", "MUTATES GPU:/0 x2"); // There is room for it, but then none for the waiter beside the young one.
  assert.equal(world.ended(lease.id).endReason, "wounded");
  world.revoke({ agentId: "oldest" });
  assert.equal(stateOf(world, wait), "GRANTED");
});
