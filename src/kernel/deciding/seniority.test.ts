import assert from "node:assert/strict";
import { test } from "node:test";
import { limits } from "../contract/limits.ts";
import { createWorld } from "../testing/test-world.ts";

for (const folder of ["flat", "deep"] as const) {
  test(`C5: WAIT on a broad pattern, and each look-up of it, look at a bounded number of leases (${folder})`, () => {
    const world = createWorld("oldest", "older", "holder", "young");
    const count = 16 * limits.obstaclesExaminedMax;
    for (let n = 0; n < count; n++) {
      world.grant("holder", `MUTATES FILE:/${folder}/${folder === "deep" ? `${n % 20}/` : ""}f${n}`);
    }
    world.grant("older", "MUTATES FILE:/elsewhere");
    world.waits("older", `MUTATES FILE:/${folder}/**`);
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
    const pattern = `MUTATES FILE:/${folder}/**`;
    const refusal = world.refused("would_wait", world.acquire("oldest", pattern, { waitTimeoutMs: 0 }));
    assert.equal(refusal.blockersTotal, count + 1);
    const wait = world.waits("oldest", pattern);
    assert.deepEqual([wait.position, wait.blockersTotal, wait.blockers.length], [2, count + 1, 16]);
    const again = world.expect(
      "waiting",
      world.ask({ type: "collect_request", collect: null, requestId: wait.requestId }),
    );
    assert.deepEqual([again.position, again.blockersTotal, again.blockers.length], [2, count + 1, 16]);
    assert.ok(looked < count, `${looked} leases looked at`);
  });
}

test("W2, C5: an older holder is found in the way though it took up a new unit of work, or only waits", () => {
  const world = createWorld("a", "b", "c");
  world.release(world.grant("a", "MUTATES FILE:/x").id);
  const lease = world.grant("b", "MUTATES FILE:/d/1");
  world.grant("a", "MUTATES FILE:/d/2");
  // "a" has completed its first unit: it is younger than "b" and "c" now.
  world.waits("c", "MUTATES FILE:/d/2");
  world.dies("c", "MUTATES FILE:/d/**");
  world.release(lease.id);
  world.waits("c", "MUTATES FILE:/d/**");
  world.dies("a", "CONSUMES FILE:/d/7");
});
