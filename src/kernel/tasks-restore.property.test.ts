import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { anyTaskMove, commandOf, openingOf, type TaskMove } from "../../sim/task-moves.ts";
import type { KernelEvent } from "./contract/events.ts";
import type { Lease, StoredRecord, Strategy } from "./contract/records.ts";
import type { Blocker } from "./contract/replies.ts";
import type { Receipt } from "./contract/task-records.ts";
import { apply, createState, nextDeadline, restore, type State, settle, snapshot } from "./kernel.ts";
import { makeReady } from "./memory/task-state.ts";
import { leaveQueue } from "./tasks/task-queue.ts";
import { beginning } from "./testing/test-world.ts";

/** The same games every time; other and more ones for a hunt: RESTORE_SEED=7 RESTORE_RUNS=100000 npm test src/kernel/tasks-restore */
const { RESTORE_RUNS = "300", RESTORE_SEED = "1" } = process.env;
const howMany = { numRuns: Number(RESTORE_RUNS), seed: Number(RESTORE_SEED) };

const anyStrategy = fc.constantFrom<Strategy>("wait_die", "wound_wait");
const anyGame = fc.array(
  fc.record({ move: anyTaskMove, restart: fc.constantFrom("no", "no", "no", "no", "memory", "json") }),
  { minLength: 1, maxLength: 90, size: "max" },
);

/** What a game does to the kernel that goes on, before a move and when the other is restarted. */
interface Terms {
  readonly beforeMove: (state: State) => void;
  readonly atRestart: (state: State) => void;
}

function play(strategy: Strategy, game: typeof anyGame extends fc.Arbitrary<infer G> ? G : never, terms: Terms): void {
  const original = createState();
  let other = createState();
  const ended: Lease[] = [];
  let now = beginning;
  for (const command of openingOf(strategy)) {
    apply(original, command, now);
    apply(other, command, now);
  }
  for (const [index, { move, restart }] of game.entries()) {
    if (restart !== "no") {
      const records = snapshot(other);
      const leases = { leases: ended, from: 0 };
      other = restore(restart === "json" ? JSON.parse(JSON.stringify(records)) : records, leases);
      assert.deepEqual(sorted(snapshot(other)), sorted(records), "restore and snapshot are inverses");
      terms.atRestart(original);
    }
    for (const state of [original, other]) terms.beforeMove(state);
    now = timeAfter(original, now, move);
    // Settled in slices here and at once there: that must make no difference either.
    const earlier = move.flag ? settleInSlices(other, now, 1 + (move.a % 3)) : nothing;
    const command = commandOf(move, original, [index, index * 7_919]);
    const [kept, restored] = [apply(original, command, now), apply(other, command, now)];
    for (const { kind, alive, record } of kept.changes) if (kind === "lease" && !alive) ended.push(record as Lease);
    assert.deepEqual(comparable(restored.reply), comparable(kept.reply));
    assert.deepEqual(comparable([...earlier.events, ...restored.events]), comparable(kept.events));
    assert.deepEqual([...earlier.receipts, ...restored.receipts], kept.receipts);
    assert.deepEqual(sorted(snapshot(other)), sorted(snapshot(original)));
  }
}

test("a kernel restored from its records alone goes on with its tasks exactly like the one that never stopped (DESIGN: restore)", () => {
  fc.assert(
    fc.property(anyStrategy, anyGame, (strategy, game) => {
      play(strategy, game, { beforeMove: neverInsist, atRestart: () => {} });
    }),
    howMany,
  );
});

test("what no record holds is only which tasks were tried: a restored kernel equals one that tries every task again", () => {
  fc.assert(
    fc.property(anyStrategy, anyGame, (strategy, game) => {
      play(strategy, game, { beforeMove: () => {}, atRestart: lookAnew });
    }),
    howMany,
  );
});

/** How often a task was passed over is not kept; here that makes no difference. */
function neverInsist({ tenants }: State): void {
  for (const { tasks } of tenants.values())
    for (const task of tasks.values()) task.passedOver = Number.NEGATIVE_INFINITY;
}

/** Nor what stood in a task's way when it was looked at last: a restored kernel passes it over once more. */
function lookAnew(state: State): void {
  for (const tenant of state.tenants.values()) {
    for (const task of tenant.tasks.values()) {
      task.passedOver = 0;
      if (task.place !== "parked" && task.place !== "keyed" && task.place !== "barred") continue;
      leaveQueue({ state, tenant, now: 0 }, task);
      makeReady({ state, tenant, now: 0 }, task);
    }
    for (const task of tenant.tasks.values()) task.parking = null;
  }
}

interface Happened {
  readonly events: readonly KernelEvent[];
  readonly receipts: readonly Receipt[];
}
const nothing: Happened = { events: [], receipts: [] };

function settleInSlices(state: State, now: number, limit: number): Happened {
  const events: KernelEvent[] = [];
  const receipts: Receipt[] = [];
  for (;;) {
    const slice = settle(state, now, limit);
    events.push(...slice.events);
    receipts.push(...slice.receipts);
    if (!slice.more) return { events, receipts };
  }
}

function timeAfter(state: State, now: number, { clock }: TaskMove): number {
  if (clock.type === "by") return now + clock.ms;
  const deadline = nextDeadline(state);
  return deadline - now < 100_000 ? Math.max(now, deadline + clock.ms) : now;
}

function sorted(records: readonly StoredRecord[]): readonly string[] {
  return records.map((record) => JSON.stringify(record)).sort();
}

/** In which order blockers are named is left open. */
function comparable(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (key, inner) => {
      if (key !== "blockers" || !Array.isArray(inner)) return inner;
      return inner.map((blocker: Blocker) => JSON.stringify(blocker)).sort();
    }),
  );
}
