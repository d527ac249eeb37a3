/** Faults in what follows where history may have been lost (L11, S6), and in the journal that keeps it. */
import type { Mutant } from "./planted.ts";
import { journalMutants } from "./planted-journal.ts";
import { momentMutants } from "./planted-moments.ts";
import { postgresMutants } from "./planted-postgres.ts";

export const historyMutants: readonly Mutant[] = [
  ...journalMutants,
  ...momentMutants,
  ...postgresMutants,
  {
    name: "a restore jumps by a fixed number, whatever the wall clock says",
    file: "lost-history.ts",
    find: "if (byWall > known && byWall <= limits.lossNumberMax) return byWall;",
    replace: "if (byWall > 2 ** 53) return byWall;",
  },
  {
    name: "a wall clock that is behind gives known numbers again",
    file: "lost-history.ts",
    find: "if (byWall > known && byWall <= limits.lossNumberMax)",
    replace: "if (byWall > 0 && byWall <= limits.lossNumberMax)",
  },
  {
    name: "several known losses jump as one",
    file: "lost-history.ts",
    find: "return known + losses * limits.lossJump;",
    replace: "return known + Math.min(losses, 1) * limits.lossJump;",
  },
  {
    name: "the leases of agents keep their fences after a restore",
    file: "lost-history.ts",
    find: "for (const agent of tenant.agents.values()) reissueLeases(turn, agent);",
    replace: "",
  },
  {
    name: "a task does not know the fence that its lease got with a restore",
    file: "lost-history.ts",
    find: "if (reissueLeases(turn, task) > 0) noteReissued(turn, task);",
    replace: "reissueLeases(turn, task);",
  },
  {
    name: "a stored event of a lease loses its reason",
    file: "../engine/codec/event-text.ts",
    find: "reason: list[2], lease: leaseFrom(list[3])",
    replace: "reason: null, lease: leaseFrom(list[3])",
  },
];
