import assert from "node:assert/strict";
import { test } from "node:test";
import { limits } from "../contract/limits.ts";
import type { Lease } from "../contract/records.ts";
import { nextDeadline, restore, snapshot } from "../kernel.ts";
import { type Ask, createWorld, found, records, type World } from "../testing/test-world.ts";

const stateOf = (world: World, { requestId }: { readonly requestId: string }) => world.request(requestId)?.state;
const leasesOf = (world: World, { requestId }: { readonly requestId: string }): Lease[] =>
  found(world.request(requestId), "request").leaseIds.map((id) => found(world.lease(id), "lease"));

/** A world in which GPU:/0 and GPU:/1 are hosted by a cell. */
function createCells(...agents: readonly string[]): World {
  const world = createWorld(...agents);
  world.declare("GPU:/0", null, "cell-1");
  world.declare("GPU:/1", null, "cell-2");
  return world;
}

/** A lease on GPU:/0 that its cell has set up. */
function bind(world: World, agent: string, ttlMs = 60_000): Lease {
  const wait = world.waits(agent, "MUTATES GPU:/0", { ttlMs });
  for (const lease of leasesOf(world, wait)) world.bound(lease);
  return found(world.collect(wait.requestId).leases[0], "lease");
}

test("G2: the tenant's quotas bound what it holds, waits for and declares, exactly", () => {
  const world = createWorld("old", "a", "b");
  world.quotas({ leasesMax: 3, waitersMax: 1, patternsMax: 1, agentsMax: 3, resourcesMax: 1 });
  const denied = (ask: Ask) => assert.equal(world.refused("lease_denied", ask).reason, "quota");
  world.grants("a", ["MUTATES FILE:/x", "MUTATES FILE:/y"]);
  denied(world.acquire("a", ["MUTATES FILE:/z", "MUTATES FILE:/w"]));
  denied(world.acquire("a", "RENAMES FILE:/z > FILE:/w"));
  denied(world.acquire("a", ["CONSUMES FILE:/z/*", "CONSUMES FILE:/z/**"]));
  const pattern = world.grant("a", "CONSUMES FILE:/z/*");
  world.quotas({ leasesMax: 100 });
  denied(world.acquire("a", "CONSUMES FILE:/w/*"));
  world.grant("a", "CONSUMES FILE:/w/x");
  world.release(pattern.id);
  const wait = world.waits("old", "MUTATES FILE:/**", { waitTimeoutMs: 1_000 });
  denied(world.acquire("a", "CONSUMES FILE:/w/*"));
  denied(world.acquire("old", "MUTATES FILE:/y"));
  world.cancel(wait.requestId);
  world.waits("old", "MUTATES FILE:/y");
  denied({ type: "register_agent", agentId: "d", labels: null });
  world.register("a");
  world.declare("FILE:/r1", 4);
  denied({ type: "declare_resource", refillMs: null, resource: "FILE:/r2", capacity: 1, cell: null });
  world.declare("FILE:/r1", 5);
});

test("G2: admission comes first, the quota before the capacity, and both before any conflict", () => {
  const world = createWorld("old", "a");
  world.declare("GPU:/0", 2);
  world.grant("a", "MUTATES GPU:/0 x2");
  const ask = world.acquire("old", "MUTATES GPU:/0 x3");
  assert.equal(world.refused("lease_denied", ask).reason, "capacity");
  world.quotas({ leasesMax: 1 });
  assert.equal(world.refused("lease_denied", ask).reason, "quota");
});

test("G7: fencing revokes what is live on it, patterns too, and nothing is leased there until it was reset", () => {
  const world = createWorld("a", "b");
  const [exact, wide] = [world.grant("a", "CONSUMES FILE:/d/x"), world.grant("b", "CONSUMES FILE:/d/**")];
  const beside = world.grant("a", "MUTATES FILE:/e");
  world.fence("FILE:/d/x", "disk error");
  assert.deepEqual(world.happened, ["resource.fenced", "lease.revoked", "lease.revoked"]);
  for (const { id } of [exact, wide]) assert.equal(world.ended(id).endReason, "resource_fenced");
  assert.deepEqual(world.leases(), [beside]);
  const { fenced, fenceReason, fencedAt } = found(world.resource("FILE:/d/x"), "resource");
  assert.deepEqual({ fenced, fenceReason, fencedAt }, { fenced: true, fenceReason: "disk error", fencedAt: world.now });
  for (const intent of ["CONSUMES FILE:/d/x", "CONSUMES FILE:/d/**", "CONSUMES FILE:/**", "DEPENDS_ON FILE:/d/?"]) {
    const paused = world.pauses("a", ["MUTATES FILE:/free", intent]);
    assert.deepEqual([paused.reason, paused.resource], ["resource_fenced", "FILE:/d/x"], intent);
  }
  world.grant("a", "CONSUMES FILE:/d/y");
  world.reset("FILE:/d/x");
  assert.deepEqual(world.happened, ["resource.reset"]);
  world.grant("a", "CONSUMES FILE:/d/x");
});

test("G7: a whole subtree can be fenced", () => {
  const world = createWorld("a");
  world.grants("a", ["MUTATES FILE:/d", "MUTATES FILE:/d/x/y", "MUTATES FILE:/e"]);
  world.fence("FILE:/d/**");
  assert.equal(world.leases().length, 1);
  world.pauses("a", "CONSUMES FILE:/d/x");
  world.pauses("a", "CONSUMES FILE:/*");
  world.reset("FILE:/d/**");
  world.grant("a", "CONSUMES FILE:/*");
});

test("G7: a fence survives restarts, fencing again changes nothing, and a reset of what is not fenced neither", () => {
  const world = createWorld("a");
  world.fence("FILE:/x", "first");
  world.base.state = restore(snapshot(world.base.state));
  world.later(1_000);
  const before = records(world.base.state);
  world.fence("FILE:/x", "second");
  assert.deepEqual(world.events, []);
  assert.equal(records(world.base.state), before);
  world.pauses("a", "CONSUMES FILE:/x");
  world.declare("FILE:/y", 4);
  world.reset("FILE:/y");
  assert.deepEqual(world.events, []);
});

test("G7: a name that was only fenced leaves nothing behind when it is reset, a declared one stays", () => {
  const world = createWorld("a");
  const before = records(world.base.state);
  world.fence("FILE:/x");
  world.reset("FILE:/x");
  assert.equal(records(world.base.state), before);
  world.refused("resource_unknown", { type: "reset_resource", resource: "FILE:/x", probed: true });
  world.declare("GPU:/0", 4);
  world.fence("GPU:/0");
  world.reset("GPU:/0");
  assert.equal(world.resource("GPU:/0")?.capacity, 4);
});

test("G7: declaring a fenced resource again does not lift the fence", () => {
  const world = createWorld("a");
  world.declare("GPU:/0", 2);
  world.fence("GPU:/0");
  world.declare("GPU:/0", 4);
  assert.equal(world.pauses("a", "MUTATES GPU:/0").reason, "resource_fenced");
});

test("G8: on a bound resource there is no extension: a heartbeat answers renew_required, and one for all leaves it", () => {
  const world = createCells("a");
  const lease = bind(world, "a", 10_000);
  const unbound = world.grant("a", "MUTATES FILE:/x", { ttlMs: 10_000 });
  world.later(1_000);
  world.refused("renew_required", { type: "heartbeat", actor: world.as("a"), leaseId: lease.id, activity: false });
  const { leases, lost, notExtended } = world.heartbeatAll("a");
  assert.deepEqual(
    leases.map(({ id, expiresAt }) => [id, expiresAt]),
    [
      [lease.id, lease.expiresAt],
      [unbound.id, world.now + 10_000],
    ],
  );
  assert.deepEqual(lost, []);
  assert.deepEqual(notExtended, [{ id: lease.id, state: "ACTIVE", code: "renew_required" }]);
});

test("G8: a renewal is a fresh grant under the same id: next generation, new fence, new end, nothing else", () => {
  const world = createCells("a");
  const lease = bind(world, "a", 10_000);
  world.later(4_000);
  const renewed = world.renew(lease.id, 1);
  assert.deepEqual(world.happened, ["lease.renewed"]);
  assert.deepEqual(renewed, {
    ...lease,
    generation: 2,
    fence: renewed.fence,
    expiresAt: world.now + 10_000,
  });
  assert.ok(renewed.fence > lease.fence);
});

test("G8: a renewal from an older generation is refused with the present one: it was renewed already", () => {
  const world = createWorld("a");
  const { id: leaseId } = world.grant("a", "MUTATES FILE:/x");
  world.renew(leaseId, 1);
  for (const generation of [1, 3]) {
    const ask = { type: "renew_lease", activity: false, actor: world.as("a"), leaseId, generation } as const;
    assert.equal(world.refused("stale_generation", ask).generation, 2);
  }
  assert.equal(world.renew(leaseId, 2).generation, 3);
  assert.equal(world.renew(leaseId).generation, 4);
});

test("G8: on an unbound lease with a token a heartbeat keeps the generation, and says that tokens are wanted", () => {
  const world = createWorld("a");
  const lease = world.grant("a", "MUTATES FILE:/x", { tokens: true });
  const extended = world.heartbeat(lease.id);
  assert.deepEqual([extended.tokens, extended.generation, extended.fence], [true, 1, lease.fence]);
});

test("G8: one half of a rename on a bound resource is not extended by way of the other half", () => {
  const world = createCells("a");
  const wait = world.waits("a", "RENAMES FILE:/x > GPU:/0", { ttlMs: 10_000 });
  const [file, gpu] = leasesOf(world, wait);
  world.bound(found(gpu, "half"));
  world.collect(wait.requestId);
  const before = found(world.lease(gpu?.id ?? ""), "half");
  world.later(5_000);
  world.ask({ type: "heartbeat", actor: world.as("a"), leaseId: file?.id ?? "", activity: false });
  assert.equal(world.lease(gpu?.id ?? "")?.expiresAt, before.expiresAt);
});

test("G9: every end has its own code, and no end is untyped", () => {
  const world = createCells("a");
  const codes = { RELEASED: "lease_released", EXPIRED: "lease_expired", REVOKED: "lease_revoked" } as const;
  for (const [state, code] of Object.entries(codes) as [keyof typeof codes, string][]) {
    const lease = bind(world, "a", 1_000);
    if (state === "RELEASED") world.release(lease.id);
    else if (state === "REVOKED") world.revoke({ leaseId: lease.id });
    else world.pass(1_000);
    const [actor, leaseId] = [world.as("a"), lease.id];
    const asks: readonly Ask[] = [
      { type: "heartbeat", actor, leaseId, activity: false },
      { type: "renew_lease", activity: false, actor, leaseId, generation: null },
      { type: "transfer_lease", version: null, actor, leaseId, toAgentId: "a" },
      { type: "downgrade_lease", version: null, actor, leaseId, predicate: "CONSUMES" },
    ];
    for (const ask of asks) assert.equal(world.expect("refused", world.ask(ask)).code, code, "while it closes");
    const { lost } = world.heartbeatAll("a");
    assert.deepEqual([lost[0]?.id, lost[0]?.code], [leaseId, code]);
    world.tornDown(lease);
    for (const ask of asks) assert.equal(world.expect("refused", world.askHistory(ask)).code, code, "once it ended");
  }
});

test("L12: on a bound resource a lease is BINDING until its cell has set it up, then ACTIVE; the reply is WAIT, position 0", () => {
  const world = createCells("a");
  const wait = world.waits("a", "MUTATES GPU:/0", { ttlMs: 10_000, key: "k" });
  assert.deepEqual([wait.position, wait.blockers, world.happened], [0, [], ["lease.binding"]]);
  assert.equal(world.agent("a").state, "PAUSED");
  const [lease] = leasesOf(world, wait);
  assert.deepEqual([lease?.state, lease?.cell, lease?.cellBy], ["BINDING", "cell-1", world.now + limits.bindMs]);
  assert.equal(world.waits("a", "MUTATES GPU:/0", { ttlMs: 10_000, key: "k" }).requestId, wait.requestId);
  world.later(3_000);
  const active = world.bound(found(lease, "lease"), "10.0.0.7:443");
  assert.deepEqual([active.state, active.coordinate, active.cellBy], ["ACTIVE", "10.0.0.7:443", null]);
  assert.equal(active.expiresAt, world.now + 10_000, "its time begins when it can be used");
  assert.deepEqual(world.happened, ["lease.granted", "request.granted"]);
  assert.equal(world.agent("a").state, "EXECUTING");
  assert.equal(world.collect(wait.requestId).leases[0]?.claimBy, null);
});

test("L12: while it binds, the resource is taken, and the lease is neither renewed, handed over nor weakened", () => {
  const world = createCells("old", "a", "b");
  const [lease] = leasesOf(world, world.waits("a", "MUTATES GPU:/0"));
  world.dies("b", "CONSUMES GPU:/0");
  const [actor, leaseId] = [world.as("a"), lease?.id ?? ""];
  world.refused("renew_required", { type: "heartbeat", actor, leaseId, activity: false });
  world.refused("renew_required", { type: "renew_lease", activity: false, actor, leaseId, generation: null });
  world.refused("renew_required", { type: "transfer_lease", version: null, actor, leaseId, toAgentId: "b" });
  world.refused("renew_required", { type: "downgrade_lease", version: null, actor, leaseId, predicate: "CONSUMES" });
});

test("W6: a manifest over several cells is granted when all have bound, and not before", () => {
  const world = createCells("a");
  const wait = world.waits("a", ["MUTATES GPU:/0", "MUTATES FILE:/x", "MUTATES GPU:/1"]);
  const [first, , third] = leasesOf(world, wait);
  world.bound(found(third, "lease"));
  assert.equal(stateOf(world, wait), "BINDING");
  assert.deepEqual(world.happened, []);
  world.bound(found(first, "lease"));
  assert.equal(stateOf(world, wait), "GRANTED");
  assert.deepEqual(
    world.collect(wait.requestId).leases.map(({ state }) => state),
    ["ACTIVE", "ACTIVE", "ACTIVE"],
  );
});

test("L12, W6: while any of it binds, nothing of a manifest is extended, handed over or weakened: it is not granted yet", () => {
  const world = createCells("a", "b");
  const [file] = leasesOf(world, world.waits("a", ["MUTATES FILE:/x", "MUTATES GPU:/0"]));
  const [actor, leaseId] = [world.as("a"), file?.id ?? ""];
  world.refused("renew_required", { type: "heartbeat", actor, leaseId, activity: false });
  world.refused("renew_required", { type: "transfer_lease", version: null, actor, leaseId, toAgentId: "b" });
  world.refused("renew_required", { type: "downgrade_lease", version: null, actor, leaseId, predicate: "CONSUMES" });
});

test("L12, W6: the time of a manifest begins when all of it can be used, not when its first cell has bound", () => {
  const world = createCells("a");
  const wait = world.waits("a", ["MUTATES GPU:/0", "MUTATES FILE:/x", "MUTATES GPU:/1"], { ttlMs: 1_000 });
  const [first, , third] = leasesOf(world, wait);
  world.later(500);
  world.bound(found(first, "lease"));
  world.later(4_500);
  world.bound(found(third, "lease"));
  const { leases } = world.collect(wait.requestId);
  assert.deepEqual(
    leases.map(({ state, expiresAt }) => [state, expiresAt - world.now]),
    [
      ["ACTIVE", 1_000],
      ["ACTIVE", 1_000],
      ["ACTIVE", 1_000],
    ],
  );
});

test("W8: a grant that cells have set up must be collected in time too", () => {
  const world = createCells("a");
  const wait = world.waits("a", ["MUTATES GPU:/0", "MUTATES FILE:/x"]);
  const [gpu, file] = leasesOf(world, wait);
  world.bound(found(gpu, "lease"));
  world.pass(10_000);
  assert.equal(world.ended(file?.id ?? "").endReason, "unclaimed");
  assert.equal(world.lease(gpu?.id ?? "")?.state, "CLOSING");
});

const undoings: readonly (readonly [string, string, (world: World, lease: Lease, requestId: string) => void])[] = [
  ["one cell fails", "lease_denied", (world, lease) => void world.bindFails(lease, "no such port")],
  ["one cell does not answer in time", "lease_denied", (world) => void world.pass(limits.bindMs)],
  ["it is cancelled", "request_canceled", (world, _lease, requestId) => void world.cancel(requestId)],
  ["one of its leases is released", "request_canceled", (world, lease) => void world.release(lease.id)],
  ["one of its leases is revoked", "request_canceled", (world, lease) => void world.revoke({ leaseId: lease.id })],
  ["its agent aborts", "request_canceled", (world) => void world.transition("a", "ABORTED")],
  ["its resource is fenced", "paused", (world) => void world.fence("GPU:/0")],
  ["its resource is withdrawn", "paused", (world) => void world.withdraw("GPU:/0")],
  ["its tenant is suspended", "paused", (world) => void world.suspend()],
];
for (const [what, answer, undo] of undoings) {
  test(`W6, L12: a manifest that is BINDING is undone as a whole when ${what}`, () => {
    const world = createCells("a");
    const intents = ["MUTATES FILE:/x", "MUTATES GPU:/0", "MUTATES GPU:/1"];
    const wait = world.waits("a", intents, { ttlMs: 60_000, key: "k" });
    const [file, gpu, other] = leasesOf(world, wait);
    world.bound(found(other, "lease"));
    undo(world, found(gpu, "lease"), wait.requestId);
    assert.equal(world.lease(file?.id ?? ""), undefined, "what was not bound is free");
    assert.equal(world.lease(gpu?.id ?? "")?.state, "CLOSING");
    assert.equal(world.lease(other?.id ?? "")?.state, "CLOSING");
    const reply = world.ask({ type: "collect_request", collect: null, requestId: wait.requestId });
    assert.equal(reply.type === "refused" ? reply.code : reply.type, answer);
    if (reply.type === "refused" && answer === "lease_denied") assert.equal(reply.reason, "bind_failed");
    world.tornDown(found(gpu, "lease"));
    world.tornDown(found(other, "lease"));
    assert.deepEqual(world.leases(), []);
  });
}

test("L12, G6: the end of a bound lease is CLOSING until its cell confirms; only then is the resource free", () => {
  const world = createCells("old", "a");
  const lease = bind(world, "a");
  const wait = world.waits("old", "MUTATES GPU:/0", { waitTimeoutMs: 60_000 });
  world.later(1_000);
  const closing = world.release(lease.id, "v1");
  assert.deepEqual([closing.state, closing.closingAs], ["CLOSING", "RELEASED"]);
  assert.equal(closing.cellBy, world.now + limits.teardownMs);
  assert.deepEqual(world.happened, ["lease.closing"]);
  assert.equal(stateOf(world, wait), "WAITING");
  world.later(5_000);
  world.tornDown(lease);
  assert.deepEqual(world.happened, ["lease.released", "lease.binding"]);
  const ended = world.ended(lease.id);
  assert.deepEqual([ended.state, ended.version, ended.endedAt], ["RELEASED", "v1", world.now]);
  assert.equal(stateOf(world, wait), "BINDING");
});

test("L12: a closing lease ends as what began its end, and nothing turns it into something else", () => {
  const world = createCells("a");
  const lease = bind(world, "a", 1_000);
  world.pass(1_000);
  assert.equal(world.lease(lease.id)?.closingAs, "EXPIRED");
  assert.equal(world.revoke({ leaseId: lease.id }), 0);
  assert.equal(world.release(lease.id, "late").closingAs, "EXPIRED");
  world.register("a");
  assert.equal(world.lease(lease.id)?.generation, 1, "what is closing is not re-issued");
  world.tornDown(lease);
  assert.deepEqual([world.ended(lease.id).state, world.ended(lease.id).version], ["EXPIRED", null]);
});

test("W1: releasing the last bound lease completes the unit, though its teardown is still under way", () => {
  const world = createCells("a");
  const lease = bind(world, "a");
  world.release(lease.id);
  assert.equal(world.agent("a").state, "COMPLETED");
});

test("W1: releasing again what an operator has revoked already ends no unit", () => {
  const world = createCells("a");
  const lease = bind(world, "a");
  world.revoke({ leaseId: lease.id });
  world.release(lease.id);
  assert.equal(world.agent("a").state, "PAUSED", "revocation never ends a unit of work");
});

for (const [what, fail] of [
  ["fails", (world: World, lease: Lease) => void world.teardownFails(lease, "process did not die")],
  ["does not answer in time", (world: World) => void world.pass(limits.teardownMs)],
] as const) {
  test(`G7: when a teardown ${what} the lease ends, the resource is fenced, and waiters are paused`, () => {
    const world = createCells("old", "a");
    const lease = bind(world, "a");
    const wait = world.waits("old", "MUTATES GPU:/0", { waitTimeoutMs: 60_000 });
    world.release(lease.id);
    world.later(0);
    fail(world, lease);
    assert.equal(world.ended(lease.id).state, "RELEASED");
    assert.equal(world.resource("GPU:/0")?.fenced, true);
    const fate = world.expect(
      "paused",
      world.ask({ type: "collect_request", collect: null, requestId: wait.requestId }),
    );
    assert.equal(fate.reason, "resource_fenced");
    assert.equal(world.pauses("old", "MUTATES GPU:/0").reason, "resource_fenced");
    world.reset("GPU:/0");
    bind(world, "old");
  });
}

test("G7: a teardown that is confirmed a millisecond before its time is up fences nothing", () => {
  const world = createCells("a");
  const lease = bind(world, "a");
  world.release(lease.id);
  world.pass(limits.teardownMs - 1);
  world.tornDown(lease);
  assert.equal(world.resource("GPU:/0")?.fenced, false);
});

test("G7: a resource is not reset while a lease on it is still being torn down", () => {
  const world = createCells("a");
  const lease = bind(world, "a");
  world.fence("GPU:/0");
  assert.equal(world.lease(lease.id)?.state, "CLOSING");
  world.refused("resource_in_use", { type: "reset_resource", resource: "GPU:/0", probed: true });
  world.tornDown(lease);
  world.reset("GPU:/0");
});

test("cells are heard only for what is awaited: the state and the generation must be right, and who says it", () => {
  const world = createCells("a");
  const wait = world.waits("a", "MUTATES GPU:/0");
  const lease = found(leasesOf(world, wait)[0], "lease");
  const report = (type: "bind_confirmed" | "bind_failed" | "teardown_confirmed" | "teardown_failed", generation = 1) =>
    ({ type, cellId: null, leaseId: lease.id, generation, coordinate: null, reason: null }) as const;
  world.refused("lease_not_closing", report("teardown_confirmed"));
  world.refused("lease_not_closing", report("teardown_failed"));
  assert.equal(world.refused("stale_generation", report("bind_confirmed", 2)).generation, 1);
  world.refused("forbidden", { ...report("bind_confirmed"), actor: world.as("a") });
  world.refused("lease_unknown", { ...report("bind_confirmed"), leaseId: "lse_never" });
  world.bound(lease);
  world.refused("lease_not_binding", report("bind_confirmed"));
  world.refused("lease_not_binding", report("bind_failed"));
  world.renew(lease.id);
  world.release(lease.id);
  world.refused("stale_generation", report("teardown_confirmed"));
  world.tornDown(lease);
});

test("L12: BINDING and CLOSING survive a restart with their deadlines", () => {
  const world = createCells("a", "b");
  const lease = bind(world, "a");
  world.release(lease.id);
  const wait = world.waits("b", ["MUTATES GPU:/1", "MUTATES FILE:/x"]);
  const due = nextDeadline(world.base.state);
  world.base.state = restore(JSON.parse(JSON.stringify(snapshot(world.base.state))));
  assert.equal(nextDeadline(world.base.state), due);
  world.bound(found(leasesOf(world, wait)[0], "lease"));
  assert.equal(stateOf(world, wait), "GRANTED");
  world.pass(limits.teardownMs);
  assert.equal(world.resource("GPU:/0")?.fenced, true);
});

test("L10: a lease whose cell took longer than its quota on lease time is not ACTIVE beyond its end", () => {
  const world = createCells("a");
  world.quotas({ leaseTimeMsMax: 5_000 });
  const wait = world.waits("a", "MUTATES GPU:/0");
  const lease = found(leasesOf(world, wait)[0], "lease");
  world.later(6_000);
  const active = world.bound(lease);
  if (active.state === "ACTIVE") assert.ok(active.expiresAt > world.now, "an ACTIVE lease ends in the future (L3)");
});

test("C6: a counted resource on a cell binds each lease, and its units are taken until the teardown is confirmed", () => {
  const world = createWorld("a", "b", "c");
  world.declare("GPU:/0", 2, "cell-1");
  const [first, second] = ["a", "b"].map((agent) => world.waits(agent, "MUTATES GPU:/0"));
  const lease = found(leasesOf(world, found(first, "wait"))[0], "lease");
  assert.equal(found(second, "wait").position, 0);
  world.bound(lease);
  world.release(lease.id);
  world.dies("c", "MUTATES GPU:/0");
  world.tornDown(lease);
  assert.equal(world.waits("c", "MUTATES GPU:/0").position, 0);
});
