/**
 * How fast-check draws boards and moves: often those that lead to waits and ends, sometimes those that only test a
 * refusal.
 */
import fc from "fast-check";
import type { Board, ClockMove, Move, Verb } from "./moves.ts";

/** Moves that stop everybody (suspend, pause, fence) are rare; those that undo them are more frequent. */
const weights: Readonly<Record<Verb, number>> = {
  acquire: 180,
  heartbeat: 24,
  heartbeat_all: 12,
  release_lease: 40,
  release_all: 10,
  renew_lease: 8,
  transfer_lease: 30,
  downgrade_lease: 14,
  cancel_request: 12,
  collect_request: 12,
  verify_all: 14,
  restart_agent: 14,
  register_agent: 10,
  transition_agent: 24,
  save_digest: 4,
  resume_agent: 4,
  revoke: 10,
  pause_agent: 1,
  unpause_agent: 4,
  fence_resource: 2,
  reset_resource: 8,
  withdraw_resource: 1,
  declare_resource: 12,
  suspend_tenant: 1,
  resume_tenant: 4,
  set_tenant_settings: 4,
  report_binding: 0,
  cell_speaks: 0,
};

const clock: fc.Arbitrary<ClockMove> = fc.oneof(
  { weight: 100, arbitrary: fc.constant({ type: "by" as const, ms: 0 }) },
  { weight: 50, arbitrary: fc.integer({ min: 1, max: 900 }).map((ms) => ({ type: "by" as const, ms })) },
  { weight: 12, arbitrary: fc.integer({ min: 1_000, max: 20_000 }).map((ms) => ({ type: "by" as const, ms })) },
  { weight: 40, arbitrary: fc.integer({ min: -1, max: 1 }).map((off) => ({ type: "deadline" as const, off })) },
  { weight: 3, arbitrary: fc.constantFrom(700_000, 700_000, 604_800_000).map((ms) => ({ type: "by" as const, ms })) },
);

const intent = fc.record({
  name: fc.nat({ max: 4 }),
  predicate: fc.nat({ max: 5 }),
  units: fc.integer({ min: 1, max: 3 }),
  to: fc.nat({ max: 4 }),
});

export const anyMove = movesOf(weights);
export const anyMoveOrReport = movesOf({ ...weights, report_binding: 70, cell_speaks: 60 });

function movesOf(weightOf: Readonly<Record<Verb, number>>): fc.Arbitrary<Move> {
  const verbs = Object.entries(weightOf).map(([verb, weight]) => ({ weight, arbitrary: fc.constant(verb as Verb) }));
  return fc.record({
    verb: fc.oneof(...verbs),
    agent: fc.nat({ max: 5 }),
    other: fc.nat({ max: 5 }),
    nth: fc.nat({ max: 11 }),
    intents: fc.array(intent, { minLength: 1, maxLength: 3 }),
    ttl: fc.nat({ max: 7 }),
    wait: fc.nat({ max: 5 }),
    standby: fc.nat({ max: 6 }),
    idle: fc.nat({ max: 4 }),
    key: fc.nat({ max: 5 }),
    who: fc.nat({ max: 20 }),
    flag: fc.boolean(),
    clock,
  });
}

const names = [
  "FILE:/a",
  "FILE:/a/b",
  "FILE:/b",
  "FILE:/a/**",
  "FILE:/*",
  "FILE:/**",
  "FILE:/**/b",
  "FILE:/?/b",
  "GPU:/x",
  "GPU:/*",
];

export const anyBoard: fc.Arbitrary<Board> = fc
  .record({
    agents: fc.integer({ min: 3, max: 6 }),
    names: fc.shuffledSubarray(names, { minLength: 2, maxLength: 5 }),
    capacity: fc.integer({ min: 1, max: 4 }),
    refillMs: fc.constantFrom(null, 100, 700, 5_000),
    strategy: fc.constantFrom("wait_die" as const, "wound_wait" as const),
  })
  .map(({ agents, names, capacity, refillMs, strategy }) => ({
    agents: Array.from({ length: agents }, (_, index) => `agent-${index}`),
    names,
    capacities: names.includes("GPU:/x") ? { "GPU:/x": capacity } : {},
    refillMs,
    strategy,
    bound: [],
    choice: false,
  }));

/** The same with cells and `pick`: some names are bound, and a pattern over them may pick any one. */
export const anyBoardWithCells: fc.Arbitrary<Board> = fc
  .tuple(anyBoard, fc.subarray(["FILE:/a", "FILE:/b", "GPU:/x"]), fc.boolean())
  .map(([board, bound, choice]) => ({ ...board, choice, bound: bound.filter((name) => board.names.includes(name)) }));
