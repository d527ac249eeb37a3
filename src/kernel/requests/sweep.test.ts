import assert from "node:assert/strict";
import { test } from "node:test";
import { cellActor, createCellWorld } from "../testing/cell-world.ts";
import { createTaskWorld } from "../testing/tasks-world.ts";
import { createWorld, found, records } from "../testing/test-world.ts";

const count = 10;
const names = Array.from({ length: count }, (_, nth) => `MUTATES FILE:/d/${nth}`);

test("L14: very many leases are revoked in slices, none is honoured meanwhile, and the count is that of all", () => {
  const world = createWorld("a", "b");
  const { leases } = world.grants("a", names);
  const revoking = world.begin({ type: "revoke", target: { resourcePrefix: "FILE:/d" }, reason: "test" }, 3);
  assert.equal(world.leases().length, count, "nothing has ended yet");
  assert.ok(!revoking.isAnswered());
  const last = found(leases.at(-1), "a lease");
  // Other commands are decided in between.
  const heartbeat = { type: "heartbeat", actor: world.as("a"), leaseId: last.id, activity: false } as const;
  const refusal = world.askHistory(heartbeat);
  assert.equal(refusal.type === "refused" ? refusal.code : refusal.type, "lease_revoked");
  assert.equal(world.ended(last.id).endReason, "test");
  assert.deepEqual(world.heartbeatAll("a").leases, []);
  // What begins after the revocation is not covered by it; the own leases that are ending cover nothing (W6).
  const fresh = world.grant("a", "MUTATES FILE:/d/3");
  assert.ok(revoking.slice());
  assert.ok(world.leases().length < count);
  assert.deepEqual(revoking.finish(), { type: "revoked", count });
  assert.deepEqual(
    world.leases().map(({ id }) => id),
    [fresh.id],
  );
  for (const { id } of leases) assert.equal(world.ended(id).state, "REVOKED");
});

test("L14: a lease whose time runs out while it is being revoked is revoked, and counted", () => {
  const world = createWorld("a");
  const { leases } = world.grants("a", names, { ttlMs: 1_000 });
  const revoking = world.begin({ type: "revoke", target: { agentId: "a" }, reason: "test" }, 3);
  revoking.slice();
  world.pass(1_000);
  assert.equal(world.leases().length, 0);
  assert.deepEqual(revoking.finish(), { type: "revoked", count });
  assert.ok(leases.every(({ id }) => world.ended(id).state === "REVOKED"));
});

test("L14, C7: both halves of a rename count once each, wherever the slices part them", () => {
  for (const limit of [1, 2, 3, 100]) {
    const world = createWorld("a");
    world.grants("a", ["RENAMES FILE:/d/x > FILE:/other/x", "RENAMES FILE:/d/y > FILE:/d/z", "MUTATES FILE:/d/w"]);
    const revoking = world.begin({ type: "revoke", target: { resourcePrefix: "FILE:/d" }, reason: "test" }, limit);
    assert.deepEqual(revoking.finish(), { type: "revoked", count: 5 }, `in slices of ${limit}`);
    assert.equal(world.leases().length, 0);
  }
});

test("L14, A1: an aborted agent holds nothing from the first slice on, and may begin a new unit of work before the last", () => {
  const world = createWorld("a", "b");
  world.grants("a", names);
  const aborting = world.begin({ type: "transition_agent", agentId: "a", to: "ABORTED" }, 3);
  assert.equal(world.agent("a").state, "ABORTED");
  assert.deepEqual(world.verify("a").leases, []);
  const fresh = world.grant("a", "MUTATES FILE:/fresh");
  const reply = aborting.finish();
  assert.equal(reply.type === "agent" ? reply.agent.state : reply.type, "ABORTED", "as it was decided");
  assert.deepEqual(
    world.leases().map(({ id }) => id),
    [fresh.id],
  );
  assert.equal(world.agent("a").state, "EXECUTING");
});

test("L14, A1: an abort that a crash cut short is completed after the restart", () => {
  const world = createWorld("a", "b", "c");
  world.grants("b", names);
  world.waits("a", "MUTATES FILE:/d/9");
  const aborting = world.begin({ type: "transition_agent", agentId: "b", to: "ABORTED" }, 3);
  aborting.slice();
  assert.ok(world.leases().length > 1);
  world.crash();
  assert.deepEqual(world.heartbeatAll("b").leases, [], "none of them is honoured");
  world.begin({ type: "verify_all", agentId: "c", leaseIds: null }, 3).finish();
  assert.deepEqual(
    world.leases().map(({ agentId, resource }) => [agentId, resource]),
    [["a", "FILE:/d/9"]],
  );
});

test("L14, W9: while a tenant is being suspended nobody is granted anything, and a resumption waits for the end", () => {
  const world = createWorld("old", "young");
  const { leases } = world.grants("young", names);
  const waiting = world.waits("old", "MUTATES FILE:/d/0");
  const suspending = world.begin({ type: "suspend_tenant", tenantId: world.tenant, reason: null }, 2);
  const again = world.begin({ type: "suspend_tenant", tenantId: world.tenant, reason: null }, 2);
  assert.ok(!again.isAnswered());
  const first = found(leases[0], "a lease");
  // Its end would serve the waiter, which is over as well.
  world.ask({ type: "release_lease", leaseId: first.id, version: null });
  assert.equal(world.leases().filter(({ agentId }) => agentId === "old").length, 0);
  const resuming = world.begin({ type: "resume_tenant", tenantId: world.tenant, reason: null }, 2);
  assert.ok(!resuming.isAnswered());
  world.pauses("old", "MUTATES FILE:/elsewhere");
  while (suspending.slice()) resuming.slice();
  assert.equal(world.leases().length, 0);
  assert.equal(world.request(waiting.requestId)?.state, "PAUSED");
});

test("L14, W9: a suspension that a crash cut short is completed after the restart", () => {
  const world = createWorld("old", "young");
  world.grants("young", names);
  for (const name of names) world.waits("old", name);
  const suspending = world.begin({ type: "suspend_tenant", tenantId: world.tenant, reason: null }, 3);
  suspending.slice();
  world.crash();
  world.pass(0);
  assert.equal(world.leases().filter(({ agentId }) => agentId === "old").length, 0, "nobody was served");
  world.begin({ type: "verify_all", agentId: "old", leaseIds: null }, 3).finish();
  assert.equal(world.leases().length, 0);
  assert.ok(world.requests().every(({ state }) => state === "PAUSED"));
});

for (const crashes of [false, true]) {
  test(`L14, G7: a fence over very many leases ends them all, and serves nobody${crashes ? ", across a crash" : ""}`, () => {
    const world = createWorld("old", "young");
    const { leases } = world.grants("young", names);
    for (const name of names) world.waits("old", name);
    const fencing = world.begin({ type: "fence_resource", resource: "FILE:/d/**", reason: "test" }, 3);
    fencing.slice();
    if (crashes) world.crash();
    world.ask({ type: "release_lease", leaseId: leases.at(-1)?.id ?? "", version: null });
    world.pauses("old", "MUTATES FILE:/d/3");
    if (crashes) world.begin({ type: "verify_all", agentId: "old", leaseIds: null }, 3).finish();
    else assert.equal(fencing.finish().type, "resource");
    assert.equal(world.leases().length, 0);
    assert.ok(leases.every(({ id }) => world.ended(id).state === "REVOKED"));
    assert.ok(world.requests().every(({ state }) => state === "PAUSED"));
  });
}

test("L14, G12: a withdrawal with revocation is answered when all have ended; without it only waits end", () => {
  for (const revoke of [true, false]) {
    const world = createWorld("old", "young");
    world.grants("young", names);
    for (const name of names) world.waits("old", name);
    const withdrawing = world.begin({ type: "withdraw_resource", resource: "FILE:/d/**", revoke }, 3);
    assert.equal(withdrawing.finish().type, "resource");
    assert.equal(world.leases().length, revoke ? 0 : count);
    assert.ok(world.requests().every(({ state }) => state === "PAUSED"));
  }
});

test("L14, G12: when a cell is lost its many waiters are paused in slices, and none is granted meanwhile", () => {
  const world = createCellWorld("old", "young");
  world.enrol("c1", ["PORT:/1"]);
  const lease = world.active("young", "MUTATES PORT:/1");
  for (let nth = 0; nth < count; nth++) world.waits("old", "CONSUMES PORT:/1");
  const left = { type: "cell_left", actor: cellActor("c1"), cellId: "c1", session: "s1", reason: "shut down" } as const;
  const leaving = world.begin(left, 3);
  assert.ok(leaving.isAnswered());
  world.ends("c1", lease, "lease_revoked");
  assert.equal(world.leases().length, 0);
  leaving.finish();
  assert.equal(world.requests().filter(({ state }) => state === "PAUSED").length, count);
});

test("L14, G12: leases on a cell that is withdrawn with revocation are closed in slices, and answered after the last", () => {
  const world = createCellWorld("a");
  const hosted = Array.from({ length: count }, (_, nth) => `PORT:/${nth}`);
  world.enrol("c1", hosted);
  for (const name of hosted) world.active("a", `MUTATES ${name}`);
  const withdrawing = world.begin({ type: "withdraw_cell", cellId: "c1", revoke: true }, 3);
  assert.ok(!withdrawing.isAnswered());
  assert.equal(withdrawing.finish().type, "cell");
  assert.ok(world.leases().every(({ state }) => state === "CLOSING"));
});

for (const outcome of ["success", "failure"] as const) {
  test(`L14, T12: very many dependents of a task are settled in slices after a ${outcome}, also across a crash`, () => {
    const world = createTaskWorld();
    const first = world.create();
    const second = world.create();
    const dependents = Array.from({ length: count }, () => world.create({ dependsOn: [first] }));
    const further = world.create({ dependsOn: [found(dependents[0], "task"), second] });
    const offer = world.start("w.1");
    const done = world.begin(world.receipt("complete", offer, { status: outcome }), 3);
    assert.ok(done.isAnswered(), "the receipt is in the ledger, and the task is over");
    assert.equal(world.placeOf(found(dependents.at(-1), "task")), "dependent");
    const before = records(world.base.state);
    world.crash();
    assert.equal(records(world.base.state), before);
    world.begin({ type: "cancel_task", taskId: second, reason: null }, 100).finish();
    for (const id of dependents) {
      assert.equal(world.statusOf(id), outcome === "success" ? "queued" : "canceled");
      if (outcome === "success") assert.equal(world.placeOf(id), "ready");
    }
    assert.equal(world.statusOf(further), "canceled");
    assert.equal(world.statusOf(first), outcome === "success" ? "succeeded" : "failed");
  });
}

test("T12: a task that is created to depend on one whose dependents are being settled goes on at once", () => {
  const world = createTaskWorld();
  const first = world.create();
  for (let nth = 0; nth < count; nth++) world.create({ dependsOn: [first] });
  const done = world.begin(world.receipt("complete", world.start("w.1"), { status: "success" }), 3);
  const late = world.create({ dependsOn: [first] });
  assert.equal(world.placeOf(late), "ready");
  done.finish();
  assert.equal(world.tasks().length, count + 1);
});

test("L14, W1: very many leases are released in slices, with their versions; the unit of work is over with the first", () => {
  const world = createWorld("a", "b");
  const { leases } = world.grants("b", names);
  const waiting = world.waits("a", "MUTATES FILE:/d/9");
  const versions = { "FILE:/d/3": "v3", [found(leases[4], "a lease").id]: "v4" };
  const releasing = world.begin(
    { type: "release_all", actor: world.as("b"), agentId: "b", leaseIds: null, versions },
    3,
  );
  assert.equal(world.agent("b").state, "COMPLETED");
  assert.deepEqual(world.verify("b").leases, [], "none of them is held any more");
  releasing.slice();
  assert.ok(!releasing.isAnswered());
  const reply = world.expect("leases", releasing.finish());
  assert.deepEqual(
    reply.leases.map(({ state, version }) => [state, version]),
    leases.map((_, nth) => ["RELEASED", nth === 3 ? "v3" : nth === 4 ? "v4" : null]),
  );
  assert.equal(world.request(waiting.requestId)?.state, "GRANTED");
});

test("L14, A1: a release of very many leases that a crash cut short is completed after the restart", () => {
  const world = createWorld("a", "b");
  world.grants("a", names);
  world.begin({ type: "release_all", agentId: "a", leaseIds: null, versions: null }, 3).slice();
  assert.ok(world.leases().length > 0);
  world.crash();
  world.begin({ type: "verify_all", agentId: "b", leaseIds: null }, 3).finish();
  assert.deepEqual(world.leases(), []);
});

test("L14: of very many leases only the named ones are released", () => {
  const world = createWorld("a");
  const { leases } = world.grants("a", names);
  const leaseIds = leases.slice(0, 6).map(({ id }) => id);
  const releasing = world.begin({ type: "release_all", agentId: "a", leaseIds, versions: null }, 3);
  assert.equal(world.expect("leases", releasing.finish()).leases.length, 6);
  assert.deepEqual(
    world.leases().map(({ id }) => id),
    leases.slice(6).map(({ id }) => id),
  );
  assert.equal(world.agent("a").state, "EXECUTING");
});

for (const waitTimeoutMs of [0, 30_000]) {
  test(`L14, W7: very many younger holders are wounded in slices, and nobody slips in (wait_timeout_ms ${waitTimeoutMs})`, () => {
    const world = createWorld("old", "b", "c");
    world.settings({ strategy: "wound_wait" });
    const { leases } = world.grants("b", [...names, "MUTATES FILE:/other"]);
    const { priority } = world.agent("b");
    const acquiring = world.begin(world.acquire("old", "MUTATES FILE:/d/**", { waitTimeoutMs }), 3);
    assert.ok(!acquiring.isAnswered());
    assert.deepEqual(
      world.heartbeatAll("b").leases.map(({ resource }) => resource),
      ["FILE:/other"],
      "none of the wounded is honoured",
    );
    acquiring.slice();
    world.waits("c", "MUTATES FILE:/d/0");
    const granted = world.expect("granted", acquiring.finish());
    assert.deepEqual(
      granted.leases.map(({ resource, claimBy }) => [resource, claimBy]),
      [["FILE:/d/**", null]],
    );
    for (const { id } of leases.slice(0, count)) assert.equal(world.ended(id).endReason, "wounded");
    assert.deepEqual([world.agent("old").state, world.agent("b").state], ["EXECUTING", "PAUSED"]);
    world.releaseAll("b");
    assert.equal(world.agent("b").priority, priority, "the wounded keeps its age");
  });
}

test("L14, W7: of very many holders in the way only the younger are wounded; an older one is waited for, or refuses", () => {
  const world = createWorld("eldest", "old", "b");
  world.settings({ strategy: "wound_wait" });
  const elder = world.grant("eldest", "MUTATES FILE:/d/elder");
  const { leases } = world.grants("b", names);
  const refused = world.begin(world.acquire("old", "MUTATES FILE:/d/**", { waitTimeoutMs: 0 }), 3).finish();
  assert.equal(refused.type === "refused" ? refused.code : refused.type, "would_wait");
  assert.equal(world.leases().length, count + 1, "nobody was wounded");
  const acquiring = world.begin(world.acquire("old", "MUTATES FILE:/d/**", { waitTimeoutMs: 30_000 }), 3);
  world.expect("waiting", acquiring.finish());
  for (const { id } of leases) assert.equal(world.ended(id).endReason, "wounded");
  assert.deepEqual(
    world.leases().map(({ id }) => id),
    [elder.id],
  );
  world.releaseAll("eldest");
  assert.deepEqual(
    world.leases().map(({ agentId, resource }) => [agentId, resource]),
    [["old", "FILE:/d/**"]],
  );
});

test("L14, W1, W7: who gives up the rest while it is being wounded with many others keeps its age", () => {
  const world = createWorld("old", "b");
  world.settings({ strategy: "wound_wait" });
  world.grants("b", names);
  const other = world.grant("b", "MUTATES FILE:/other");
  const { priority } = world.agent("b");
  const acquiring = world.begin(world.acquire("old", "MUTATES FILE:/d/**", {}), 3);
  world.ask({ type: "release_lease", actor: world.as("b"), leaseId: other.id, version: null });
  assert.equal(world.agent("b").state, "PAUSED");
  acquiring.finish();
  assert.equal(world.agent("b").priority, priority);
});

test("L14, C4: very many sibling patterns at one node find what overlaps, and leave nothing behind", () => {
  const world = createWorld("a", "b");
  world.quotas({ patternsMax: 5_000 });
  const siblings = Array.from({ length: 2_000 }, (_, nth) => `MUTATES FILE:/d/${nth}-*.ts`);
  for (let at = 0; at < siblings.length; at += 200) world.grants("a", siblings.slice(at, at + 200));
  world.dies("b", "MUTATES FILE:/d/1999-x.ts");
  world.dies("b", "MUTATES FILE:/d/*9-x.ts");
  world.grant("b", "MUTATES FILE:/d/1999-x.js");
  const releasing = world.begin({ type: "release_all", agentId: "a", leaseIds: null, versions: null }, 125);
  releasing.finish();
  world.releaseAll("b");
  world.grant("b", "MUTATES FILE:/d/**");
  world.releaseAll("b");
  assert.deepEqual(world.leases(), []);
  const [root] = [...(world.base.state.tenants.get("t1")?.roots.values() ?? [])];
  assert.equal(root?.branch ?? null, null, "the tree is empty again");
});
