import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { recordsOf } from "../../sim/lockstep-views.ts";
import { anyBoardWithCells, anyMoveOrReport } from "../../sim/move-arbitraries.ts";
import { type Board, commandFor, type Move, opening, type Targets } from "../../sim/moves.ts";
import type { Command } from "./contract/commands.ts";
import type { KernelEvent } from "./contract/events.ts";
import { limits } from "./contract/limits.ts";
import type { Lease, StoredRecord } from "./contract/records.ts";
import type { Blocker, Reply } from "./contract/replies.ts";
import { apply, createState, nextDeadline, restore, type State, type Step, settle, snapshot } from "./kernel.ts";
import { TestHistory } from "./testing/test-history.ts";

/** The same games every time; other and more ones for a hunt: RESTORE_SEED=7 RESTORE_RUNS=100000 npm test src/kernel/restore */
const { RESTORE_RUNS = "2000", RESTORE_SEED = "1" } = process.env;
const howMany = { numRuns: Number(RESTORE_RUNS), seed: Number(RESTORE_SEED) };
const beginning = 1_700_000_000_000;

/** Before some moves the second kernel is dropped and restored from its records, through the store or not, in any order. */
const anyGame = fc.array(
  fc.record({ move: anyMoveOrReport, restart: fc.constantFrom("no", "no", "no", "no", "memory", "json", "backwards") }),
  {
    minLength: 1,
    maxLength: 80,
    size: "max",
  },
);

test("a kernel restored from its records alone goes on exactly like the one that never stopped (DESIGN: restore)", () => {
  fc.assert(
    fc.property(anyBoardWithCells, anyGame, (board, game) => {
      const original = createState();
      let other = createState();
      const ended: Lease[] = [];
      const history = new TestHistory();
      let now = beginning;
      for (const command of opening(board)) {
        apply(original, command, now);
        apply(other, command, now);
      }
      for (const [index, { move, restart }] of game.entries()) {
        if (restart !== "no") {
          const records = snapshot(other);
          const leases = restart === "backwards" ? ended.toReversed() : ended;
          if (restart === "backwards") other = restore(records.toReversed(), { leases, from: 0 });
          else other = restore(restart === "json" ? JSON.parse(JSON.stringify(records)) : records, { leases, from: 0 });
          assert.deepEqual(sorted(snapshot(other)), sorted(records), "restore and snapshot are inverses");
        }
        now = timeAfter(original, now, move);
        // Settled in slices here and at once there: that must make no difference either.
        const earlier = move.flag ? settleInSlices(other, now, 1 + (move.nth % 3)) : [];
        const command = commandFor(move, board, knownTo(original, board), [index, index * 7_919]);
        const kept = decide(original, command, now, history);
        const restored = decide(other, command, now, history);
        history.take(kept.changes, now);
        for (const { kind, alive, record } of kept.changes) if (kind === "lease" && !alive) ended.push(record as Lease);
        assert.deepEqual(comparable(restored.reply), comparable(kept.reply));
        assert.deepEqual(comparable([...earlier, ...restored.events]), comparable(kept.events));
        assert.deepEqual(sorted(snapshot(other)), sorted(snapshot(original)));
      }
    }),
    howMany,
  );
});

/** With the store's answer for a key that memory does not know: a restored kernel asks for every one (W10). */
function decide(state: State, command: Command, now: number, history: TestHistory): Outcome {
  const first = apply(state, command, now);
  if (first.reply.type !== "request_key_unknown") return first;
  const known = history.complete(command, first.reply, now);
  if (known !== null) return { ...first, reply: known };
  const second = apply(state, { ...command, keyLookedUp: true } as Command, now);
  return {
    reply: second.reply,
    events: [...first.events, ...second.events],
    changes: [...first.changes, ...second.changes],
  };
}
type Outcome = Pick<Step, "events" | "changes"> & { readonly reply: Reply };

test("a lease that is stored twice is not restored twice", () => {
  const records = snapshot(stateWithLeases());
  const lease = records.filter(({ kind }) => kind === "lease");
  assert.throws(() => restore([...records, ...lease]), /stored twice/);
});

function stateWithLeases(): State {
  const state = createState();
  const asked = { tenant: "t", actor: { role: "operator", agentId: null, epoch: null }, entropy: [1, 2] } as const;
  apply(state, { ...asked, type: "create_tenant", tenantId: "t" }, beginning);
  apply(state, { ...asked, type: "register_agent", agentId: "a", labels: null }, beginning);
  const intents = [{ predicate: "MUTATES", resource: "FILE:/x" }];
  const terms = { ttlMs: 1_000, waitTimeoutMs: 0, standbyMs: 0, idleTimeoutMs: null, purpose: null, requestKey: null };
  apply(state, { ...asked, ...terms, type: "acquire", agentId: "a", intents, tokens: false, dryRun: false }, beginning);
  return state;
}

function settleInSlices(state: State, now: number, limit: number): KernelEvent[] {
  const events: KernelEvent[] = [];
  for (;;) {
    const slice = settle(state, now, limit);
    events.push(...slice.events);
    if (!slice.more) return events;
  }
}

function timeAfter(state: State, now: number, { clock }: Move): number {
  if (clock.type === "by") return now + clock.ms;
  const deadline = nextDeadline(state);
  return deadline - now < 900_000 ? Math.max(now, deadline + clock.off) : now;
}

function knownTo(state: State, board: Board): Targets {
  const { lease, request, agent } = recordsOf(state);
  const epochs = new Map(agent.map((one) => [one.id, one.epoch]));
  const late = request.flatMap((one) => one.ended).slice(-2);
  return {
    leases: [...byId(lease), ...late],
    requests: byId(request),
    epochOf: (agentId) => (board.agents.includes(agentId) ? (epochs.get(agentId) ?? 1) : 1),
  };
}

function byId<T extends { readonly id: string }>(records: readonly T[]): T[] {
  return [...records].sort((a, b) => (a.id < b.id ? -1 : 1));
}

function sorted(records: readonly StoredRecord[]): readonly string[] {
  return records.map((record) => JSON.stringify(record)).sort();
}

/** Which of more than sixteen blockers are named, and in which order, is left open. */
function comparable(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (key, inner) => {
      if (key !== "blockers" || !Array.isArray(inner)) return inner;
      if (inner.length >= limits.blockersListedMax) return inner.length;
      return inner.map((blocker: Blocker) => JSON.stringify(blocker)).sort();
    }),
  );
}
