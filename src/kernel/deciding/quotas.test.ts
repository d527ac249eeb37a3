import assert from "node:assert/strict";
import { test } from "node:test";
import { limits } from "../contract/limits.ts";
import { restore, snapshot } from "../kernel.ts";
import { createTaskWorld } from "../testing/tasks-world.ts";
import { createWorld, type World } from "../testing/test-world.ts";

function deniedBy(world: World, agentId: string, intents: string | readonly string[]): void {
  const { reason, detail } = world.refused("lease_denied", world.acquire(agentId, intents));
  assert.equal(reason, "quota");
  assert.match(detail, /GPU/);
}

test("G2: a quota on a type counts the units of all its leases, of every holder, and of no other type", () => {
  const world = createWorld("a", "b");
  world.quotas({ kinds: { GPU: 4 } });
  world.declare("GPU:/big", 8);
  const lease = world.grant("a", "MUTATES GPU:/big x3");
  deniedBy(world, "b", "MUTATES GPU:/big x2");
  deniedBy(world, "b", ["CONSUMES GPU:/0", "CONSUMES GPU:/1"]);
  world.grant("b", ["CONSUMES GPU:/0", "MUTATES FILE:/x", "MUTATES FILE:/y"]);
  deniedBy(world, "a", "CONSUMES GPU:/0");
  world.release(lease.id);
  world.grant("b", "MUTATES GPU:/big x3");
});

test("G2: before the capacity, and in a dry run too", () => {
  const world = createWorld("a");
  world.quotas({ kinds: { GPU: 4 } });
  world.declare("GPU:/0", 2);
  deniedBy(world, "a", "MUTATES GPU:/0 x5");
  const reply = world.ask(world.acquire("a", "MUTATES GPU:/0 x5", { dryRun: true }));
  assert.equal(world.expect("refused", reply).reason, "quota");
});

test("G2: what waits counts too, so that no wait ends beyond the quota", () => {
  const world = createWorld("old", "young");
  world.quotas({ kinds: { GPU: 2 } });
  world.grant("young", "MUTATES GPU:/0");
  const wait = world.waits("old", "MUTATES GPU:/0");
  deniedBy(world, "young", "MUTATES GPU:/1");
  world.cancel(wait.requestId);
  const second = world.grant("young", "MUTATES GPU:/1");
  world.release(second.id);
  const again = world.waits("old", "MUTATES GPU:/0");
  world.revoke({ agentId: "young" });
  assert.equal(world.request(again.requestId)?.state, "GRANTED");
  world.grant("young", "MUTATES GPU:/1");
  deniedBy(world, "young", "MUTATES GPU:/2");
});

test("G2: set while leases live, a quota counts them; taken away, nothing is counted; smaller, it ends nothing", () => {
  const world = createWorld("old", "young");
  world.grant("young", "MUTATES GPU:/0");
  world.waits("old", "MUTATES GPU:/0");
  world.quotas({ kinds: { GPU: 2 } });
  deniedBy(world, "young", "MUTATES GPU:/1");
  world.quotas({ kinds: { GPU: 1 } });
  assert.equal(world.leases().length, 1);
  world.quotas({ kinds: {} });
  world.grant("young", "MUTATES GPU:/1");
  world.quotas({ kinds: { GPU: 4 } });
  world.grant("young", "MUTATES GPU:/2");
  deniedBy(world, "young", "MUTATES GPU:/3");
});

test("a restored kernel counts the same", () => {
  const world = createWorld("old", "young");
  world.quotas({ kinds: { GPU: 3 } });
  world.grant("young", "MUTATES GPU:/0");
  world.waits("old", "MUTATES GPU:/0");
  world.base.state = restore(snapshot(world.base.state));
  world.grant("young", "MUTATES GPU:/1");
  deniedBy(world, "young", "MUTATES GPU:/2");
});

test("S3: a quota is a whole number on the type of a resource, and there are not too many of them", () => {
  const world = createWorld("a");
  const many = Object.fromEntries(Array.from({ length: limits.kindsMax + 1 }, (_, n) => [`K${n}`, 1]));
  for (const kinds of [{ gpu: 1 }, { TASK: 1 }, { "": 1 }, { GPU: -1 }, { GPU: 1.5 }, { GPU: Number.NaN }, many]) {
    const refusal = world.refused("invalid_quotas", { type: "set_tenant_quotas", tenantId: "t1", quotas: { kinds } });
    assert.equal(refusal.field, "kinds");
  }
});

test("T10, T11: a task whose manifest would pass the quota is put aside, explains itself, and runs when there is room", () => {
  const world = createTaskWorld("a");
  world.quotas({ kinds: { GPU: 1 } });
  const lease = world.grant("a", "MUTATES GPU:/0");
  const id = world.create({ intents: "MUTATES GPU:/1" });
  const other = world.create();
  assert.equal(world.offered("w.1").task.id, other, "others run meanwhile");
  assert.match(world.explain(id)[0]?.detail ?? "", /1 units of GPU/);
  world.release(lease.id);
  assert.equal(world.offered("w.2").task.id, id);
});
