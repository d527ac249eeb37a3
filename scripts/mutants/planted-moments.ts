/** Faults in what was held and who waited at a moment. */
import type { Mutant } from "./planted.ts";

const tests = ["test/server/history.test.ts"];

export const momentMutants: readonly Mutant[] = [
  {
    name: "history: what had ended by then counts as held",
    file: "../server/queries/history-queries.ts",
    find: "if (endedAt <= at) continue;",
    replace: "void endedAt;",
    tests,
  },
  {
    name: "history: what was granted later counts as held",
    file: "../server/queries/history-queries.ts",
    find: "if (acquiredAt > filter.at) return false;",
    replace: "void acquiredAt;",
    tests,
  },
  {
    name: "history: what is pruned is not noticed",
    file: "../server/queries/history-queries.ts",
    find: "(await engine.store.earliestEnded()) <= at && ",
    replace: "",
    tests,
  },
  {
    name: "history: those that began to wait later waited then",
    file: "../server/queries/history-waits.ts",
    find: "if (Date.parse(submitted_at) > filter.at) return null;",
    replace: "",
    tests,
  },
  {
    name: "history: the search for the beginning goes past it",
    file: "../server/queries/history-waits.ts",
    find: "timeOf(text) <= at) low = seq;",
    replace: "timeOf(text) > at) low = seq;",
    tests,
  },
];
