import assert from "node:assert/strict";
import { test } from "node:test";
import { limits } from "../contract/limits.ts";
import type { Lease } from "../contract/records.ts";
import { nextDeadline, restore, snapshot } from "../kernel.ts";
import { actor, createWorld, supervisor, type World } from "../testing/test-world.ts";

test("L1: a lease has KLIS-3's fields and state, fence, generation, units and purpose", () => {
  const world = createWorld("a");
  const lease = world.grant("a", "MUTATES FILE:/src/app.ts", { ttlMs: 5_000, purpose: "rename login()" });
  const { id, resource, predicate, agentId, acquiredAt, expiresAt, ttl } = lease;
  assert.match(id, /^lse_/);
  assert.deepEqual(
    { resource, predicate, agentId, acquiredAt, expiresAt, ttl },
    {
      resource: "FILE:/src/app.ts",
      predicate: "MUTATES",
      agentId: "a",
      acquiredAt: world.now,
      expiresAt: world.now + 5_000,
      ttl: 5_000,
    },
  );
  const { state, fence, generation, units, purpose } = lease;
  assert.deepEqual(
    { state, fence, generation, units, purpose },
    { state: "ACTIVE", fence: 1, generation: 1, units: 1, purpose: "rename login()" },
  );
});

test("L2: the TTL is 60 s unless wished otherwise", () => {
  const world = createWorld("a");
  const { leases, warnings } = world.grants("a", "MUTATES FILE:/a");
  assert.equal(leases[0]?.ttl, 60_000);
  assert.equal(leases[0]?.expiresAt, world.now + 60_000);
  assert.deepEqual(warnings, []);
});

test("L2: a TTL of exactly the cap is granted without a warning, one more is capped and said so", () => {
  const world = createWorld("a");
  const atCap = world.grants("a", "MUTATES FILE:/a", { ttlMs: 300_000 });
  assert.deepEqual([atCap.leases[0]?.ttl, atCap.warnings], [300_000, []]);
  const over = world.grants("a", "MUTATES FILE:/b", { ttlMs: 300_001 });
  assert.equal(over.leases[0]?.ttl, 300_000);
  assert.equal(over.leases[0]?.expiresAt, world.now + 300_000);
  assert.match(over.warnings.join(), /ttl_ms was capped at 300000/);
});

test("L2: default and cap are the tenant's to set, and a default over the cap is capped without a warning", () => {
  const world = createWorld("a");
  world.settings({ ttlMsDefault: 9_000, ttlMsMax: 10_000 });
  assert.equal(world.grant("a", "MUTATES FILE:/a").ttl, 9_000);
  const over = world.grants("a", "MUTATES FILE:/b", { ttlMs: 60_000 });
  assert.equal(over.leases[0]?.ttl, 10_000);
  assert.equal(over.warnings.length, 1);
  world.settings({ ttlMsMax: 4_000 });
  const byDefault = world.grants("a", "MUTATES FILE:/c");
  assert.deepEqual([byDefault.leases[0]?.ttl, byDefault.warnings], [4_000, []]);
});

test("L2: the smallest TTL is 100 ms, and the cap holds for heartbeats too", () => {
  const world = createWorld("a");
  const lease = world.grant("a", "MUTATES FILE:/a", { ttlMs: limits.ttlMsMin });
  assert.equal(lease.expiresAt, world.now + 100);
  const capped = world.grant("a", "MUTATES FILE:/b", { ttlMs: 1_000_000 });
  world.later(1);
  assert.equal(world.heartbeat(capped.id).expiresAt, world.now + 300_000);
});

test("L2: a wait that was cut short is said in the warnings too, and stays said", () => {
  const world = createWorld("old", "young");
  world.grant("young", "MUTATES FILE:/a");
  const wait = world.waits("old", "MUTATES FILE:/a", { ttlMs: 400_000, waitTimeoutMs: 600_001 });
  assert.match(wait.warnings.join(), /ttl_ms was capped at 300000.*wait_timeout_ms was capped at 600000/);
  world.revoke({ agentId: "young" });
  const grant = world.collect(wait.requestId);
  assert.equal(grant.leases[0]?.ttl, 300_000);
  assert.deepEqual(grant.warnings, wait.warnings);
});

test("L3: a lease is gone at expires_at, not a millisecond later, though no timer has fired", () => {
  const world = createWorld("a", "b");
  world.grant("a", "MUTATES FILE:/a", { ttlMs: 1_000 });
  world.later(999);
  world.dies("b", "MUTATES FILE:/a");
  world.later(1);
  const lease = world.grant("b", "MUTATES FILE:/a");
  assert.equal(lease.acquiredAt, world.now);
  assert.deepEqual(world.happened, ["lease.expired", "lease.granted"]);
});

test("L3: it is honoured up to the last millisecond, and a heartbeat at its end comes too late", () => {
  const world = createWorld("a");
  const lease = world.grant("a", "MUTATES FILE:/a", { ttlMs: 1_000 });
  world.later(999);
  assert.equal(world.heartbeat(lease.id).expiresAt, world.now + 1_000);
  world.later(1_000);
  const reply = world.askHistory({ type: "heartbeat", actor: world.as("a"), leaseId: lease.id, activity: false });
  assert.equal(world.expect("refused", reply).code, "lease_expired");
  assert.equal(world.ended(lease.id).state, "EXPIRED");
});

test("L3: a waiter whose timeout has passed ends before anything is granted, even if settled late", () => {
  const world = createWorld("old", "young");
  world.grant("young", "MUTATES FILE:/a", { ttlMs: 1_000 });
  const wait = world.waits("old", "MUTATES FILE:/a", { waitTimeoutMs: 5_000 });
  world.pass(60_000); // The lease ended at 1 s, the wait at 5 s; nobody looked until now.
  assert.deepEqual(world.happened, ["request.timed_out", "lease.expired"]);
  assert.equal(world.request(wait.requestId)?.state, "TIMED_OUT");
  assert.deepEqual(world.leases(), []);
});

test("L3: what is granted while settling late is stamped with the present", () => {
  const world = createWorld("old", "young");
  world.grant("young", "MUTATES FILE:/a", { ttlMs: 1_000 });
  const wait = world.waits("old", "MUTATES FILE:/a", { ttlMs: 2_000, waitTimeoutMs: 30_000 });
  world.pass(20_000);
  const [lease] = world.collect(wait.requestId).leases;
  assert.equal(lease?.acquiredAt, world.now);
  assert.equal(lease?.expiresAt, world.now + 2_000);
});

test("L3: a command at the instant of several deadlines is decided after all of them", () => {
  const world = createWorld("a", "b", "c");
  world.grant("a", "MUTATES FILE:/a", { ttlMs: 1_000 });
  world.grant("b", "MUTATES FILE:/b", { ttlMs: 1_000 });
  world.later(1_000);
  assert.equal(world.grants("c", ["MUTATES FILE:/a", "MUTATES FILE:/b"]).leases.length, 2);
});

test("L4: a heartbeat sets expires_at to now + ttl, and neither fence nor generation change", () => {
  const world = createWorld("a");
  const lease = world.grant("a", "MUTATES FILE:/a", { ttlMs: 10_000 });
  world.later(4_000);
  const extended = world.heartbeat(lease.id);
  assert.deepEqual(extended, { ...lease, expiresAt: world.now + 10_000 });
  world.later(9_999);
  assert.equal(world.heartbeat(lease.id).state, "ACTIVE");
});

test("L4: a heartbeat of an ended or unknown lease is refused with a code that says which", () => {
  const world = createWorld("a");
  const [released, revoked, expired] = [
    world.grant("a", "MUTATES FILE:/a"),
    world.grant("a", "MUTATES FILE:/b"),
    world.grant("a", "MUTATES FILE:/c", { ttlMs: 100 }),
  ];
  world.release(released.id);
  world.revoke({ leaseId: revoked.id });
  world.pass(100);
  const codeOf = (leaseId: string) => {
    const ask = { type: "heartbeat", actor: world.as("a"), leaseId, activity: false } as const;
    return world.expect("refused", world.askHistory(ask)).code;
  };
  assert.equal(codeOf(released.id), "lease_released");
  assert.equal(codeOf(revoked.id), "lease_revoked");
  assert.equal(codeOf(expired.id), "lease_expired");
  assert.equal(codeOf("lse_never"), "lease_unknown");
});

test("L4: a heartbeat for all extends what lives and names what is lost", () => {
  const world = createWorld("a", "b");
  const [kept, lost, foreign] = [
    world.grant("a", "MUTATES FILE:/a", { ttlMs: 10_000 }),
    world.grant("a", "MUTATES FILE:/b", { ttlMs: 100 }),
    world.grant("b", "MUTATES FILE:/c", { ttlMs: 10_000 }),
  ];
  world.later(5_000);
  const all = world.heartbeatAll("a");
  assert.deepEqual(
    all.leases.map(({ id, expiresAt }) => [id, expiresAt]),
    [[kept.id, world.now + 10_000]],
  );
  const named = world.heartbeatAll("a", [kept.id, lost.id, foreign.id, "lse_never"]);
  assert.deepEqual(
    named.leases.map(({ id }) => id),
    [kept.id],
  );
  assert.deepEqual(
    named.lost.map(({ id }) => id),
    [lost.id, foreign.id, "lse_never"],
  );
  assert.equal(world.lease(foreign.id)?.expiresAt, foreign.expiresAt, "a stranger's lease is not extended");
});

test("L5: releasing twice, or after expiry, answers with the lease as it ended and changes nothing", () => {
  const world = createWorld("a");
  const [first, second] = [world.grant("a", "MUTATES FILE:/a"), world.grant("a", "MUTATES FILE:/b", { ttlMs: 100 })];
  world.release(first.id, "v1");
  world.pass(100);
  for (const [id, state] of [
    [first.id, "RELEASED"],
    [second.id, "EXPIRED"],
  ] as const) {
    const before = snapshot(world.base.state);
    const ask = { type: "release_lease", actor: world.as("a"), leaseId: id, version: "v2" } as const;
    const { lease } = world.expect("lease", world.askHistory(ask));
    assert.equal(lease.state, state);
    assert.equal(lease.version, state === "RELEASED" ? "v1" : null);
    assert.deepEqual(world.events, []);
    assert.deepEqual(snapshot(world.base.state), before);
  }
});

test("L5: a holder that wakes after expiry cannot release its successor's lease", () => {
  const world = createWorld("a", "b");
  const lost = world.grant("a", "MUTATES FILE:/a", { ttlMs: 100 });
  world.later(100);
  const successor = world.grant("b", "MUTATES FILE:/a");
  world.askHistory({ type: "release_lease", actor: world.as("a"), leaseId: lost.id, version: null });
  assert.deepEqual(world.leases(), [successor]);
});

for (const [how, end] of [
  ["release", (world: World, lease: Lease) => void world.release(lease.id)],
  ["revocation", (world: World, lease: Lease) => void world.revoke({ leaseId: lease.id })],
  ["expiry", (world: World, lease: Lease) => void world.pass(lease.ttl)],
] as const) {
  test(`L6: the end of a lease by ${how} frees its resource and serves the waiter in the same step`, () => {
    const world = createWorld("old", "young");
    const lease = world.grant("young", "MUTATES FILE:/a", { ttlMs: 5_000 });
    const wait = world.waits("old", "MUTATES FILE:/a");
    end(world, lease);
    assert.deepEqual(world.happened.slice(1), ["lease.granted", "request.granted"]);
    assert.equal(world.request(wait.requestId)?.state, "GRANTED");
    assert.equal(world.leases().length, 1);
  });
}

test("L8: VERIFY_ALL tells the truth about each lease, ended, foreign and unknown ones included", () => {
  const world = createWorld("a", "b");
  const [live, ended, foreign] = [
    world.grant("a", "MUTATES FILE:/a"),
    world.grant("a", "MUTATES FILE:/b", { ttlMs: 100 }),
    world.grant("b", "MUTATES FILE:/c"),
  ];
  world.later(100);
  assert.deepEqual(world.verify("a"), { type: "leases", leases: [live], lost: [], notExtended: [], total: null });
  const named = world.verify("a", [live.id, ended.id, foreign.id, "lse_never", live.id]);
  assert.deepEqual(named.leases, [live]);
  assert.deepEqual(
    named.lost.map(({ id, lease }) => [id, lease]),
    [
      [ended.id, null],
      [foreign.id, null],
      ["lse_never", null],
    ],
  );
});

test("L9: while its agent restarts, a missed lease is held for 15 s: nobody else gets it, and then it expires", () => {
  const world = createWorld("old", "young", "other");
  const lease = world.grant("young", "MUTATES FILE:/a", { ttlMs: 1_000 });
  world.restart("young");
  world.pass(1_000);
  assert.deepEqual(world.happened, ["lease.held"]);
  assert.equal(world.lease(lease.id)?.state, "HELD");
  assert.equal(world.lease(lease.id)?.heldUntil, lease.expiresAt + 15_000);
  world.dies("other", "MUTATES FILE:/a");
  const wait = world.waits("old", "MUTATES FILE:/a", { waitTimeoutMs: 60_000 });
  world.pass(14_999);
  assert.equal(world.lease(lease.id)?.state, "HELD");
  world.pass(1);
  assert.equal(world.ended(lease.id).state, "EXPIRED");
  assert.equal(world.request(wait.requestId)?.state, "GRANTED");
});

test("L9: the restart may be announced by a supervisor, or as a transition; without it a missed lease expires", () => {
  for (const announce of [
    (world: World) => world.ask({ type: "restart_agent", actor: supervisor, agentId: "a" }),
    (world: World) => world.transition("a", "DIE_RESTART"),
    () => null,
  ]) {
    const world = createWorld("a");
    const lease = world.grant("a", "MUTATES FILE:/a", { ttlMs: 1_000 });
    const announced = announce(world) !== null;
    world.pass(1_000);
    assert.equal(world.lease(lease.id)?.state, announced ? "HELD" : undefined);
  }
});

test("L9: a held lease is not honoured: heartbeat, renewal, transfer and downgrade take VERIFY_ALL first", () => {
  const world = createWorld("a", "b");
  const lease = world.grant("a", "MUTATES FILE:/a", { ttlMs: 1_000 });
  world.restart("a");
  world.pass(1_000);
  const [actor, leaseId] = [world.as("a"), lease.id];
  world.refused("verify_required", { type: "heartbeat", actor, leaseId, activity: false });
  world.refused("verify_required", { type: "renew_lease", activity: false, actor, leaseId, generation: null });
  world.refused("verify_required", { type: "transfer_lease", version: null, actor, leaseId, toAgentId: "b" });
  world.refused("verify_required", { type: "downgrade_lease", version: null, actor, leaseId, predicate: "CONSUMES" });
  const all = world.heartbeatAll("a");
  assert.deepEqual(all.leases, []);
  assert.deepEqual(
    all.lost.map(({ id, code }) => [id, code]),
    [[leaseId, "verify_required"]],
  );
  assert.equal(world.lease(leaseId)?.state, "HELD");
});

test("L9: after VERIFY_ALL a heartbeat makes it ACTIVE again, and VERIFY_ALL ends the restart", () => {
  const world = createWorld("a");
  const lease = world.grant("a", "MUTATES FILE:/a", { ttlMs: 1_000 });
  world.restart("a");
  world.pass(1_000);
  assert.equal(world.verify("a").leases[0]?.state, "HELD");
  assert.equal(world.agent("a").restarting, false);
  world.later(10_000);
  const revived = world.heartbeat(lease.id);
  assert.equal(revived.state, "ACTIVE");
  assert.equal(revived.expiresAt, world.now + 1_000);
  assert.deepEqual(world.happened, ["lease.revived"]);
  world.pass(999);
  assert.equal(world.lease(lease.id)?.state, "ACTIVE");
});

test("L9: VERIFY_ALL alone does not lengthen the hold", () => {
  const world = createWorld("a");
  const lease = world.grant("a", "MUTATES FILE:/a", { ttlMs: 1_000 });
  world.restart("a");
  world.pass(2_000);
  world.verify("a");
  world.pass(14_000);
  assert.equal(world.ended(lease.id).state, "EXPIRED");
});

test("L9: a lease is held once in its life; the second miss is the end", () => {
  const world = createWorld("a");
  const lease = world.grant("a", "MUTATES FILE:/a", { ttlMs: 1_000 });
  world.restart("a");
  world.pass(1_000);
  world.verify("a");
  world.heartbeat(lease.id);
  world.restart("a");
  world.pass(1_000);
  assert.equal(world.lease(lease.id), undefined);
  assert.equal(world.ended(lease.id).state, "EXPIRED");
});

test("L9: a hold that is over when it is first looked at is an expiry", () => {
  const world = createWorld("a");
  const lease = world.grant("a", "MUTATES FILE:/a", { ttlMs: 1_000 });
  world.restart("a");
  world.pass(16_000);
  assert.deepEqual(world.happened, ["lease.expired"]);
  assert.equal(world.ended(lease.id).state, "EXPIRED");
});

test("L9: both halves of a rename are held and revived together", () => {
  const world = createWorld("a");
  const { leases } = world.grants("a", "RENAMES FILE:/a > FILE:/b", { ttlMs: 1_000 });
  world.restart("a");
  world.pass(1_000);
  assert.deepEqual(world.happened, ["lease.held", "lease.held"]);
  world.verify("a");
  world.heartbeat(leases[1]?.id ?? "");
  assert.deepEqual(
    world.leases().map(({ state, expiresAt }) => [state, expiresAt - world.now]),
    [
      ["ACTIVE", 1_000],
      ["ACTIVE", 1_000],
    ],
  );
});

test("L9: a held lease can be released, and its resource is free", () => {
  const world = createWorld("a", "b");
  const lease = world.grant("a", "MUTATES FILE:/a", { ttlMs: 1_000 });
  world.restart("a");
  world.pass(1_000);
  assert.equal(world.release(lease.id).state, "RELEASED");
  world.grant("b", "MUTATES FILE:/a");
});

test("L10: however often it is extended, a lease lives no longer than the quota on lease time", () => {
  const world = createWorld("a");
  world.quotas({ leaseTimeMsMax: 10_000 });
  const lease = world.grant("a", "MUTATES FILE:/a", { ttlMs: 6_000 });
  const end = lease.acquiredAt + 10_000;
  world.later(5_000);
  assert.equal(world.heartbeat(lease.id).expiresAt, end);
  world.later(1_000);
  assert.equal(world.renew(lease.id).expiresAt, end);
  world.later(3_999);
  assert.equal(world.heartbeat(lease.id).expiresAt, end);
  world.pass(1);
  assert.equal(world.ended(lease.id).state, "EXPIRED");
  assert.equal(world.grant("a", "MUTATES FILE:/b", { ttlMs: 60_000 }).expiresAt, world.now + 10_000);
});

test("L10: a lease that reached its quota on lease time is not revived beyond it", () => {
  const world = createWorld("a");
  world.quotas({ leaseTimeMsMax: 10_000 });
  const lease = world.grant("a", "MUTATES FILE:/a", { ttlMs: 10_000 });
  world.restart("a");
  world.pass(12_000);
  world.verify("a");
  const ask = { type: "heartbeat", actor: world.as("a"), leaseId: lease.id, activity: false } as const;
  const reply = world.askHistory(ask);
  if (reply.type === "lease") assert.ok(reply.lease.expiresAt > world.now, "an ACTIVE lease ends in the future (L3)");
});

test("L10: a tenant's lease time is counted by the day, and what is used up is denied until the next", () => {
  const day = limits.leaseTimeWindowMs;
  const world = createWorld("a");
  world.later(day - (world.now % day)); // to midnight
  world.quotas({ tenantLeaseTimeMsMax: 10_000 });
  const lease = world.grant("a", "MUTATES FILE:/a");
  world.later(9_999);
  world.release(lease.id);
  const second = world.grant("a", "MUTATES FILE:/a");
  world.later(1);
  world.release(second.id);
  const refusal = world.refused("lease_denied", world.acquire("a", "MUTATES FILE:/a"));
  assert.equal(refusal.reason, "quota");
  world.later(day - 10_001);
  world.refused("lease_denied", world.acquire("a", "MUTATES FILE:/a"));
  world.later(1);
  world.grant("a", "MUTATES FILE:/a");
});

test("L10: without reported activity for its idle timeout a lease is revoked, heartbeats notwithstanding", () => {
  const world = createWorld("a");
  const lease = world.grant("a", "MUTATES FILE:/a", { ttlMs: 10_000, idleTimeoutMs: 15_000 });
  world.later(9_000);
  world.heartbeat(lease.id);
  world.pass(5_999);
  assert.equal(world.lease(lease.id)?.state, "ACTIVE");
  world.pass(1);
  assert.deepEqual([world.ended(lease.id).state, world.ended(lease.id).endReason], ["REVOKED", "idle"]);
});

test("L10: reported activity keeps an idle lease alive", () => {
  const world = createWorld("a");
  const lease = world.grant("a", "MUTATES FILE:/a", { ttlMs: 10_000, idleTimeoutMs: 15_000 });
  for (let beat = 0; beat < 5; beat++) {
    world.later(9_000);
    world.heartbeat(lease.id, true);
  }
  world.pass(9_999);
  assert.equal(world.lease(lease.id)?.state, "ACTIVE");
  world.pass(1);
  assert.equal(world.ended(lease.id).state, "EXPIRED");
});

test("L11: every grant, shared, batched, renewed, re-issued, transferred, carries a greater fence than all before", () => {
  const world = createWorld("a", "b");
  let highest = 0;
  const grows = (...leases: readonly (Lease | undefined)[]) => {
    for (const lease of leases) {
      assert.ok(lease !== undefined && lease.fence > highest, `${lease?.fence} after ${highest}`);
      highest = lease.fence;
    }
  };
  const lease = world.grant("a", "CONSUMES FILE:/a");
  grows(lease, world.grant("b", "CONSUMES FILE:/a"));
  grows(...world.grants("a", ["MUTATES FILE:/b", "RENAMES FILE:/c > FILE:/d"]).leases);
  grows(world.renew(lease.id));
  world.register("a");
  const reissued = world.events.flatMap((event) => (event.type === "lease.reissued" ? [event.lease] : []));
  assert.equal(reissued.length, 4);
  grows(...reissued);
  grows(world.transfer(lease.id, "b"));
  world.release(lease.id);
  grows(world.grant("a", "CONSUMES FILE:/a"));
});

test("L11: fences go on growing through a restart from records", () => {
  const world = createWorld("a");
  const before = world.grant("a", "MUTATES FILE:/a");
  const later = world.renew(before.id);
  world.base.state = restore(snapshot(world.base.state));
  assert.ok(world.renew(before.id).fence > later.fence);
});

test("L12: ended is final: nothing is done to a released lease again", () => {
  const world = createWorld("a", "b");
  const { id } = world.grant("a", "MUTATES FILE:/a");
  world.release(id);
  const actor = world.as("a");
  for (const ask of [
    { type: "heartbeat", actor, leaseId: id, activity: true },
    { type: "renew_lease", activity: false, actor, leaseId: id, generation: 1 },
    { type: "transfer_lease", version: null, actor, leaseId: id, toAgentId: "b" },
    { type: "downgrade_lease", version: null, actor, leaseId: id, predicate: "CONSUMES" },
  ] as const) {
    world.refused("lease_unknown", ask);
    assert.equal(world.expect("refused", world.askHistory(ask)).code, "lease_released");
  }
  assert.equal(world.ended(id).state, "RELEASED");
  const again = world.askHistory({ type: "revoke", target: { leaseId: id }, reason: "again" });
  assert.equal(world.expect("revoked", again).count, 0);
});

test("L13: a stranger may not heartbeat, renew, transfer, downgrade or release a lease, though it knows the id", () => {
  const world = createWorld("a", "b");
  const { id: leaseId } = world.grant("a", "MUTATES FILE:/a");
  for (const stranger of [world.as("b"), actor("agent"), actor("reader"), actor("worker")]) {
    world.refused("not_lease_holder", { type: "heartbeat", actor: stranger, leaseId, activity: true });
    const its = { actor: stranger, leaseId, version: null };
    world.refused("not_lease_holder", { ...its, type: "renew_lease", activity: false, generation: null });
    world.refused("not_lease_holder", { ...its, type: "transfer_lease", toAgentId: "b" });
    world.refused("not_lease_holder", { ...its, type: "downgrade_lease", predicate: "CONSUMES" });
    world.refused("not_lease_holder", { ...its, type: "release_lease" });
    world.refused("forbidden", { type: "revoke", actor: stranger, target: { leaseId }, reason: "mine" });
  }
  world.release(leaseId);
  const late = { type: "release_lease", actor: world.as("b"), leaseId, version: null } as const;
  assert.equal(world.expect("refused", world.askHistory(late)).code, "not_lease_holder");
});

test("L13: a supervisor may do all of it for the agent", () => {
  const world = createWorld("a", "b");
  const { id: leaseId } = world.grant("a", "MUTATES FILE:/a");
  const asSupervisor = { actor: supervisor, leaseId };
  world.expect("lease", world.ask({ type: "heartbeat", ...asSupervisor, activity: true }));
  world.expect("lease", world.ask({ type: "renew_lease", activity: false, ...asSupervisor, generation: 1 }));
  world.expect("lease", world.ask({ type: "downgrade_lease", version: null, ...asSupervisor, predicate: "PROVIDES" }));
  world.expect("lease", world.ask({ type: "transfer_lease", version: null, ...asSupervisor, toAgentId: "b" }));
  world.expect("lease", world.ask({ type: "release_lease", ...asSupervisor, version: null }));
});

test("L14: one lease, all of an agent, or all under a prefix can be revoked; the others live on", () => {
  const world = createWorld("a", "b");
  const [one, two, three, four, five] = [
    world.grant("a", "MUTATES FILE:/src/a"),
    world.grant("b", "MUTATES FILE:/src/b"),
    world.grant("b", "CONSUMES FILE:/srcs"),
    world.grant("a", "CONSUMES FILE:/src/deep/**"),
    world.grant("b", "MUTATES TABLE:/src/a"),
  ];
  const live = () => world.leases().map(({ id }) => id);
  assert.equal(world.revoke({ leaseId: one.id }, "one"), 1);
  assert.equal(world.ended(one.id).endReason, "one");
  assert.deepEqual(live(), [two.id, three.id, four.id, five.id]);
  assert.equal(world.revoke({ resourcePrefix: "FILE:/src" }), 2);
  assert.deepEqual(live(), [three.id, five.id]);
  assert.equal(world.revoke({ agentId: "b" }), 2);
  assert.deepEqual(live(), []);
  assert.equal(world.ended(five.id).state, "REVOKED");
  assert.equal(world.revoke({ agentId: "b" }), 0);
});

test("L14: a prefix may be written with a slash or as a subtree, and FILE:/ is all files", () => {
  for (const resourcePrefix of ["FILE:/src", "FILE:/src/", "FILE:/src/**", "FILE:/", "FILE:/**"]) {
    const world = createWorld("a");
    world.grants("a", ["MUTATES FILE:/src", "MUTATES FILE:/src/a", "CONSUMES DB:/src"]);
    assert.equal(world.revoke({ resourcePrefix }), 2, resourcePrefix);
  }
  const world = createWorld("a");
  assert.equal(world.revoke({ resourcePrefix: "FILE:/nothing/here" }), 0);
});

test("L14: revoking serves those who waited, and does not end the unit of work", () => {
  const world = createWorld("old", "young");
  world.grant("young", "MUTATES FILE:/a");
  const { priority } = world.agent("young");
  const wait = world.waits("old", "MUTATES FILE:/a");
  world.revoke({ agentId: "young" });
  assert.equal(world.collect(wait.requestId).leases.length, 1);
  assert.deepEqual([world.agent("young").state, world.agent("young").priority], ["PAUSED", priority]);
});

test("L16: an ended lease that history no longer has is lease_unknown", () => {
  const world = createWorld("a");
  const ask = { type: "heartbeat", actor: world.as("a"), leaseId: "lse_pruned", activity: false } as const;
  assert.equal(world.expect("refused", world.askHistory(ask)).code, "lease_unknown");
});

test("L7: nothing in the kernel reads a clock: the next deadline follows from the commands' times alone", () => {
  const world = createWorld("a");
  const lease = world.grant("a", "MUTATES FILE:/a", { ttlMs: 1_234 });
  assert.equal(nextDeadline(world.base.state), lease.expiresAt);
});
