import assert from "node:assert/strict";
import { test } from "node:test";
import { createWorld, found, records, type World } from "../testing/test-world.ts";

function createWoundWait(...agents: readonly string[]): World {
  const world = createWorld(...agents);
  world.settings({ strategy: "wound_wait" });
  return world;
}

const stateOf = (world: World, { requestId }: { readonly requestId: string }) => world.request(requestId)?.state;

test("C5, W7: making room among many units looks at each wounded lease a bounded number of times", () => {
  const count = 200;
  const agents = Array.from({ length: count }, (_, n) => `young${n}`);
  const world = createWorld("old", ...agents);
  world.settings({ strategy: "wound_wait" });
  world.declare("GPU:/0", count);
  for (const agent of agents) world.grants(agent, ["MUTATES GPU:/0", `MUTATES FILE:/d/${agent}`]);
  let looked = 0;
  for (const entry of world.base.state.tenants.get("t1")?.leases.values() ?? []) {
    let { record } = entry;
    Object.defineProperty(entry, "record", {
      get() {
        looked++;
        return record;
      },
      set(changed: typeof record) {
        record = changed;
      },
    });
  }
  world.grants("old", ["MUTATES FILE:/d/**", `MUTATES GPU:/0 x${count}`]);
  assert.ok(looked < 100 * count, `${looked} looks`);
});

test("W7: an older requester revokes the younger holder in its way, which learns why, and is granted at once", () => {
  const world = createWoundWait("old", "young");
  const lease = world.grant("young", "MUTATES FILE:/x");
  const { priority } = world.agent("young");
  world.grant("old", "MUTATES FILE:/x");
  assert.deepEqual(world.happened, ["lease.revoked", "lease.granted"]);
  assert.deepEqual([world.ended(lease.id).state, world.ended(lease.id).endReason], ["REVOKED", "wounded"]);
  assert.equal(world.agent("young").priority, priority, "the wounded keeps its age");
});

test("W1, W7: a wounded agent that lets go of the rest keeps its age, as after DIE; done again, its unit ends", () => {
  for (const state of ["EXECUTING", "VERIFYING"] as const) {
    const world = createWoundWait("old", "young");
    world.grants("young", ["MUTATES FILE:/x", "MUTATES FILE:/y"]);
    if (state === "VERIFYING") world.transition("young", "VERIFYING");
    const { priority } = world.agent("young");
    world.grant("old", "MUTATES FILE:/x");
    assert.equal(world.agent("young").state, "PAUSED");
    assert.equal(world.agent("young").pausedAt, world.now);
    world.releaseAll("young");
    assert.deepEqual([world.agent("young").state, world.agent("young").priority], ["PAUSED", priority]);
    world.releaseAll("old");
    world.grants("young", ["MUTATES FILE:/x", "MUTATES FILE:/y"]);
    assert.equal(world.agent("young").priority, priority);
    world.releaseAll("young");
    assert.equal(world.agent("young").state, "COMPLETED");
    world.grant("young", "MUTATES FILE:/x");
    assert.ok(world.agent("young").priority > priority);
  }
});

test("W7, A1: a wounded agent that goes on with what is left says so, and gets the update", () => {
  const world = createWoundWait("old", "young");
  world.grants("young", ["MUTATES FILE:/x", "MUTATES FILE:/y"]);
  world.grant("old", "MUTATES FILE:/x");
  world.releaseAll("old");
  assert.equal(world.transition("young", "EXECUTING").state, "EXECUTING");
});

test("W7: a younger requester waits for the older, and never dies", () => {
  const world = createWoundWait("old", "young", "younger");
  const lease = world.grant("old", "MUTATES FILE:/x");
  const [first, second] = [world.waits("young", "MUTATES FILE:/x"), world.waits("younger", "MUTATES FILE:/x")];
  assert.deepEqual([first.position, second.position], [1, 2]);
  world.release(lease.id);
  assert.deepEqual([stateOf(world, first), stateOf(world, second)], ["GRANTED", "WAITING"]);
});

test("W7: every younger holder is wounded, and no older one", () => {
  const world = createWoundWait("oldest", "old", "young", "younger");
  const [elder, first, second] = ["oldest", "young", "younger"].map((agent) => world.grant(agent, "CONSUMES FILE:/x"));
  const wait = world.waits("old", "MUTATES FILE:/x");
  assert.deepEqual(world.happened, ["lease.revoked", "lease.revoked", "request.waiting"]);
  assert.deepEqual(
    world.leases().map(({ id }) => id),
    [elder?.id],
  );
  assert.equal(wait.blockersTotal, 1);
  for (const lease of [first, second]) assert.equal(world.ended(lease?.id ?? "").endReason, "wounded");
  world.release(elder?.id ?? "");
  assert.equal(stateOf(world, wait), "GRANTED");
});

test("W7: who conflicts with nobody wounds nobody, and what does not conflict is not wounded", () => {
  const world = createWoundWait("old", "young");
  world.grants("young", ["CONSUMES FILE:/x", "MUTATES FILE:/y", "MUTATES FILE:/d/z"]);
  world.grant("old", "CONSUMES FILE:/x");
  world.grant("old", "MUTATES FILE:/free");
  world.grant("old", "MUTATES FILE:/d/*/y");
  assert.equal(world.leases().length, 6);
});

test("W7: an older requester goes ahead of younger waiters, whenever it comes", () => {
  const world = createWoundWait("oldest", "old", "mid", "young");
  const lease = world.grant("oldest", "MUTATES FILE:/x");
  const [young, mid] = [world.waits("young", "MUTATES FILE:/x"), world.waits("mid", "MUTATES FILE:/x")];
  const old = world.waits("old", "MUTATES FILE:/x");
  assert.deepEqual([young.position, mid.position, old.position], [1, 1, 1]);
  const now = world.expect(
    "waiting",
    world.ask({ type: "collect_request", collect: null, requestId: young.requestId }),
  );
  assert.equal(now.position, 3);
  world.release(lease.id);
  assert.deepEqual(
    [old, mid, young].map((wait) => stateOf(world, wait)),
    ["GRANTED", "WAITING", "WAITING"],
  );
});

test("W7: an older reader passes a younger writer that waits, and a younger one does not", () => {
  const world = createWoundWait("oldest", "old", "writer", "young");
  world.grant("oldest", "CONSUMES FILE:/x");
  const writer = world.waits("writer", "MUTATES FILE:/x");
  world.grant("old", "CONSUMES FILE:/x");
  const young = world.waits("young", "CONSUMES FILE:/x");
  assert.deepEqual([stateOf(world, writer), stateOf(world, young)], ["WAITING", "WAITING"]);
});

test("W7: the requester takes its place before what the wounded held is served: nobody younger slips in", () => {
  const world = createWoundWait("oldest", "old", "young", "younger");
  world.grant("young", ["MUTATES FILE:/x", "MUTATES FILE:/y"]);
  const younger = world.waits("younger", "MUTATES FILE:/x");
  world.grant("oldest", "MUTATES FILE:/z");
  const old = world.waits("old", ["MUTATES FILE:/x", "MUTATES FILE:/z"]);
  assert.equal(stateOf(world, younger), "WAITING");
  world.revoke({ agentId: "oldest" });
  assert.deepEqual([stateOf(world, old), stateOf(world, younger)], ["GRANTED", "WAITING"]);
});

test("W7: what the wounded held beside goes to those who wait for it, in the same step", () => {
  const world = createWoundWait("old", "young", "younger");
  world.grants("young", "RENAMES FILE:/x > FILE:/y");
  const younger = world.waits("younger", "MUTATES FILE:/y");
  world.grant("old", "MUTATES FILE:/x");
  assert.equal(stateOf(world, younger), "GRANTED", "both halves of a rename end together (C7)");
});

test("W7: of equal age there is none, but one agent's requests stand in order of arrival", () => {
  const world = createWoundWait("old", "young");
  const lease = world.grant("old", "MUTATES FILE:/x");
  const first = world.waits("young", "MUTATES FILE:/x");
  const second = world.waits("young", "DELETES FILE:/x");
  world.release(lease.id);
  assert.deepEqual([stateOf(world, first), stateOf(world, second)], ["GRANTED", "GRANTED"]);
  const order = world.events.flatMap((event) => (event.type === "request.granted" ? [event.request.id] : []));
  assert.deepEqual(order, [first.requestId, second.requestId]);
});

test("W7: a wounding that would have to wait all the same, for 0 ms, wounds nobody", () => {
  const world = createWoundWait("oldest", "old", "young");
  world.grant("oldest", "CONSUMES FILE:/x");
  world.grant("young", "CONSUMES FILE:/x");
  world.refused("would_wait", world.acquire("old", "MUTATES FILE:/x", { waitTimeoutMs: 0 }));
});

test("W7, W12: a dry run wounds nobody, and foretells the grant", () => {
  const world = createWoundWait("old", "young");
  world.grant("young", "MUTATES FILE:/x");
  const before = records(world.base.state);
  world.grants("old", "MUTATES FILE:/x", { dryRun: true });
  assert.equal(records(world.base.state), before);
});

test("W7: a held lease is wounded like an active one, and its holder can still ask about it", () => {
  const world = createWoundWait("old", "young");
  const lease = world.grant("young", "MUTATES FILE:/x", { ttlMs: 1_000 });
  world.restart("young");
  world.pass(1_000);
  world.grant("old", "MUTATES FILE:/x");
  assert.equal(world.ended(lease.id).endReason, "wounded");
  assert.equal(world.verify("young", [lease.id]).lost.length, 1);
});

test("W7: the strategy is switched only while nobody waits", () => {
  const world = createWorld("old", "young");
  world.grant("young", "MUTATES FILE:/x");
  const wait = world.waits("old", "MUTATES FILE:/x");
  const change = { type: "set_tenant_settings", tenantId: "t1", settings: { strategy: "wound_wait" } } as const;
  world.refused("strategy_in_use", change);
  world.settings({ strategy: "wait_die", ttlMsDefault: 50_000 });
  world.cancel(wait.requestId);
  world.settings({ strategy: "wound_wait" });
  world.grant("old", "MUTATES FILE:/x");
});

test("W7: a lease that is closing cannot be wounded again: older and younger wait for its teardown", () => {
  const world = createWoundWait("old", "mid", "young");
  world.declare("GPU:/0", null, "cell-1");
  const lease = bind(world, "mid");
  world.release(lease.id);
  assert.equal(world.lease(lease.id)?.state, "CLOSING");
  const [young, old] = [world.waits("young", "MUTATES GPU:/0"), world.waits("old", "MUTATES GPU:/0")];
  assert.deepEqual([young.position, old.position], [1, 1]);
  assert.equal(world.lease(lease.id)?.closingAs, "RELEASED");
  world.tornDown(lease);
  assert.deepEqual([stateOf(world, old), stateOf(world, young)], ["BINDING", "WAITING"]);
});

test("W7, G6: wounding a bound lease begins its teardown, and the requester waits for it", () => {
  const world = createWoundWait("old", "young");
  world.declare("GPU:/0", null, "cell-1");
  const lease = bind(world, "young");
  const wait = world.waits("old", "MUTATES GPU:/0");
  assert.deepEqual(world.happened, ["lease.closing", "request.waiting"]);
  world.tornDown(lease);
  assert.deepEqual([world.ended(lease.id).state, world.ended(lease.id).endReason], ["REVOKED", "wounded"]);
  assert.equal(stateOf(world, wait), "BINDING");
});

test("W7, W4: wounding a bound lease means waiting for its teardown, which for 0 ms is refused and wounds nobody", () => {
  const world = createWoundWait("old", "young");
  world.declare("GPU:/0", null, "cell-1");
  bind(world, "young");
  world.refused("would_wait", world.acquire("old", "MUTATES GPU:/0", { waitTimeoutMs: 0 }));
});

test("W7, W12: a dry run foretells that a wounded bound lease has to be waited for", () => {
  const world = createWoundWait("old", "young");
  world.declare("GPU:/0", null, "cell-1");
  bind(world, "young");
  const foretold = world.ask(world.acquire("old", "MUTATES GPU:/0", { dryRun: true }));
  assert.equal(foretold.type, world.ask(world.acquire("old", "MUTATES GPU:/0")).type);
});

test("W7, G2: a wait for a wounded bound lease counts against the quota on waiters like any other", () => {
  const world = createWoundWait("old", "young");
  world.declare("GPU:/0", null, "cell-1");
  world.quotas({ waitersMax: 0 });
  bind(world, "young");
  const refusal = world.refused("lease_denied", world.acquire("old", "MUTATES GPU:/0"));
  assert.equal(refusal.reason, "quota");
});

/** A lease on GPU:/0, set up by its cell. */
function bind(world: World, agent: string) {
  const { requestId } = world.waits(agent, "MUTATES GPU:/0");
  const [leaseId] = found(world.request(requestId), "request").leaseIds;
  world.bound(found(world.lease(leaseId ?? ""), "lease"));
  return found(world.collect(requestId).leases[0], "lease");
}
