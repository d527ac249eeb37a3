/** Puts a backup in place of the data (S6): a command for when no server runs. */
import { copyFileSync, existsSync, renameSync, rmSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { StoreFault } from "./faults.ts";
import { removeJournals } from "./journal-files.ts";
import { checkedVersion } from "./migrations.ts";
import { numberOf, textOf } from "./rows.ts";
import { makePlain } from "./sqlite-backup.ts";
import { type DataFiles, dataFiles, lockFolder, makeFolder, syncPath } from "./sqlite-files.ts";

export interface RestoreOptions {
  /** Wall-clock time, in ms. */
  readonly at: number;
  /** Replaces existing data. Data that a server works on is never replaced. */
  readonly force?: boolean;
}

export interface Restored {
  readonly restores: number;
  /** The time of the last commit in the backup. Everything later is lost. */
  readonly now: number;
}

/**
 * The copy is made beside the database under another name, checked, marked as restored and synced; then it is renamed.
 * Interrupted at any point, it leaves the old data, or a folder that no server opens until the restore is run again;
 * never half a database.
 */
export function restore(backupFile: string, folder: string, options: RestoreOptions): Restored {
  const files = dataFiles(folder);
  makeFolder(folder);
  using _lock = lockFolder(files);
  const isThere = existsSync(files.database);
  if (isThere && options.force !== true) {
    throw new StoreFault(`${files.database} exists already; it is replaced only by force`);
  }
  const copy = `${files.database}.copy`;
  const restored = markedCopy(backupFile, copy, isThere ? restoresOf(files) : 0, options.at);
  renameSync(copy, files.restoring);
  syncPath(folder);
  // From here on no server opens the folder. A log or journal left beside a new database would be applied to it.
  for (const file of withSidecars(files.database)) rmSync(file, { force: true });
  removeJournals(files);
  syncPath(folder);
  renameSync(files.restoring, files.database);
  syncPath(folder);
  return restored;
}

/**
 * How often the replaced data had been restored itself. If only the backup's count were used, two restores of one
 * backup could not be distinguished, and fences would repeat (L11). Damaged data cannot be read; then only the time of
 * the restore distinguishes them.
 */
function restoresOf({ database }: DataFiles): number {
  try {
    using db = new DatabaseSync(database, { timeout: 0 });
    checkedVersion(db);
    return numberOf(db.prepare("SELECT restores FROM meta").get(), "restores");
  } catch {
    return 0;
  }
}

function markedCopy(backupFile: string, copy: string, restoresBefore: number, at: number): Restored {
  const discard = (): void => {
    for (const file of withSidecars(copy)) rmSync(file, { force: true });
  };
  discard();
  try {
    copyFileSync(backupFile, copy);
    makePlain(copy);
    const restored = mark(copy, restoresBefore, at);
    syncPath(copy);
    return restored;
  } catch (error) {
    discard();
    if (error instanceof StoreFault) throw error;
    throw new StoreFault(`${backupFile} cannot be restored`, { cause: error });
  }
}

function mark(copy: string, restoresBefore: number, at: number): Restored {
  using db = new DatabaseSync(copy, { timeout: 0 });
  if (checkedVersion(db) === 0) throw new StoreFault("that file does not contain Leasehold data");
  const found = textOf(db.prepare("PRAGMA integrity_check(1)").get(), "integrity_check");
  if (found !== "ok") throw new StoreFault(`the backup is damaged: ${found}`);
  const row = db
    .prepare("UPDATE meta SET restores = max(restores, ?) + 1, restored_at = max(restored_at + 1, ?) RETURNING *")
    .get(restoresBefore, at);
  return { restores: numberOf(row, "restores"), now: numberOf(row, "now") };
}

function withSidecars(file: string): readonly string[] {
  return [file, `${file}-wal`, `${file}-shm`, `${file}-journal`];
}
