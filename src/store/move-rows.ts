/** What is in the tables of the SQLite store, read in the order in which PostgreSQL's are to get it. */
import type { DatabaseSync } from "node:sqlite";
import { decompress } from "./packed-events.ts";
import { bytesOf, numberOf, type Row } from "./rows.ts";

export interface MovedTable {
  readonly name: string;
  readonly columns: readonly MovedColumn[];
  count(db: DatabaseSync): number;
  rows(db: DatabaseSync): Iterable<Row>;
}

export type MovedColumn = readonly [name: string, type: "bigint" | "text" | "smallint" | "int"];

const bigints = (...names: string[]): MovedColumn[] => names.map((name) => [name, "bigint"]);
const texts = (...names: string[]): MovedColumn[] => names.map((name) => [name, "text"]);

/** `order` is the order of the commits. What PostgreSQL numbers by itself gets new numbers in that order. */
function plain(name: string, order: string, columns: readonly MovedColumn[]): MovedTable {
  return {
    name,
    columns,
    count: (db) => countOf(db, name),
    rows: (db) => db.prepare(`SELECT ${columns.map(([one]) => one).join()} FROM ${name} ORDER BY ${order}`).iterate(),
  };
}

/** Blocks are compressed in SQLite only. */
const events: MovedTable = {
  name: "events",
  columns: [["first_seq", "bigint"], ["count", "int"], ["at", "bigint"], ...texts("body")],
  count: (db) => countOf(db, "event_blocks") + countOf(db, "events"),
  *rows(db) {
    const columns = "first_seq, count, at, body";
    for (const row of db.prepare(`SELECT ${columns} FROM event_blocks ORDER BY first_seq`).iterate()) {
      yield { ...row, body: decompress(bytesOf(row, "body")) };
    }
    yield* db.prepare(`SELECT ${columns} FROM events ORDER BY first_seq`).iterate();
  },
};

export const movedTables: readonly MovedTable[] = [
  plain("live", "n", [...bigints("n"), ...texts("kind", "body")]),
  plain("payloads", "n", [...bigints("n"), ...texts("body")]),
  events,
  plain("ended", "key", [
    ...bigints("key", "at"),
    ...texts("tenant", "id", "agent_id", "resource", "predicate"),
    ["writes", "smallint"],
    ...bigints("ended_at"),
    ...texts("body"),
  ]),
  plain("ended_tasks", "key", [
    ...bigints("key", "at"),
    ...texts("tenant", "id", "task_type", "status"),
    ...bigints("ended_at"),
    ...texts("idempotency_key"),
    ...bigints("payload"),
    ...texts("body"),
  ]),
  plain("ended_requests", "number", [
    ...bigints("at"),
    ...texts("tenant", "agent_id", "key", "fingerprint", "lease_id", "ended_as", "end_reason"),
  ]),
  plain("receipts", "key", [
    ...texts("tenant"),
    ...bigints("sequence"),
    ...texts("id", "task_id", "phase", "recipient_ai", "source_system", "dedupe"),
    ...bigints("stored_at"),
    ...texts("hash", "body"),
  ]),
  plain("heads", "key", [
    ...texts("tenant"),
    ...bigints("sequence"),
    ...texts("hash"),
    ...bigints("at"),
    ...texts("key_id", "signature"),
  ]),
  plain("audit", "key", [
    ...texts("tenant"),
    ...bigints("sequence", "at"),
    ...texts("actor", "action", "hash", "body"),
  ]),
];

function countOf(db: DatabaseSync, table: string): number {
  return numberOf(db.prepare(`SELECT count(*) AS count FROM ${table}`).get(), "count");
}
