import assert from "node:assert/strict";
import { test } from "node:test";
import { limits } from "../contract/limits.ts";
import type { Lease } from "../contract/records.ts";
import { bindingOf, type CellWorld, createCellWorld, hosts } from "../testing/cell-world.ts";
import { found, records } from "../testing/test-world.ts";

test("a cell enrols with its inventory: its resources are declared as its own, with what it says of them", () => {
  const world = createCellWorld("a");
  const reply = world.enrol("c1", [hosts("GPU:/0", { capacity: 2, hardware: ["h100"] }), hosts("PORT:/80")]);
  assert.deepEqual([reply.bind, reply.update, reply.teardown, reply.refused], [[], [], [], []]);
  assert.deepEqual(reply.cell, {
    tenant: "t1",
    id: "c1",
    session: "s1",
    keyId: "key-c1",
    state: "READY",
    goneReason: null,
    withdrawn: false,
    version: "0.1.0",
    enrolledAt: world.now,
    changedAt: world.now,
    aliveBy: world.now + limits.cellAliveMs,
  });
  const { capacity, cell, driver, hardware, fault } = found(world.resource("GPU:/0"), "resource");
  assert.deepEqual([capacity, cell, driver, hardware, fault], [2, "c1", "tcp", ["h100"], null]);
  assert.deepEqual(world.happened, ["cell.enrolled", "resource.declared", "resource.declared"]);
});

test("an enrolment that is repeated gets the same answer, and declares nothing again", () => {
  const world = createCellWorld("a");
  world.enrol("c1", ["GPU:/0"]);
  const lease = world.active("a", "MUTATES GPU:/0");
  const first = world.enrol("c1", ["GPU:/0"], [bindingOf(lease)]);
  const before = records(world.base.state);
  const again = world.enrol("c1", ["GPU:/0"], [bindingOf(lease)]);
  assert.deepEqual(again, first);
  assert.equal(records(world.base.state), before);
  assert.deepEqual(world.happened, ["cell.enrolled"]);
});

/** What the kernel has, and what the cell says of the same lease. */
const kernelStates = ["BINDING", "bound, others awaited", "ACTIVE", "HELD", "CLOSING", "ended"] as const;
const cellSays = ["nothing", "bound", "an older generation", "a later generation", "ended there"] as const;
type KernelState = (typeof kernelStates)[number];
type CellSays = (typeof cellSays)[number];

/** Where the lease stands afterwards, and which list names it. */
type Then = readonly [state: string, list: "bind" | "update" | "teardown" | "none"];

const binds: Then = ["BINDING", "bind"];
const updates: Then = ["ACTIVE", "update"];
const closes: Then = ["CLOSING", "teardown"];
const over: Then = ["ended", "none"];
const gone: Then = ["ended", "teardown"];

/** The stricter wins: what either side has ended is over, and whatever the cell has and should not have goes. */
const comparison: Readonly<Record<KernelState, Readonly<Record<CellSays, Then>>>> = {
  BINDING: {
    nothing: binds,
    bound: binds,
    "an older generation": binds,
    "a later generation": binds,
    "ended there": closes,
  },
  "bound, others awaited": {
    nothing: binds,
    bound: binds,
    "an older generation": binds,
    "a later generation": binds,
    "ended there": closes,
  },
  ACTIVE: {
    nothing: over,
    bound: updates,
    "an older generation": updates,
    "a later generation": closes,
    "ended there": closes,
  },
  // L9: it is reserved, whether its cell has torn it down already or not.
  HELD: {
    nothing: ["HELD", "none"],
    bound: ["HELD", "update"],
    "an older generation": ["HELD", "update"],
    "a later generation": closes,
    "ended there": ["HELD", "update"],
  },
  CLOSING: {
    nothing: over,
    bound: closes,
    "an older generation": closes,
    "a later generation": closes,
    "ended there": closes,
  },
  ended: {
    nothing: over,
    bound: gone,
    "an older generation": gone,
    "a later generation": gone,
    "ended there": gone,
  },
};

for (const state of kernelStates) {
  for (const says of cellSays) {
    const [then, list] = comparison[state][says];
    test(`the stricter wins: ${state} here, ${says} there: ${then}, ${list}`, () => {
      const world = createCellWorld("a");
      world.enrol("c1", ["GPU:/0"]);
      world.enrol("c2", ["GPU:/1"]);
      const lease = leaseIn(world, state);
      const reply = world.enrol("c1", ["GPU:/0"], bindingsFor(lease, says), "s2");
      assert.equal(world.lease(lease.id)?.state ?? "ended", then);
      const lists = {
        bind: reply.bind.map(({ id }) => id),
        update: reply.update.map(({ id }) => id),
        teardown: reply.teardown.map(({ leaseId }) => leaseId),
      };
      for (const name of ["bind", "update", "teardown"] as const)
        assert.deepEqual(lists[name], name === list ? [lease.id] : [], name);
      if (state === "ACTIVE" && says === "nothing") {
        const { state: end, endReason } = world.ended(lease.id);
        assert.deepEqual([end, endReason], ["REVOKED", "cell_lost_binding"]);
      }
      if (state === "bound, others awaited" && says === "nothing") {
        assert.equal(world.lease(lease.id)?.cellBy, world.now + limits.bindMs, "it is awaited once more");
        assert.equal(world.lease(lease.id)?.coordinate, null);
      }
    });
  }
}

function leaseIn(world: CellWorld, state: KernelState): Lease {
  const now = (id: string): Lease => found(world.lease(id), "lease");
  switch (state) {
    case "BINDING":
      return world.binding("a", "MUTATES GPU:/0");
    case "bound, others awaited": {
      const lease = world.binding("a", ["MUTATES GPU:/0", "MUTATES GPU:/1"]);
      world.bound(lease);
      return now(lease.id);
    }
    case "ACTIVE": {
      const lease = world.active("a", "MUTATES GPU:/0");
      world.renew(lease.id);
      return now(lease.id);
    }
    case "HELD": {
      const lease = world.active("a", "MUTATES GPU:/0");
      world.renew(lease.id);
      world.restart("a");
      for (let passed = 0; passed < lease.ttl; passed += 10_000) {
        world.pass(10_000);
        world.beat("c1");
      }
      assert.equal(now(lease.id).state, "HELD");
      return now(lease.id);
    }
    case "CLOSING": {
      const lease = world.active("a", "MUTATES GPU:/0");
      world.release(lease.id);
      return now(lease.id);
    }
    case "ended": {
      const lease = world.active("a", "MUTATES GPU:/0");
      world.release(lease.id);
      return world.tornDown(lease);
    }
  }
}

function bindingsFor(lease: Lease, says: CellSays) {
  switch (says) {
    case "nothing":
      return [];
    case "bound":
      return [bindingOf(lease)];
    case "an older generation":
      return [bindingOf(lease, { generation: lease.generation - 1, fence: lease.fence - 1 })];
    case "a later generation":
      return [bindingOf(lease, { generation: lease.generation + 1, fence: lease.fence + 1 })];
    case "ended there":
      return [bindingOf(lease, { endedAs: "lease_expired" })];
  }
}

test("named twice among a cell's bindings, a lease that has ended there once has ended", () => {
  for (const endedFirst of [true, false]) {
    const world = createCellWorld("a");
    world.enrol("c1", ["GPU:/0"]);
    const lease = world.active("a", "MUTATES GPU:/0");
    const both = [bindingOf(lease), bindingOf(lease, { endedAs: "lease_expired" })];
    world.enrol("c1", ["GPU:/0"], endedFirst ? both.reverse() : both, "s2");
    assert.equal(world.lease(lease.id)?.state, "CLOSING");
  }
});

test("a lease that its cell has lost is over at once, and the first waiter is next", () => {
  const world = createCellWorld("old", "young");
  world.enrol("c1", ["GPU:/0"]);
  const lease = world.active("young", "MUTATES GPU:/0");
  const wait = world.waits("old", "MUTATES GPU:/0");
  const { bind, teardown } = world.enrol("c1", ["GPU:/0"], [], "s2");
  assert.equal(world.ended(lease.id).endReason, "cell_lost_binding");
  assert.deepEqual(teardown, []);
  assert.deepEqual(
    bind.map(({ id }) => id),
    world.request(wait.requestId)?.leaseIds,
    "and the cell is to set it up",
  );
});

test("C7: with one half of a rename its other half is over too", () => {
  const world = createCellWorld("a");
  world.enrol("c1", ["DISK:/x"]);
  world.enrol("c2", ["DISK:/y"]);
  const lease = world.binding("a", "RENAMES DISK:/x > DISK:/y");
  world.bound(lease);
  world.bound(found(world.lease(lease.linkedTo ?? ""), "other half"));
  world.enrol("c1", ["DISK:/x"], [], "s2");
  assert.equal(world.ended(lease.id).state, "REVOKED");
  assert.equal(world.lease(lease.linkedTo ?? "")?.state, "CLOSING");
});

test("an inventory's lines are refused one by one: another cell's, what is in use, patterns, tasks, what is named twice", () => {
  const world = createCellWorld("a");
  world.enrol("c2", ["GPU:/taken"]);
  world.declare("GPU:/plain");
  world.declare("GPU:/used");
  world.grant("a", "MUTATES GPU:/used");
  const { refused } = world.enrol("c1", [
    "GPU:/taken",
    "GPU:/plain",
    "GPU:/used",
    "GPU:/*",
    "TASK:/1",
    "nonsense",
    "GPU:/good",
    "GPU:/good",
    hosts("GPU:/zero", { capacity: 0 }),
    hosts("GPU:/labels", { hardware: Array.from({ length: limits.cellHardwareMax + 1 }, () => "x") }),
  ]);
  assert.deepEqual(
    refused.map(({ resource }) => resource),
    ["GPU:/taken", "GPU:/used", "GPU:/*", "TASK:/1", "nonsense", "GPU:/good", "GPU:/zero", "GPU:/labels"],
  );
  for (const { message } of refused) assert.ok(message.length > 10, message);
  assert.equal(world.resource("GPU:/taken")?.cell, "c2");
  assert.equal(world.resource("GPU:/plain")?.cell, "c1", "what nobody uses is taken over");
  assert.equal(world.resource("GPU:/used")?.cell, null);
  assert.equal(world.resource("GPU:/good")?.cell, "c1");
  assert.equal(world.resource("GPU:/zero"), undefined);
});

test("S4: more resources than the tenant may have, or than a cell may name, are not declared", () => {
  const world = createCellWorld("a");
  world.quotas({ resourcesMax: 1 });
  const { refused } = world.enrol("c1", ["GPU:/0", "GPU:/1"]);
  assert.deepEqual(
    refused.map(({ resource }) => resource),
    ["GPU:/1"],
  );
  const many = Array.from({ length: limits.cellInventoryMax + 1 }, (_, n) => hosts(`GPU:/${n}`));
  world.refused("invalid_cell", world.enrolAsk("c1", many));
  const beat = { type: "cell_heartbeat", cellId: "c1", session: "s1", inventory: many } as const;
  world.refused("invalid_cell", beat);
});

test("C6: a cell's own resource in use keeps its kind and its units, and is still heard of", () => {
  const world = createCellWorld("a");
  world.enrol("c1", [hosts("GPU:/0", { capacity: 2 })]);
  const lease = world.active("a", "MUTATES GPU:/0");
  const plain = hosts("GPU:/0", { ready: false, fault: "overheated" });
  const { refused } = world.enrol("c1", [plain], [bindingOf(lease)], "s2");
  assert.equal(refused.length, 1);
  const { capacity, fault } = found(world.resource("GPU:/0"), "resource");
  assert.deepEqual([capacity, fault], [2, "overheated"]);
});
