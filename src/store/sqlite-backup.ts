/** Copies of the whole database: taken while it runs, by a separate thread and connection (S6). */
import { renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { backup, DatabaseSync } from "node:sqlite";
import type { Handlers } from "./sqlite-calls.ts";
import { type DataFiles, syncPath } from "./sqlite-files.ts";

/** All pages in one step: a copy in several steps starts again whenever something was committed in between. */
const allPages = 2 ** 31 - 1;

export function createCopier(files: DataFiles): Handlers<"backup"> {
  return {
    backup: async (toFile) => {
      const partial = `${toFile}.partial`;
      rmSync(partial, { force: true });
      {
        using source = new DatabaseSync(files.database, { readOnly: true, timeout: 5_000 });
        await backup(source, partial, { rate: allPages });
      }
      makePlain(partial);
      syncPath(partial);
      renameSync(partial, toFile);
      syncPath(dirname(toFile));
    },
  };
}

/** One file without a log, so that it can be copied, and read on read-only media. */
export function makePlain(file: string): void {
  using db = new DatabaseSync(file);
  db.exec("PRAGMA journal_mode = DELETE");
}
