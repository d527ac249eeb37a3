/**
 * Folds commits of the journal into the tables: many commits become one transaction, each row is written once in its
 * newest form, and what began and ended in between is never a live row.
 */
import { closeSync, openSync, readSync } from "node:fs";
import type { DatabaseSync, SQLInputValue } from "node:sqlite";
import { StoreFault, staleEpoch } from "./faults.ts";
import type { FlatBatch } from "./flat-batch.ts";
import type { Extent } from "./journal.ts";
import { type Block, blocksIn, decodeBlock } from "./journal-block.ts";
import type { JournalPair } from "./journal-files.ts";
import { auditRow, endedLeaseRow, endedRequestRow, endedTaskRow, headRow, numberOf, receiptRow } from "./rows.ts";

/** Folds blocks in one transaction, durable when it returns. */
export type Fold = (blocks: readonly Block[]) => void;

export function prepareFold(db: DatabaseSync, epoch: number): Fold {
  const begin = db.prepare("BEGIN IMMEDIATE");
  const commit = db.prepare("COMMIT");
  const before = db.prepare("SELECT last_n, folded FROM meta");
  const move = db.prepare(
    "UPDATE meta SET now = ?, last_seq = ?, last_n = ?, last_ended = ?, folded = ? WHERE epoch = ?",
  );
  const putSql = (rows: string): string =>
    `INSERT INTO live VALUES ${rows} ON CONFLICT (n) DO UPDATE SET kind = excluded.kind, body = excluded.body`;
  const put = bulk(db, 3, putSql);
  const remove = bulk(db, 1, (rows) => `DELETE FROM live WHERE n IN (${rows})`);
  const putPayloads = bulk(
    db,
    2,
    (rows) => `INSERT INTO payloads VALUES ${rows} ON CONFLICT (n) DO UPDATE SET body = excluded.body`,
  );
  const removePayloads = preparePayloadRemoval(db);
  const additions = [
    ["events", bulk(db, 4, (rows) => `INSERT OR ROLLBACK INTO events VALUES ${rows}`)],
    ["ended", bulkInsert(db, "ended", ["key", "at", ...endedLeaseRow.columns])],
    ["endedTasks", bulkInsert(db, "ended_tasks", ["at", ...endedTaskRow.columns])],
    ["endedRequests", bulkInsert(db, "ended_requests", ["at", ...endedRequestRow.columns])],
    ["receipts", bulkInsert(db, "receipts", receiptRow.columns)],
    ["heads", bulkInsert(db, "heads", headRow.columns)],
    ["audits", bulkInsert(db, "audit", auditRow.columns)],
  ] as const;

  return (blocks) => {
    const last = blocks.at(-1);
    if (last === undefined) return;
    begin.run();
    const stored = before.get();
    const folded = numberOf(stored, "folded");
    if (blocks.some(({ number }, index) => number !== folded + 1 + index)) {
      throw new StoreFault(`commit ${blocks[0]?.number} of the journal does not follow ${folded}`);
    }
    const { now, lastSeq, lastN, lastEnded } = last.batch.position;
    if (move.run(now, lastSeq, lastN, lastEnded, last.number, epoch).changes !== 1) throw staleEpoch(epoch);
    const batches = blocks.map(({ batch }) => batch);
    const rows = newestRows(batches, "puts", "removes", 3, numberOf(stored, "last_n"));
    put([rows.puts]);
    remove([rows.removes]);
    const payloads = newestRows(batches, "payloads", "payloadRemoves", 2, numberOf(stored, "last_n"));
    putPayloads([payloads.puts]);
    removePayloads(payloads.removes);
    // All commits' rows of a table together: most have fewer of it than a call takes.
    for (const [table, add] of additions) add(batches.map((batch) => batch[table]));
    commit.run();
  };
}

interface NewestRows {
  readonly puts: readonly SQLInputValue[];
  readonly removes: readonly number[];
}

/** Each row as the last batch left it. Keys only grow, so rows after `lastN` are not in the tables yet. */
function newestRows(
  batches: readonly FlatBatch[],
  put: "puts" | "payloads",
  remove: "removes" | "payloadRemoves",
  width: number,
  lastN: number,
): NewestRows {
  const [only] = batches;
  if (only !== undefined && batches.length === 1) return { puts: only[put], removes: only[remove] };
  /** Where a key's newest row is. */
  const newest = new Map<number, { readonly values: readonly SQLInputValue[]; readonly at: number }>();
  const removes = new Set<number>();
  for (const batch of batches) {
    const values = batch[put];
    for (let at = 0; at < values.length; at += width) {
      const n = values[at] as number;
      newest.set(n, { values, at });
      removes.delete(n);
    }
    for (const n of batch[remove]) {
      newest.delete(n);
      if (n <= lastN) removes.add(n);
    }
  }
  const puts: SQLInputValue[] = [];
  for (const { values, at } of newest.values()) {
    for (let index = at; index < at + width; index++) puts.push(values[index] ?? null);
  }
  return { puts, removes: [...removes] };
}

/** The blocks of parts of the journal, as the main thread has written them. */
export function readExtents({ paths, mark }: JournalPair, extents: readonly Extent[]): readonly Block[] {
  const blocks: Block[] = [];
  for (const { file, from, to } of extents) {
    const bytes = Buffer.allocUnsafe(to - from);
    const handle = openSync(paths[file], "r");
    try {
      for (let done = 0; done < bytes.length; ) {
        const read = readSync(handle, bytes, done, bytes.length - done, from + done);
        if (read === 0) throw new StoreFault(`the journal ${paths[file]} is shorter than what was written`);
        done += read;
      }
    } finally {
      closeSync(handle);
    }
    let count = 0;
    for (const { offset } of blocksIn(bytes, Buffer.from(mark, "hex"))) {
      blocks.push(decodeBlock(bytes, offset));
      count++;
    }
    if (count === 0) throw new StoreFault(`the journal ${paths[file]} is damaged at ${from}`);
  }
  return blocks;
}

export function preparePayloadRemoval(db: DatabaseSync): (keys: readonly number[]) => void {
  const remove = bulk(db, 1, (rows) => `DELETE FROM payloads WHERE n IN (${rows})`);
  return (keys) => remove([keys]);
}

/** Measured on a busy machine: 16 rows a call save about a third of the thread's time; 64 save no more. */
const rowsPerCall = 16;

/**
 * A statement for many rows, from flat lists of their values. `sql` gets the placeholders of the rows, with brackets;
 * `width` values make a row.
 */
function bulk(
  db: DatabaseSync,
  width: number,
  sql: (values: string) => string,
): (lists: readonly (readonly SQLInputValue[])[]) => void {
  const row = `(${Array(width).fill("?").join(",")})`;
  const one = db.prepare(sql(row));
  const many = db.prepare(sql(Array(rowsPerCall).fill(row).join(",")));
  const step = rowsPerCall * width;
  return (lists) => {
    const pending: SQLInputValue[] = [];
    for (const values of lists) {
      for (let start = 0; start < values.length; ) {
        const part = values.slice(start, start + step - pending.length);
        start += part.length;
        if (part.length === step) {
          many.run(...part);
          continue;
        }
        for (const value of part) pending.push(value);
        if (pending.length === step) many.run(...pending.splice(0));
      }
    }
    for (let start = 0; start < pending.length; start += width) one.run(...pending.slice(start, start + width));
  };
}

/** A failure rolls back in any case; saying so in the statement spares SQLite a journal for it. */
function bulkInsert(db: DatabaseSync, table: string, columns: readonly string[]) {
  return bulk(db, columns.length, (rows) => `INSERT OR ROLLBACK INTO ${table} (${columns.join()}) VALUES ${rows}`);
}
