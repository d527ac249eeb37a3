import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { limits } from "../contract/limits.ts";
import { jumpAhead } from "../kernel.ts";
import { createCellWorld } from "../testing/cell-world.ts";
import { createWorld, type World } from "../testing/test-world.ts";

const name = "LIMIT:/openai";
const one = `CONSUMES ${name}`;

/** A world in which three units a minute are shared. */
function createLimit(...agents: readonly string[]): World {
  const world = createWorld(...agents);
  world.limit(name, 3, 60_000);
  return world;
}

const stateOf = (world: World, { requestId }: { readonly requestId: string }) => world.request(requestId)?.state;

test("G15: units come back with time, and not with the end of the lease", () => {
  const world = createLimit("a", "b");
  for (const _ of [1, 2, 3]) world.release(world.grant("a", one).id);
  const wait = world.waits("b", one, { waitTimeoutMs: 120_000 });
  assert.deepEqual([wait.blockersTotal, wait.unitsBackAt], [0, world.now + 60_000]);
  world.pass(59_999);
  assert.equal(stateOf(world, wait), "WAITING");
  world.pass(1);
  assert.equal(stateOf(world, wait), "GRANTED");
});

test("G15: a lease that lives on keeps no units, and its heartbeats none either", () => {
  const world = createLimit("a", "b");
  const lease = world.grant("a", `${one} x3`, { ttlMs: 100_000 });
  world.pass(50_000);
  world.heartbeat(lease.id);
  world.pass(10_000);
  world.grant("b", `${one} x3`);
  assert.equal(world.lease(lease.id)?.state, "ACTIVE");
});

test("G15, C6: who has spent all units waits for them as others do", () => {
  const world = createLimit("a");
  world.grant("a", `${one} x3`, { ttlMs: 300_000 });
  const wait = world.waits("a", one, { waitTimeoutMs: 120_000 });
  world.pass(60_000);
  assert.equal(stateOf(world, wait), "GRANTED");
});

test("G15, C6: more units than there are in all are refused", () => {
  const world = createLimit("a");
  const refusal = world.refused("lease_denied", world.acquire("a", `${one} x4`));
  assert.equal(refusal.reason, "capacity");
});

test("G15, W2: a young request waits where only time is in the way, and dies where an older one waits ahead", () => {
  const world = createLimit("old", "young", "younger");
  world.grant("old", `${one} x3`, { ttlMs: 300_000 });
  const wait = world.waits("young", one, { waitTimeoutMs: 120_000 });
  const death = world.dies("younger", one);
  assert.deepEqual([death.blockersTotal, death.blockers[0]?.requestId], [1, wait.requestId]);
});

test("G15, W2: an older request waits behind a younger one, and the reply counts both their units", () => {
  const world = createLimit("old", "young", "spender");
  world.grant("spender", `${one} x1`);
  world.pass(10_000);
  world.grant("spender", `${one} x2`);
  const young = world.waits("young", one, { waitTimeoutMs: 120_000 });
  const old = world.waits("old", one, { waitTimeoutMs: 120_000 });
  assert.deepEqual([young.unitsBackAt, old.unitsBackAt], [world.now + 50_000, world.now + 60_000]);
  assert.equal(old.position, 2);
});

test("G15, W3, W14: what comes back goes to waiters in their order, then to those that stand by, the oldest first", () => {
  const world = createWorld("c", "b", "a", "y", "z", "spender");
  world.limit(name, 3, 10_000);
  world.grant("spender", `${one} x2`);
  world.pass(1_000);
  world.grant("spender", one);
  const terms = { waitTimeoutMs: 300_000, standbyMs: 50_000 };
  const [a, b] = [world.waits("a", one, terms), world.waits("b", `${one} x2`, terms)];
  const [z, y] = [world.standsBy("z", one, terms), world.standsBy("y", `${one} x2`, terms)];
  const states = () => [a, b, y, z].map((request) => stateOf(world, request));
  assert.deepEqual(states(), ["WAITING", "WAITING", "STANDBY", "STANDBY"]);
  world.pass(9_000);
  assert.deepEqual(states(), ["GRANTED", "WAITING", "STANDBY", "STANDBY"]);
  world.pass(1_000);
  assert.deepEqual(states(), ["GRANTED", "GRANTED", "STANDBY", "STANDBY"]);
  world.pass(9_000);
  // The oldest wants more than there is, and reserves nothing (W14).
  assert.deepEqual(states(), ["GRANTED", "GRANTED", "STANDBY", "GRANTED"]);
  world.pass(1_000);
  assert.deepEqual(states(), ["GRANTED", "GRANTED", "GRANTED", "GRANTED"]);
});

test("G15, W5: the hint of a DIE reaches to when units come back, within the cap", () => {
  const world = createLimit("old", "young", "spender");
  world.grant("spender", `${one} x3`);
  world.waits("old", one, { waitTimeoutMs: 300_000 });
  const hints: number[] = [];
  for (let attempt = 0; attempt < 8; attempt++) hints.push(world.dies("young", one).retryAfterMs);
  assert.ok((hints.at(-1) ?? 0) >= 5_000, hints.join(" "));
});

test("G15: with no time to wait the refusal says when units come back", () => {
  const world = createLimit("a", "b");
  world.grant("a", `${one} x3`);
  world.pass(45_000);
  const { detail } = world.refused("would_wait", world.acquire("b", one, { waitTimeoutMs: 0 }));
  assert.match(detail, /come back in 15000 ms/);
});

test("G15, W7: under Wound-Wait nobody is wounded for units that come back with time; the older goes ahead", () => {
  const world = createLimit("old", "young", "holder");
  world.settings({ strategy: "wound_wait" });
  const lease = world.grant("holder", `${one} x3`, { ttlMs: 300_000 });
  const terms = { waitTimeoutMs: 120_000 };
  const [young, old] = [world.waits("young", `${one} x3`, terms), world.waits("old", `${one} x3`, terms)];
  assert.equal(world.lease(lease.id)?.state, "ACTIVE");
  world.pass(60_000);
  assert.deepEqual([stateOf(world, young), stateOf(world, old)], ["WAITING", "GRANTED"]);
});

test("G15, W6: a manifest that waits for another resource spends nothing", () => {
  const world = createLimit("old", "holder", "other");
  const lease = world.grant("holder", "MUTATES FILE:/a");
  world.waits("old", ["MUTATES FILE:/a", `${one} x3`]);
  assert.deepEqual(world.resource(name)?.spent, []);
  world.release(lease.id);
  assert.equal(world.resource(name)?.spent[0]?.units, 3);
});

test("G15, C6: a pattern over it meets live leases as ever", () => {
  const world = createLimit("old", "a");
  const lease = world.grant("a", one);
  const wait = world.waits("old", "MUTATES LIMIT:/**");
  world.release(lease.id);
  assert.equal(stateOf(world, wait), "GRANTED");
  world.dies("a", one);
});

test("G15, G6: units of a manifest that cells set up come back so long after its grant, and none is given in between", () => {
  const world = createCellWorld("a", "b");
  world.enrol("c1", ["GPU:/0", "GPU:/1"]);
  world.limit(name, 1, 60_000);
  const slow = world.binding("a", ["MUTATES GPU:/0", one]);
  world.pass(9_000);
  world.bound(slow);
  const granted = world.now;
  const wait = world.waits("b", ["MUTATES GPU:/1", one], { waitTimeoutMs: 120_000 });
  assert.equal(wait.unitsBackAt, granted + 60_000);
  for (const ms of [10_000, 10_000, 10_000, 10_000, 10_000, 9_999]) {
    world.beat("c1");
    world.pass(ms);
  }
  assert.equal(world.request(wait.requestId)?.state, "WAITING");
  world.pass(1);
  assert.equal(world.request(wait.requestId)?.state, "BINDING");
});

test("G15, G6: what cells did not set up in time spends its units all the same, from the moment when it ran out of time", () => {
  const world = createCellWorld("a", "b");
  world.enrol("c1", ["GPU:/0"]);
  world.limit(name, 1, 60_000);
  world.bindFails(world.binding("a", ["MUTATES GPU:/0", one]));
  const wait = world.waits("b", one, { waitTimeoutMs: 120_000 });
  assert.equal(wait.unitsBackAt, world.now + 60_000 + limits.bindMs);
});

test("G15, L11: after lost history all units count as spent", () => {
  const world = createLimit("a");
  world.grant("a", one);
  jumpAhead(world.base.state, { wall: world.now, losses: 1 }, world.now);
  const wait = world.waits("a", one, { waitTimeoutMs: 120_000 });
  assert.equal(wait.unitsBackAt, world.now + 60_000);
});

test("G15: capacity and refill_ms of a used limit can be changed, for grants from then on", () => {
  const world = createLimit("a", "b");
  world.grant("a", `${one} x3`, { ttlMs: 300_000 });
  const wait = world.waits("b", `${one} x2`, { waitTimeoutMs: 300_000 });
  world.limit(name, 5, 1_000);
  assert.equal(stateOf(world, wait), "GRANTED");
  world.pass(1_000);
  world.grant("a", `${one} x2`);
  world.waits("a", one);
  assert.deepEqual(
    world.resource(name)?.spent.map(({ units }) => units),
    [2, 3],
  );
});

test("G15: it becomes another kind of resource only while nobody uses it, and then nothing is spent", () => {
  const world = createLimit("a", "b");
  const lease = world.grant("a", `${one} x3`, { ttlMs: 100_000 });
  const other = { type: "declare_resource", resource: name, capacity: 3, refillMs: null, cell: null } as const;
  world.refused("resource_in_use", other);
  world.release(lease.id);
  world.ask(other);
  const held = world.grant("a", `${one} x3`);
  const wait = world.waits("b", one);
  world.release(held.id);
  assert.equal(stateOf(world, wait), "GRANTED");
});

test("G15: without a capacity, or with a cell, there is no refill", () => {
  const world = createWorld();
  const declare = { type: "declare_resource", resource: name, refillMs: 1_000 } as const;
  for (const rest of [
    { capacity: null, cell: null },
    { capacity: 2, cell: "c1" },
  ]) {
    assert.equal(world.refused("invalid_refill", { ...declare, ...rest }).field, "refill_ms");
  }
});

test("G15: of very many units the moments at which they come back are few, and no unit is early", () => {
  const world = createWorld("a");
  world.limit(name, 100_000, 60_000);
  const first = world.now;
  for (let at = 0; at < 600; at++) {
    world.release(world.grant("a", `${one} x100`).id);
    world.pass(100);
  }
  const spent = world.resource(name)?.spent ?? [];
  assert.ok(spent.length <= limits.refillMomentsMax + 1, `${spent.length} moments`);
  assert.ok((spent[0]?.at ?? 0) >= first + 60_000);
});

test("G15: however often it is declared again, what is kept stays small", () => {
  const world = createWorld("a");
  for (let at = 0; at < 1_000; at++) {
    world.limit(name, 1_000_000, 60_000 + at * 7_919);
    world.release(world.grant("a", one).id);
  }
  assert.ok((world.resource(name)?.spent.length ?? 0) <= 2 * limits.refillMomentsMax);
});

interface Take {
  readonly after: number;
  readonly units: number;
  readonly agent: number;
}

const agents = ["a", "b", "c"] as const;

/** Units granted within any span of `refillMs`, from the events alone. */
function mostWithin(grants: readonly { at: number; units: number }[], refillMs: number): number {
  const sums = grants.map(({ at }) =>
    grants.filter((one) => one.at > at - refillMs && one.at <= at).reduce((sum, { units }) => sum + units, 0),
  );
  return Math.max(0, ...sums);
}

test("G15: in no span of refill_ms are more units granted than there are, also across restarts", () => {
  const take: fc.Arbitrary<Take> = fc.record({
    after: fc.integer({ min: 0, max: 2_000 }),
    units: fc.integer({ min: 1, max: 40 }),
    agent: fc.integer({ min: 0, max: agents.length - 1 }),
  });
  const shape = fc.record({
    capacity: fc.constantFrom(1, 3, 40, 64, 65, 200),
    refillMs: fc.integer({ min: limits.refillMsMin, max: 5_000 }),
    takes: fc.array(take, { maxLength: 60 }),
    crashes: fc.boolean(),
  });
  fc.assert(
    fc.property(shape, ({ capacity, refillMs, takes, crashes }) => {
      const world = createWorld(...agents);
      world.limit(name, capacity, refillMs);
      const grants: { at: number; units: number }[] = [];
      const note = () => {
        for (const event of world.events) {
          if (event.type === "lease.granted") grants.push({ at: event.at, units: event.lease.units });
        }
      };
      for (const { after, units, agent } of takes) {
        world.pass(after);
        note();
        if (crashes) world.crash();
        world.ask(world.acquire(agents[agent] ?? "a", `${one} x${Math.min(units, capacity)}`, { ttlMs: 500 }));
        note();
      }
      assert.ok(mostWithin(grants, refillMs) <= capacity);
    }),
  );
});
