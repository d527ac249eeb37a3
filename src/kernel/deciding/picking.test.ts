import assert from "node:assert/strict";
import { test } from "node:test";
import { limits } from "../contract/limits.ts";
import { restore, snapshot } from "../kernel.ts";
import { type CellWorld, createCellWorld, hosts } from "../testing/cell-world.ts";
import { createWorld, found, records } from "../testing/test-world.ts";

const gpus = ["GPU:/lab/0", "GPU:/lab/1", "GPU:/lab/2"] as const;

function createLab(...agents: readonly string[]): CellWorld {
  const world = createCellWorld(...agents);
  for (const gpu of gpus) world.declare(gpu);
  return world;
}

test("G6: of a pattern any one is leased: the lease names it, and the request keeps the pattern as asked", () => {
  const world = createLab("a");
  const { leases, requestId } = world.grants("a", "MUTATES GPU:/lab/* any", { key: "k" });
  assert.deepEqual(
    leases.map(({ resource }) => resource),
    ["GPU:/lab/0"],
  );
  const { intents, picked } = found(world.request(requestId), "request");
  assert.deepEqual([intents[0]?.resource, intents[0]?.pick, picked], ["GPU:/lab/*", "any", ["GPU:/lab/0"]]);
});

test("each next one is another, for as long as there is one; then it is waited for, or W2 says DIE", () => {
  const world = createLab("old", "a", "b", "c", "young");
  const taken = ["a", "b", "c"].map((agent) => world.grant(agent, "MUTATES GPU:/lab/* any").resource);
  assert.deepEqual(taken, gpus);
  const { position, blockers } = world.waits("old", "MUTATES GPU:/lab/* any");
  assert.deepEqual([position, blockers.length], [1, 1]);
  assert.equal(world.dies("young", "MUTATES GPU:/lab/* any").blockersTotal, 1);
});

test("W10: asked again under its key it is the same one, and another pattern under it is another request", () => {
  const world = createLab("a");
  const first = world.grants("a", "MUTATES GPU:/lab/* any", { key: "k" });
  assert.deepEqual(world.grants("a", "MUTATES GPU:/lab/* any", { key: "k" }).leases, first.leases);
  world.refused("request_id_reused", world.acquire("a", "MUTATES GPU:/lab/*", { key: "k" }));
});

test("the least loaded is picked: by the share of its units, then by who waits, then by name", () => {
  const world = createCellWorld("a", "b");
  world.declare("GPU:/big", 4);
  world.declare("GPU:/small", 2);
  const picks = Array.from({ length: 6 }, () => world.grant("a", "CONSUMES GPU:/* any").resource);
  assert.deepEqual(picks, ["GPU:/big", "GPU:/small", "GPU:/big", "GPU:/big", "GPU:/small", "GPU:/big"]);
});

test("C6: only where there is room for the units, and never where there never is", () => {
  const world = createCellWorld("a", "b");
  world.declare("GPU:/big", 4);
  world.declare("GPU:/small", 2);
  world.grant("a", "MUTATES GPU:/big");
  assert.equal(world.grant("b", "MUTATES GPU:/* x3 any").resource, "GPU:/big");
  const refusal = world.refused("lease_denied", world.acquire("b", "MUTATES GPU:/* x5 any"));
  assert.equal(refusal.reason, "capacity");
  const own = world.refused("lease_denied", world.acquire("b", "MUTATES GPU:/b* x2 any"));
  assert.equal(own.reason, "self_blocked");
});

test("if none is free, it waits where the queue is shortest", () => {
  const world = createLab("o1", "o2", "o3", "o4", "a", "b", "c");
  for (const agent of ["a", "b", "c"]) world.grant(agent, "MUTATES GPU:/lab/* any");
  const waits = ["o4", "o3", "o2", "o1"].map((agent) => world.waits(agent, "MUTATES GPU:/lab/* any").requestId);
  assert.deepEqual(
    waits.map((id) => world.request(id)?.picked[0]),
    [...gpus, "GPU:/lab/0"],
  );
});

test("freed elsewhere, with nobody in line there, it is granted that one; who stood behind it moves up", () => {
  const world = createLab("o1", "o2", "a", "b", "c");
  for (const agent of ["a", "b", "c"]) world.grant(agent, "MUTATES GPU:/lab/* any");
  const pick = world.waits("o2", "MUTATES GPU:/lab/* any");
  const behind = world.waits("o1", "MUTATES GPU:/lab/0");
  assert.equal(world.request(pick.requestId)?.picked[0], "GPU:/lab/0");
  const [, second] = world.leases();
  world.release(found(second, "lease").id);
  const [lease] = world.collect(pick.requestId).leases;
  assert.equal(lease?.resource, "GPU:/lab/1");
  assert.equal(world.request(behind.requestId)?.state, "WAITING");
  world.revoke({ agentId: "a" });
  assert.equal(world.request(behind.requestId)?.state, "GRANTED");
});

test("W3: who stood only behind one that goes elsewhere is served with it", () => {
  const world = createLab("o1", "o2", "a", "b", "c");
  world.grant("a", "CONSUMES GPU:/lab/0");
  const lease = world.grant("b", "MUTATES GPU:/lab/1");
  world.grant("c", "MUTATES GPU:/lab/2");
  const pick = world.waits("o2", "MUTATES GPU:/lab/* any");
  const behind = world.waits("o1", "CONSUMES GPU:/lab/0");
  world.release(lease.id);
  assert.equal(world.collect(pick.requestId).leases[0]?.resource, "GPU:/lab/1");
  assert.equal(world.request(behind.requestId)?.state, "GRANTED");
});

test("W3: who waits for that very one is not passed over, whatever came first", () => {
  const world = createLab("o1", "o2", "a", "b", "c");
  for (const agent of ["a", "b", "c"]) world.grant(agent, "MUTATES GPU:/lab/* any");
  const pick = world.waits("o2", "MUTATES GPU:/lab/* any");
  // Waits for a file too, so that the GPU is free and still not to be had.
  world.grant("c", "MUTATES FILE:/x");
  const exact = world.waits("o1", ["MUTATES GPU:/lab/1", "MUTATES FILE:/x"]);
  world.revoke({ resourcePrefix: "GPU:/lab/1" });
  assert.equal(world.request(pick.requestId)?.state, "WAITING");
  assert.equal(world.request(exact.requestId)?.state, "WAITING");
  world.revoke({ resourcePrefix: "FILE:/x" });
  assert.equal(world.request(exact.requestId)?.state, "GRANTED");
});

test("several that could use what is freed are served in the order in which they came", () => {
  const world = createLab("o1", "o2", "o3", "a", "b", "c");
  for (const agent of ["a", "b", "c"]) world.grant(agent, "MUTATES GPU:/lab/* any");
  world.withdraw("GPU:/lab/1");
  world.withdraw("GPU:/lab/2");
  const first = world.waits("o3", "MUTATES GPU:/lab/* any");
  const second = world.waits("o2", "MUTATES GPU:/lab/* any");
  world.revoke({ agentId: "b" });
  assert.equal(world.request(first.requestId)?.state, "WAITING", "what is withdrawn is not picked");
  world.declare("GPU:/lab/1");
  assert.deepEqual(
    [first, second].map(({ requestId }) => world.request(requestId)?.state),
    ["GRANTED", "WAITING"],
  );
  world.declare("GPU:/lab/9");
  assert.equal(world.collect(second.requestId).leases[0]?.resource, "GPU:/lab/9", "a new one is as good");
});

test("W6: a manifest with a choice is granted whole: neither its file nor its GPU alone", () => {
  const world = createLab("old", "a", "b", "c");
  for (const agent of ["a", "b", "c"]) world.grant(agent, "MUTATES GPU:/lab/* any");
  world.grant("c", "MUTATES FILE:/x");
  const wait = world.waits("old", ["MUTATES GPU:/lab/* any", "MUTATES FILE:/x"]);
  world.revoke({ agentId: "b" });
  assert.equal(world.request(wait.requestId)?.state, "WAITING", "a GPU is free, the file is not");
  world.revoke({ resourcePrefix: "FILE:/x" });
  assert.deepEqual(
    world.collect(wait.requestId).leases.map(({ resource }) => resource),
    ["GPU:/lab/1", "FILE:/x"],
  );
});

test("W6: two choices of one manifest are two resources, also when both come free one after the other", () => {
  const two = ["MUTATES GPU:/lab/* any", "CONSUMES GPU:/** any"];
  assert.deepEqual(
    createLab("a")
      .grants("a", two)
      .leases.map(({ resource }) => resource),
    ["GPU:/lab/0", "GPU:/lab/1"],
  );
  const world = createLab("old", "a", "b", "c");
  for (const agent of ["a", "b", "c"]) world.grant(agent, "MUTATES GPU:/lab/* any");
  const wait = world.waits("old", two);
  world.revoke({ agentId: "c" });
  assert.equal(world.request(wait.requestId)?.state, "WAITING");
  world.revoke({ agentId: "b" });
  assert.deepEqual(
    new Set(world.collect(wait.requestId).leases.map(({ resource }) => resource)),
    new Set(["GPU:/lab/1", "GPU:/lab/2"]),
  );
});

test("a name that the manifest takes anyway is not picked for it as well", () => {
  const world = createLab("a");
  const { leases } = world.grants("a", ["MUTATES GPU:/lab/0", "MUTATES GPU:/lab/* any"]);
  assert.deepEqual(
    leases.map(({ resource }) => resource),
    ["GPU:/lab/0", "GPU:/lab/1"],
  );
});

test("W7: under Wound-Wait what is free comes before whom one could wound, and an older one wounds on one only", () => {
  const world = createLab("old", "a", "b", "c");
  world.settings({ strategy: "wound_wait" });
  const [first] = ["a", "b"].map((agent) => world.grant(agent, "MUTATES GPU:/lab/* any"));
  assert.equal(world.grant("c", "MUTATES GPU:/lab/* any").resource, "GPU:/lab/2");
  assert.equal(world.grant("old", "MUTATES GPU:/lab/* any").resource, "GPU:/lab/0");
  assert.equal(world.ended(found(first, "lease").id).endReason, "wounded");
  assert.equal(world.leases().length, 3);
});

test("W7: a younger one waits behind the older, and is granted another that comes free", () => {
  const world = createLab("a", "b", "c", "young");
  world.settings({ strategy: "wound_wait" });
  for (const agent of ["a", "b", "c"]) world.grant(agent, "MUTATES GPU:/lab/* any");
  const wait = world.waits("young", "MUTATES GPU:/lab/* any");
  world.revoke({ agentId: "c" });
  assert.equal(world.collect(wait.requestId).leases[0]?.resource, "GPU:/lab/2");
});

test("no declared resource matches: resource_unknown; some do and none is ready: PAUSED; who is suspended hears that first", () => {
  const world = createCellWorld("a");
  world.grant("a", "MUTATES GPU:/lab/7");
  world.refused("resource_unknown", world.acquire("a", "MUTATES GPU:/lab/* any"));
  world.enrol("c1", ["GPU:/lab/0", hosts("GPU:/lab/1", { fault: "hot" })]);
  world.enrol("c2", ["GPU:/lab/2"]);
  world.fence("GPU:/lab/2");
  world.leaves("c1");
  assert.equal(world.pauses("a", "MUTATES GPU:/lab/* any").reason, "cell_not_ready");
  assert.equal(world.pauses("a", "MUTATES GPU:/lab/* any", { dryRun: true }).reason, "cell_not_ready");
  world.pauseAgent("a");
  assert.equal(world.pauses("a", "MUTATES GPU:/lab/* any").reason, "agent_paused");
  world.unpauseAgent("a");
  world.suspend();
  assert.equal(world.pauses("a", "MUTATES GPU:/none/* any").reason, "tenant_suspended");
});

test("G6: a ready cell with room is picked; when it is torn down, or its cell comes back, that is room too", () => {
  const world = createCellWorld("old", "a", "b");
  world.enrol("c1", ["GPU:/lab/0"]);
  world.enrol("c2", ["GPU:/lab/1"]);
  world.leaves("c1");
  const lease = world.active("a", "MUTATES GPU:/lab/* any");
  assert.equal(lease.resource, "GPU:/lab/1");
  const wait = world.waits("old", "MUTATES GPU:/lab/* any");
  world.enrol("c1", ["GPU:/lab/0"], [], "s2");
  assert.equal(world.request(wait.requestId)?.state, "BINDING");
  assert.deepEqual(world.request(wait.requestId)?.picked, ["GPU:/lab/0"]);
});

test("W9: a picking waiter at a resource whose cell goes is PAUSED like one that named it", () => {
  const world = createCellWorld("old", "a", "b");
  world.enrol("c1", ["GPU:/lab/0"]);
  world.active("a", "MUTATES GPU:/lab/0");
  const wait = world.waits("old", "MUTATES GPU:/lab/* any");
  world.pass(limits.cellAliveMs);
  assert.equal(world.request(wait.requestId)?.fateReason, "cell_not_ready");
});

test("G6: a bind that fails undoes the whole manifest, picked or not, and the next time another is tried where it closes", () => {
  const world = createCellWorld("a");
  world.enrol("c1", ["GPU:/lab/0", "GPU:/lab/1"]);
  const lease = world.binding("a", ["MUTATES GPU:/lab/* any", "MUTATES FILE:/x"]);
  world.bindFails(lease, "no such port");
  assert.deepEqual(
    world.leases().map(({ resource, state }) => [resource, state]),
    [["GPU:/lab/0", "CLOSING"]],
  );
  assert.equal(world.binding("a", "MUTATES GPU:/lab/* any").resource, "GPU:/lab/1");
});

test("a rename has no choice, a task's manifest neither, and a pattern over too much is to be narrowed", () => {
  const world = createLab("a");
  world.refused("invalid_target", world.acquire("a", "RENAMES GPU:/lab/* > GPU:/x any"));
  for (let n = 0; n <= limits.pickMatchesMax; n++) world.declare(`PORT:/${n}`);
  world.refused("invalid_resource", world.acquire("a", "MUTATES PORT:/* any"));
  world.grant("a", "MUTATES PORT:/1? any");
});

test("W12: a dry run says what would be, and picks nothing", () => {
  const world = createLab("a");
  world.expect("granted", world.ask(world.acquire("a", "MUTATES GPU:/lab/* any", { dryRun: true })));
  assert.equal(world.leases().length, 0);
});

test("a kernel restored while some wait for any one goes on alike, and serves what a crash left unserved", () => {
  const world = createLab("o1", "o2", "a", "b", "c");
  for (const agent of ["a", "b", "c"]) world.grant(agent, "MUTATES GPU:/lab/* any");
  const first = world.waits("o2", "MUTATES GPU:/lab/* any");
  world.waits("o1", "MUTATES GPU:/lab/* any");
  const before = records(world.base.state);
  world.base.state = restore(snapshot(world.base.state));
  assert.equal(records(world.base.state), before);
  // As if the end of b's lease was stored, and what it frees was not yet served.
  const stored = snapshot(world.base.state).filter(({ kind, record }) => {
    return kind !== "lease" || record.agentId !== "c";
  });
  world.base.state = restore(stored);
  world.pass(0);
  assert.equal(world.collect(first.requestId).leases[0]?.resource, "GPU:/lab/2");
});

test("without a choice nothing is different: a pattern is leased as the pattern that it is", () => {
  const world = createWorld("a");
  world.declare("GPU:/lab/0");
  assert.equal(world.grant("a", "MUTATES GPU:/lab/*").resource, "GPU:/lab/*");
});
