/** What asking for a request does and says: collecting (W8), and answers after its end (W10). */
import assert from "node:assert/strict";
import { test } from "node:test";
import { limits } from "../contract/limits.ts";
import { restore, snapshot } from "../kernel.ts";
import { createCellWorld } from "../testing/cell-world.ts";
import { createWorld } from "../testing/test-world.ts";

const x = "MUTATES FILE:/x";
const heartbeatOf = (leaseId: string) => ({ type: "heartbeat", leaseId, activity: false }) as const;

test("W8: a heartbeat collects the grant of a bound lease, alone and among all", () => {
  for (const beat of ["heartbeat", "heartbeat_all"] as const) {
    const world = createCellWorld("old", "young");
    world.enrol("c1", ["GPU:/0"]);
    const held = world.active("young", "MUTATES GPU:/0");
    const { requestId } = world.waits("old", "MUTATES GPU:/0");
    world.release(held.id);
    world.tornDown(held);
    const leaseId = world.request(requestId)?.leaseIds[0] ?? "";
    world.bound(world.lease(leaseId) ?? held);
    assert.equal(world.lease(leaseId)?.claimBy, world.now + 10_000);
    if (beat === "heartbeat") world.ask({ ...heartbeatOf(leaseId), actor: world.as("old") });
    else assert.equal(world.heartbeatAll("old").leases.length, 1);
    assert.equal(world.lease(leaseId)?.claimBy, null);
    world.pass(10_000);
    assert.equal(world.lease(leaseId)?.state, "ACTIVE");
  }
});

test("W8: a supervisor's or operator's look does not collect; the agent's does, and an answer may say that it does not", () => {
  const world = createWorld("old", "young");
  const held = world.grant("young", x);
  const { requestId } = world.waits("old", x);
  world.release(held.id);
  const claim = () => world.leases()[0]?.claimBy;
  for (const role of ["supervisor", "operator"] as const) {
    const actor = { role, agentId: null, epoch: null, keyId: "key_1" };
    world.expect("granted", world.ask({ type: "collect_request", actor, requestId, collect: null }));
    assert.notEqual(claim(), null, role);
  }
  world.expect("granted", world.ask({ type: "collect_request", actor: world.as("old"), requestId, collect: false }));
  assert.notEqual(claim(), null);
  world.expect("granted", world.ask({ type: "collect_request", actor: world.as("old"), requestId, collect: null }));
  assert.equal(claim(), null);
});

const both = [x, "CONSUMES FILE:/y"];

test("W8: an answer says by when its grant must be collected, until it is", () => {
  const world = createWorld("old", "young");
  const held = world.grants("young", x, { key: "at once" });
  assert.equal(held.claimBy, null, "granted at once");
  const { requestId } = world.waits("old", both, { key: "k" });
  world.release(held.leases[0]?.id ?? "");
  const claimBy = world.now + 10_000;
  world.pass(4_000);
  const actor = world.as("old");
  const asked = { type: "collect_request", actor, requestId } as const;
  assert.equal(world.expect("granted", world.ask({ ...asked, collect: false })).claimBy, claimBy);
  const again = { ...world.acquire("old", both, { key: "k" }), actor };
  assert.equal(world.expect("granted", world.ask({ ...again, collect: false })).claimBy, claimBy);
  assert.equal(world.leases()[0]?.claimBy, claimBy, "neither answer has collected");
  assert.equal(world.expect("granted", world.ask(again)).claimBy, null);
  assert.equal(world.leases()[0]?.claimBy, null);
  assert.equal(world.expect("granted", world.ask({ ...asked, collect: false })).claimBy, null);
});

test("W8: what is left of a grant is collected, and what ended before has no say", () => {
  const world = createWorld("old", "young");
  const held = world.grant("young", x);
  const { requestId } = world.waits("old", both);
  world.release(held.id);
  const [first] = world.leases();
  world.revoke({ leaseId: first?.id ?? "" });
  world.heartbeatAll("old");
  assert.equal(world.collect(requestId).claimBy, null);
});

test("W10: a lapsed grant is answered with lease_expired, by its id and by its key", () => {
  const world = createWorld("old", "young");
  const held = world.grant("young", x);
  const { requestId } = world.waits("old", x, { key: "k" });
  world.release(held.id);
  world.pass(10_000);
  const byId = world.refused("lease_expired", { type: "collect_request", requestId, collect: null });
  assert.equal(byId.problem, "unclaimed");
  world.refused("lease_expired", world.acquire("old", x, { key: "k" }));
});

test("W10: a revoked or released grant is answered so", () => {
  const world = createWorld("a");
  const revoked = world.grant("a", x, { key: "k" });
  world.revoke({ leaseId: revoked.id });
  const again = (key: string) => world.expect("refused", world.askHistory(world.acquire("a", x, { key }))).code;
  assert.equal(again("k"), "lease_revoked");
  const released = world.grant("a", x, { key: "k2" });
  world.release(released.id);
  assert.equal(again("k2"), "lease_released");
});

test("W10: a lease that stands for its request keeps the key, over restarts, until it ends; then the store has it", () => {
  const world = createWorld("a");
  const { requestId, leases } = world.grants("a", x, { key: "k" });
  assert.deepEqual(world.requests(), [], "the request has no record");
  const again = (intent = x) => world.acquire("a", intent, { key: "k" });
  for (const round of ["before", "after"]) {
    const { requestId: repeated, leases: same } = world.expect("granted", world.ask(again()));
    assert.deepEqual([repeated, same[0]?.id], [requestId, leases[0]?.id], `${round} a restart`);
    world.refused("request_id_reused", again("MUTATES FILE:/y"));
    world.crash();
  }
  world.release(leases[0]?.id ?? "");
  assert.equal(world.expect("request_key_unknown", world.ask(again())).key, "k");
  assert.equal(world.expect("refused", world.askHistory(again())).code, "lease_released");
  world.later(limits.requestMemoryMs);
  assert.equal(world.ask(again()).type, "granted", "its time is over");
});

test("W10: after a restart memory knows the keys of the leases that ended, and asks the store for all others from before", () => {
  const world = createWorld("a");
  const released = world.grant("a", x, { key: "k" });
  world.release(released.id);
  const ended = world.ended(released.id);
  const again = (key: string) => world.acquire("a", x, { key });
  world.base.state = restore(snapshot(world.base.state), { leases: [ended], from: 0 });
  assert.equal(world.expect("request_key_unknown", world.ask(again("k"))).key, "k");
  assert.equal(world.ask(again("new")).type, "granted", "all that ended is known, and this key is not among it");
  world.releaseAll("a");
  world.base.state = restore(snapshot(world.base.state), { leases: [], from: world.now });
  world.expect("request_key_unknown", world.ask(again("k")));
  world.expect("request_key_unknown", world.ask(again("never used")));
  world.later(limits.requestMemoryMs);
  assert.equal(world.ask(again("never used")).type, "granted");
});

test("W10: a granted request whose leases have ended is answered with how, for ten minutes", () => {
  const world = createWorld("a");
  const { leases } = world.grants("a", ["MUTATES FILE:/x", "MUTATES FILE:/y"], { key: "k", ttlMs: 100 });
  world.release(leases[0]?.id ?? "", "v7");
  const ask = () => world.acquire("a", ["MUTATES FILE:/x", "MUTATES FILE:/y"], { key: "k", ttlMs: 100 });
  assert.deepEqual(
    world.expect("granted", world.ask(ask())).leases.map(({ state, version }) => [state, version]),
    [
      ["RELEASED", "v7"],
      ["ACTIVE", null],
    ],
    "while some of it is left, it is granted",
  );
  world.pass(100);
  world.later(limits.requestMemoryMs - 1);
  assert.equal(world.refused("lease_expired", ask()).leaseId, leases[1]?.id);
  assert.deepEqual(world.leases(), []);
  world.later(1);
  assert.equal(world.expect("granted", world.ask(ask())).leases[0]?.state, "ACTIVE");
});

/** A world whose memory of ended requests is full; the key `first` was the first to end. */
function crowdedWorld() {
  const world = createWorld("a", "b");
  const cycle = (key: string): void => {
    world.grants("a", both, { key });
    world.releaseAll("a");
  };
  cycle("first");
  for (let n = 1; n < limits.requestMemoryPerTenantMax; n++) cycle(`k${n}`);
  return { world, cycle, again: (key: string, intents = both) => world.acquire("a", intents, { key }) };
}

test("W10, S4: memory keeps the tenant's youngest ended requests; beyond them the store answers for a key", () => {
  const { world, again, cycle } = crowdedWorld();
  const live = world.grants("b", "MUTATES FILE:/b", { key: "first" });
  world.refused("lease_released", again("first"));
  world.grants("a", both, { key: "one more" });
  // One that is alive pushes nothing out.
  world.refused("lease_released", again("first"));
  world.releaseAll("a");
  assert.equal(world.requests().length, limits.requestMemoryPerTenantMax);
  assert.equal(world.expect("request_key_unknown", world.ask(again("first"))).key, "first");
  const answer = world.expect("refused", world.askHistory(again("first")));
  assert.deepEqual([answer.code, answer.leaseId !== undefined], ["lease_released", true]);
  assert.equal(
    world.expect("refused", world.askHistory(again("first", ["MUTATES FILE:/z"]))).code,
    "request_id_reused",
  );
  assert.equal(world.grants("b", "MUTATES FILE:/b", { key: "first" }).requestId, live.requestId, "a live one stays");
  // Memory knows these, or knows that nobody does.
  world.refused("lease_released", again("k1"));
  cycle("new");
});

test("W10: after a restart the store is asked for every unknown key, until none of before can be left", () => {
  const { world, again, cycle } = crowdedWorld();
  cycle("one more");
  world.crash();
  world.expect("request_key_unknown", world.ask(again("never used")));
  assert.equal(world.askHistory(again("never used")).type, "granted", "which the store does not know");
  world.releaseAll("a");
  assert.equal(world.expect("refused", world.askHistory(again("first"))).code, "lease_released");
  world.pass(limits.requestMemoryMs);
  assert.equal(world.ask(again("another")).type, "granted");
});

test("W10: a restored kernel leaves to the store what ended first", () => {
  const { world, again, cycle } = crowdedWorld();
  world.later(1);
  world.crash();
  cycle("one more");
  assert.equal(world.requests().length, limits.requestMemoryPerTenantMax);
  assert.equal(world.expect("refused", world.askHistory(again("first"))).code, "lease_released");
});

test("W10: the key that the store has is free after ten minutes", () => {
  const { world, again, cycle } = crowdedWorld();
  cycle("one more");
  world.later(limits.requestMemoryMs - 1);
  world.expect("request_key_unknown", world.ask(again("first")));
  world.later(1);
  assert.equal(world.ask(again("first")).type, "granted");
});

test("W10, W12: a dry run looks up no key", () => {
  const { world, again, cycle } = crowdedWorld();
  cycle("one more");
  world.crash();
  world.expect("request_key_unknown", world.ask(again("first")));
  assert.equal(world.ask({ ...again("first"), dryRun: true }).type, "granted");
});

test("W10: a request that was granted at once and without a key is answered with how it ended, by its id", () => {
  const world = createWorld("a", "b");
  const { requestId, leases } = world.grants("a", ["MUTATES FILE:/x", "MUTATES FILE:/y"]);
  const ask = { type: "collect_request", requestId, collect: null } as const;
  world.release(leases[0]?.id ?? "");
  assert.equal(world.expect("granted", world.askHistory(ask)).leases.length, 1, "a part of it lives");
  world.revoke({ leaseId: leases[1]?.id ?? "" }, "why not");
  const ended = world.expect("refused", world.askHistory(ask));
  assert.deepEqual([ended.code, ended.leaseId, ended.problem], ["lease_revoked", leases[1]?.id, "why not"]);
  const byOther = world.expect("refused", world.askHistory({ ...ask, actor: world.as("b") }));
  assert.equal(byOther.code, "not_lease_holder");
  assert.equal(world.askHistory({ type: "cancel_request", requestId }).type, "done");
  const unknown = world.askHistory({ ...ask, requestId: `${requestId.slice(0, -1)}x` });
  assert.equal(world.expect("refused", unknown).code, "request_unknown");
});

test("L15, W10: for the request through which the giver got it, the lease is over", () => {
  const world = createWorld("a", "b");
  const [lease] = world.grants("a", "MUTATES FILE:/a", { key: "k" }).leases;
  world.transfer(lease?.id ?? "", "b");
  const { problem } = world.refused("lease_released", world.acquire("a", "MUTATES FILE:/a", { key: "k" }));
  assert.equal(problem, "transferred");
  assert.equal(world.lease(lease?.id ?? "")?.agentId, "b");
});
