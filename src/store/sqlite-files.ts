/** Where a data folder keeps its things, and how one process makes it its own. */
import { closeSync, fsyncSync, openSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { StoreFault, StoreLocked } from "./faults.ts";

export interface DataFiles {
  readonly folder: string;
  readonly database: string;
  readonly lock: string;
  /** There while a restore is under way; one that was cut short leaves it behind. */
  readonly restoring: string;
}

export function dataFiles(folder: string): DataFiles {
  const database = join(folder, "leasehold.sqlite");
  return { folder, database, lock: join(folder, "lock.sqlite"), restoring: `${database}.restoring` };
}

const sqliteBusy = 5;

/**
 * An open exclusive transaction on a file of its own: Node has no flock, and the operating system drops the locks of
 * SQLite with the process, kill -9 included. Nothing is ever written into the file. No code of this process may open
 * it, or the database, in another way: closing such a handle would drop the locks (POSIX).
 */
export function lockFolder({ folder, lock }: DataFiles): DatabaseSync {
  const db = new DatabaseSync(lock, { timeout: 0 });
  try {
    db.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
    return db;
  } catch (error) {
    db.close();
    if (!isBusy(error)) throw new StoreFault(`${folder} cannot be locked`, { cause: error });
    throw new StoreLocked(`another server works on ${folder}; there can be one only ('fuser ${lock}' names it)`, error);
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && "errcode" in error && Number(error.errcode) % 256 === sqliteBusy;
}

/** Makes what was written to a file, or a change of names in a folder, last through a loss of power. */
export function syncPath(path: string): void {
  const handle = openSync(path, "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
