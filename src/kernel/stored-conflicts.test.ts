import assert from "node:assert/strict";
import { test } from "node:test";
import type { StoredRecord } from "./contract/records.ts";
import { beginRestore, endRestore, findStoredConflict, restoreLeases, snapshot } from "./kernel.ts";
import { createWorld } from "./testing/test-world.ts";

type World = ReturnType<typeof createWorld>;

/** What a start would find in these records, with the lease of "b" as if it were on `resource`. */
function conflictWith(world: World, resource: string, now = world.now) {
  const stored = snapshot(world.base.state).map((one): StoredRecord => {
    if (one.kind !== "lease" || one.record.agentId !== "b") return one;
    return { kind: "lease", record: { ...one.record, resource } };
  });
  const restoring = beginRestore(stored.filter(({ kind }) => kind !== "lease"));
  const leases = stored.flatMap((one) => (one.kind === "lease" ? [one.record] : []));
  restoreLeases(
    restoring,
    leases,
    leases.map((_, index) => index + 1),
  );
  endRestore(restoring, { leases: [], from: 0 });
  return (
    findStoredConflict(restoring, now)
      ?.map(({ agentId }) => agentId)
      .sort() ?? null
  );
}

test("C1, S2: two holders of one thing in what is stored are found, at one name or below a pattern", () => {
  for (const [held, other, predicate, isConflict] of [
    ["FILE:/x", "FILE:/x", "MUTATES", true],
    ["FILE:/x", "FILE:/x", "CONSUMES", true],
    ["FILE:/x", "FILE:/y", "MUTATES", false],
    ["FILE:/d/**", "FILE:/d/x", "MUTATES", true],
    ["FILE:/d/x", "FILE:/d/**", "CONSUMES", true],
    ["FILE:/d/**", "FILE:/e/x", "MUTATES", false],
  ] as const) {
    const world = createWorld("a", "b");
    world.grant("a", `MUTATES ${held}`);
    world.grant("b", `${predicate} FILE:/elsewhere`);
    assert.deepEqual(conflictWith(world, other), isConflict ? ["a", "b"] : null, `${held} and ${predicate} ${other}`);
  }
});

test("C1, C6: readers, one holder's own leases, units and leases that have run out do not conflict", () => {
  const world = createWorld("a", "b");
  world.declare("GPU:/0", 1);
  world.grants("a", [
    "CONSUMES FILE:/r",
    "PROVIDES FILE:/p",
    "MUTATES FILE:/own",
    "MUTATES FILE:/own/**",
    "MUTATES GPU:/0",
  ]);
  world.grant("b", "CONSUMES FILE:/elsewhere", { ttlMs: 1_000 });
  for (const resource of ["FILE:/r", "FILE:/p", "GPU:/0"]) assert.equal(conflictWith(world, resource), null);
  assert.deepEqual(conflictWith(world, "FILE:/own/x"), ["a", "b"]);
  assert.equal(conflictWith(world, "FILE:/own/x", world.now + 1_000), null);
});
