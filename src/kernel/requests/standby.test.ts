import assert from "node:assert/strict";
import { test } from "node:test";
import { restore, snapshot } from "../kernel.ts";
import { createCellWorld } from "../testing/cell-world.ts";
import { createWorld } from "../testing/test-world.ts";

const x = "MUTATES FILE:/x";

test("W14: a request that would die stands by, and is granted when the whole manifest fits", () => {
  const world = createWorld("old", "young");
  const first = world.grant("old", x);
  const second = world.grant("old", "MUTATES FILE:/y");
  const standby = world.standsBy("young", [x, "MUTATES FILE:/y"]);
  assert.equal(standby.blockersTotal, 2);
  assert.equal(standby.waitTimeoutMs, 20_000);
  assert.equal("position" in standby, false);
  assert.equal(world.agent("young").state, "PAUSED");
  assert.equal(world.agent("young").attempts, 0);
  world.release(first.id);
  assert.equal(world.request(standby.requestId)?.state, "STANDBY");
  world.release(second.id);
  const granted = world.expect("granted", world.asks(standby.requestId));
  assert.deepEqual(
    granted.leases.map(({ resource }) => resource),
    ["FILE:/x", "FILE:/y"],
  );
  assert.equal(world.agent("young").state, "EXECUTING");
});

test("W14: it dies at the end of its time, with a hint and one more attempt", () => {
  const world = createWorld("old", "young");
  world.grant("old", x);
  const { requestId } = world.standsBy("young", x, { standbyMs: 5_000, key: "k" });
  world.pass(4_999);
  world.expect("standby", world.asks(requestId));
  const events = world.pass(1);
  const died = events.find((event) => event.type === "request.died");
  assert.equal(died?.requestId, requestId);
  const reply = world.expect("died", world.asks(requestId));
  assert.equal(reply.attempt, 1);
  assert.ok(reply.retryAfterMs > 0);
  assert.equal(world.expect("died", world.asks(requestId)).retryAfterMs, reply.retryAfterMs);
  assert.equal(world.dies("young", x, { key: "k" }).attempt, 2, "the key is free again (W10)");
});

test("W14: it reserves nothing: a younger arrival is granted, and an older waiter is not compared with it", () => {
  const world = createWorld("oldest", "old", "young", "youngest");
  world.grant("old", x);
  world.standsBy("young", [x, "MUTATES FILE:/free"]);
  world.grant("youngest", "MUTATES FILE:/free");
  assert.equal(world.waits("oldest", x).position, 1);
});

test("W14: waiters are served first, then the oldest that stands by", () => {
  const world = createWorld("oldest", "old", "young", "youngest");
  const held = world.grant("old", x);
  const younger = world.standsBy("youngest", x);
  const older = world.standsBy("young", x);
  const wait = world.waits("oldest", x);
  world.release(held.id);
  const granted = world.expect("granted", world.asks(wait.requestId));
  world.expect("standby", world.asks(older.requestId));
  world.release(granted.leases[0]?.id ?? "");
  const next = world.expect("granted", world.asks(older.requestId));
  world.expect("standby", world.asks(younger.requestId));
  world.release(next.leases[0]?.id ?? "");
  world.expect("granted", world.asks(younger.requestId));
});

test("W14: the oldest that fits is granted; one whose other resource is taken is passed over", () => {
  const world = createWorld("holder", "a", "b", "c");
  const held = world.grant("holder", x);
  world.grant("holder", "MUTATES FILE:/taken");
  const a = world.standsBy("a", [x, "MUTATES FILE:/taken"]);
  const b = world.standsBy("b", x);
  const c = world.standsBy("c", "CONSUMES FILE:/**");
  world.release(held.id);
  world.expect("standby", world.asks(a.requestId));
  world.expect("granted", world.asks(b.requestId));
  world.expect("standby", world.asks(c.requestId));
});

test("W14: readers that stand by at one name are granted together", () => {
  const world = createWorld("holder", "a", "b", "c");
  const held = world.grant("holder", x);
  const readers = ["a", "b", "c"].map((agent) => world.standsBy(agent, "CONSUMES FILE:/x"));
  world.release(held.id);
  for (const { requestId } of readers) world.expect("granted", world.asks(requestId));
});

test("W14: an agent that holds a lease, waits or stands by already dies at once", () => {
  const world = createWorld("oldest", "old", "young");
  world.grant("oldest", x);
  world.grant("young", "MUTATES FILE:/y");
  world.dies("young", x, { standbyMs: 20_000 });
  world.waits("old", "MUTATES FILE:/y");
  world.dies("old", x, { standbyMs: 20_000 });
  const other = createWorld("old", "young");
  other.grant("old", x);
  other.standsBy("young", x);
  other.dies("young", "CONSUMES FILE:/x", { standbyMs: 20_000 });
});

test("W14: it ends in DIE when its agent gets a lease, is handed one, or begins to wait", () => {
  const begin = () => {
    const world = createWorld("old", "young", "youngest");
    world.grant("old", x);
    return { world, requestId: world.standsBy("young", x).requestId };
  };
  const granted = begin();
  granted.world.grant("young", "MUTATES FILE:/y");
  granted.world.expect("died", granted.world.asks(granted.requestId));
  assert.equal(granted.world.agent("young").state, "EXECUTING");

  const handed = begin();
  const lease = handed.world.grant("youngest", "MUTATES FILE:/y");
  handed.world.transfer(lease.id, "young");
  handed.world.expect("died", handed.world.asks(handed.requestId));

  const waiting = begin();
  waiting.world.grant("youngest", "MUTATES FILE:/y");
  waiting.world.waits("young", "MUTATES FILE:/y");
  waiting.world.expect("died", waiting.world.asks(waiting.requestId));
});

test("W14: it can be canceled, ends with its unit of work, and with the instance that asked (A3)", () => {
  for (const end of ["cancel", "abort", "register"] as const) {
    const world = createWorld("old", "young");
    const held = world.grant("old", x);
    const { requestId } = world.standsBy("young", x);
    if (end === "cancel") world.cancel(requestId);
    else if (end === "abort") world.transition("young", "ABORTED");
    else world.register("young");
    world.refused("request_canceled", { type: "collect_request", collect: null, requestId });
    world.release(held.id);
    assert.equal(world.leases().length, 0, end);
  }
});

test("W14: a fence, a withdrawal and a suspension pause it, as they pause waiters (W9)", () => {
  const fenced = createWorld("old", "young");
  fenced.grant("old", x);
  const { requestId } = fenced.standsBy("young", "MUTATES FILE:/**");
  fenced.fence("FILE:/x");
  assert.equal(fenced.expect("paused", fenced.asks(requestId)).reason, "resource_fenced");

  const cells = createCellWorld("old", "young");
  cells.enrol("c1", ["GPU:/0"]);
  cells.active("old", "MUTATES GPU:/0");
  const standby = cells.standsBy("young", "MUTATES GPU:/0");
  cells.pass(15_000);
  assert.equal(cells.expect("paused", cells.asks(standby.requestId)).reason, "cell_not_ready");
});

test("W14: under Wound-Wait nothing dies, and standby_ms changes nothing", () => {
  const world = createWorld("old", "young");
  world.settings({ strategy: "wound_wait" });
  world.grant("old", x);
  world.waits("young", x, { standbyMs: 20_000 });
});

test("W14: the strategy is not switched while something stands by", () => {
  const world = createWorld("old", "young");
  world.grant("old", x);
  const { requestId } = world.standsBy("young", x);
  world.refused("strategy_in_use", {
    type: "set_tenant_settings",
    tenantId: world.tenant,
    settings: { strategy: "wound_wait" },
  });
  world.cancel(requestId);
  world.settings({ strategy: "wound_wait" });
});

test("W14: what stands by counts among the tenant's waiters; beyond the quota the verdict is DIE", () => {
  const world = createWorld("old", "young", "youngest");
  world.quotas({ waitersMax: 1 });
  world.grant("old", x);
  world.standsBy("young", x);
  world.dies("youngest", x, { standbyMs: 20_000 });
});

test("W14: a dry run says STANDBY and changes nothing (W12)", () => {
  const world = createWorld("old", "young");
  world.grant("old", x);
  const before = JSON.stringify(snapshot(world.base.state));
  assert.equal(world.standsBy("young", x, { dryRun: true }).requestId, "");
  assert.equal(JSON.stringify(snapshot(world.base.state)), before);
});

test("W14: a repeated request_id is answered from its present state (W10)", () => {
  const world = createWorld("old", "young");
  const held = world.grant("old", x);
  const { requestId } = world.standsBy("young", x, { key: "k" });
  assert.equal(world.standsBy("young", x, { key: "k" }).requestId, requestId);
  world.refused("request_id_reused", world.acquire("young", x, { key: "k", standbyMs: 10_000 }));
  world.release(held.id);
  assert.equal(
    world.expect("granted", world.ask(world.acquire("young", x, { key: "k", standbyMs: 20_000 }))).requestId,
    requestId,
  );
});

test("W14: units of a counted resource are not reserved, and freed ones are granted", () => {
  const world = createWorld("old", "young", "youngest");
  world.declare("GPU:/0", 4);
  const held = world.grant("old", "MUTATES GPU:/0 x3");
  const { requestId } = world.standsBy("young", "MUTATES GPU:/0 x2");
  const small = world.grant("youngest", "MUTATES GPU:/0 x1");
  world.release(small.id);
  world.expect("standby", world.asks(requestId));
  world.release(held.id);
  world.expect("granted", world.asks(requestId));
});

test("W14: with pick, any resource that is freed will do", () => {
  const world = createWorld("old", "young");
  world.declare("GPU:/0", 1);
  world.declare("GPU:/1", 1);
  world.grant("old", "MUTATES GPU:/0 x1");
  const second = world.grant("old", "MUTATES GPU:/1 x1");
  const { requestId } = world.standsBy("young", "MUTATES GPU:/* any");
  world.release(second.id);
  assert.equal(world.expect("granted", world.asks(requestId)).leases[0]?.resource, "GPU:/1");
});

test("W14: it survives a restart, with its time, its key and its place", () => {
  const world = createWorld("old", "young", "youngest");
  const held = world.grant("old", x);
  const later = world.standsBy("youngest", x, { key: "later" });
  const sooner = world.standsBy("young", x, { standbyMs: 30_000 });
  world.base.state = restore(snapshot(world.base.state));
  assert.equal(world.standsBy("youngest", x, { key: "later" }).requestId, later.requestId);
  world.release(held.id);
  world.expect("granted", world.asks(sooner.requestId));
  world.pass(20_000);
  world.expect("died", world.asks(later.requestId));
});

test("W8: a grant that ended a standby and is not collected lapses", () => {
  const world = createWorld("old", "young", "youngest");
  const held = world.grant("old", x);
  world.standsBy("young", x);
  const next = world.standsBy("youngest", x);
  world.release(held.id);
  const events = world.pass(10_000);
  assert.ok(events.some((event) => event.type === "lease.expired" && event.reason === "unclaimed"));
  world.expect("granted", world.asks(next.requestId));
});
