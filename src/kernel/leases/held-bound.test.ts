import assert from "node:assert/strict";
import { test } from "node:test";
import { limits } from "../contract/limits.ts";
import type { Lease } from "../contract/records.ts";
import { restore, snapshot } from "../kernel.ts";
import { bindingOf, createCellWorld } from "../testing/cell-world.ts";

const gpu = "MUTATES GPU:/0";

/** A bound lease that has run out while its agent restarts, and that its cell has torn down. */
function held(...others: readonly string[]) {
  const world = createCellWorld(...others, "a");
  world.enrol("c1", ["GPU:/0"]);
  const lease = world.active("a", gpu, { ttlMs: 1_000 });
  world.restart("a");
  world.later(1_000);
  world.ends("c1", lease, "lease_expired");
  return { world, lease };
}

const stateOf = ({ world, lease }: { world: ReturnType<typeof held>["world"]; lease: Lease }) =>
  world.lease(lease.id)?.state ?? world.ended(lease.id).state;

test("L9: a bound lease is held after its cell has torn it down, and nobody else gets the resource", () => {
  const { world, lease } = held("old");
  assert.equal(world.lease(lease.id)?.state, "HELD");
  assert.equal(world.lease(lease.id)?.coordinate, null);
  const { requestId } = world.waits("old", gpu);
  world.later(10_000);
  world.beat("c1");
  world.pass(limits.heldMs - 10_001);
  assert.equal(world.request(requestId)?.state, "WAITING");
});

test("L9: not revived, it expires at the end of the window without a second teardown, and the waiter is served", () => {
  const { world, lease } = held("old");
  world.beat("c1");
  const { requestId } = world.waits("old", gpu);
  world.later(14_000);
  world.beat("c1");
  const events = world.pass(limits.heldMs - 14_000).map(({ type }) => type);
  assert.equal(stateOf({ world, lease }), "EXPIRED");
  assert.ok(!events.includes("lease.closing"));
  assert.equal(world.request(requestId)?.state, "BINDING");
});

test("L9: after VERIFY_ALL a renewal binds again: next generation, new fence, and ACTIVE once the cell is done", () => {
  const { world, lease } = held();
  const renew = { type: "renew_lease", leaseId: lease.id, generation: null, activity: false } as const;
  world.refused("verify_required", renew);
  world.verify("a");
  world.refused("renew_required", { type: "heartbeat", leaseId: lease.id, activity: false });
  const rebinding = world.renew(lease.id);
  assert.deepEqual(
    [rebinding.state, rebinding.generation, rebinding.cellBy],
    ["BINDING", 2, world.now + limits.bindMs],
  );
  assert.deepEqual(world.happened, ["lease.binding"]);
  world.later(200);
  const revived = world.bound(rebinding, "here:2");
  assert.deepEqual(world.happened, ["lease.revived"]);
  assert.deepEqual(
    [revived.state, revived.coordinate, revived.expiresAt, revived.acquiredAt],
    ["ACTIVE", "here:2", world.now + 1_000, lease.acquiredAt],
  );
  assert.ok(revived.fence > lease.fence);
});

test("L9: a late report of the older binding does not end the one that is set up again", () => {
  const { world, lease } = held();
  world.verify("a");
  const rebinding = world.renew(lease.id);
  world.ends("c1", lease, "lease_expired");
  assert.equal(world.lease(lease.id)?.state, "BINDING");
  assert.equal(world.bound(rebinding).state, "ACTIVE");
});

test("L9: if it cannot be bound again, it ends, and its cell tears down what it began", () => {
  for (const fails of ["reported", "in silence"] as const) {
    const { world, lease } = held();
    world.verify("a");
    const rebinding = world.renew(lease.id);
    if (fails === "reported") world.bindFails(rebinding, "no device");
    else world.pass(limits.bindMs);
    assert.equal(world.lease(lease.id)?.state, "CLOSING");
    world.tornDown(rebinding);
    assert.equal(world.ended(lease.id).state, "REVOKED");
  }
});

test("L9: a cell whose clock is a little ahead tears down before the expiry; the lease is held all the same", () => {
  const world = createCellWorld("a");
  world.enrol("c1", ["GPU:/0"]);
  const lease = world.active("a", gpu, { ttlMs: 1_000 });
  world.restart("a");
  world.later(990);
  world.ends("c1", lease, "lease_expired");
  assert.deepEqual(
    [world.lease(lease.id)?.state, world.lease(lease.id)?.heldUntil],
    ["HELD", lease.expiresAt + limits.heldMs],
  );
});

test("L9: without an announced restart the cell's report ends the lease", () => {
  const world = createCellWorld("a");
  world.enrol("c1", ["GPU:/0"]);
  const lease = world.active("a", gpu, { ttlMs: 1_000 });
  world.later(990);
  world.ends("c1", lease, "lease_expired");
  assert.equal(world.ended(lease.id).state, "EXPIRED");
});

test("G7: a held lease whose teardown failed is over, and its resource is fenced", () => {
  const world = createCellWorld("a");
  world.enrol("c1", ["GPU:/0"]);
  const lease = world.active("a", gpu, { ttlMs: 1_000 });
  world.restart("a");
  world.later(1_000);
  world.ends("c1", lease, "lease_expired", "it does not die");
  assert.equal(world.lease(lease.id), undefined);
  assert.equal(world.resource("GPU:/0")?.fenced, true);
});

test("L9: a cell that comes back without the binding keeps the resource reserved; a restored kernel goes on", () => {
  const { world, lease } = held();
  world.base.state = restore(snapshot(world.base.state));
  world.enrol("c1", ["GPU:/0"], [], "s2");
  assert.equal(world.lease(lease.id)?.state, "HELD");
  world.verify("a");
  const rebinding = world.renew(lease.id);
  world.base.state = restore(snapshot(world.base.state));
  assert.deepEqual(
    world.enrol("c1", ["GPU:/0"], [bindingOf(lease, { endedAs: "lease_revoked" })], "s3").bind,
    [],
    "what is being taken down there cannot be set up under the same lease",
  );
  assert.equal(rebinding.state, "BINDING");
});
