/** Faults in the journal of commits and in how it is folded (S1, S2, S6). */
import type { Mutant } from "./planted.ts";

const tests = ["src/store/journal.test.ts"];

export const journalMutants: readonly Mutant[] = [
  {
    name: "journal: a torn block is taken for a whole one",
    file: "../store/journal-block.ts",
    find: "if (crc32(bytes.subarray(offset + 8, end)) !== bytes.readUInt32LE(offset + 4)) return null;",
    replace: "void crc32;",
    tests,
  },
  {
    name: "journal: text of a client passes for a block",
    file: "../store/journal-block.ts",
    find: "if (mark.compare(bytes, offset + 24, offset + headerBytes) !== 0) return null;",
    replace: "void mark;",
    tests,
  },
  {
    name: "journal: what follows a damaged block is dropped without a word",
    file: "../store/journal-files.ts",
    find: "if (greatest > last || blocks.some(",
    replace: "if (blocks.some(",
    tests,
  },
  {
    name: "journal: a file is used again before it is folded",
    file: "../store/journal.ts",
    find: "if (this.#needsFold(other)) return this.#retryFolded(append);",
    replace: "void this.#needsFold;\n        void this.#retryFolded;",
    tests,
  },
  {
    name: "journal: a deposed writer acknowledges what nobody reads",
    file: "../store/journal.ts",
    find: "      this.#checkSeal();\n      this.#note(bytes);",
    replace: "      this.#note(bytes);",
    tests,
  },
  {
    name: "journal: the fold forgets that a row was removed",
    file: "../store/sqlite-fold.ts",
    find: "if (n <= lastN) removes.add(n);",
    replace: "if (n > lastN) removes.add(n);",
    tests,
  },
  {
    name: "journal: a row that is written again after its end is deleted",
    file: "../store/sqlite-fold.ts",
    find: "      removes.delete(n);\n",
    replace: "",
    tests,
  },
  {
    name: "journal: a restore leaves the journal of the replaced data",
    file: "../store/restore.ts",
    find: "  removeJournals(files);\n",
    replace: "  void removeJournals;\n",
    tests,
  },
];
