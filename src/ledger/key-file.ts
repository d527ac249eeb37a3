/** `ledger-key.pem` in the data folder: created at the first start, readable by its owner only. */
import {
  closeSync,
  existsSync,
  fstatSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { type LedgerKey, newKeyPem, readLedgerKey } from "./keys.ts";

export const keyFileName = "ledger-key.pem";
const othersMay = 0o077;

export class LedgerKeyUnusable extends Error {
  constructor(file: string, cause: unknown) {
    const why = cause instanceof Error ? cause.message : String(cause);
    super(`the ledger's key in ${file} cannot be used (${why}); restore the file, or move it away to get a new key`);
    this.name = "LedgerKeyUnusable";
    this.cause = cause;
  }
}

/**
 * The key of a data folder that this process has locked. A file that cannot be read is never replaced: heads signed with
 * another key would look like a forgery. To get a new key, move the old one away; what it signed can still be verified,
 * because its public half is stored with the data.
 */
export function openLedgerKey(folder: string): LedgerKey {
  const file = join(folder, keyFileName);
  try {
    if (!existsSync(file)) writeNew(file, newKeyPem());
    return readLedgerKey(readPrivate(file));
  } catch (cause) {
    throw new LedgerKeyUnusable(file, cause);
  }
}

/** The file that is judged is the one that is read: between the two its name may come to mean another. */
function readPrivate(file: string): string {
  const handle = openSync(file, "r");
  try {
    if ((fstatSync(handle).mode & othersMay) !== 0) throw new Error("others may read it; set its mode to 0600");
    return readFileSync(handle, "utf8");
  } finally {
    closeSync(handle);
  }
}

/** For commands that only read the data: null if there is no key. */
export function findLedgerKey(folder: string): LedgerKey | null {
  return existsSync(join(folder, keyFileName)) ? openLedgerKey(folder) : null;
}

/** Whole or not at all, and durable before anything is signed with it. */
function writeNew(file: string, pem: string): void {
  const partial = `${file}.new`;
  rmSync(partial, { force: true });
  writeFileSync(partial, pem, { flag: "wx", mode: 0o600, flush: true });
  renameSync(partial, file);
  const folder = openSync(dirname(file), "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}
