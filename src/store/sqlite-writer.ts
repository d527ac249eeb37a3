/** The only connection that writes. It has its own thread, so that an fsync never blocks the engine's loop. */
import { existsSync, mkdirSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { bulk, bulkInsert } from "./bulk.ts";
import { StoreFault, staleEpoch } from "./faults.ts";
import { checkedVersion, migrate } from "./migrations.ts";
import { endedLeaseRow, endedTaskRow, headRow, numberOf, receiptRow } from "./rows.ts";
import type { Handlers, Reply } from "./sqlite-calls.ts";
import { type DataFiles, lockFolder, syncPath } from "./sqlite-files.ts";
import { ledgerHeads } from "./sqlite-ledger.ts";
import { prepareLoad } from "./sqlite-load.ts";
import { preparePrune } from "./sqlite-prune.ts";

export const pageBytes = 4096;
/**
 * The log is copied into the database, and restarted, when it has this many pages. Measured: four times SQLite's
 * default takes about a tenth less of the thread's time, because pages that change often are copied once.
 */
const checkpointPages = 4_000;
/** A long read, a backup for instance, lets the log grow; afterwards it is truncated to this. */
const logBytesKept = 64 * 1024 * 1024;
/** Larger ones make the end of a commit slower: SQLite walks the whole cache after it has split a page. */
const cacheKiB = 8_192;
/** A person with a shell on the database may lock it for a moment. */
const busyTimeoutMs = 5_000;

type WriterCalls = "open" | "load" | "loadLists" | "ledgerHeads" | "commit" | "prune" | "close";

export function openWriter(files: DataFiles): Handlers<WriterCalls> {
  mkdirSync(files.folder, { recursive: true });
  const lock = lockFolder(files);
  let db: DatabaseSync | null = null;
  const close = (): void => {
    try {
      db?.close();
    } finally {
      lock.close();
    }
  };
  try {
    if (existsSync(files.restoring)) {
      throw new StoreFault(`a restore into ${files.folder} was interrupted: run it again (${files.restoring} exists)`);
    }
    const opened = openDatabase(files);
    db = opened;
    const meta = raiseEpoch(opened);
    return {
      open: () => meta,
      ...prepareLoad(opened),
      ledgerHeads: () => ledgerHeads(opened),
      commit: prepareCommit(opened, meta.epoch),
      prune: preparePrune(opened, meta.epoch),
      close,
    };
  } catch (error) {
    close();
    throw error;
  }
}

function openDatabase(files: DataFiles): DatabaseSync {
  const isNew = !existsSync(files.database);
  const db = new DatabaseSync(files.database, { timeout: busyTimeoutMs });
  try {
    checkedVersion(db);
    db.exec(`
      PRAGMA page_size = ${pageBytes};
      PRAGMA journal_mode = WAL;
      PRAGMA synchronous = FULL;
      PRAGMA temp_store = MEMORY;
      PRAGMA cache_size = -${cacheKiB};
      PRAGMA wal_autocheckpoint = ${checkpointPages};
      PRAGMA journal_size_limit = ${logBytesKept}`);
    settleLog(db);
    migrate(db);
    if (isNew) syncPath(files.folder);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/**
 * Copies all of the log into the database and syncs it. After a failed fsync the log may end with a batch that is in
 * the operating system's cache but not on disk; later commits would be lost with it at a power failure. What this
 * writes and syncs is on disk, or the open fails.
 */
function settleLog(db: DatabaseSync): void {
  const result = db.prepare("PRAGMA wal_checkpoint(RESTART)").get();
  if (numberOf(result, "log") !== numberOf(result, "checkpointed")) {
    throw new StoreFault("another program has an open transaction on the database; close it");
  }
}

function raiseEpoch(db: DatabaseSync): Reply<"open"> {
  const row = db.prepare("UPDATE meta SET epoch = epoch + 1 RETURNING *").get();
  return {
    epoch: numberOf(row, "epoch"),
    now: numberOf(row, "now"),
    lastSeq: numberOf(row, "last_seq"),
    lastN: numberOf(row, "last_n"),
    lastEnded: numberOf(row, "last_ended"),
    liveCount: numberOf(db.prepare("SELECT count(*) AS live_count FROM live").get(), "live_count"),
    restores: numberOf(row, "restores"),
    restoredAt: numberOf(row, "restored_at"),
  };
}

function prepareCommit(db: DatabaseSync, epoch: number): Handlers<"commit">["commit"] {
  const begin = db.prepare("BEGIN IMMEDIATE");
  const commit = db.prepare("COMMIT");
  const move = db.prepare("UPDATE meta SET now = ?, last_seq = ?, last_n = ?, last_ended = ? WHERE epoch = ?");
  const putSql = (rows: string): string =>
    `INSERT INTO live VALUES ${rows} ON CONFLICT (n) DO UPDATE SET kind = excluded.kind, body = excluded.body`;
  const put = bulk(db, 3, putSql);
  const remove = bulk(db, 1, (rows) => `DELETE FROM live WHERE n IN (${rows})`);
  const addEvents = db.prepare("INSERT INTO events VALUES (?, ?, ?, ?)");
  const addEnded = bulkInsert(db, "ended", ["key", "at", ...endedLeaseRow.columns]);
  const addTasks = bulkInsert(db, "ended_tasks", ["at", ...endedTaskRow.columns]);
  const addReceipts = bulkInsert(db, "receipts", receiptRow.columns);
  const addHeads = bulkInsert(db, "heads", headRow.columns);

  return ({ position, puts, removes, events, ended, endedTasks, receipts, heads }) => {
    begin.run();
    const { now, lastSeq, lastN, lastEnded } = position;
    if (move.run(now, lastSeq, lastN, lastEnded, epoch).changes !== 1) throw staleEpoch(epoch);
    put(puts);
    remove(removes);
    if (events !== null) addEvents.run(events.firstSeq, events.count, now, events.body);
    addEnded(ended);
    addTasks(endedTasks);
    addReceipts(receipts);
    addHeads(heads);
    commit.run();
  };
}
