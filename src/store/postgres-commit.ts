/**
 * A batch as one statement: one round trip, one transaction. The first part moves the shard's row on condition of epoch,
 * number and timeline; every other part writes only if that found its row. Parts without rows are left out.
 *
 * All parts see the data as it was before, so no row may be in two of them: a row that is put and removed is only removed.
 */

import type { Position } from "./flat-batch.ts";
import { storable } from "./postgres-connection.ts";
import { endedLeaseRow, endedRequestRow, endedTaskRow, headRow, receiptRow } from "./rows.ts";
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
}

export interface CommitTarget {
  readonly schema: string;
  readonly shard: number;
  readonly epoch: number;
}

/** The timeline that the database is on: another one after a promotion or a point-in-time recovery. */
export const timelineSql = "left(pg_walfile_name(pg_current_wal_lsn()), 8)";

export function commitStatement(
  { schema, shard, epoch }: CommitTarget,
  batch: Batch,
  before: NumberedPosition,
  after: NumberedPosition,
): CommitStatement {
  const values: unknown[] = [];
  const param = (value: unknown, type: string): string => `$${values.push(storable(value))}::${type}`;
  const own = `${Number(shard)}`;
  const isFenced = "EXISTS (SELECT 1 FROM fence)";
  const parts: string[] = [];
  const part = (text: string): void => {
    parts.push(`p${parts.length} AS (${text})`);
  };
  /** Rows by column: each list is one parameter. */
  const insert = (table: string, columns: readonly Column[], tail = ""): void => {
    const lists = columns.map(([, type, list]) => param(list, `${type}[]`));
    const names = columns.map(([name]) => name);
    part(`INSERT INTO ${schema}.${table} (shard, ${names.join()})
      SELECT ${own}, ${names.map((name) => `u.${name}`).join()} FROM unnest(${lists.join()}) AS u (${names.join()})
      WHERE ${isFenced} ${tail}`);
  };
  const remove = (table: string, keys: readonly number[]): void =>
    part(
      `DELETE FROM ${schema}.${table} WHERE shard = ${own} AND n = ANY (${param(keys, "bigint[]")}) AND ${isFenced}`,
    );

  const fence = `UPDATE ${schema}.shards SET number = ${after.number}, now = greatest(now, ${after.now}),
    stored_at = clock_timestamp(), last_seq = ${after.lastSeq}, last_n = ${after.lastN}, last_ended = ${after.lastEnded},
    last_task = ${after.lastTask}
    WHERE shard = ${own} AND epoch = ${Number(epoch)} AND number = ${before.number} AND timeline = ${timelineSql}
    RETURNING 1`;
  const { puts, removes, payloads, payloadRemoves, events, ended, endedTasks, endedRequests, receipts, heads, audits } =
    batch;
  const kept = lastOfEach(puts, removes);
  if (kept.length > 0) {
    insert(
      "live",
      [
        ["n", "bigint", kept.map(({ n }) => n)],
        ["kind", "text", kept.map(({ kind }) => kind)],
        ["body", "text", kept.map(({ body }) => body)],
      ],
      "ON CONFLICT (shard, n) DO UPDATE SET kind = excluded.kind, body = excluded.body",
    );
  }
  if (removes.length > 0) remove("live", removes);
  const large = lastOfEach(payloads, payloadRemoves);
  if (large.length > 0) {
    insert(
      "payloads",
      [
        ["n", "bigint", large.map(({ n }) => n)],
        ["body", "text", large.map(({ body }) => body)],
      ],
      "ON CONFLICT (shard, n) DO UPDATE SET body = excluded.body",
    );
  }
  if (payloadRemoves.length > 0) remove("payloads", payloadRemoves);
  const at = (rows: readonly unknown[]): Column => ["at", "bigint", rows.map(() => batch.now)];
  if (events !== null) {
    part(`INSERT INTO ${schema}.events SELECT ${own}, ${events.firstSeq}, ${events.count}, ${batch.now},
      ${param(events.body, "text")} WHERE ${isFenced}`);
  }
  const keys = (from: number, rows: readonly unknown[]): Column => [
    "key",
    "bigint",
    rows.map((_, index) => from + 1 + index),
  ];
  if (ended.length > 0)
    insert("ended", [keys(before.lastEnded, ended), at(ended), ...columnsOf(endedLeaseRow.columns, endedTypes, ended)]);
  if (endedTasks.length > 0)
    insert("ended_tasks", [
      keys(before.lastTask, endedTasks),
      at(endedTasks),
      ...columnsOf(endedTaskRow.columns, taskTypes, endedTasks),
    ]);
  if (endedRequests.length > 0)
    insert("ended_requests", [at(endedRequests), ...columnsOf(endedRequestRow.columns, {}, endedRequests)]);
  if (receipts.length > 0)
    insert("receipts", columnsOf(receiptRow.columns, { sequence: "bigint", stored_at: "bigint" }, receipts));
  if (heads.length > 0) insert("heads", columnsOf(headRow.columns, { sequence: "bigint", at: "bigint" }, heads));
  if (audits.length > 0) insert("audit", columnsOf(auditColumns, { sequence: "bigint", at: "bigint" }, audits));
  const text = `WITH fence AS (${fence})${parts.map((one) => `, ${one}`).join("")} SELECT count(*) AS stored FROM fence`;
  return { number: after.number, text, values };
}

type Column = readonly [name: string, type: string, list: readonly unknown[]];

const endedTypes = { writes: "smallint", ended_at: "bigint" };
const taskTypes = { ended_at: "bigint", payload: "bigint" };
const auditColumns = ["tenant", "sequence", "at", "actor", "action", "hash", "body"];

function columnsOf(
  names: readonly string[],
  types: Readonly<Record<string, string>>,
  rows: readonly object[],
): Column[] {
  return names.map((name) => {
    const key = name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
    const list = rows.map((row) => (row as Record<string, unknown>)[key]);
    return [name, types[name] ?? "text", name === "writes" ? list.map(Number) : list];
  });
}

/** What is put and not removed; of what is put twice, the last. */
function lastOfEach<T extends { readonly n: number }>(puts: readonly T[], removes: readonly number[]): readonly T[] {
  const byKey = new Map<number, T>();
  for (const put of puts) byKey.set(put.n, put);
  if (removes.length === 0) return byKey.size === puts.length ? puts : [...byKey.values()];
  for (const n of removes) byKey.delete(n);
  return [...byKey.values()];
}
