/** The files of a data folder, and its lock. */
import { closeSync, fsyncSync, mkdirSync, openSync, statfsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { StoreFault } from "./faults.ts";

export interface DataFiles {
  readonly folder: string;
  readonly database: string;
  readonly lock: string;
  /** Exists during a restore; an interrupted restore leaves it behind. */
  readonly restoring: string;
  /** Exists where the data was moved to PostgreSQL, or is about to be. */
  readonly moved: string;
}

export function dataFiles(folder: string): DataFiles {
  const database = join(folder, "leasehold.sqlite");
  return {
    folder,
    database,
    lock: join(folder, "lock.sqlite"),
    restoring: `${database}.restoring`,
    moved: `${database}.moved`,
  };
}

/**
 * The data folder with all above it that is missing. One by one, because Node's own way never ends where nothing can be
 * made, as in /proc.
 */
export function makeFolder(folder: string): void {
  const missing: string[] = [];
  for (let path = folder; ; path = dirname(path)) {
    const about = statSync(path, { throwIfNoEntry: false });
    if (about !== undefined) {
      if (!about.isDirectory()) throw new StoreFault(`${path} is not a folder; name another place with --data`);
      break;
    }
    missing.push(path);
  }
  for (const path of missing.reverse()) {
    try {
      mkdirSync(path);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "EEXIST") continue;
      const why = whyNotMade[code ?? ""] ?? (error as Error).message;
      throw new StoreFault(`the data folder ${folder} cannot be made: ${why}; name another place with --data`);
    }
  }
}

const whyNotMade: Readonly<Record<string, string>> = {
  EACCES: "this user may not write there",
  EPERM: "this user may not write there",
  EROFS: "that file system is read only",
  ENOENT: "there can be no folders there",
  ENOSPC: "the disk is full",
  ENAMETOOLONG: "the name is too long",
};

const sqliteFull = 13;

/** A full disk at an open, with what is needed: the log is copied into the database. Null: another fault. */
export function whyNoRoom({ database, folder }: DataFiles, error: unknown): StoreFault | null {
  if (!(error instanceof Error && "errcode" in error && Number(error.errcode) % 256 === sqliteFull)) return null;
  const log = statSync(`${database}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  const { bavail, bsize } = statfsSync(folder);
  const needed = Math.ceil((log + roomBytesMin) / 2 ** 20);
  const free = Math.floor((bavail * bsize) / 2 ** 20);
  return new StoreFault(`the disk is full: opening ${folder} needs ${needed} MB free, and ${free} MB are`);
}

/** For the tables of a new database, and a first commit. */
const roomBytesMin = 2 ** 20;

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
