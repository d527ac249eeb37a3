/** The only connection that writes. It has its own thread, so that an fsync never blocks the engine's loop. */
import { existsSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { StoreFault, staleEpoch } from "./faults.ts";
import { type JournalPair, makeJournals, readJournals, removeJournals, sealJournals } from "./journal-files.ts";
import { type PackedColumns, pack, toColumns } from "./list-columns.ts";
import { checkedVersion, migrate } from "./migrations.ts";
import { movedWords } from "./move-mark.ts";
import { numberOf } from "./rows.ts";
import type { Handlers, Reply, RowColumns, TenantCut } from "./sqlite-calls.ts";
import { type DataFiles, lockFolder, makeFolder, syncPath, whyNoRoom } from "./sqlite-files.ts";
import { type Fold, prepareFold, preparePayloadRemoval, readExtents } from "./sqlite-fold.ts";
import { ledgerHeads } from "./sqlite-ledger.ts";
import { prepareCompaction } from "./sqlite-retention.ts";

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
const rewrittenBytesMax = 128 * 1024 * 1024;
/** A person with a shell on the database may lock it for a moment. */
const busyTimeoutMs = 5_000;

type WriterCalls =
  | "open"
  | "load"
  | "loadLists"
  | "ledgerHeads"
  | "fold"
  | "dropJournal"
  | "prune"
  | "storeBlock"
  | "giveBack"
  | "close";

/** `isMoving`: by the move itself. */
export function openWriter(files: DataFiles, isMoving = false): Handlers<WriterCalls> {
  makeFolder(files.folder);
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
    if (!isMoving && existsSync(files.moved)) throw new StoreFault(movedWords(files), { code: "store_refused" });
    const opened = openDatabase(files);
    db = opened;
    const epoch = numberOf(opened.prepare("UPDATE meta SET epoch = epoch + 1 RETURNING epoch").get(), "epoch");
    const fold = prepareFold(opened, epoch);
    const journal = renewJournals(opened, files, fold);
    return {
      open: () => ({ ...openedOf(opened), journal }),
      ...prepareLoad(opened),
      ledgerHeads: () => ledgerHeads(opened),
      fold: (extents) => fold(readExtents(journal, extents)),
      dropJournal: () => removeJournals(files),
      prune: preparePrune(opened, epoch),
      ...prepareCompaction(opened, epoch),
      close,
    };
  } catch (error) {
    close();
    throw whyNoRoom(files, error) ?? error;
  }
}

function openDatabase(files: DataFiles): DatabaseSync {
  const isNew = !existsSync(files.database);
  const db = new DatabaseSync(files.database, { timeout: busyTimeoutMs });
  try {
    checkedVersion(db);
    // Before the first table; older data gets it with a VACUUM.
    if (isNew) db.exec("PRAGMA auto_vacuum = INCREMENTAL");
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
    else allowGivingBack(db);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Data of older versions is written once more, so that free space can be given back (S8), if that takes a moment only. */
function allowGivingBack(db: DatabaseSync): void {
  const figure = (name: "auto_vacuum" | "page_count"): number => numberOf(db.prepare(`PRAGMA ${name}`).get(), name);
  if (figure("auto_vacuum") !== 0 || figure("page_count") * pageBytes > rewrittenBytesMax) return;
  try {
    db.exec("PRAGMA auto_vacuum = INCREMENTAL; VACUUM");
  } catch {
    // It needs room for a copy, and is tried again at the next start.
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

/** Folds what the writers before have left, and begins a journal of our own. They cannot acknowledge more (see Journal). */
function renewJournals(db: DatabaseSync, files: DataFiles, fold: Fold): JournalPair {
  sealJournals(files);
  fold(readJournals(files, numberOf(db.prepare("SELECT folded FROM meta").get(), "folded")));
  removeJournals(files);
  return makeJournals(files);
}

function openedOf(db: DatabaseSync): Omit<Reply<"open">, "journal"> {
  const row = db.prepare("SELECT * FROM meta").get();
  return {
    epoch: numberOf(row, "epoch"),
    now: numberOf(row, "now"),
    lastSeq: numberOf(row, "last_seq"),
    lastN: numberOf(row, "last_n"),
    lastEnded: numberOf(row, "last_ended"),
    folded: numberOf(row, "folded"),
    liveCount: numberOf(db.prepare("SELECT count(*) AS live_count FROM live").get(), "live_count"),
    restores: numberOf(row, "restores"),
    restoredAt: numberOf(row, "restored_at"),
  };
}

/** Measured: between 1,000 and 4,000 it makes no difference; smaller chunks block the loop for less time. */
const rowsPerChunk = 1_000;

/** The next live rows after a key. No cursor stays open in between, so the caller may take its time. */
function prepareLoad(db: DatabaseSync): Handlers<"load" | "loadLists"> {
  const others = db.prepare("SELECT n, kind, body FROM live WHERE n > ? AND kind <> ? ORDER BY n LIMIT ?");
  others.setReturnArrays(true);
  const lists = db.prepare("SELECT n, body FROM live WHERE n > ? AND kind = ? ORDER BY n LIMIT ?");
  lists.setReturnArrays(true);
  return {
    load: (after, except): RowColumns => {
      const n: number[] = [];
      const kind: string[] = [];
      const body: string[] = [];
      // With setReturnArrays a row is a list, which Node's types do not express.
      for (const row of others.all(after, except, rowsPerChunk) as unknown as [number, string, string][]) {
        n.push(row[0]);
        kind.push(row[1]);
        body.push(row[2]);
      }
      return { n, kind, body };
    },
    loadLists: (after, { kind, repeating }): PackedColumns => {
      const n: number[] = [];
      const body: string[] = [];
      for (const row of lists.all(after, kind, rowsPerChunk) as unknown as [number, string][]) {
        n.push(row[0]);
        body.push(row[1]);
      }
      return pack(toColumns(n, JSON.parse(`[${body.join()}]`) as unknown[][]), repeating);
    },
  };
}

/** A slice delays a commit by a few milliseconds at most; a packed row of events can have a hundred pages. */
const endedPerSlice = 500;
const eventsPerSlice = 20;
const tasksPerSlice = 200;
const requestsPerSlice = 500;

/** Deletes one slice from the old end of history. No statement here names live rows, so they are not touched (L16). */
function preparePrune(db: DatabaseSync, epoch: number): Handlers<"prune">["prune"] {
  // The inner query keeps the search at the old end: only the first rows are examined.
  const oldEvents = db.prepare(`
    DELETE FROM events WHERE first_seq IN (
      SELECT first_seq FROM (SELECT first_seq, at FROM events ORDER BY first_seq LIMIT ?) WHERE at < ? OR first_seq <= ?)`);
  const oldBlocks = db.prepare(`
    DELETE FROM event_blocks WHERE first_seq IN (
      SELECT first_seq FROM (SELECT first_seq, at FROM event_blocks ORDER BY first_seq LIMIT ?)
      WHERE at < ? OR first_seq <= ?)`);
  const oldEnded = db.prepare(`
    DELETE FROM ended WHERE key IN (
      SELECT key FROM (SELECT key, at FROM ended ORDER BY key LIMIT ?) WHERE at < ?)
    RETURNING at`);
  const oldTasks = db.prepare(`
    DELETE FROM ended_tasks WHERE key IN (
      SELECT key FROM (SELECT key, at FROM ended_tasks ORDER BY key LIMIT ?) WHERE at < ?)
    RETURNING payload`);
  const ofTenant = (table: TenantCut["table"], returned: "at" | "payload") =>
    db.prepare(`
      DELETE FROM ${table} WHERE key IN (
        SELECT key FROM ${table} INDEXED BY ${table}_by_id WHERE tenant = ? AND id <= ? AND key <= ? ORDER BY id LIMIT ?)
      RETURNING ${returned}`);
  const [tenantEnded, tenantTasks] = [ofTenant("ended", "at"), ofTenant("ended_tasks", "payload")];
  const removePayloads = preparePayloadRemoval(db);
  const oldRequests = db.prepare(`
    DELETE FROM ended_requests WHERE number IN (
      SELECT number FROM (SELECT number, at FROM ended_requests ORDER BY number LIMIT ?) WHERE at < ?)`);
  const moveEndedFrom = db.prepare("UPDATE meta SET ended_from = max(ended_from, ?) WHERE epoch = ?");

  return (limits, cuts) => {
    const { eventsBefore, endedBefore, endedTasksBefore = 0 } = limits;
    db.exec("BEGIN IMMEDIATE");
    const blocks = Number(oldBlocks.run(eventsPerSlice, eventsBefore, cuts.eventsThrough).changes);
    const events = blocks + Number(oldEvents.run(eventsPerSlice - blocks, eventsBefore, cuts.eventsThrough).changes);
    const leases = oldEnded.all(endedPerSlice, endedBefore);
    const tasks = oldTasks.all(tasksPerSlice, endedTasksBefore);
    for (const { table, tenant, throughId, throughKey } of cuts.tenants) {
      const [gone, most, some] =
        table === "ended" ? [leases, endedPerSlice, tenantEnded] : [tasks, tasksPerSlice, tenantTasks];
      if (gone.length === most) continue;
      for (const row of some.iterate(tenant, throughId, throughKey, most - gone.length)) gone.push(row);
    }
    const endedFrom = leases.reduce((from, { at }) => Math.max(from, Number(at) + 1), 0);
    removePayloads(tasks.flatMap(({ payload }) => (payload === null ? [] : Number(payload))));
    const [ended, endedTasks] = [leases.length, tasks.length];
    const requests = Number(oldRequests.run(requestsPerSlice, limits.endedRequestsBefore ?? 0).changes);
    if (moveEndedFrom.run(endedFrom, epoch).changes !== 1) throw staleEpoch(epoch);
    db.exec("COMMIT");
    const more =
      events === eventsPerSlice ||
      ended === endedPerSlice ||
      endedTasks === tasksPerSlice ||
      requests === requestsPerSlice;
    return { events, ended, endedTasks, more };
  };
}
