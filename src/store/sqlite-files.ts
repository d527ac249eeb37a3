/** The files of a data folder, and its lock. */
import { closeSync, fsyncSync, openSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { StoreFault } from "./faults.ts";

export interface DataFiles {
  readonly folder: string;
  readonly database: string;
  readonly lock: string;
  /** Exists during a restore; an interrupted restore leaves it behind. */
  readonly restoring: string;
}

export function dataFiles(folder: string): DataFiles {
  const database = join(folder, "leasehold.sqlite");
  return { folder, database, lock: join(folder, "lock.sqlite"), restoring: `${database}.restoring` };
}

const sqliteBusy = 5;

/**
 * An open exclusive transaction on a separate file: Node has no flock, and the operating system drops SQLite's locks
 * with the process, even after kill -9. Nothing is ever written into the file. No code of this process may open it, or
 * the database, in another way: closing such a handle would drop the locks (POSIX).
 */
export function lockFolder({ folder, lock }: DataFiles): DatabaseSync {
  const db = new DatabaseSync(lock, { timeout: 0 });
  try {
    db.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
    return db;
  } catch (error) {
    db.close();
    if (!isBusy(error)) throw new StoreFault(`${folder} cannot be locked`, { cause: error });
    const message = `another server works on ${folder}; there can be one only ('fuser ${lock}' names it)`;
    throw new StoreFault(message, { code: "store_locked", cause: error });
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && "errcode" in error && Number(error.errcode) % 256 === sqliteBusy;
}

/** Makes writes to a file, or renames in a folder, survive a power failure. */
export function syncPath(path: string): void {
  const handle = openSync(path, "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
