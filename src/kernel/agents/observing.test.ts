import assert from "node:assert/strict";
import { test } from "node:test";
import { limits } from "../contract/limits.ts";
import type { Lease } from "../contract/records.ts";
import type { Observation } from "../contract/replies.ts";
import { restore, snapshot } from "../kernel.ts";
import { createWorld, type World } from "../testing/test-world.ts";

/** Who did what to which resource, and the version that was reported. */
function news(observation: Observation | null | undefined): string[] {
  assert.ok(observation !== null && observation !== undefined, "there is no update");
  return observation.changes.map(({ agentId, predicate, resource, version }) =>
    [agentId, predicate, resource, version].filter((part) => part !== null).join(" "),
  );
}

/** The agent takes the lease, writes, and lets go. */
function write(world: World, agentId: string, resource: string, version: string | null = null): void {
  world.release(world.grant(agentId, `MUTATES ${resource}`).id, version);
  world.later(10);
}

/** "old" holds FILE:/old, so that everybody younger dies for it. */
function worldWithOld(...agents: string[]): World {
  const world = createWorld("old", ...agents);
  world.grant("old", "MUTATES FILE:/old", { ttlMs: 300_000 });
  return world;
}

test("A4: a grant at once, by key, asked for again and by way of ACQUIRING carries what others wrote meanwhile", () => {
  const world = worldWithOld("a", "b");
  for (const way of ["at once", "by key", "by ACQUIRING"]) {
    world.dies("a", "MUTATES FILE:/old");
    world.later(10);
    write(world, "b", "FILE:/x", way);
    if (way === "by ACQUIRING") world.transition("a", "ACQUIRING");
    const granted = world.grants("a", "MUTATES FILE:/x", way === "by key" ? { key: "k" } : {});
    assert.deepEqual(news(granted.observation), [`b MUTATES FILE:/x ${way}`]);
    if (way === "by key") {
      assert.deepEqual(world.grants("a", "MUTATES FILE:/x", { key: "k" }).observation, granted.observation);
    }
    world.releaseAll("a");
    world.later(10);
  }
});

test("A4: what an agent asks for during a pause it has not seen since the pause began, also if its first wait ends meanwhile", () => {
  const world = worldWithOld("a", "b");
  const first = world.grant("b", "MUTATES FILE:/d", { ttlMs: 1_000 });
  world.waits("a", "MUTATES FILE:/d", { waitTimeoutMs: 60_000 });
  world.later(10);
  write(world, "old", "FILE:/x", "v1");
  const held = world.grant("old", "MUTATES FILE:/x");
  world.later(10);
  world.dies("a", "CONSUMES FILE:/x");
  world.release(held.id);
  world.release(first.id);
  // Its wait was granted, so it is at work again: the update for the other name begins at the pause all the same.
  const granted = world.grants("a", "CONSUMES FILE:/x");
  assert.ok(news(granted.observation).includes("old MUTATES FILE:/x v1"), news(granted.observation).join(", "));
});

test("A4: a grant in EXECUTING carries none where nothing was lost, nor does the first of a new unit", () => {
  const world = worldWithOld("a");
  assert.equal(world.grants("a", "MUTATES FILE:/x").observation, null);
  assert.equal(world.grants("a", "MUTATES FILE:/y").observation, null);
  world.dies("a", "MUTATES FILE:/old");
  world.transition("a", "ABORTED");
  assert.equal(world.grants("a", "MUTATES FILE:/x").observation, null);
});

test("A4, W8: a grant that is collected by a heartbeat, of one or of all, or by a renewal, carries the update", () => {
  for (const way of ["heartbeat", "heartbeat_all", "renew_lease", "collect_request"] as const) {
    const world = createWorld("a", "b");
    const lease = world.grant("b", "MUTATES FILE:/x");
    const { requestId } = world.waits("a", "MUTATES FILE:/x");
    world.later(10);
    world.release(lease.id, "v2");
    const [leaseId = ""] = world.request(requestId)?.leaseIds ?? [];
    const actor = world.as("a");
    const reply = world.ask(
      way === "heartbeat"
        ? { type: way, actor, leaseId, activity: false }
        : way === "heartbeat_all"
          ? { type: way, actor, agentId: "a", leaseIds: null, activity: false }
          : way === "renew_lease"
            ? { type: way, actor, leaseId, generation: null, activity: false }
            : { type: way, actor, requestId, collect: null },
    );
    assert.ok("observation" in reply, way);
    assert.deepEqual(news(reply.observation), ["b MUTATES FILE:/x v2"], way);
    const again = world.ask({ type: "heartbeat", actor, leaseId, activity: false });
    assert.ok(!("observation" in again), "what was collected carries it once");
  }
});

test("A1, A4: EXECUTING by word needs a live lease, and carries the update on all that the agent died for", () => {
  const world = worldWithOld("a", "b");
  world.dies("a", "MUTATES FILE:/old");
  const ask = { type: "transition_agent", actor: world.as("a"), agentId: "a", to: "EXECUTING" } as const;
  const refusal = world.refused("invalid_transition", ask);
  assert.deepEqual([refusal.from, refusal.to], ["PAUSED", "EXECUTING"]);
  world.grant("a", "MUTATES FILE:/z");
  world.dies("a", "MUTATES FILE:/old");
  world.later(10);
  world.releaseAll("old");
  world.later(10);
  const moved = world.expect("agent", world.ask(ask));
  assert.deepEqual([moved.agent.state, news(moved.observation)], ["EXECUTING", ["old MUTATES FILE:/old"]]);
});

test("A4: what an agent died for stays its concern when it is granted something else, until it holds it", () => {
  const world = worldWithOld("a", "b");
  world.dies("a", "MUTATES FILE:/old");
  world.later(10);
  assert.deepEqual(news(world.grants("a", "MUTATES FILE:/z").observation), []);
  world.later(10);
  world.releaseAll("old");
  world.later(10);
  const granted = world.grants("a", "MUTATES FILE:/old");
  assert.deepEqual(news(granted.observation), ["old MUTATES FILE:/old"]);
  assert.equal(world.grants("a", "CONSUMES FILE:/old").observation, null, "the update had it, while the agent held it");
});

test("A1, A4: who loses its last lease is PAUSED, and its next grant says what happened meanwhile", () => {
  for (const [how, lose] of [
    ["expired", (world: World) => world.pass(60_000)],
    ["revoked", (world: World) => void world.revoke({ agentId: "a" })],
    ["fenced", (world: World) => [world.fence("FILE:/x"), world.reset("FILE:/x")]],
  ] as const) {
    for (const state of ["EXECUTING", "VERIFYING"] as const) {
      const world = createWorld("a", "b");
      world.grant("a", "MUTATES FILE:/x");
      if (state === "VERIFYING") world.transition("a", "VERIFYING");
      lose(world);
      assert.equal(world.agent("a").state, "PAUSED", how);
      assert.equal(world.agent("a").pausedAt, world.now, how);
      world.later(10);
      write(world, "b", "FILE:/x", "v2");
      assert.deepEqual(news(world.grants("a", "MUTATES FILE:/x").observation), ["b MUTATES FILE:/x v2"], how);
    }
  }
});

test("A1: with another lease an agent works on; the update comes when it takes the lost one again, though it never paused", () => {
  const world = createWorld("a", "b");
  const lost = world.grant("a", "MUTATES FILE:/x");
  world.grant("a", "MUTATES FILE:/kept");
  world.revoke({ leaseId: lost.id });
  assert.equal(world.agent("a").state, "EXECUTING");
  world.later(10);
  write(world, "b", "FILE:/x");
  assert.equal(world.grants("a", "MUTATES FILE:/other").observation, null);
  assert.deepEqual(news(world.grants("a", "MUTATES FILE:/x").observation), ["b MUTATES FILE:/x"]);
});

test("A1, W1: handing on the last lease completes the unit; with a wait open the agent is PAUSED", () => {
  const world = createWorld("a", "b");
  world.transfer(world.grant("a", "MUTATES FILE:/x").id, "b");
  assert.equal(world.agent("a").state, "COMPLETED");
  const other = createWorld("a", "b");
  other.grant("b", "MUTATES FILE:/y");
  const lease = other.grant("a", "MUTATES FILE:/x");
  other.waits("a", "MUTATES FILE:/y");
  other.transition("a", "EXECUTING");
  other.release(lease.id);
  assert.equal(other.agent("a").state, "PAUSED");
});

test("A4, L15: a write counts when its lease is downgraded or transferred, with the version that was reported then", () => {
  const world = worldWithOld("a", "b", "c");
  world.dies("a", "MUTATES FILE:/old");
  world.later(10);
  const x = world.grant("b", "MUTATES FILE:/x");
  world.downgrade(x.id, "CONSUMES", "v2");
  world.later(10);
  const y = world.grant("b", "MUTATES FILE:/y");
  world.transfer(y.id, "c", "v3");
  world.later(10);
  world.save("a", { intentBacklog: [{ predicate: "CONSUMES", resource: "FILE:/y" }] });
  const granted = world.grants("a", "CONSUMES FILE:/x");
  assert.deepEqual(news(granted.observation), ["b MUTATES FILE:/x v2", "b MUTATES FILE:/y v3"]);
  const { assumptions } = world.resume("a", [
    { resource: "FILE:/x", version: "v2" },
    { resource: "FILE:/y", version: "v3" },
  ]);
  assert.deepEqual(
    assumptions.map(({ outcome }) => outcome),
    ["holds", "holds"],
  );
  world.release(x.id);
  assert.equal(world.resume("a", [{ resource: "FILE:/x", version: "v1" }]).assumptions[0]?.actual, "v2");
});

test("A4: `since` is the end of the agent's own last lease on the resource, also of one that only read", () => {
  const world = worldWithOld("a", "b");
  write(world, "b", "FILE:/x", "v1");
  world.release(world.grant("a", "CONSUMES FILE:/x").id);
  const lookedUntil = world.now;
  world.later(10);
  write(world, "b", "FILE:/x", "v2");
  world.dies("a", "MUTATES FILE:/old");
  world.later(10);
  world.save("a", { intentBacklog: [{ predicate: "MUTATES", resource: "FILE:/x" }] });
  const { observation } = world.resume("a");
  assert.deepEqual(news(observation), ["b MUTATES FILE:/x v2"]);
  assert.equal(observation.since, lookedUntil);
});

test("A4, W8: a grant that was never collected let its agent see nothing", () => {
  const world = createWorld("a", "b");
  const lease = world.grant("b", "MUTATES FILE:/x");
  world.waits("a", "MUTATES FILE:/x");
  world.later(10);
  world.release(lease.id, "v2");
  world.pass(10_000);
  assert.equal(world.agent("a").state, "PAUSED", "the grant lapsed");
  assert.deepEqual(news(world.grants("a", "MUTATES FILE:/x").observation), ["b MUTATES FILE:/x v2"]);
});

test("A4: patterns overlap both ways, other types and tenants do not, nor do the agent's own writes count", () => {
  const world = worldWithOld("a", "b");
  const other = world.beside("t2", "b");
  world.dies("a", "MUTATES FILE:/old");
  world.later(10);
  write(world, "b", "FILE:/src/**");
  write(world, "b", "FILE:/src/a.ts");
  write(world, "b", "DIR:/src/a.ts");
  write(world, "b", "FILE:/srca");
  write(other, "b", "FILE:/src/a.ts");
  world.save("a", { intentBacklog: [{ predicate: "MUTATES", resource: "FILE:/src/a.ts" }] });
  const backlog = world.grants("a", "MUTATES FILE:/free").observation;
  assert.deepEqual(news(backlog), ["b MUTATES FILE:/src/**", "b MUTATES FILE:/src/a.ts"]);
  world.dies("a", "MUTATES FILE:/old");
  world.later(10);
  write(world, "b", "FILE:/src/deep/er");
  world.release(world.grant("a", "MUTATES FILE:/src/own").id, "mine");
  world.dies("a", "MUTATES FILE:/old");
  assert.deepEqual(news(world.grants("a", "MUTATES FILE:/s*/**").observation), ["b MUTATES FILE:/src/deep/er"]);
});

test("A4: of more than a thousand changes the newest are listed, and the update is truncated", () => {
  const world = worldWithOld("a", "b");
  world.dies("a", ["MUTATES FILE:/src/**", "MUTATES FILE:/old"]);
  for (let number = 0; number < 2_500; number++) write(world, "b", `FILE:/src/f${number % 1_500}`, `v${number}`);
  const { observation } = world.grants("a", "MUTATES FILE:/src/**");
  assert.deepEqual([observation?.truncated, observation?.changes.length], [true, limits.changesListedMax]);
  assert.deepEqual(
    observation?.changes.map(({ version }) => version),
    Array.from({ length: limits.changesListedMax }, (_, index) => `v${1_500 + index}`),
  );
});

test("A4: a thousand changes to one name are listed, whatever happened elsewhere", () => {
  const world = worldWithOld("a", "b");
  world.dies("a", "MUTATES FILE:/old");
  for (let number = 0; number < 1_000; number++) write(world, "b", "FILE:/x");
  const { observation } = world.grants("a", "MUTATES FILE:/x");
  assert.deepEqual([observation?.truncated, observation?.changes.length], [false, 1_000]);
});

test("A4, S4: more concerns than are kept make the next update truncated, and only that", () => {
  const world = worldWithOld("a", "b");
  for (let part = 0; part < 3; part++) {
    const intents = Array.from({ length: 100 }, (_, index) => `MUTATES FILE:/f${part * 100 + index}`);
    world.dies("a", ["MUTATES FILE:/old", ...intents]);
  }
  assert.equal(world.agent("a").concerns.length, limits.concernsMax);
  assert.equal(world.grants("a", "MUTATES FILE:/z").observation?.truncated, true);
  world.dies("a", "MUTATES FILE:/old");
  assert.equal(world.grants("a", "MUTATES FILE:/y").observation?.truncated, false);
});

test("A5: an assumption is judged by the newest version ever reported, also from before the checkpoint", () => {
  const world = createWorld("a", "b");
  world.release(world.grant("a", "CONSUMES FILE:/x").id);
  world.later(10);
  write(world, "b", "FILE:/x", "v2");
  world.save("a");
  const digest = world.digest("a");
  const holds = world.resume("a", [{ resource: "FILE:/x", version: "v2" }]);
  assert.deepEqual(holds.assumptions, [{ resource: "FILE:/x", expected: "v2", actual: "v2", outcome: "holds" }]);
  assert.deepEqual(holds.digest, digest);
  const failed = world.resume("a", [{ resource: "FILE:/x", version: "v1" }]);
  assert.deepEqual(failed.assumptions, [{ resource: "FILE:/x", expected: "v1", actual: "v2", outcome: "failed" }]);
  assert.deepEqual([world.agent("a").state, world.digest("a")], ["PLANNING", null]);
});

test("A5: a version from before a thousand other changes still decides", () => {
  const world = createWorld("a", "b");
  world.save("a", { intentBacklog: [{ predicate: "MUTATES", resource: "FILE:/src/**" }] });
  world.later(10);
  for (let number = 0; number < 1_000; number++) write(world, "b", `FILE:/src/f${number}`);
  write(world, "b", "FILE:/src/x", "v2");
  const { assumptions } = world.resume("a", [{ resource: "FILE:/src/x", version: "v1" }]);
  assert.equal(assumptions[0]?.outcome, "failed");
});

test("A5: an unreported write fails it after the agent's own last lease, and leaves it unverified before", () => {
  const world = createWorld("a", "b");
  write(world, "b", "FILE:/x", "v1");
  write(world, "b", "FILE:/x");
  world.release(world.grant("a", "CONSUMES FILE:/x").id);
  world.later(10);
  world.save("a");
  const assumption = { resource: "FILE:/x", version: "v1" };
  assert.equal(world.resume("a", [assumption]).assumptions[0]?.outcome, "unverified");
  assert.equal(world.resume("a", [{ resource: "FILE:/never", version: "v1" }]).assumptions[0]?.outcome, "unverified");
  write(world, "b", "FILE:/**");
  assert.deepEqual(world.resume("a", [assumption]).assumptions, [
    { resource: "FILE:/x", expected: "v1", actual: null, outcome: "failed" },
  ]);
});

test("A3, A5: judging, dropping the digest and the new epoch are one step: what is held ends, and others are served", () => {
  const world = worldWithOld("a", "b");
  const { priority, epoch } = world.agent("a");
  const lease = world.grant("a", "MUTATES FILE:/a");
  const wait = world.waits("old", "MUTATES FILE:/a");
  write(world, "b", "FILE:/x", "v2");
  world.save("a");
  const { agent, leases } = world.resume("a", [{ resource: "FILE:/x", version: "v1" }]);
  assert.deepEqual([agent.state, agent.priority, agent.epoch, leases.length], ["PLANNING", priority, epoch + 1, 1]);
  assert.equal(world.ended(lease.id).endReason, "assumption_failed");
  assert.equal(world.request(wait.requestId)?.state, "GRANTED");
});

test("A4: resume is refused without a digest, and with a wrong name among the assumptions", () => {
  const world = createWorld("a");
  const ask = { type: "resume_agent", actor: world.as("a"), agentId: "a" } as const;
  world.refused("digest_unknown", { ...ask, assumptions: [] });
  world.save("a");
  const assumptions = ["FILE:/a", "nonsense"].map((resource) => ({ resource, version: "v1" }));
  const refusal = world.refused("invalid_resource", { ...ask, assumptions });
  assert.equal(refusal.field, "assumptions.1.resource");
});

test("A6: a version that is too long is refused at a downgrade and a transfer, and changes nothing", () => {
  const world = createWorld("a", "b");
  const { id: leaseId } = world.grant("a", "MUTATES FILE:/x");
  const version = "v".repeat(limits.versionLengthMax + 1);
  const its = { actor: world.as("a"), leaseId, version };
  world.refused("invalid_version", { type: "downgrade_lease", ...its, predicate: "CONSUMES" });
  world.refused("invalid_version", { type: "transfer_lease", ...its, toAgentId: "b" });
});

test("A4, A5, S4: memory of ends is bounded; the last write of each name outlives it, as a record of its own", () => {
  const world = createWorld("a", "b");
  write(world, "b", "FILE:/x", "v1");
  write(world, "b", "FILE:/x", "v2");
  world.save("a", { intentBacklog: [{ predicate: "MUTATES", resource: "FILE:/x" }] });
  assert.deepEqual(writesIn(world), []);
  const forgotten = world.expect("forgotten", world.ask({ type: "forget_ends", before: world.now, keep: 0 }));
  assert.equal(forgotten.count, 2);
  assert.deepEqual(writesIn(world), ["FILE:/x v2"]);
  // Restored without any ended lease, as after a prune.
  world.base.state = restore(JSON.parse(JSON.stringify(snapshot(world.base.state))), { leases: [], from: world.now });
  const expected = ["FILE:/x", "FILE:/**"].map((resource) => ({ resource, version: "v2" }));
  const { assumptions, observation } = world.resume("a", expected);
  assert.deepEqual([assumptions.map(({ outcome }) => outcome), observation.truncated], [["holds", "holds"], false]);
  const forget = () => world.ask({ type: "forget_ends", before: world.now + 1, keep: 0 });
  write(world, "b", "FILE:/x", "v3");
  forget();
  assert.deepEqual(writesIn(world), ["FILE:/x v3"], "superseded");
  world.release(world.grant("b", "MUTATES FILE:/x").id);
  forget();
  assert.deepEqual(writesIn(world), [], "superseded by a write that reported no version");
});

test("A4: what is forgotten makes an update that reaches back to it truncated", () => {
  const world = worldWithOld("a", "b");
  world.dies("a", "MUTATES FILE:/old");
  world.later(10);
  write(world, "b", "FILE:/x", "v1");
  write(world, "b", "FILE:/x", "v2");
  world.ask({ type: "forget_ends", before: world.now, keep: 0 });
  const { observation } = world.grants("a", "MUTATES FILE:/x");
  assert.deepEqual([observation?.truncated, news(observation)], [true, ["b MUTATES FILE:/x v2"]]);
});

test("A4: a lease whose end is stored twice, as a record and among the ended, counts once", () => {
  const world = worldWithOld("a", "b");
  world.dies("a", "MUTATES FILE:/old");
  world.later(10);
  const lease = world.grant("b", "MUTATES FILE:/x");
  world.release(lease.id);
  const ended: Lease = world.ended(lease.id);
  world.later(10);
  world.ask({ type: "forget_ends", before: world.now, keep: 0 });
  world.base.state = restore(snapshot(world.base.state), { leases: [ended], from: 0 });
  assert.deepEqual(news(world.grants("a", "MUTATES FILE:/x").observation), ["b MUTATES FILE:/x"]);
});

function writesIn(world: World): string[] {
  const writes = snapshot(world.base.state).filter(({ kind }) => kind === "write");
  return writes.map(({ record }) =>
    "resource" in record && "version" in record ? `${record.resource} ${record.version}` : "",
  );
}
