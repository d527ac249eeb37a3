/** Faults in how commits on PostgreSQL are folded into the tables (S1). */
import type { Mutant } from "./planted.ts";

const tests = ["test/postgres/fold.test.ts"];

export const postgresMutants: readonly Mutant[] = [
  {
    name: "postgres: a new leader loads without what was not folded",
    file: "../store/postgres.ts",
    find: "await this.folder.recover();",
    replace: "",
    tests,
  },
  {
    name: "postgres: what is folded in part is folded again",
    file: "../store/postgres-fold.ts",
    find: "HAVING count(*) = ${entries.length}",
    replace: "HAVING count(*) > 0",
    tests,
  },
  {
    name: "postgres: a deposed leader folds",
    file: "../store/postgres-fold.ts",
    find: "AND epoch = ${Number(epoch)}",
    replace: "AND epoch > 0 * ${Number(epoch)}",
    tests,
  },
  {
    name: "postgres: what began and ended within a fold is a live row",
    file: "../store/postgres-fold.ts",
    find: "puts.delete(n);",
    replace: "",
    tests,
  },
  {
    name: "postgres: queries do not wait for the fold",
    file: "../store/postgres-history.ts",
    find: "await this.folder?.folded();",
    replace: "",
    tests,
  },
  {
    name: "postgres: all ended leases of a fold get the keys of its first commit",
    file: "../store/postgres-fold.ts",
    find: "entry[last] + 1 + index",
    replace: "(entries[0]?.[last] ?? 0) + 1 + index",
    tests,
  },
];
