import { test } from "node:test";
import fc from "fast-check";
import { playInLockstep } from "../../sim/lockstep.ts";
import { anyBoard, anyMove } from "../../sim/move-arbitraries.ts";

/** The same games every time; other and more ones for a hunt: ORACLE_SEED=7 ORACLE_RUNS=100000 npm test src/kernel/oracle */
const { ORACLE_RUNS = "1500", ORACLE_SEED = "1" } = process.env;
const howMany = { numRuns: Number(ORACLE_RUNS), seed: Number(ORACLE_SEED) };

test("kernel and naive oracle agree on every verdict and on all that lives, step by step (L3–L15, C1–C7, W1–W12, A1–A5)", () => {
  fc.assert(
    fc.property(anyBoard, fc.array(anyMove, { minLength: 1, maxLength: 80, size: "max" }), (board, moves) => {
      playInLockstep(board, moves);
    }),
    howMany,
  );
});
