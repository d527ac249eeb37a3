/** How fast-check draws boards and moves: what leads to waits and ends often, what only guards a door now and then. */
import fc from "fast-check";
import type { Board, ClockMove, Move, Verb } from "./moves.ts";

const weights: Readonly<Record<Verb, number>> = {
  acquire: 60,
  heartbeat: 8,
  heartbeat_all: 4,
  release_lease: 12,
  release_all: 4,
  renew_lease: 3,
  transfer_lease: 8,
  downgrade_lease: 5,
  cancel_request: 5,
  collect_request: 5,
  verify_all: 4,
  restart_agent: 4,
  register_agent: 3,
  transition_agent: 10,
  save_digest: 2,
  resume_agent: 2,
  drop_digest: 1,
  revoke: 4,
  pause_agent: 1,
  unpause_agent: 2,
  fence_resource: 1,
  reset_resource: 3,
  withdraw_resource: 1,
  declare_resource: 4,
  suspend_tenant: 1,
  resume_tenant: 2,
  set_tenant_settings: 2,
};

const clock: fc.Arbitrary<ClockMove> = fc.oneof(
  { weight: 10, arbitrary: fc.constant({ type: "by" as const, ms: 0 }) },
  { weight: 6, arbitrary: fc.integer({ min: 1, max: 900 }).map((ms) => ({ type: "by" as const, ms })) },
  { weight: 2, arbitrary: fc.integer({ min: 1_000, max: 40_000 }).map((ms) => ({ type: "by" as const, ms })) },
  { weight: 5, arbitrary: fc.integer({ min: -1, max: 1 }).map((off) => ({ type: "deadline" as const, off })) },
  { weight: 1, arbitrary: fc.constantFrom(700_000, 604_800_000).map((ms) => ({ type: "by" as const, ms })) },
);

const intent = fc.record({
  name: fc.nat({ max: 4 }),
  predicate: fc.nat({ max: 5 }),
  units: fc.integer({ min: 1, max: 3 }),
  to: fc.nat({ max: 4 }),
});

export const anyMove: fc.Arbitrary<Move> = fc.record({
  verb: fc.oneof(
    ...Object.entries(weights).map(([verb, weight]) => ({ weight, arbitrary: fc.constant(verb as Verb) })),
  ),
  agent: fc.nat({ max: 5 }),
  other: fc.nat({ max: 5 }),
  nth: fc.nat({ max: 11 }),
  intents: fc.array(intent, { minLength: 1, maxLength: 3 }),
  ttl: fc.nat({ max: 7 }),
  wait: fc.nat({ max: 5 }),
  idle: fc.nat({ max: 4 }),
  key: fc.nat({ max: 5 }),
  who: fc.nat({ max: 20 }),
  flag: fc.boolean(),
  clock,
});

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
    strategy: fc.constantFrom("wait_die" as const, "wound_wait" as const),
  })
  .map(({ agents, names, capacity, strategy }) => ({
    agents: Array.from({ length: agents }, (_, index) => `agent-${index}`),
    names,
    capacities: names.includes("GPU:/x") ? { "GPU:/x": capacity } : {},
    strategy,
  }));
