import assert from "node:assert/strict";
import { test } from "node:test";
import { limits } from "../contract/limits.ts";
import { restore, snapshot } from "../kernel.ts";
import { bindingOf, cellActor, createCellWorld, hosts } from "../testing/cell-world.ts";
import { actor, found, records, supervisor } from "../testing/test-world.ts";

for (const [why, ready, fault, expected] of [
  ["has a fault", true, "the disk is full", "the disk is full"],
  ["is not ready", false, null, "it is not ready"],
  ["is no longer in the inventory", null, null, "it is not in the cell's inventory"],
] as const) {
  test(`G6: a resource that ${why} is PAUSED cell_not_ready, until its cell says otherwise`, () => {
    const world = createCellWorld("old", "young");
    world.enrol("c1", ["GPU:/0", "GPU:/1"]);
    const lease = world.active("young", "MUTATES GPU:/0");
    const wait = world.waits("old", "MUTATES GPU:/0");
    const rest = [hosts("GPU:/1")];
    world.beat("c1", ready === null ? rest : [hosts("GPU:/0", { ready, fault }), ...rest]);
    assert.equal(world.resource("GPU:/0")?.fault, expected);
    assert.equal(world.lease(lease.id)?.state, "ACTIVE", "what is leased goes on");
    assert.equal(world.request(wait.requestId)?.state, "PAUSED");
    const paused = world.expect(
      "paused",
      world.ask({ type: "collect_request", collect: null, requestId: wait.requestId }),
    );
    assert.equal(paused.reason, "cell_not_ready");
    const { reason, detail, resource } = world.pauses("old", "MUTATES GPU:/0");
    assert.deepEqual([reason, resource], ["cell_not_ready", "GPU:/0"]);
    assert.match(detail, new RegExp(expected));
    assert.equal(world.pauses("old", "MUTATES GPU:/0", { dryRun: true }).reason, "cell_not_ready");
    world.waits("old", "MUTATES GPU:/1");
    world.beat("c1", [hosts("GPU:/0"), ...rest]);
    assert.equal(world.resource("GPU:/0")?.fault, null);
    world.waits("old", "MUTATES GPU:/0");
  });
}

test("G6: a cell that is not heard of in time is GONE, to the millisecond; its resources are PAUSED and its leases go on", () => {
  const world = createCellWorld("old", "young");
  world.enrol("c1", ["GPU:/0"]);
  const lease = world.active("young", "MUTATES GPU:/0");
  const wait = world.waits("old", "MUTATES GPU:/0");
  world.pass(limits.cellAliveMs - 1);
  assert.equal(world.cell("c1").state, "READY");
  world.pass(1);
  assert.equal(world.cell("c1").state, "GONE");
  assert.deepEqual(world.happened, ["cell.gone", "request.paused"]);
  assert.equal(world.request(wait.requestId)?.fateReason, "cell_not_ready");
  assert.equal(world.lease(lease.id)?.state, "ACTIVE");
  assert.equal(world.pauses("old", "MUTATES GPU:/0").reason, "cell_not_ready");
  world.grant("old", "MUTATES GPU:/**/other");
});

test("G7: the end of a lease whose cell is gone is not believed: without a confirmed teardown it is a fence", () => {
  const world = createCellWorld("a");
  world.enrol("c1", ["GPU:/0"]);
  const lease = world.active("a", "MUTATES GPU:/0");
  world.pass(limits.cellAliveMs);
  world.release(lease.id);
  world.pass(limits.teardownMs);
  assert.equal(world.ended(lease.id).state, "RELEASED");
  assert.equal(world.resource("GPU:/0")?.fenceReason, "teardown_timeout");
  world.enrol("c1", ["GPU:/0"], [], "s2");
  assert.equal(
    world.pauses("a", "MUTATES GPU:/0").reason,
    "resource_fenced",
    "its cell does not lift it by coming back",
  );
});

test("a cell that was gone comes back: by its own heartbeat, late as it is, or with a new session", () => {
  const world = createCellWorld("a");
  world.enrol("c1", ["GPU:/0"]);
  world.pass(limits.cellAliveMs);
  world.beat("c1");
  assert.deepEqual(world.happened, ["cell.enrolled"]);
  assert.equal(world.cell("c1").state, "READY");
  world.pass(limits.cellAliveMs);
  world.enrol("c1", ["GPU:/0"], [], "s2");
  assert.equal(world.cell("c1").state, "READY");
  world.waits("a", "MUTATES GPU:/0");
});

test("a new session replaces the one before, which is refused from then on, and changes nothing", () => {
  const world = createCellWorld("a");
  world.enrol("c1", ["GPU:/0"]);
  world.enrol("c1", ["GPU:/0"], [], "s2");
  const late = { cellId: "c1", session: "s1", actor: cellActor("c1") } as const;
  world.refused("stale_session", { ...late, type: "cell_heartbeat", inventory: null });
  world.refused("stale_session", { ...late, type: "cell_heartbeat", inventory: [] });
  world.refused("stale_session", { ...late, type: "cell_left", reason: "shut down" });
  world.beat("c1", null, "s2");
});

test("a cell that leaves is gone at once; leaving twice is fine, and a late heartbeat does not bring it back", () => {
  const world = createCellWorld("a");
  world.enrol("c1", ["GPU:/0"]);
  world.leaves("c1");
  assert.deepEqual(world.happened, ["cell.gone"]);
  const { state, goneReason } = world.leaves("c1");
  assert.deepEqual([state, goneReason, world.happened], ["GONE", "shut down", []]);
  world.refused("stale_session", { type: "cell_heartbeat", cellId: "c1", session: "s1", inventory: null });
  assert.equal(world.pauses("a", "MUTATES GPU:/0").reason, "cell_not_ready");
  world.pass(limits.cellAliveMs);
  assert.deepEqual(world.happened, [], "it is gone only once");
});

test("L13: a cell's id belongs to the key that enrolled it first, also when that key is gone", () => {
  const world = createCellWorld("a");
  world.enrol("c1", ["GPU:/0"]);
  const lease = world.active("a", "MUTATES GPU:/0");
  world.release(lease.id);
  const other = cellActor("c2");
  world.refused("cell_taken", { ...world.enrolAsk("c1", []), actor: other });
  const mine = { cellId: "c1", session: "s1", actor: other } as const;
  world.refused("cell_taken", { ...mine, type: "cell_heartbeat", inventory: null });
  world.refused("cell_taken", { ...mine, type: "cell_left", reason: "x" });
  const about = { cellId: "c1", leaseId: lease.id, generation: 1 } as const;
  world.refused("cell_taken", { ...about, actor: other, type: "cell_ended", code: "lease_expired", failure: null });
  const report = { type: "teardown_confirmed", coordinate: null, reason: null } as const;
  world.refused("cell_taken", { ...about, ...report, actor: other });
  world.expect("key", world.ask({ type: "delete_key", keyId: "key-c1" }));
  world.refused("cell_taken", { ...world.enrolAsk("c1", []), actor: other });
  world.expect("cell_enrolled", world.ask({ ...world.enrolAsk("c1", []), actor: supervisor }));
  assert.equal(world.cell("c1").keyId, "key-c1", "a supervisor acts for it, and does not take it");
  world.expect("key", world.ask({ type: "assign_name", keyId: "key-c2", name: { cellId: "c1" } }));
  world.expect("cell_enrolled", world.ask({ ...world.enrolAsk("c1", []), actor: other }));
});

test("L13: only cells and those above them speak as cells, and a cell only of its own leases", () => {
  const world = createCellWorld("a");
  world.enrol("c1", ["GPU:/0"]);
  world.enrol("c2", ["GPU:/1"]);
  const lease = world.binding("a", "MUTATES GPU:/0");
  for (const role of ["agent", "worker", "reader"] as const) {
    world.refused("forbidden", { ...world.enrolAsk("c1", []), actor: actor(role) });
    world.refused("forbidden", { type: "withdraw_cell", cellId: "c1", revoke: true, actor: actor(role) });
  }
  world.refused("forbidden", { type: "withdraw_cell", cellId: "c1", revoke: true, actor: cellActor("c1") });
  world.refused("forbidden", { type: "readmit_cell", cellId: "c1", actor: cellActor("c1") });
  const confirm = {
    type: "bind_confirmed",
    leaseId: lease.id,
    generation: 1,
    coordinate: "h:1",
    reason: null,
  } as const;
  world.refused("forbidden", { ...confirm, cellId: "c2", actor: cellActor("c2") });
  world.refused("forbidden", { ...confirm, cellId: null, actor: cellActor("c1") });
  world.refused("cell_unknown", { ...confirm, cellId: "c9", actor: cellActor("c9") });
  world.refused("cell_unknown", { type: "withdraw_cell", cellId: "c9", revoke: false });
  world.expect(
    "done",
    world.ask({
      type: "cell_ended",
      cellId: "c2",
      leaseId: lease.id,
      generation: 1,
      code: "lease_revoked",
      failure: null,
    }),
  );
  assert.equal(world.lease(lease.id)?.state, "BINDING", "another's lease is not ended");
  world.expect("lease", world.ask({ ...confirm, cellId: "c1", actor: cellActor("c1") }));
  assert.equal(world.lease(lease.id)?.state, "ACTIVE");
});

test("A3: a binding that was re-issued while it was set up is confirmed by what its cell knows of it", () => {
  const world = createCellWorld("a");
  world.enrol("c1", ["GPU:/0"]);
  const lease = world.binding("a", "MUTATES GPU:/0");
  world.register("a");
  assert.equal(world.lease(lease.id)?.generation, 2);
  const report = { type: "bind_confirmed", cellId: "c1", leaseId: lease.id, coordinate: "h:1", reason: null } as const;
  world.refused("stale_generation", { ...report, generation: 3 });
  world.expect("lease", world.ask({ ...report, generation: 1 }));
  assert.equal(world.lease(lease.id)?.state, "ACTIVE");
});

for (const [code, as, reason] of [
  ["lease_expired", "EXPIRED", null],
  ["lease_revoked", "REVOKED", "lease_revoked"],
  ["resource_fenced", "REVOKED", "resource_fenced"],
] as const) {
  test(`G11: what a cell has ended as ${code} is ${as}, and free at once; reporting it again is fine`, () => {
    const world = createCellWorld("old", "young");
    world.enrol("c1", ["GPU:/0"]);
    const lease = world.active("young", "MUTATES GPU:/0");
    const wait = world.waits("old", "MUTATES GPU:/0");
    world.ends("c1", lease, code);
    assert.deepEqual([world.ended(lease.id).state, world.ended(lease.id).endReason], [as, reason]);
    assert.equal(world.request(wait.requestId)?.state, "BINDING");
    const before = records(world.base.state);
    world.ends("c1", lease, code);
    assert.equal(records(world.base.state), before);
  });
}

test("G7: what a cell has ended and could not tear down is a fence, also where the kernel had ended it", () => {
  for (const released of [false, true]) {
    const world = createCellWorld("a");
    world.enrol("c1", ["GPU:/0"]);
    const lease = world.active("a", "MUTATES GPU:/0");
    if (released) world.release(lease.id);
    world.ends("c1", lease, "lease_expired", "the process does not die");
    assert.equal(world.ended(lease.id).state, released ? "RELEASED" : "EXPIRED");
    assert.equal(world.resource("GPU:/0")?.fenceReason, "the process does not die");
  }
});

test("G8, G11: a cell that ended an older generation by its clock, before the renewal reached it, has ended the lease", () => {
  const world = createCellWorld("a");
  world.enrol("c1", ["GPU:/0"]);
  const lease = world.active("a", "MUTATES GPU:/0");
  world.renew(lease.id);
  world.ends("c1", lease, "lease_expired");
  assert.equal(world.ended(lease.id).generation, 2);
});

test("G6: a binding that its cell ends before the rest of the manifest is bound undoes the whole manifest", () => {
  const world = createCellWorld("a");
  world.enrol("c1", ["GPU:/0"]);
  world.enrol("c2", ["GPU:/1"]);
  const lease = world.binding("a", ["MUTATES GPU:/0", "MUTATES GPU:/1", "MUTATES FILE:/x"]);
  world.bound(lease);
  world.ends("c1", lease, "resource_fenced");
  assert.deepEqual(
    world.leases().map(({ resource, state }) => [resource, state]),
    [["GPU:/1", "CLOSING"]],
  );
  assert.equal(world.requests()[0]?.state, "BIND_FAILED");
  world.grant("a", "MUTATES FILE:/x");
});

test("G6: one failed bind undoes the whole manifest, on every cell", () => {
  const world = createCellWorld("a");
  world.enrol("c1", ["GPU:/0"]);
  world.enrol("c2", ["GPU:/1"]);
  const lease = world.binding("a", ["MUTATES GPU:/0", "MUTATES GPU:/1"]);
  world.bindFails(lease, "no such port");
  for (const one of world.leases()) assert.deepEqual([one.state, one.closingAs], ["CLOSING", "REVOKED"]);
  const { bind, teardown } = world.enrol("c2", ["GPU:/1"], [], "s2");
  assert.deepEqual([bind, teardown], [[], []], "what its cell never set up is free when it says so");
  assert.equal(world.leases().length, 1);
});

test("G7: what a cell has fenced is fenced, what is live on it is revoked, and only a probed reset lifts it", () => {
  const world = createCellWorld("a");
  world.enrol("c1", ["GPU:/0"]);
  const lease = world.active("a", "MUTATES GPU:/0");
  world.beat("c1", [hosts("GPU:/0", { fenced: "a process is left" })]);
  assert.equal(world.resource("GPU:/0")?.fenceReason, "a process is left");
  const { state, endReason } = found(world.lease(lease.id), "lease");
  assert.deepEqual([state, endReason], ["CLOSING", "resource_fenced"]);
  const { teardown } = world.enrol("c1", ["GPU:/0"], [bindingOf(lease)], "s2");
  assert.deepEqual(teardown, [{ leaseId: lease.id, code: "resource_fenced" }]);
  world.tornDown(lease);
  world.beat("c1", [hosts("GPU:/0")], "s2");
  assert.equal(world.resource("GPU:/0")?.fenced, true, "a fence of ours stays, whatever the cell says");
  world.refused("probe_required", { type: "reset_resource", resource: "GPU:/0", probed: false });
  world.reset("GPU:/0");
  world.waits("a", "MUTATES GPU:/0");
});

test("G7: for an unbound resource the operator's word is the probe", () => {
  const world = createCellWorld("a");
  world.fence("FILE:/x");
  world.expect("resource", world.ask({ type: "reset_resource", resource: "FILE:/x", probed: false }));
  world.grant("a", "MUTATES FILE:/x");
});

test("G12: a cell that is withdrawn gets no new leases on anything it hosts; the live ones run out", () => {
  const world = createCellWorld("old", "young");
  world.enrol("c1", ["GPU:/0", "GPU:/1", "GPU:/2"]);
  const lease = world.active("young", "MUTATES GPU:/0");
  const wait = world.waits("old", "MUTATES GPU:/0");
  const binding = world.binding("young", "MUTATES GPU:/2");
  world.withdrawCell("c1");
  assert.equal(world.lease(lease.id)?.state, "ACTIVE");
  assert.equal(world.request(wait.requestId)?.fateReason, "cell_not_ready");
  assert.equal(world.lease(binding.id)?.state, "CLOSING", "what was not granted yet is not granted any more");
  assert.equal(world.pauses("old", "MUTATES GPU:/1").reason, "cell_not_ready");
  world.enrol("c1", ["GPU:/0", "GPU:/1", "GPU:/2"], [bindingOf(lease)], "s2");
  assert.equal(world.cell("c1").withdrawn, true, "coming back does not lift it");
  world.withdrawCell("c1", true);
  assert.deepEqual([world.lease(lease.id)?.state, world.lease(lease.id)?.endReason], ["CLOSING", "cell_withdrawn"]);
  assert.equal(world.happened.includes("cell.withdrawn"), false, "it is withdrawn once");
  world.readmit("c1");
  assert.deepEqual(world.happened, ["cell.readmitted"]);
  world.waits("old", "MUTATES GPU:/1");
});

test("G12: a resource that was withdrawn stays so when its cell names it again", () => {
  const world = createCellWorld("a");
  world.enrol("c1", ["GPU:/0"]);
  world.withdraw("GPU:/0");
  world.enrol("c1", ["GPU:/0"], [], "s2");
  assert.equal(world.pauses("a", "MUTATES GPU:/0").reason, "resource_withdrawn");
});

test("a cell that was named by hand and never enrolled is waited for as ever: only its answer can tell", () => {
  const world = createCellWorld("a");
  world.declare("GPU:/0", null, "by-hand");
  assert.equal(world.active("a", "MUTATES GPU:/0").state, "ACTIVE");
});

test("S4: a tenant's cells are limited, and their ids, sessions and bindings are bounded", () => {
  const world = createCellWorld("a");
  world.refused("invalid_cell", world.enrolAsk("", []));
  world.refused("invalid_cell", world.enrolAsk("a cell", []));
  world.refused("invalid_cell", world.enrolAsk("c".repeat(limits.idLengthMax + 1), []));
  world.refused("invalid_cell", world.enrolAsk("c1", [], [], ""));
  const bindings = Array.from({ length: limits.cellBindingsMax + 1 }, (_, n) => ({
    leaseId: `l${n}`,
    generation: 1,
    fence: 1,
    endedAs: null,
  }));
  world.refused("invalid_cell", world.enrolAsk("c1", [], bindings));
});

test("a kernel restored in the middle of it all goes on alike: who is gone, when the next one is, and what is paused", () => {
  const world = createCellWorld("old", "young");
  world.enrol("c1", [hosts("GPU:/0", { hardware: ["h100"] })]);
  world.enrol("c2", ["GPU:/1"]);
  world.active("young", "MUTATES GPU:/1");
  world.waits("old", "MUTATES GPU:/1");
  world.pass(1_000);
  world.beat("c1");
  world.leaves("c1");
  const before = records(world.base.state);
  world.base.state = restore(snapshot(world.base.state));
  assert.equal(records(world.base.state), before);
  assert.equal(world.pauses("old", "MUTATES GPU:/0").reason, "cell_not_ready");
  world.pass(limits.cellAliveMs - 1_001);
  assert.equal(world.cell("c2").state, "READY");
  world.pass(1);
  assert.deepEqual(world.happened, ["cell.gone", "request.paused"]);
});
