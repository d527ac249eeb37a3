/**
 * The ledger of a data folder, for checks and exports: read only, with or without a server running on it. It is read in
 * portions, and no transaction stays open between them, so that a check of an hour blocks nothing. Only what existed at
 * the beginning is read; receipts are never changed, so portions fit together.
 */
import { existsSync } from "node:fs";
import { DatabaseSync, type SQLOutputValue } from "node:sqlite";
import { StoreFault } from "./faults.ts";
import { lastCommitIn } from "./journal-files.ts";
import { checkedVersion } from "./migrations.ts";
import { headRow, numberOf, type Row, receiptRow, textOf } from "./rows.ts";
import { type DataFiles, dataFiles } from "./sqlite-files.ts";
import { openWriter } from "./sqlite-writer.ts";
import type { SignedHead, StoredReceipt } from "./store.ts";

export interface LedgerFile {
  /** All receipts of all tenants in table order. No index is used, so that none can hide anything. */
  readonly receipts: () => Generator<StoredReceipt>;
  /** By tenant, smallest sequence first. */
  readonly heads: ReadonlyMap<string, Iterable<SignedHead>>;
  /** Every key that has ever signed heads. */
  readonly keys: readonly { readonly keyId: string; readonly publicKey: string }[];
  readonly close: () => void;
}

const bytesPerPortion = 4 * 1024 * 1024;
const rowsPerPortionMax = 4_096;
const headsPerPortion = 1_000;
/** Keys are 64-bit numbers, and a forged row may be below zero. */
const beforeAllKeys = -(2n ** 63n);
/** The schema version that added the ledger. */
const ledgerVersion = 2;

export function openLedgerFile(folder: string): LedgerFile {
  const files = dataFiles(folder);
  const { database, restoring } = files;
  if (!existsSync(database)) throw new StoreFault(`there is no data in ${folder}`);
  if (existsSync(restoring)) throw new StoreFault(`a restore into ${folder} was interrupted: run it again first`);
  untilFolded(files);
  const db = new DatabaseSync(database, { readOnly: true, timeout: 5_000 });
  try {
    if (checkedVersion(db) < ledgerVersion) throw new StoreFault(`${folder} has no ledger yet: start the server once`);
    // Heads before receipts: the receipts of a head were committed with it or before it.
    const lastHead = lastKey(db, "heads");
    const lastReceipt = lastKey(db, "receipts");
    const keys = db
      .prepare("SELECT key_id, public_key FROM ledger_keys ORDER BY n")
      .all()
      .map((row) => ({ keyId: textOf(row, "key_id"), publicKey: textOf(row, "public_key") }));
    return {
      keys,
      heads: headsOf(db, lastHead),
      receipts: () => receiptsIn(db, lastReceipt),
      close: () => db.close(),
    };
  } catch (error) {
    db.close();
    throw error;
  }
}

/**
 * What is in the journal at the beginning is to be seen too. A server folds it within moments; where one was killed,
 * it is done here as its next start would.
 */
function untilFolded(files: DataFiles): void {
  const last = lastCommitIn(files);
  if (last === 0) return;
  for (const began = performance.now(); last > foldedIn(files) && performance.now() - began < foldMsMax; ) {
    if (foldLeftBehind(files)) return;
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, foldPollMs);
  }
}

const foldMsMax = 5_000;
const foldPollMs = 20;

function foldedIn({ database }: DataFiles): number {
  using db = new DatabaseSync(database, { readOnly: true, timeout: 5_000 });
  return numberOf(db.prepare("SELECT folded FROM meta").get(), "folded");
}

/** False: a server works on it. */
function foldLeftBehind(files: DataFiles): boolean {
  try {
    const writer = openWriter(files);
    void writer.dropJournal();
    void writer.close();
    return true;
  } catch (error) {
    if (error instanceof StoreFault && error.code === "store_locked") return false;
    throw error;
  }
}

function lastKey(db: DatabaseSync, table: "heads" | "receipts"): number {
  return numberOf(db.prepare(`SELECT coalesce(max(key), 0) AS value FROM ${table}`).get(), "value");
}

function* receiptsIn(db: DatabaseSync, last: number): Generator<StoredReceipt> {
  const portion = db.prepare(
    `SELECT key, ${receiptRow.columns.join()} FROM receipts WHERE key > ? AND key <= ? ORDER BY key LIMIT ?`,
  );
  portion.setReturnArrays(true);
  let after: number | bigint = beforeAllKeys;
  let limit = 64;
  for (;;) {
    // With setReturnArrays a row is a list, which Node's types do not express.
    const rows = portion.all(after, last, limit) as unknown as SQLOutputValue[][];
    let bytes = 0;
    for (const row of rows) {
      const receipt = receiptFrom(row);
      bytes += receipt.body.length;
      yield receipt;
    }
    const end = rows.at(-1)?.[0];
    if (typeof end !== "number") return;
    after = end;
    // Bodies may be a few hundred bytes or a few hundred kilobytes.
    limit = Math.min(Math.max(Math.floor((rows.length * bytesPerPortion) / Math.max(bytes, 1)), 1), rowsPerPortionMax);
  }
}

/** Unchecked: the check judges the values, so a missing one is not a fault here. */
function receiptFrom([, ...row]: readonly SQLOutputValue[]): StoredReceipt {
  return {
    tenant: String(row[0] ?? ""),
    sequence: Number(row[1] ?? 0),
    id: String(row[2] ?? ""),
    taskId: String(row[3] ?? ""),
    phase: String(row[4] ?? ""),
    recipientAi: String(row[5] ?? ""),
    sourceSystem: String(row[6] ?? ""),
    dedupe: row[7] === null || row[7] === undefined ? null : String(row[7]),
    storedAt: Number(row[8] ?? 0),
    hash: String(row[9] ?? ""),
    body: String(row[10] ?? ""),
  };
}

function headsOf(db: DatabaseSync, last: number): ReadonlyMap<string, Iterable<SignedHead>> {
  const tenants = db.prepare("SELECT DISTINCT tenant FROM heads WHERE tenant IS NOT NULL AND key <= ?").all(last);
  const portion = db.prepare(`
    SELECT * FROM heads WHERE tenant = ?1 AND (sequence, key) > (?2, ?3) AND key <= ?4
    ORDER BY sequence, key LIMIT ?5`);
  const headsOfTenant = function* (tenant: string): Generator<SignedHead> {
    let sequence = Number.MIN_SAFE_INTEGER;
    let key: number | bigint = beforeAllKeys;
    for (;;) {
      const rows: readonly Row[] = portion.all(tenant, sequence, key, last, headsPerPortion);
      for (const row of rows) {
        const head = headRow.read(row);
        sequence = head.sequence;
        key = numberOf(row, "key");
        yield head;
      }
      if (rows.length < headsPerPortion) return;
    }
  };
  return new Map(
    tenants.map((row) => {
      const tenant = textOf(row, "tenant");
      return [tenant, { [Symbol.iterator]: () => headsOfTenant(tenant) }];
    }),
  );
}
