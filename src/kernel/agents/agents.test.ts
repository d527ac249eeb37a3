import assert from "node:assert/strict";
import { test } from "node:test";
import { limits } from "../contract/limits.ts";
import { type AgentState, agentStates } from "../contract/records.ts";
import { snapshot } from "../kernel.ts";
import {
  type Ask,
  actor,
  createWorld,
  found,
  plainDigest,
  records,
  supervisor,
  type World,
} from "../testing/test-world.ts";

/** A1's table, as far as it can be said; every state can also go to ABORTED and to DIE_RESTART. */
const sayable: Readonly<Record<AgentState, readonly AgentState[]>> = {
  PLANNING: ["ACQUIRING"],
  ACQUIRING: [],
  PAUSED: ["EXECUTING", "ACQUIRING", "PLANNING"],
  EXECUTING: ["ACQUIRING", "VERIFYING", "COMPLETED"],
  VERIFYING: ["ACQUIRING", "COMPLETED"],
  COMPLETED: ["PLANNING", "ACQUIRING"],
  ABORTED: ["PLANNING", "ACQUIRING"],
};

/** A world in which agent "a" is in this state; "old" holds FILE:/old, "young" FILE:/young, and both are so. */
function worldWith(state: AgentState): World {
  const world = createWorld("old", "a", "young");
  world.grant("old", "MUTATES FILE:/old", { ttlMs: 300_000 });
  world.grant("young", "MUTATES FILE:/young", { ttlMs: 300_000 });
  switch (state) {
    case "PLANNING":
      break;
    case "ACQUIRING":
      world.transition("a", "ACQUIRING");
      break;
    case "PAUSED":
      world.grant("a", "MUTATES FILE:/a", { ttlMs: 300_000 });
      world.dies("a", "MUTATES FILE:/old");
      break;
    case "EXECUTING":
      world.grant("a", "MUTATES FILE:/a", { ttlMs: 300_000 });
      break;
    case "VERIFYING":
    case "COMPLETED":
      world.grant("a", "MUTATES FILE:/a", { ttlMs: 300_000 });
      world.transition("a", state);
      break;
    case "ABORTED":
      world.transition("a", "ABORTED");
      break;
  }
  assert.equal(world.agent("a").state, state);
  return world;
}

for (const from of agentStates) {
  for (const to of agentStates) {
    if (from === to) continue;
    const legal = to === "ABORTED" || sayable[from].includes(to);
    test(`A1: an agent ${legal ? "may go" : "may not go"} from ${from} to ${to} by saying so`, () => {
      const world = worldWith(from);
      if (legal) {
        assert.equal(world.transition("a", to).state, to);
        const moves = world.events.filter(({ type }) => type === "agent.transitioned");
        assert.deepEqual(moves, [{ type: "agent.transitioned", tenant: "t1", at: world.now, agentId: "a", from, to }]);
      } else {
        const ask = { type: "transition_agent", actor: world.as("a"), agentId: "a", to } as const;
        const refusal = world.refused("invalid_transition", ask);
        assert.deepEqual([refusal.from, refusal.to], [from, to]);
      }
    });
  }

  test(`A1: going from ${from} to ${from} answers as it is and changes nothing`, () => {
    const world = worldWith(from);
    const before = records(world.base.state);
    assert.equal(world.transition("a", from).state, from);
    assert.equal(records(world.base.state), before);
    assert.deepEqual(world.events, []);
  });

  test(`A1: from ${from} an agent can announce DIE_RESTART, and goes back to where it was, or to ABORTED`, () => {
    const world = worldWith(from);
    world.transition("a", "DIE_RESTART");
    assert.deepEqual(
      world.events.map((event) => event.type === "agent.transitioned" && [event.from, event.to]),
      [[from, "DIE_RESTART"]],
    );
    assert.deepEqual([world.agent("a").state, world.agent("a").restarting], [from, true]);
    const before = records(world.base.state);
    world.restart("a");
    assert.equal(records(world.base.state), before, "announcing it again changes nothing");
    for (const to of agentStates.filter((state) => state !== from && state !== "ABORTED")) {
      const ask = { type: "transition_agent", actor: world.as("a"), agentId: "a", to } as const;
      const refusal = world.refused("invalid_transition", ask);
      assert.deepEqual([refusal.from, refusal.to], ["DIE_RESTART", to]);
    }
    world.refused("verify_required", world.acquire("a", "MUTATES FILE:/free"));
    const back = world.transition("a", from);
    assert.deepEqual([back.state, back.restarting], [from, false]);
    world.transition("a", "DIE_RESTART");
    assert.deepEqual([world.transition("a", "ABORTED").state, world.agent("a").restarting], ["ABORTED", false]);
  });

  test(`A1: submitting from ${from} leads to EXECUTING when granted, and to PAUSED with WAIT, DIE or PAUSED`, () => {
    const granted = worldWith(from);
    granted.grant("a", "MUTATES FILE:/free");
    assert.equal(granted.agent("a").state, "EXECUTING");

    const died = worldWith(from);
    died.dies("a", "MUTATES FILE:/old");
    assert.equal(died.agent("a").state, "PAUSED");

    const paused = worldWith(from);
    paused.fence("FILE:/fenced");
    paused.pauses("a", "MUTATES FILE:/fenced");
    assert.equal(paused.agent("a").state, "PAUSED");

    const waited = worldWith(from);
    const unitOver = from === "COMPLETED" || from === "ABORTED";
    if (unitOver) return void waited.dies("a", "MUTATES FILE:/young"); // The new unit is younger than all.
    const wait = waited.waits("a", "MUTATES FILE:/young");
    assert.equal(waited.agent("a").state, "PAUSED");
    waited.revoke({ agentId: "young" });
    assert.equal(waited.agent("a").state, "EXECUTING", "the wait is granted");
    assert.equal(waited.request(wait.requestId)?.state, "GRANTED");
  });
}

test("A1: an unknown state is refused, and so is one in another spelling", () => {
  const world = createWorld("a");
  for (const to of ["", "RUNNING", "planning", "constructor"]) {
    world.refused("invalid_state", { type: "transition_agent", actor: world.as("a"), agentId: "a", to });
  }
});

for (const to of ["PLANNING", "COMPLETED", "ABORTED"] as const) {
  test(`A1: ${to} holds no lease and no open request: going there ends them and serves others`, () => {
    const world = createWorld("old", "a", "young");
    const lease = world.grant("a", "MUTATES FILE:/a");
    world.grant("young", "CONSUMES FILE:/y");
    const wait = world.waits("a", "MUTATES FILE:/y");
    const [forLease, behind] = [world.waits("old", "MUTATES FILE:/a"), world.waits("old", "CONSUMES FILE:/y")];
    if (to === "COMPLETED") world.transition("a", "EXECUTING");
    world.transition("a", to);
    assert.equal(world.ended(lease.id).state, "RELEASED");
    assert.equal(world.request(wait.requestId)?.state, "CANCELED");
    assert.ok(world.leases().every(({ agentId }) => agentId !== "a"));
    assert.equal(world.request(forLease.requestId)?.state, "GRANTED");
    assert.equal(world.request(behind.requestId)?.state, "GRANTED");
  });
}

test("A1: with several requests the state follows the latest verdict", () => {
  const world = createWorld("old", "a", "young");
  world.grant("old", "MUTATES FILE:/old");
  const lease = world.grant("young", "MUTATES FILE:/young");
  world.waits("a", "MUTATES FILE:/young");
  world.grant("a", "MUTATES FILE:/free");
  assert.equal(world.agent("a").state, "EXECUTING");
  world.dies("a", "MUTATES FILE:/old");
  assert.equal(world.agent("a").state, "PAUSED");
  world.release(lease.id);
  assert.equal(world.agent("a").state, "EXECUTING");
});

test("A1: a lost wait leaves the state as it is", () => {
  const world = createWorld("a", "young");
  world.grant("young", "MUTATES FILE:/y");
  world.waits("a", "MUTATES FILE:/y", { waitTimeoutMs: 100 });
  world.pass(100);
  assert.equal(world.agent("a").state, "PAUSED");
});

test("A1: ABORTED after COMPLETED begins no unit: the timestamp is that of the unit that was", () => {
  const world = createWorld("a");
  world.grant("a", "MUTATES FILE:/a");
  world.releaseAll("a");
  const { priority } = world.agent("a");
  assert.equal(world.transition("a", "ABORTED").priority, priority);
});

test("A3: another instance has the same agent and timestamp, and epoch + 1", () => {
  const world = createWorld("a");
  const before = world.agent("a");
  world.later(1_000);
  const taken = world.register("a");
  assert.deepEqual(taken, { ...before, epoch: 2, idleSince: world.now });
  assert.deepEqual(
    world.events.map(({ type }) => type),
    ["agent.taken_up"],
  );
  world.save("a");
  assert.equal(world.resume("a").agent.epoch, 3);
});

test("A3: with it all live leases are re-issued in the same commit: same id, next generation, new fence, same end", () => {
  const world = createWorld("a", "b");
  const leases = world.grants("a", ["MUTATES FILE:/x", "RENAMES FILE:/y > FILE:/z"], { ttlMs: 9_000 }).leases;
  const other = world.grant("b", "MUTATES FILE:/b");
  world.later(1_000);
  world.register("a");
  assert.equal(world.events.filter(({ type }) => type === "lease.reissued").length, 3);
  for (const lease of leases) {
    const now = found(world.lease(lease.id), "lease");
    assert.deepEqual({ ...now, fence: lease.fence }, { ...lease, generation: 2 });
    assert.ok(now.fence > other.fence);
  }
  assert.deepEqual(world.lease(other.id), other, "a stranger's are not");
  world.save("a");
  assert.deepEqual(
    world.resume("a").leases.map(({ generation }) => generation),
    [3, 3, 3],
  );
});

test("A3: the older instance is refused from then on, whatever it asks", () => {
  const world = createWorld("a", "b");
  const lease = world.grant("a", "MUTATES FILE:/a");
  world.grant("b", "MUTATES FILE:/b");
  const { requestId } = world.waits("a", "MUTATES FILE:/b");
  const stale = world.as("a");
  world.register("a");
  const [asStale, mine, its] = [{ actor: stale }, { actor: stale, agentId: "a" }, { actor: stale, leaseId: lease.id }];
  const asks: readonly Ask[] = [
    { ...world.acquire("a", "MUTATES FILE:/c"), ...asStale },
    { type: "heartbeat", ...its, activity: true },
    { type: "heartbeat_all", ...mine, leaseIds: null, activity: true },
    { type: "renew_lease", activity: false, ...its, generation: null },
    { type: "release_lease", ...its, version: null },
    { type: "release_all", ...mine, leaseIds: null, versions: null },
    { type: "transfer_lease", version: null, ...its, toAgentId: "b" },
    { type: "downgrade_lease", version: null, ...its, predicate: "CONSUMES" },
    { type: "collect_request", collect: null, ...asStale, requestId },
    { type: "cancel_request", ...asStale, requestId },
    { type: "verify_all", ...mine, leaseIds: null },
    { type: "transition_agent", ...mine, to: "ABORTED" },
    { type: "restart_agent", ...mine },
    { type: "save_digest", ...mine, digest: plainDigest },
    { type: "resume_agent", ...mine, assumptions: [] },
  ];
  for (const ask of asks) world.refused("stale_epoch", ask);
  world.refused("stale_epoch", { type: "heartbeat", actor: world.as("a", 3), leaseId: lease.id, activity: true });
  world.heartbeat(lease.id);
});

test("A5: planning again out of PAUSED drops the digest; a restart and a new unit keep it", () => {
  const world = createWorld("old", "a");
  world.grant("old", "MUTATES FILE:/old");
  world.save("a");
  world.restart("a");
  world.verify("a");
  world.register("a");
  world.grant("a", "MUTATES FILE:/a");
  world.dies("a", "MUTATES FILE:/old");
  assert.notEqual(world.digest("a"), null);
  world.transition("a", "PLANNING");
  assert.equal(world.digest("a"), null);
});

test("A6: a holder reports what it changed when it releases, by lease or by resource; it is in the ended lease", () => {
  const world = createWorld("a");
  const [x, y, z] = world.grants("a", ["MUTATES FILE:/x", "MUTATES FILE:/y", "MUTATES FILE:/z"]).leases;
  const one = world.grant("a", "RENAMES FILE:/from > FILE:/to");
  world.release(one.id, "sha256:1");
  const versions = world.events.flatMap((event) => (event.type === "lease.released" ? [event.lease.version] : []));
  assert.deepEqual(versions, ["sha256:1", "sha256:1"], "of both names of a rename");
  const ask = { type: "release_all", actor: world.as("a"), agentId: "a", leaseIds: null } as const;
  world.ask({ ...ask, versions: { [x?.id ?? ""]: "v1", "FILE:/y": "v2", "FILE:/other": "v3" } });
  assert.deepEqual(
    [x, y, z].map((lease) => world.ended(lease?.id ?? "").version),
    ["v1", "v2", null],
  );
});

test("S4: an agent without lease or request is forgotten after a week, with its digest, keys and requests", () => {
  const week = limits.agentIdleMs;
  const world = createWorld("a", "b");
  const lease = world.grant("b", "MUTATES FILE:/b", { ttlMs: 300_000, key: "k" });
  world.save("a");
  world.later(1_000);
  world.release(lease.id);
  world.pass(week - 1_001);
  assert.equal(world.agent("a").id, "a");
  world.pass(1);
  assert.deepEqual(
    world.events.map((event) => event.type === "agent.forgotten" && event.agent.id),
    ["a"],
  );
  assert.equal(world.digest("a"), null);
  world.refused("agent_unknown", world.acquire("a", "MUTATES FILE:/x"));
  world.pass(999);
  assert.equal(world.agent("b").id, "b");
  world.pass(1);
  assert.deepEqual(world.requests(), []);
  assert.ok(!records(world.base.state).includes('"b"'));
});

test("S4: an agent that holds or waits is not forgotten, however long, and then a full week after it let go", () => {
  const week = limits.agentIdleMs;
  const world = createWorld("a");
  const lease = world.grant("a", "MUTATES FILE:/a", { ttlMs: 300_000 });
  for (let passed = 0; passed < 2 * week; passed += 299_000) {
    world.later(299_000);
    world.heartbeat(lease.id);
  }
  world.release(lease.id);
  world.pass(week - 1);
  assert.equal(world.agent("a").state, "COMPLETED");
  world.pass(1);
  assert.throws(() => world.agent("a"));
});

test("A3, S4: an older instance stays refused, though the agent was forgotten and registered again meanwhile", () => {
  const world = createWorld("a");
  const stale = world.as("a");
  world.register("a");
  world.pass(limits.agentIdleMs);
  world.register("a");
  world.refused("stale_epoch", { ...world.acquire("a", "MUTATES FILE:/x"), actor: stale });
});

test("S4: an agent is forgotten though a lease it handed over lives on elsewhere", () => {
  const world = createWorld("a", "b");
  const [kept, given] = world.grants("a", ["MUTATES FILE:/x", "MUTATES FILE:/y"], { key: "k", ttlMs: 300_000 }).leases;
  world.release(kept?.id ?? "");
  world.transfer(given?.id ?? "", "b");
  for (let passed = 0; passed < limits.agentIdleMs; passed += 250_000) {
    world.later(250_000);
    world.heartbeat(given?.id ?? "");
  }
  assert.throws(() => world.agent("a"));
  world.release(given?.id ?? "");
  const alive = snapshot(world.base.state).filter(({ kind }) => kind !== "write");
  assert.ok(!JSON.stringify(alive).includes('"agentId":"a"'), "nothing that is alive belongs to nobody");
});

test("W9: only those above may pause and unpause an agent, and doing it twice changes nothing", () => {
  const world = createWorld("a");
  const ask: Ask = { type: "pause_agent", actor: world.as("a"), agentId: "a" };
  world.refused("forbidden", ask);
  world.expect("agent", world.ask({ ...ask, actor: supervisor } as Ask));
  assert.deepEqual(
    world.events.map(({ type }) => type),
    ["agent.paused"],
  );
  const before = records(world.base.state);
  world.pauseAgent("a");
  assert.equal(records(world.base.state), before);
  assert.equal(world.agent("a").state, "PLANNING", "the agent's own state is its own");
});

test("agents are registered by agents and those above them, by no one else", () => {
  const world = createWorld();
  const ask = { type: "register_agent", agentId: null, labels: null } as const;
  for (const role of ["agent", "supervisor", "operator"] as const) {
    const { agent, created } = world.expect("agent", world.ask({ ...ask, actor: actor(role) }));
    assert.ok(created && /^agt_[0-9a-z]{22}$/.test(agent.id), agent.id);
  }
  for (const role of ["worker", "reader"] as const) world.refused("forbidden", { ...ask, actor: actor(role) });
});
