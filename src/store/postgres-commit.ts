/**
 * A batch as one statement: one round trip, one transaction. The first part moves the shard's row on condition of epoch,
 * number and timeline; every other part writes only if that found its row. Parts without rows are left out.
 *
 * What a lease cycle consists of is one row of the journal, folded into its tables later (postgres-fold.ts). What is only
 * added, or read at any moment, goes to its table at once: events, payloads, the ledger, the audit log.
 *
 * All parts see the data as it was before, so no row may be in two of them: a row that is put and removed is only removed.
 */

import { constants, zstdCompressSync, zstdDecompressSync } from "node:zlib";
import type { Position } from "./flat-batch.ts";
import { type PgRow, storable } from "./postgres-connection.ts";
import { type Column, columnsOf, FencedStatement, lastOfEach } from "./postgres-statement.ts";
import { headRow, receiptRow } from "./rows.ts";
import type { Batch } from "./store.ts";

/** The place of a shard after a commit; each has the next number. */
export interface NumberedPosition extends Position {
  readonly number: number;
  readonly lastTask: number;
}

export interface CommitStatement {
  readonly number: number;
  readonly text: string;
  readonly values: readonly unknown[];
  /** What is left to fold; null: nothing. */
  readonly entry: JournalEntry | null;
}

export interface CommitTarget {
  readonly schema: string;
  readonly shard: number;
  readonly epoch: number;
}

/** What a commit leaves in the journal. Its rows of history get the keys after those here. */
export interface JournalEntry
  extends Pick<Batch, "now" | "puts" | "removes" | "ended" | "endedTasks" | "endedRequests"> {
  readonly number: number;
  /** Of its text. */
  readonly chars: number;
  /** Before it: rows with greater keys are not in the tables. */
  readonly lastN: number;
  readonly lastEnded: number;
  readonly lastTask: number;
}

/** The timeline that the database is on: another one after a promotion or a point-in-time recovery. */
export const timelineSql = "left(pg_walfile_name(pg_current_wal_lsn()), 8)";

export function commitStatement(
  { schema, shard, epoch }: CommitTarget,
  batch: Batch,
  before: NumberedPosition,
  after: NumberedPosition,
): CommitStatement {
  const statement = new FencedStatement(schema, shard);
  const own = `${Number(shard)}`;
  const { payloads, payloadRemoves, events, receipts, heads, audits } = batch;
  const [entry, body] = journalEntry(batch, before, after.number);
  if (entry !== null) {
    const stored = packed(body) ?? Buffer.from(body);
    statement.part(`INSERT INTO ${schema}.journal SELECT ${own}, ${after.number}, ${statement.param(stored, "bytea")}`);
  }
  const large = lastOfEach(payloads, payloadRemoves);
  if (large.length > 0) {
    const columns: Column[] = [
      ["n", "bigint", large.map(({ n }) => n)],
      ["body", "text", large.map((payload) => payload.body)],
    ];
    statement.insert("payloads", columns, "ON CONFLICT (shard, n) DO UPDATE SET body = excluded.body");
  }
  if (payloadRemoves.length > 0) statement.remove("payloads", payloadRemoves);
  if (events !== null) {
    const bytes = packed(events.body);
    const value = bytes === null ? statement.param(events.body, "text") : statement.param(bytes, "bytea");
    statement.part(`INSERT INTO ${schema}.events (shard, first_seq, count, at, ${bytes === null ? "body" : "packed"})
      SELECT ${own}, ${events.firstSeq}, ${events.count}, ${batch.now}, ${value}`);
  }
  if (receipts.length > 0)
    statement.insert("receipts", columnsOf(receiptRow.columns, { sequence: "bigint", stored_at: "bigint" }, receipts));
  const numbers = { sequence: "bigint", at: "bigint" };
  if (heads.length > 0) statement.insert("heads", columnsOf(headRow.columns, numbers, heads));
  if (audits.length > 0) statement.insert("audit", columnsOf(auditColumns, numbers, audits));
  const fence = `fence AS (UPDATE ${schema}.shards SET number = ${after.number}, now = greatest(now, ${after.now}),
    stored_at = clock_timestamp(), last_seq = ${after.lastSeq}, last_n = ${after.lastN}, last_ended = ${after.lastEnded},
    last_task = ${after.lastTask}
    WHERE shard = ${own} AND epoch = ${Number(epoch)} AND number = ${before.number} AND timeline = ${timelineSql}
    RETURNING 1)`;
  const text = statement.text(fence, "SELECT count(*) AS stored FROM fence");
  return { number: after.number, text, values: statement.values.map(storable), entry };
}

const auditColumns = ["tenant", "sequence", "at", "actor", "action", "hash", "body"];

/** PostgreSQL compresses what is longer than this by itself, and takes eight times as long. */
const packedCharsMin = 2_000;
const packing = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };

function packed(text: string): Buffer | null {
  return text.length < packedCharsMin ? null : zstdCompressSync(text, packing);
}

/** JSON, compressed or as it is. Compressed it begins with zstd's mark, and no JSON does. */
function textIn(bytes: Buffer): string {
  return (bytes[0] === 0x28 ? zstdDecompressSync(bytes) : bytes).toString();
}

/** As `Database` returns bytes. */
function bytesOf(value: string | number | null | undefined): Buffer {
  return Buffer.from(String(value).slice(2), "hex");
}

/** A row of events has one of the two. */
export function eventsText(row: PgRow): string {
  return row["packed"] == null ? String(row["body"]) : textIn(bytesOf(row["packed"]));
}

/** The part of a batch that is folded later, and its text. */
function journalEntry(
  batch: Batch,
  { lastN, lastEnded, lastTask }: NumberedPosition,
  number: number,
): [JournalEntry | null, string] {
  const { now, puts, removes, ended, endedTasks, endedRequests } = batch;
  if (puts.length + removes.length + ended.length + endedTasks.length + endedRequests.length === 0) return [null, ""];
  const fields = { now, puts, removes, ended, endedTasks, endedRequests, lastN, lastEnded, lastTask };
  const body = JSON.stringify(fields);
  return [{ ...fields, number, chars: body.length }, body];
}

export function readJournalEntry(row: PgRow): JournalEntry {
  const number = Number(row["number"]);
  const body = textIn(bytesOf(row["body"]));
  return { ...(JSON.parse(body) as Omit<JournalEntry, "number" | "chars">), number, chars: body.length };
}
