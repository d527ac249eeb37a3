/** `ledger-key.pem` in the data folder: made at the first start, for its owner alone, and read at every other. */
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";
import { type LedgerKey, newKeyPem, readLedgerKey } from "./keys.ts";

export const keyFileName = "ledger-key.pem";

export class LedgerKeyUnusable extends Error {
  constructor(file: string, cause: unknown) {
    const why = cause instanceof Error ? cause.message : String(cause);
    super(`the key of the ledger in ${file} cannot be used (${why}); put it back, or move it away to begin a new one`);
    this.name = "LedgerKeyUnusable";
    this.cause = cause;
  }
}

/**
 * The key of a data folder that is ours. A file that cannot be read is never replaced: heads signed with another key
 * would look like a forgery. Whoever wants a new key moves the old one away; what it signed stays checkable, because
 * its public half is kept with the data.
 */
export function openLedgerKey(folder: string): LedgerKey {
  const file = join(folder, keyFileName);
  try {
    if (!existsSync(file)) writeNew(file, newKeyPem());
    return readLedgerKey(readFileSync(file, "utf8"));
  } catch (cause) {
    throw new LedgerKeyUnusable(file, cause);
  }
}

/** For a reader of the data: null where there is no key. */
export function findLedgerKey(folder: string): LedgerKey | null {
  return existsSync(join(folder, keyFileName)) ? openLedgerKey(folder) : null;
}

/** Whole or not at all, and lasting before anything is signed with it. */
function writeNew(file: string, pem: string): void {
  const partial = `${file}.new`;
  rmSync(partial, { force: true });
  synced(partial, "wx", (handle) => writeSync(handle, pem));
  renameSync(partial, file);
  synced(dirname(file), "r", () => undefined);
}

function synced(path: string, flags: string, work: (handle: number) => void): void {
  const handle = openSync(path, flags, 0o600);
  try {
    work(handle);
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
