import assert from "node:assert/strict";
import { test } from "node:test";
import { limits } from "../contract/limits.ts";
import type { Request, StoredRecord } from "../contract/records.ts";
import type { Blocker } from "../contract/replies.ts";
import { apply, restore, settle, snapshot } from "../kernel.ts";
import { createWorld, found, operator, records, type World } from "../testing/test-world.ts";

const stateOf = (world: World, { requestId }: { readonly requestId: string }) => world.request(requestId)?.state;

test("W1: timestamps are unique and ordered, though all agents come in the same millisecond", () => {
  const world = createWorld("a", "b", "c");
  const priorities = ["a", "b", "c"].map((id) => world.agent(id).priority);
  assert.equal(priorities[0], world.now);
  assert.deepEqual(
    priorities.map((priority) => priority - world.now),
    [0, 1, 2],
  );
  assert.ok(priorities.every(Number.isSafeInteger));
});

test("W1: the timestamp survives DIE, WAIT, pause, restart, resume, re-registration, expiry and re-planning", () => {
  const world = createWorld("old", "a", "young");
  const { priority } = world.agent("a");
  const keeps = (what: string) => assert.equal(world.agent("a").priority, priority, what);
  world.grant("old", "MUTATES FILE:/old");
  world.grant("young", "MUTATES FILE:/young");
  world.later(5_000);
  world.dies("a", "MUTATES FILE:/old");
  keeps("DIE");
  world.waits("a", "MUTATES FILE:/young", { waitTimeoutMs: 100 });
  world.pass(100);
  keeps("WAIT and its timeout");
  world.pauseAgent("a");
  world.pauses("a", "MUTATES FILE:/free");
  world.unpauseAgent("a");
  keeps("PAUSED");
  world.grant("a", "MUTATES FILE:/a", { ttlMs: 100 });
  world.pass(100);
  keeps("expiry of the last lease");
  world.grant("a", "MUTATES FILE:/a");
  world.revoke({ agentId: "a" });
  keeps("revocation of the last lease");
  world.restart("a");
  world.verify("a");
  keeps("restart");
  world.save("a");
  world.resume("a");
  world.register("a");
  keeps("another instance");
  world.dies("a", "MUTATES FILE:/old");
  world.transition("a", "PLANNING");
  keeps("PLANNING again");
  assert.equal(world.dies("a", "MUTATES FILE:/old").priority, priority);
});

for (const [how, end] of [
  ["COMPLETED", (world: World) => void world.transition("a", "COMPLETED")],
  ["ABORTED", (world: World) => void world.transition("a", "ABORTED")],
  ["the last lease released in EXECUTING", (world: World) => void world.releaseAll("a")],
  [
    "the last lease released in VERIFYING",
    (world: World) => {
      world.transition("a", "VERIFYING");
      world.releaseAll("a");
    },
  ],
] as const) {
  test(`W1: a unit ends with ${how}, and the next one has a fresh timestamp, younger than all`, () => {
    const world = createWorld("a", "b");
    const { priority } = world.agent("a");
    world.grants("a", ["MUTATES FILE:/a", "MUTATES FILE:/b"]);
    end(world);
    assert.equal(world.agent("a").priority, priority, "the unit is over, the next not begun");
    world.grant("b", "MUTATES FILE:/b");
    world.dies("a", "MUTATES FILE:/b"); // The fresh timestamp decides already.
    assert.ok(world.agent("a").priority > world.agent("b").priority);
    const second = world.agent("a").priority;
    world.grant("a", "MUTATES FILE:/a");
    assert.equal(world.agent("a").priority, second);
  });
}

test("W1: releasing one lease of two, or the last one while a request is open, does not end the unit", () => {
  const world = createWorld("a", "young");
  const [first, second] = world.grants("a", ["MUTATES FILE:/a", "MUTATES FILE:/b"]).leases;
  world.release(first?.id ?? "");
  assert.equal(world.agent("a").state, "EXECUTING");
  world.grant("young", "MUTATES FILE:/c");
  const wait = world.waits("a", "MUTATES FILE:/c");
  world.transition("a", "EXECUTING");
  world.release(second?.id ?? "");
  assert.equal(world.agent("a").state, "PAUSED");
  world.cancel(wait.requestId);
  assert.equal(world.agent("a").state, "PAUSED");
});

test("W1: releasing the last lease in PAUSED is a roll-back, and keeps the unit", () => {
  const world = createWorld("old", "a");
  const { priority } = world.agent("a");
  world.grant("old", "MUTATES FILE:/old");
  world.grant("a", "MUTATES FILE:/a");
  world.dies("a", "MUTATES FILE:/old");
  world.releaseAll("a");
  assert.deepEqual([world.agent("a").state, world.agent("a").priority], ["PAUSED", priority]);
});

test("W1: releasing nothing ends no unit: only the release of a last lease does", () => {
  const world = createWorld("a");
  world.grant("a", "MUTATES FILE:/a", { ttlMs: 100 });
  world.pass(100);
  world.releaseAll("a");
  assert.equal(world.agent("a").state, "PAUSED", "expiry never ends a unit of work");
});

test("W2: older than all that is in the way waits, younger than any dies at once", () => {
  const world = createWorld("old", "mid", "young");
  world.grant("mid", "MUTATES FILE:/a");
  const wait = world.waits("old", "MUTATES FILE:/a");
  assert.equal(wait.position, 1);
  world.dies("young", "MUTATES FILE:/a");
});

test("W2: all holders decide, whichever comes first: one older among younger ones is a DIE", () => {
  for (const readers of [
    ["old", "young"],
    ["young", "old"],
    ["young", "younger", "old"],
    ["old", "young", "younger"],
  ]) {
    const world = createWorld("old", "mid", "young", "younger");
    for (const reader of readers) world.grant(reader, "CONSUMES FILE:/a");
    assert.equal(world.dies("mid", "MUTATES FILE:/a").blockersTotal, readers.length);
  }
});

test("W2: all intents decide: a manifest blocked by a younger and by an older holder dies", () => {
  for (const intents of [
    ["MUTATES FILE:/young", "MUTATES FILE:/old"],
    ["MUTATES FILE:/old", "MUTATES FILE:/young"],
  ]) {
    const world = createWorld("old", "mid", "young");
    world.grant("young", "MUTATES FILE:/young");
    world.grant("old", "MUTATES FILE:/old");
    world.dies("mid", intents);
    assert.equal(world.leases().length, 2);
  }
});

test("W2: a conflicting waiter decides like a holder: older than the holder, but younger than a waiter, dies", () => {
  const world = createWorld("old", "mid", "young");
  world.grant("young", "MUTATES FILE:/a");
  world.waits("old", "MUTATES FILE:/a");
  const died = world.dies("mid", "MUTATES FILE:/a");
  const kinds = died.blockers.map(({ leaseId }) => (leaseId === null ? "request" : "lease"));
  assert.deepEqual(kinds, ["lease", "request"]);
});

test("W2: a waiter that stands somewhere else in a pattern's way decides too", () => {
  const world = createWorld("old", "mid", "young");
  world.grant("young", "MUTATES FILE:/d/a");
  world.waits("old", "MUTATES FILE:/d/a");
  world.dies("mid", "MUTATES FILE:/d/**");
  world.dies("mid", "MUTATES FILE:/**/a");
});

test("W2: a waiter that conflicts with nothing of mine is not in my way", () => {
  const world = createWorld("old", "mid", "young");
  world.grant("young", "MUTATES FILE:/a");
  world.waits("old", "CONSUMES FILE:/a");
  world.waits("mid", "CONSUMES FILE:/a");
  world.grant("mid", "MUTATES FILE:/b");
});

test("W2: WAIT is a promise: later arrivals, deaths and re-registrations do not take it back", () => {
  const world = createWorld("oldest", "old", "young", "younger");
  const lease = world.grant("young", "MUTATES FILE:/a");
  const wait = world.waits("old", "MUTATES FILE:/a");
  world.waits("oldest", "MUTATES FILE:/a");
  world.dies("younger", "MUTATES FILE:/a");
  world.register("old");
  world.pass(1_000);
  assert.equal(stateOf(world, wait), "WAITING");
  world.release(lease.id);
  assert.equal(stateOf(world, wait), "GRANTED");
});

test("W2: who must wait for one intent is judged by all of them, also by those that its own leases cover today", () => {
  const world = createWorld("old", "a", "young");
  world.grants("a", ["MUTATES FILE:/x", "MUTATES FILE:/y"]);
  world.grant("young", "MUTATES FILE:/z");
  world.waits("old", "MUTATES FILE:/x");
  // Were it to wait, the end of its own lease would leave it waiting for an older one: a wait turned round.
  assert.equal(world.dies("a", ["MUTATES FILE:/x", "MUTATES FILE:/z"]).blockersTotal, 2);
  world.grants("a", ["MUTATES FILE:/x", "CONSUMES FILE:/x", "MUTATES FILE:/free"]);
});

test("W3: first come, first served: those who wait are granted one after the other, in order of arrival", () => {
  const world = createWorld("a", "b", "c", "holder");
  const lease = world.grant("holder", "MUTATES FILE:/x");
  const waits = ["c", "b", "a"].map((agent) => world.waits(agent, "MUTATES FILE:/x"));
  assert.deepEqual(
    waits.map(({ position }) => position),
    [1, 2, 3],
  );
  let held = lease;
  for (const wait of waits) {
    world.release(held.id);
    assert.deepEqual(world.happened, ["lease.released", "lease.granted", "request.granted"]);
    held = found(world.collect(wait.requestId).leases[0], "lease");
  }
});

test("W3: exactly those that fit are granted: readers up to the next writer, and nobody behind it", () => {
  const world = createWorld("r4", "w", "r3", "r2", "r1", "holder");
  const lease = world.grant("holder", "MUTATES FILE:/x");
  const [r1, r2, r3] = ["r1", "r2", "r3"].map((agent) => world.waits(agent, "CONSUMES FILE:/x"));
  const writer = world.waits("w", "MUTATES FILE:/x");
  const r4 = world.waits("r4", "CONSUMES FILE:/x");
  assert.deepEqual([writer.position, r4.position], [4, 2]);
  world.release(lease.id);
  assert.deepEqual(
    [r1, r2, r3, writer, r4].map((wait) => stateOf(world, found(wait, "wait"))),
    ["GRANTED", "GRANTED", "GRANTED", "WAITING", "WAITING"],
  );
  const granted = world.events.flatMap((event) => (event.type === "request.granted" ? [event.request.agentId] : []));
  assert.deepEqual(granted, ["r1", "r2", "r3"]);
});

test("W3: a stream of young readers cannot starve an old writer, because they die on it", () => {
  const world = createWorld("writer", "reader", "r1", "r2", "r3");
  const lease = world.grant("reader", "CONSUMES FILE:/x");
  const wait = world.waits("writer", "MUTATES FILE:/x");
  for (const young of ["r1", "r2", "r3"]) world.dies(young, "CONSUMES FILE:/x");
  world.release(lease.id);
  assert.equal(stateOf(world, wait), "GRANTED");
});

test("W3: a waiter never overtakes a conflicting one ahead, though its own resource is free", () => {
  const world = createWorld("c", "b", "young");
  const lease = world.grant("young", "MUTATES FILE:/x");
  const both = world.waits("b", ["MUTATES FILE:/x", "MUTATES FILE:/y"]);
  const behind = world.waits("c", "MUTATES FILE:/y"); // Free, but reserved by who came first.
  assert.deepEqual([behind.position, behind.blockersTotal], [2, 1]);
  world.release(lease.id);
  assert.deepEqual([stateOf(world, both), stateOf(world, behind)], ["GRANTED", "WAITING"]);
});

test("W3: a freed subtree serves waiters below and above it, each in its turn", () => {
  const world = createWorld("c", "b", "a", "holder");
  const lease = world.grant("holder", "MUTATES FILE:/d/**");
  const a = world.waits("a", "MUTATES FILE:/d/x");
  const b = world.waits("b", "MUTATES FILE:/**");
  const c = world.waits("c", "MUTATES FILE:/d/y/z");
  world.release(lease.id);
  assert.deepEqual([stateOf(world, a), stateOf(world, b), stateOf(world, c)], ["GRANTED", "WAITING", "WAITING"]);
  world.revoke({ agentId: "a" });
  assert.deepEqual([stateOf(world, b), stateOf(world, c)], ["GRANTED", "WAITING"]);
  world.revoke({ agentId: "b" });
  assert.equal(stateOf(world, c), "GRANTED");
});

for (const [how, end] of [
  ["cancelled", (world: World, requestId: string) => void world.cancel(requestId)],
  ["timed out", (world: World) => void world.pass(1_000)],
  ["given up by its agent", (world: World) => void world.transition("writer", "ABORTED")],
] as const) {
  test(`W3: when a waiter is ${how}, those who stood only behind it are granted in the same step`, () => {
    const world = createWorld("r2", "r1", "writer", "holder");
    world.grant("holder", "CONSUMES FILE:/x");
    const writer = world.waits("writer", "MUTATES FILE:/x", { waitTimeoutMs: 1_000 });
    const [r1, r2] = [world.waits("r1", "CONSUMES FILE:/x"), world.waits("r2", "CONSUMES FILE:/x")];
    end(world, writer.requestId);
    assert.deepEqual([stateOf(world, r1), stateOf(world, r2)], ["GRANTED", "GRANTED"]);
  });
}

test("W3: what a cancelled and what a timed-out waiter frees is granted in order of arrival, over all its names", () => {
  for (const end of ["cancel", "time out"]) {
    const world = createWorld("r3", "r2", "r1", "writer", "holder");
    world.grants("holder", ["CONSUMES FILE:/x", "CONSUMES FILE:/y", "CONSUMES FILE:/z"]);
    const names = ["MUTATES FILE:/z", "MUTATES FILE:/x", "MUTATES FILE:/y"];
    const writer = world.waits("writer", names, { waitTimeoutMs: 1_000 });
    world.waits("r1", "CONSUMES FILE:/x");
    world.waits("r2", "CONSUMES FILE:/y");
    world.waits("r3", "CONSUMES FILE:/z");
    if (end === "cancel") world.cancel(writer.requestId);
    else world.pass(1_000);
    const granted = world.events.flatMap((event) => (event.type === "request.granted" ? [event.request.agentId] : []));
    assert.deepEqual(granted, ["r1", "r2", "r3"], end);
  }
});

test("W3: one release of a name that ten thousand wait for grants exactly one, and looks at no more than the front", () => {
  const count = 10_000;
  const world = createWorld("oldest", "holder");
  const lease = world.grant("holder", "MUTATES FILE:/x");
  world.waits("oldest", "MUTATES FILE:/x", { waitTimeoutMs: 600_000 });
  world.base.state = restore(withCopies(snapshot(world.base.state), count));
  settle(world.base.state, world.now, Number.POSITIVE_INFINITY);
  const release = { type: "release_lease", tenant: "t1", actor: operator, entropy: [1, 1], version: null } as const;
  let held = lease.id;
  for (let turn = 0; turn < 50; turn++) {
    const { events, changes } = apply(world.base.state, { ...release, leaseId: held }, world.now);
    const granted = events.filter(({ type }) => type === "lease.granted");
    assert.equal(granted.length, 1);
    assert.equal(events.filter(({ type }) => type === "request.granted").length, 1);
    assert.ok(changes.length <= 8, `${changes.length} records changed`);
    const [event] = granted;
    held = event?.type === "lease.granted" ? event.lease.id : "";
    const holder = event?.type === "lease.granted" ? event.lease.agentId : "";
    assert.equal(holder, turn === 0 ? "oldest" : `copy${turn}`, "in order of arrival");
  }
  assert.equal(world.requests().filter(({ state }) => state === "WAITING").length, count + 1 - 50);
});

/** A queue that would take long to form: the waiting request again and again, each of an agent of its own. */
function withCopies(stored: readonly StoredRecord[], count: number): StoredRecord[] {
  const copies: StoredRecord[] = [...stored];
  const agent = found(stored.find(({ kind, record }) => kind === "agent" && record.id === "oldest")?.record, "agent");
  const request = found(stored.find(({ kind }) => kind === "request")?.record, "request") as Request;
  for (let n = 1; n <= count; n++) {
    const [id, priority] = [`copy${n}`, 1_000_000 - n];
    copies.push({ kind: "agent", record: { ...agent, id, priority } } as StoredRecord);
    const arrival = request.arrival + n;
    copies.push({ kind: "request", record: { ...request, id: `req_copy${n}`, agentId: id, holder: id, arrival } });
  }
  return copies;
}

test("W4: a wait ends at its timeout, not a millisecond later, and holds nothing", () => {
  const world = createWorld("old", "young");
  world.grant("young", "MUTATES FILE:/x");
  const wait = world.waits("old", ["MUTATES FILE:/x", "MUTATES FILE:/y"], { waitTimeoutMs: 1_000 });
  assert.equal(wait.waitTimeoutMs, 1_000);
  world.pass(999);
  assert.equal(stateOf(world, wait), "WAITING");
  world.pass(1);
  assert.deepEqual(world.happened, ["request.timed_out"]);
  const ask = { type: "collect_request", collect: null, actor: world.as("old"), requestId: wait.requestId } as const;
  world.refused("wait_timeout", ask);
  assert.deepEqual(
    world.leases().map(({ agentId }) => agentId),
    ["young"],
  );
});

test("W4: a release at the very instant of the timeout comes too late for the waiter", () => {
  const world = createWorld("old", "young");
  const lease = world.grant("young", "MUTATES FILE:/x");
  const wait = world.waits("old", "MUTATES FILE:/x", { waitTimeoutMs: 1_000 });
  world.later(1_000);
  world.release(lease.id);
  assert.equal(stateOf(world, wait), "TIMED_OUT");
  assert.deepEqual(world.leases(), []);
});

test("W4: the timeout is 30 s unless wished otherwise, and both default and cap are the tenant's to set", () => {
  const world = createWorld("old", "young");
  world.grant("young", "MUTATES FILE:/x");
  assert.equal(world.waits("old", "MUTATES FILE:/x").waitTimeoutMs, 30_000);
  assert.equal(world.waits("old", "MUTATES FILE:/x", { waitTimeoutMs: 900_000 }).waitTimeoutMs, 600_000);
  world.settings({ waitTimeoutMsDefault: 4_000, waitTimeoutMsMax: 5_000 });
  assert.equal(world.waits("old", "MUTATES FILE:/x").waitTimeoutMs, 4_000);
  const capped = world.waits("old", "MUTATES FILE:/x", { waitTimeoutMs: 5_001 });
  assert.deepEqual([capped.waitTimeoutMs, capped.warnings], [5_000, ["wait_timeout_ms was capped at 5000."]]);
});

test("W4: a wait_timeout_ms of 0 refuses to wait, changes nothing, and still dies where it must", () => {
  const world = createWorld("old", "mid", "young");
  world.grant("mid", "MUTATES FILE:/x", { purpose: "refactor" });
  const refusal = world.refused("would_wait", world.acquire("old", "MUTATES FILE:/x", { waitTimeoutMs: 0 }));
  assert.equal(refusal.blockersTotal, 1);
  assert.equal(refusal.blockers?.[0]?.purpose, "refactor");
  world.dies("young", "MUTATES FILE:/x", { waitTimeoutMs: 0 });
  world.grant("old", "MUTATES FILE:/y", { waitTimeoutMs: 0 });
});

test("W4: a cancelled wait is over, holds nothing, and is cancelled only once", () => {
  const world = createWorld("old", "young");
  const lease = world.grant("young", "MUTATES FILE:/x");
  const wait = world.waits("old", "MUTATES FILE:/x");
  world.cancel(wait.requestId);
  assert.deepEqual(world.happened, ["request.canceled"]);
  world.refused("request_canceled", { type: "collect_request", collect: null, requestId: wait.requestId });
  const before = records(world.base.state);
  world.cancel(wait.requestId);
  assert.equal(records(world.base.state), before);
  world.release(lease.id);
  assert.deepEqual(world.leases(), []);
});

test("W4: cancelling a grant that nobody has collected releases it; cancelling a collected one changes nothing", () => {
  const world = createWorld("old", "young");
  const grant = () => {
    const lease = world.grant("young", "MUTATES FILE:/x");
    const wait = world.waits("old", "MUTATES FILE:/x");
    world.release(lease.id);
    return wait.requestId;
  };
  world.cancel(grant());
  assert.deepEqual(world.leases(), []);
  const requestId = grant();
  world.collect(requestId);
  world.cancel(requestId);
  assert.equal(world.leases().length, 1);
});

test("W4: how a wait ended can be asked for ten minutes", () => {
  const world = createWorld("old", "young");
  world.grant("young", "MUTATES FILE:/x", { ttlMs: 300_000 });
  const { requestId } = world.waits("old", "MUTATES FILE:/x", { waitTimeoutMs: 1_000 });
  world.pass(1_000);
  world.later(limits.requestMemoryMs - 1);
  world.refused("wait_timeout", { type: "collect_request", collect: null, requestId });
  world.later(1);
  world.refused("request_unknown", { type: "collect_request", collect: null, requestId });
});

test("W5: DIE's hint doubles from base to cap, and jitter adds up to half of it", () => {
  const world = createWorld("old", "young");
  world.grant("old", "MUTATES FILE:/x", { ttlMs: 300_000 });
  world.later(100_000);
  const hints = Array.from({ length: 9 }, () => world.dies("young", "MUTATES FILE:/x", { entropy: [1, 0] }));
  assert.deepEqual(
    hints.map(({ retryAfterMs }) => retryAfterMs),
    [50, 100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000],
  );
  assert.deepEqual(
    hints.map(({ attempt }) => attempt),
    [1, 2, 3, 4, 5, 6, 7, 8, 9],
  );
  const jitters = new Set<number>();
  for (let random = 0; random < 10_000; random++) {
    const { retryAfterMs } = world.dies("young", "MUTATES FILE:/x", { entropy: [1, random] });
    jitters.add(retryAfterMs - 5_000);
  }
  assert.equal(Math.min(...jitters), 0);
  assert.equal(Math.max(...jitters), 2_500);
});

test("W5: the hint follows the tenant's base and cap, and stays a whole number after thousands of deaths", () => {
  const world = createWorld("old", "young");
  world.settings({ retryMsBase: 7, retryMsCap: 20 });
  world.grant("old", "MUTATES FILE:/x", { ttlMs: 300_000 });
  world.later(100_000);
  const die = () => world.dies("young", "MUTATES FILE:/x", { entropy: [1, 0] }).retryAfterMs;
  assert.deepEqual([die(), die(), die()], [7, 14, 20]);
  for (let n = 0; n < 3_000; n++) assert.equal(die(), 20);
});

test("W5: attempts start again with a grant, at once or after a wait, and with a new unit; the timestamp stays", () => {
  const world = createWorld("old", "a", "young");
  const { priority } = world.agent("a");
  world.grant("old", "MUTATES FILE:/old", { ttlMs: 300_000 });
  const attempt = () => world.dies("a", "MUTATES FILE:/old").attempt;
  assert.deepEqual([attempt(), attempt()], [1, 2]);
  world.grant("a", "MUTATES FILE:/free");
  assert.deepEqual([attempt(), attempt()], [1, 2]);
  const lease = world.grant("young", "MUTATES FILE:/young");
  world.waits("a", "MUTATES FILE:/young");
  assert.equal(attempt(), 3, "a wait does not count as a grant");
  world.release(lease.id);
  assert.equal(attempt(), 1);
  assert.equal(world.agent("a").priority, priority);
  world.transition("a", "ABORTED");
  assert.equal(attempt(), 1);
});

test("W6: a manifest is granted whole or not at all", () => {
  const world = createWorld("old", "a");
  world.grant("old", "MUTATES FILE:/x");
  const before = world.leases();
  world.dies("a", ["MUTATES FILE:/free1", "MUTATES FILE:/x", "MUTATES FILE:/free2"]);
  assert.deepEqual(world.leases(), before);
  world.grants("old", ["MUTATES FILE:/free1", "MUTATES FILE:/free2"]);
});

test("W6: a waiting manifest holds nothing, and when its turn comes it gets all in its order", () => {
  const world = createWorld("old", "a", "b");
  const [x, y] = [world.grant("a", "MUTATES FILE:/x"), world.grant("b", "MUTATES FILE:/y")];
  const wait = world.waits("old", ["MUTATES FILE:/y", "MUTATES FILE:/free", "MUTATES FILE:/x"]);
  world.release(x.id);
  assert.deepEqual(
    world.leases().map(({ id }) => id),
    [y.id],
  );
  world.release(y.id);
  assert.deepEqual(
    world.collect(wait.requestId).leases.map(({ resource }) => resource),
    ["FILE:/y", "FILE:/free", "FILE:/x"],
  );
});

test("W6: what one's own lease covers is granted, past all who wait for it", () => {
  const world = createWorld("old", "a");
  world.grant("a", "MUTATES FILE:/d/**");
  world.waits("old", "MUTATES FILE:/d/x");
  const { leases } = world.grants("a", ["CONSUMES FILE:/d/x", "MUTATES FILE:/d/x", "MUTATES FILE:/d/*.ts"]);
  assert.equal(leases.length, 3);
});

test("W6: a weaker, narrower or unhonoured lease covers nothing", () => {
  const world = createWorld("old", "a");
  world.grant("a", "CONSUMES FILE:/d/**");
  const lease = world.grant("a", "MUTATES FILE:/e", { ttlMs: 1_000 });
  world.waits("old", "MUTATES FILE:/d/x", { waitTimeoutMs: 60_000 });
  world.waits("old", "MUTATES FILE:/e", { waitTimeoutMs: 60_000 });
  world.dies("a", "MUTATES FILE:/d/x");
  world.dies("a", "CONSUMES FILE:/**");
  world.restart("a");
  world.pass(1_000);
  world.verify("a");
  assert.equal(world.lease(lease.id)?.state, "HELD");
  world.dies("a", "CONSUMES FILE:/e");
});

test("W8: a granted waiter that does not come for it loses the grant, and the next is served", () => {
  const world = createWorld("second", "first", "holder");
  const lease = world.grant("holder", "MUTATES FILE:/x");
  const [first, second] = [world.waits("first", "MUTATES FILE:/x"), world.waits("second", "MUTATES FILE:/x")];
  assert.equal(first.claimWithinMs, 10_000);
  world.release(lease.id);
  const [granted] = world.leases();
  assert.equal(granted?.claimBy, world.now + 10_000);
  world.pass(9_999);
  assert.equal(stateOf(world, second), "WAITING");
  world.pass(1);
  const ended = world.ended(granted?.id ?? "");
  assert.deepEqual([ended.state, ended.endReason], ["EXPIRED", "unclaimed"]);
  assert.equal(stateOf(world, second), "GRANTED");
  assert.deepEqual(world.happened, ["lease.expired", "lease.granted", "request.granted"]);
});

for (const [how, collect] of [
  ["asking for the request", (world: World, requestId: string) => void world.collect(requestId)],
  ["a heartbeat", (world: World) => void world.heartbeat(world.leases()[0]?.id ?? "")],
  ["a heartbeat for all", (world: World) => void world.heartbeatAll("old")],
  ["sending the request again", (world: World) => void world.grants("old", "MUTATES FILE:/x", { key: "k" })],
  ["a renewal", (world: World) => void world.renew(world.leases()[0]?.id ?? "")],
] as const) {
  test(`W8: ${how} collects the grant`, () => {
    const world = createWorld("old", "young");
    const lease = world.grant("young", "MUTATES FILE:/x");
    const wait = world.waits("old", "MUTATES FILE:/x", { key: "k" });
    world.release(lease.id);
    world.later(9_999);
    collect(world, wait.requestId);
    assert.equal(world.leases()[0]?.claimBy, null);
    world.pass(5_000);
    assert.equal(world.leases().length, 1);
  });
}

test("W8: a heartbeat of one of the grant's leases collects the grant, which is whole (W6)", () => {
  const world = createWorld("old", "young");
  const lease = world.grant("young", "MUTATES FILE:/x");
  world.waits("old", ["MUTATES FILE:/x", "MUTATES FILE:/y"]);
  world.release(lease.id);
  world.heartbeat(world.leases()[0]?.id ?? "");
  world.pass(10_000);
  assert.equal(world.leases().length, 2);
});

test("W8: what was granted at once needs no collecting, and a shorter TTL ends an uncollected grant as any other", () => {
  const world = createWorld("old", "young");
  const lease = world.grant("young", "MUTATES FILE:/x");
  assert.equal(lease.claimBy, null);
  world.settings({ claimWithinMs: 3_000 });
  assert.equal(world.waits("old", "MUTATES FILE:/x", { ttlMs: 1_000 }).claimWithinMs, 3_000);
  world.release(lease.id);
  const [granted] = world.leases();
  world.pass(1_000);
  assert.deepEqual([world.ended(granted?.id ?? "").state, world.ended(granted?.id ?? "").endReason], ["EXPIRED", null]);
});

test("W9: PAUSED says who must act: tenant suspended, agent paused, resource fenced or withdrawn", () => {
  const world = createWorld("a", "b");
  world.fence("FILE:/fenced");
  world.withdraw("FILE:/gone");
  const fenced = world.pauses("a", "CONSUMES FILE:/fenced");
  assert.deepEqual([fenced.reason, fenced.resource], ["resource_fenced", "FILE:/fenced"]);
  assert.equal(world.agent("a").state, "PAUSED");
  const gone = world.pauses("a", ["CONSUMES FILE:/free", "CONSUMES FILE:/gone"]);
  assert.deepEqual([gone.reason, gone.resource], ["resource_withdrawn", "FILE:/gone"]);
  world.pauseAgent("a");
  assert.equal(world.pauses("a", "CONSUMES FILE:/free").reason, "agent_paused");
  assert.equal(world.pauses("a", "CONSUMES FILE:/fenced").reason, "agent_paused");
  world.grant("b", "CONSUMES FILE:/free");
  world.suspend();
  assert.equal(world.pauses("a", "CONSUMES FILE:/free").reason, "tenant_suspended");
  world.unsuspend();
  world.unpauseAgent("a");
  world.grant("a", "CONSUMES FILE:/free");
});

test("W9: suspending a tenant revokes all it holds, ends all its waits as PAUSED, and lets no restart hold on", () => {
  const world = createWorld("old", "young");
  const lease = world.grant("young", "MUTATES FILE:/x");
  const wait = world.waits("old", "MUTATES FILE:/x");
  world.suspend("unpaid");
  assert.deepEqual(world.leases(), []);
  assert.deepEqual([world.ended(lease.id).state, world.ended(lease.id).endReason], ["REVOKED", "tenant_suspended"]);
  const fate = world.expect("paused", world.ask({ type: "collect_request", collect: null, requestId: wait.requestId }));
  assert.equal(fate.reason, "tenant_suspended");
  world.unsuspend();
  world.grant("old", "MUTATES FILE:/x");
});

test("W9: a wait for a resource that is fenced or withdrawn meanwhile ends as PAUSED, with the reason", () => {
  for (const [act, reason] of [
    [(world: World) => world.fence("FILE:/d/x"), "resource_fenced"],
    [(world: World) => world.withdraw("FILE:/d/x", true), "resource_withdrawn"],
    [(world: World) => world.withdraw("FILE:/d/x", false), "resource_withdrawn"],
    [(world: World) => world.fence("FILE:/d/**"), "resource_fenced"],
  ] as const) {
    const world = createWorld("old", "mid", "young");
    world.grant("young", "MUTATES FILE:/d/x");
    const wait = world.waits("mid", ["MUTATES FILE:/d/x", "MUTATES FILE:/y"]);
    const wide = world.waits("old", "CONSUMES FILE:/**");
    act(world);
    for (const { requestId } of [wait, wide]) {
      const fate = world.expect("paused", world.ask({ type: "collect_request", collect: null, requestId }));
      assert.equal(fate.reason, reason);
    }
    assert.ok(world.leases().every(({ agentId }) => agentId === "young"));
  }
});

test("W10: a granted request sent again is answered with the same leases, and nothing is granted twice", () => {
  const world = createWorld("a");
  const first = world.grants("a", ["MUTATES FILE:/x", "CONSUMES FILE:/y"], { key: "k", ttlMs: 9_000 });
  world.later(1_000);
  world.heartbeat(first.leases[0]?.id ?? "");
  const again = world.grants("a", ["MUTATES FILE:/x", "CONSUMES FILE:/y"], { key: "k", ttlMs: 9_000 });
  assert.equal(again.requestId, first.requestId);
  assert.deepEqual(again.leases, world.leases());
  assert.equal(world.leases().length, 2);
  assert.deepEqual(world.events, []);
});

test("W10: a waiting request sent again is the same request, at its place in the queue", () => {
  const world = createWorld("old", "mid", "young");
  const lease = world.grant("young", "MUTATES FILE:/x");
  const wait = world.waits("mid", "MUTATES FILE:/x", { key: "k" });
  world.waits("old", "MUTATES FILE:/x", { key: "k" });
  assert.deepEqual(world.waits("mid", "MUTATES FILE:/x", { key: "k" }), wait);
  world.release(lease.id);
  assert.equal(world.grants("mid", "MUTATES FILE:/x", { key: "k" }).requestId, wait.requestId);
});

test("W10: the same key with another body is refused, whatever the difference", () => {
  const world = createWorld("a");
  world.grants("a", "MUTATES FILE:/x", { key: "k", ttlMs: 5_000 });
  for (const [intents, terms] of [
    ["MUTATES FILE:/y", { ttlMs: 5_000 }],
    ["DELETES FILE:/x", { ttlMs: 5_000 }],
    [["MUTATES FILE:/x", "MUTATES FILE:/y"], { ttlMs: 5_000 }],
    ["MUTATES FILE:/x x2", { ttlMs: 5_000 }],
    ["MUTATES FILE:/x", {}],
    ["MUTATES FILE:/x", { ttlMs: 5_000, waitTimeoutMs: 1 }],
    ["MUTATES FILE:/x", { ttlMs: 5_000, idleTimeoutMs: 900 }],
    ["MUTATES FILE:/x", { ttlMs: 5_000, purpose: "other" }],
    ["MUTATES FILE:/x", { ttlMs: 5_000, tokens: true }],
  ] as const) {
    const refusal = world.refused("request_id_reused", world.acquire("a", intents, { ...terms, key: "k" }));
    assert.equal(refusal.field, "request_id");
  }
});

test("W10: another spelling of the same body is the same body", () => {
  const world = createWorld("a");
  const first = world.grants("a", "MUTATES FILE:/e\u0301/?*", { key: "k" });
  assert.equal(world.grants("a", "MUTATES FILE:/\u00e9/*", { key: "k" }).requestId, first.requestId);
});

test("W10: keys are known per agent, also after the first one was taken up again", () => {
  const world = createWorld("a", "b");
  const first = world.grants("a", "MUTATES FILE:/x", { key: "k" });
  const other = world.grants("b", "MUTATES FILE:/y", { key: "k" });
  assert.notEqual(first.requestId, other.requestId);
  world.register("a");
  const again = world.grants("a", "MUTATES FILE:/x", { key: "k" });
  assert.deepEqual([again.requestId, again.leases[0]?.generation], [first.requestId, 2]);
});

test("W10: refusals are not remembered: after DIE, timeout, cancellation or PAUSED the key is free for anything", () => {
  const world = createWorld("old", "a", "young");
  world.grant("old", "MUTATES FILE:/old");
  const lease = world.grant("young", "MUTATES FILE:/young");
  const key = "k";
  world.dies("a", "MUTATES FILE:/old", { key });
  world.refused("would_wait", world.acquire("a", "MUTATES FILE:/young", { key, waitTimeoutMs: 0 }));
  const timedOut = world.waits("a", "MUTATES FILE:/young", { key, waitTimeoutMs: 100 });
  world.later(100);
  const canceled = world.waits("a", "MUTATES FILE:/young", { key, waitTimeoutMs: 200 });
  assert.notEqual(canceled.requestId, timedOut.requestId);
  world.cancel(canceled.requestId);
  const paused = world.waits("a", "MUTATES FILE:/young", { key });
  world.withdraw("FILE:/young");
  world.pauses("a", "MUTATES FILE:/young", { key });
  world.grants("a", "MUTATES FILE:/free", { key });
  world.refused("wait_timeout", { type: "collect_request", collect: null, requestId: timedOut.requestId });
  world.refused("request_canceled", { type: "collect_request", collect: null, requestId: canceled.requestId });
  world.expect("paused", world.ask({ type: "collect_request", collect: null, requestId: paused.requestId }));
  assert.equal(world.lease(lease.id)?.state, "ACTIVE");
});

test("W10: a request without a key is found by its id while its leases live", () => {
  const world = createWorld("a", "b");
  const grant = world.grants("a", ["MUTATES FILE:/x", "MUTATES FILE:/y"]);
  assert.deepEqual(world.collect(grant.requestId).leases, grant.leases);
  const { requestId } = grant;
  world.refused("forbidden", { type: "collect_request", collect: null, actor: world.as("b"), requestId });
  world.refused("forbidden", { type: "cancel_request", actor: world.as("b"), requestId });
  world.cancel(requestId);
  assert.equal(world.leases().length, 2, "what was granted is not cancelled any more");
  world.releaseAll("a");
  world.refused("request_unknown", { type: "collect_request", collect: null, requestId });
});

const idOf = ({ leaseId, requestId }: Blocker) => leaseId ?? requestId;

test("W11: a refusal names what stands in the way: lease, agent, predicate, resource, purpose, end", () => {
  const world = createWorld("old", "mid", "young");
  const lease = world.grant("mid", "MUTATES FILE:/x", { purpose: "refactor", ttlMs: 7_000 });
  const wait = world.waits("old", "DELETES FILE:/x", { purpose: "clean up" });
  const { blockers, blockersTotal } = world.dies("young", "CONSUMES FILE:/x");
  assert.equal(blockersTotal, 2);
  const named = { resource: "FILE:/x", requestId: null, leaseId: null, until: null };
  const holder = { holder: "mid", agentId: "mid", predicate: "MUTATES", purpose: "refactor" };
  const waiter = { holder: "old", agentId: "old", predicate: "DELETES", purpose: "clean up" };
  assert.deepEqual(blockers, [
    { ...named, ...holder, leaseId: lease.id, until: lease.expiresAt },
    { ...named, ...waiter, requestId: wait.requestId },
  ]);
});

test("W11: up to 16 are named, holders first, and all are counted", () => {
  for (const count of [15, 16, 17, 40]) {
    const readers = Array.from({ length: count }, (_, n) => `r${n}`);
    const world = createWorld("old", ...readers, "young");
    const leases = readers.map((reader) => world.grant(reader, "CONSUMES FILE:/x"));
    const wait = world.waits("old", "MUTATES FILE:/x");
    assert.equal(wait.blockersTotal, count);
    const died = world.dies("young", "MUTATES FILE:/x");
    assert.equal(died.blockersTotal, count + 1);
    const listed = [...leases.map(({ id }) => id), wait.requestId].slice(0, 16);
    assert.deepEqual(died.blockers.map(idOf), listed);
  }
});

test("W11: a lease that stands in the way of several intents is named and counted once", () => {
  const world = createWorld("old", "young");
  world.grant("old", "MUTATES FILE:/d/**");
  const died = world.dies("young", ["MUTATES FILE:/d/x", "CONSUMES FILE:/d/y", "RENAMES FILE:/d/z > FILE:/d/w"]);
  assert.deepEqual([died.blockersTotal, died.blockers.length], [1, 1]);
});

test("W11: all in the way of a broad pattern are counted, hundreds in nested folders, each once", () => {
  const world = createWorld("old", "mid", "young");
  for (let n = 0; n < 300; n++) world.grant("old", `CONSUMES FILE:/d/${n % 7}/${n % 3}/f${n}`);
  const died = world.dies("young", "MUTATES FILE:/d/**");
  assert.deepEqual([died.blockersTotal, died.blockers.length, new Set(died.blockers.map(idOf)).size], [300, 16, 16]);
  assert.equal(world.dies("young", "MUTATES FILE:/**").blockersTotal, 300);
  assert.equal(world.dies("young", "MUTATES FILE:/d/*/*/*").blockersTotal, 300);
  assert.equal(world.dies("young", "MUTATES FILE:/d/**/f1*").blockersTotal, 111);
  world.grant("young", "CONSUMES FILE:/d/3/0/f3");
  assert.equal(world.dies("young", "MUTATES FILE:/d/**").blockersTotal, 300, "one's own is not in one's way");
});

test("W11: what two broad intents of a manifest both meet is counted once", () => {
  const world = createWorld("old", "young");
  for (let n = 0; n < 100; n++) world.grant("old", `CONSUMES FILE:/d/${n % 5}/f${n}`);
  const died = world.dies("young", ["MUTATES FILE:/d/**", "DELETES FILE:/d/**", "MUTATES FILE:/d/3/**"]);
  assert.equal(died.blockersTotal, 100);
});

test("W11: all are counted, each once, also where there are too many to be looked at one by one", () => {
  const count = 2 * limits.obstaclesExaminedMax;
  const world = createWorld("old", "mid", "young");
  for (let n = 0; n < count; n++) world.grant("old", `CONSUMES FILE:/d/${n % 50}/f${n}`);
  world.grants("young", ["CONSUMES FILE:/d/7/f7", "CONSUMES FILE:/d/49/own"]);
  world.waits("mid", ["CONSUMES FILE:/d/1/f1", "MUTATES FILE:/d/49/own"]);
  const died = world.dies("young", "MUTATES FILE:/d/**");
  assert.deepEqual([died.blockersTotal, died.blockers.length], [count + 1, 16]);
  assert.equal(world.dies("young", ["MUTATES FILE:/d/**", "DELETES FILE:/d/**"]).blockersTotal, count + 1);
});

test("C5: a refused broad pattern looks at a bounded number of those in its way, in one folder as in many", () => {
  const world = createWorld("old", "young");
  const count = 4 * limits.obstaclesExaminedMax;
  for (let n = 0; n < count; n++) world.grant("old", `CONSUMES FILE:/flat/f${n}`);
  let looked = 0;
  for (const entry of world.base.state.tenants.get("t1")?.leases.values() ?? []) {
    const { holder } = entry;
    Object.defineProperty(entry, "holder", {
      get() {
        looked++;
        return holder;
      },
    });
  }
  const died = world.dies("young", "MUTATES FILE:/flat/**");
  assert.equal(died.blockersTotal, count);
  assert.ok(looked < 3 * limits.obstaclesExaminedMax, `${looked} leases looked at`);
});

test("W11: a waiting manifest with several intents below a broad pattern is one request in its way", () => {
  const world = createWorld("old", "young", "younger");
  for (let n = 0; n < 40; n++) world.grant("young", `CONSUMES FILE:/d/${n % 5}/f${n}`);
  world.waits("old", ["MUTATES FILE:/d/0/f0", "MUTATES FILE:/d/4/f4", "MUTATES FILE:/d/4/f9"]);
  assert.equal(world.dies("younger", "MUTATES FILE:/d/**").blockersTotal, 41);
});

test("W11: the position counts every waiting request ahead that conflicts, also behind a broad pattern", () => {
  const agents = Array.from({ length: 40 }, (_, n) => `a${n}`);
  const world = createWorld("oldest", ...agents, "holder");
  for (let n = 0; n < 40; n++) world.grant("holder", `CONSUMES FILE:/d/${n % 5}/f${n}`, { ttlMs: 300_000 });
  agents.reverse().forEach((agent, n) => {
    world.waits(agent, `MUTATES FILE:/d/${n % 5}/f${n}`, { waitTimeoutMs: 500_000 });
  });
  const foretold = world.waits("oldest", "MUTATES FILE:/d/**", { dryRun: true });
  const wait = world.waits("oldest", "MUTATES FILE:/d/**", { waitTimeoutMs: 500_000 });
  assert.deepEqual([foretold.position, foretold.blockersTotal], [41, 80]);
  assert.deepEqual([wait.position, wait.blockersTotal, wait.blockers.length], [41, 80, 16]);
});

test("W11: who waits behind is not in the way, also of a broad pattern", () => {
  const world = createWorld("last", "wide", "holder");
  for (let n = 0; n < 40; n++) world.grant("holder", `CONSUMES FILE:/d/${n % 5}/f${n}`);
  const wide = world.waits("wide", "MUTATES FILE:/d/**");
  world.waits("last", "MUTATES FILE:/d/4/f39");
  const now = world.expect("waiting", world.ask({ type: "collect_request", collect: null, requestId: wide.requestId }));
  assert.deepEqual([now.position, now.blockersTotal], [1, 40]);
});

test("W12: a dry run gives the verdict that follows, and changes nothing", () => {
  const world = createWorld("old", "mid", "young");
  world.grant("mid", "MUTATES FILE:/x", { ttlMs: 300_000 });
  world.fence("FILE:/fenced");
  const entropy = [7, 33] as const;
  for (const [agent, intents] of [
    ["old", "MUTATES FILE:/free"],
    ["old", "MUTATES FILE:/x"],
    ["young", ["MUTATES FILE:/x", "MUTATES FILE:/free"]],
    ["young", "MUTATES FILE:/x"],
    ["young", "MUTATES FILE:/fenced"],
  ] as const) {
    const before = records(world.base.state);
    const foretold = world.ask(world.acquire(agent, intents, { dryRun: true, ttlMs: 400_000, entropy }));
    assert.deepEqual(world.events, []);
    assert.equal(records(world.base.state), before);
    const real = world.ask(world.acquire(agent, intents, { ttlMs: 400_000, entropy }));
    const plain = (reply: object) => ({ ...reply, requestId: "", leases: [] });
    assert.deepEqual(plain(foretold), plain(real));
  }
});

test("W12: a dry run that would be refused is refused, and one under a known key is a dry run all the same", () => {
  const world = createWorld("old", "young");
  world.grant("young", "MUTATES FILE:/x", { key: "k" });
  world.refused("empty_manifest", world.acquire("old", [], { dryRun: true }));
  world.refused("would_wait", world.acquire("old", "MUTATES FILE:/x", { dryRun: true, waitTimeoutMs: 0 }));
  const foretold = world.grants("young", "MUTATES FILE:/free", { dryRun: true, key: "k" });
  assert.deepEqual(foretold.leases, []);
});

test("W12: a dry run of an agent whose unit is over predicts the verdict of the next unit", () => {
  const world = createWorld("old", "young");
  world.grant("old", "MUTATES FILE:/x");
  const entropy = [1, 0] as const;
  world.dies("young", "MUTATES FILE:/x");
  world.dies("young", "MUTATES FILE:/x");
  world.transition("young", "ABORTED");
  const foretold = world.dies("young", "MUTATES FILE:/x", { dryRun: true, entropy });
  const real = world.dies("young", "MUTATES FILE:/x", { entropy });
  assert.deepEqual(foretold, real);
});
