/** Queries on history, by a read-only connection in its own thread: they never delay a commit. */
import { DatabaseSync } from "node:sqlite";
import { collectEvents, decompress } from "./packed-events.ts";
import { bytesOf, endedLeaseRow, endedRequestRow, endedTaskRow, numberOf, type Row, textOf } from "./rows.ts";
import { type AuditCalls, prepareAuditQueries } from "./sqlite-audit.ts";
import type { Handlers } from "./sqlite-calls.ts";
import type { DataFiles } from "./sqlite-files.ts";
import { type LedgerCalls, prepareLedgerQueries } from "./sqlite-ledger.ts";
import { prepareRetention } from "./sqlite-retention.ts";
import type { PackedEvents } from "./store.ts";

/** How many rows a page of ended tasks examines while it searches by status or type. */
const tasksPerPage = 20_000;
/** Sorts after every id. */
const afterAllIds = "\u{10ffff}";

type LeaseCalls =
  | "endedLease"
  | "endedGrant"
  | "endedRequests"
  | "endedPage"
  | "youngestEnded"
  | "earliestEnded"
  | "eventsAfter"
  | "earliestSeq";
type TaskCalls = "endedTasks" | "endedTasksByKey" | "endedTaskPage" | "payloads";

/** Opened by the first query, long after the writer created the tables. */
export function openReader(
  files: DataFiles,
): Handlers<LeaseCalls | TaskCalls | LedgerCalls | AuditCalls | "findCuts" | "packEvents" | "close"> {
  const db = new DatabaseSync(files.database, { readOnly: true, timeout: 5_000 });
  return {
    ...prepareQueries(db),
    ...prepareTaskQueries(db),
    ...prepareLedgerQueries(db),
    ...prepareAuditQueries(db),
    ...prepareRetention(db),
    close: () => db.close(),
  };
}

function prepareQueries(db: DatabaseSync): Handlers<LeaseCalls> {
  const byIds = db.prepare("SELECT * FROM ended WHERE tenant = ? AND id IN (SELECT value FROM json_each(?))");
  // A dash sorts before a full stop, and nothing else that an id may have does.
  const byGrant = db.prepare("SELECT * FROM ended WHERE tenant = ?1 AND id >= ?2 AND id < ?2 || '.' ORDER BY key");
  const byKeys = db.prepare(`
    SELECT r.* FROM json_each(?2) AS asked CROSS JOIN ended_requests AS r INDEXED BY ended_requests_by_key
    ON r.tenant = ?1 AND r.agent_id = asked.value ->> 0 AND r.key = asked.value ->> 1 ORDER BY r.number`);
  const page = db.prepare("SELECT * FROM ended WHERE tenant = ? AND id < ? ORDER BY id DESC LIMIT ?");
  const youngest = db.prepare("SELECT body FROM ended ORDER BY key DESC LIMIT ?");
  const endedFrom = db.prepare("SELECT ended_from AS value FROM meta");
  // The row before the first wanted number may contain it, because rows are packed.
  const rowsIn = (table: "events" | "event_blocks") =>
    db.prepare(`
      SELECT first_seq, count, body FROM ${table}
      WHERE first_seq >= coalesce((SELECT max(first_seq) FROM ${table} WHERE first_seq <= ?1), 0)
        AND first_seq + count > ?1
      ORDER BY first_seq`);
  const [eventRows, eventBlocks] = [rowsIn("events"), rowsIn("event_blocks")];
  const firstSeq = db.prepare(`SELECT coalesce(
    (SELECT min(first_seq) FROM event_blocks), (SELECT min(first_seq) FROM events), (SELECT last_seq + 1 FROM meta)) AS value`);
  const lastSeq = db.prepare("SELECT last_seq AS value FROM meta");
  const lastRow = db.prepare(`
    SELECT max(first_seq + count) AS value FROM (
      SELECT first_seq, count FROM (SELECT first_seq, count FROM events WHERE first_seq <= ?1 ORDER BY first_seq DESC LIMIT 1)
      UNION ALL
      SELECT first_seq, count FROM (
        SELECT first_seq, count FROM event_blocks WHERE first_seq <= ?1 ORDER BY first_seq DESC LIMIT 1))`);
  /** Blocks are made of the oldest rows, so they come first. */
  function* packedAfter(seq: number): Generator<PackedEvents> {
    for (const row of eventBlocks.iterate(seq + 1)) yield packedOf(row, decompress(bytesOf(row, "body")));
    for (const row of eventRows.iterate(seq + 1)) yield packedOf(row, textOf(row, "body"));
  }
  return {
    endedLease: (tenant, ids) => byIds.all(tenant, JSON.stringify(ids)).map(endedLeaseRow.read),
    endedGrant: (tenant, firstId) => byGrant.all(tenant, firstId).map(endedLeaseRow.read),
    endedRequests: (tenant, keys) => byKeys.all(tenant, JSON.stringify(keys)).map(endedRequestRow.read),
    endedPage: ({ tenant, limit, before = afterAllIds }) => page.all(tenant, before, limit).map(endedLeaseRow.read),
    youngestEnded: (limit) => youngest.all(limit).map((row) => textOf(row, "body")),
    earliestEnded: () => numberOf(endedFrom.get(), "value"),
    eventsAfter: (query) => {
      // One moment of the data: rows become blocks meanwhile.
      db.exec("BEGIN");
      try {
        const end = lastRow.get(query.seq)?.["value"];
        return collectEvents(query, packedAfter(query.seq), {
          earliest: numberOf(firstSeq.get(), "value"),
          lastSeq: numberOf(lastSeq.get(), "value"),
          isKept: typeof end === "number" && end > query.seq,
        });
      } finally {
        db.exec("COMMIT");
      }
    },
    earliestSeq: () => numberOf(firstSeq.get(), "value"),
  };
}

function packedOf(row: Row, body: string): PackedEvents {
  return { firstSeq: numberOf(row, "first_seq"), count: numberOf(row, "count"), body };
}

function prepareTaskQueries(db: DatabaseSync): Handlers<TaskCalls> {
  const byIds = db.prepare("SELECT * FROM ended_tasks WHERE tenant = ? AND id IN (SELECT value FROM json_each(?))");
  const byKeys = db.prepare(`
    SELECT * FROM ended_tasks INDEXED BY ended_tasks_by_key
    WHERE tenant = ? AND idempotency_key IS NOT NULL AND idempotency_key IN (SELECT value FROM json_each(?))
    ORDER BY key`);
  // The inner query bounds the search; the outer one reads only the bodies of what was found.
  const page = db.prepare(`
    SELECT t.* FROM (
      SELECT key FROM (
        SELECT key, id, status, task_type FROM ended_tasks WHERE tenant = ?1 AND id < ?2 ORDER BY id DESC LIMIT ?3)
      WHERE (?4 IS NULL OR status = ?4) AND (?5 IS NULL OR task_type = ?5) ORDER BY id DESC LIMIT ?6) AS found
    JOIN ended_tasks AS t ON t.key = found.key ORDER BY t.id DESC`);
  const boundary = db.prepare(
    "SELECT id FROM ended_tasks WHERE tenant = ?1 AND id < ?2 ORDER BY id DESC LIMIT 1 OFFSET ?3",
  );
  const payloads = db.prepare("SELECT n, body FROM payloads WHERE n IN (SELECT value FROM json_each(?))");
  return {
    payloads: (keys) =>
      payloads.all(JSON.stringify(keys)).map((row) => ({ n: numberOf(row, "n"), body: textOf(row, "body") })),
    endedTasks: (tenant, ids) => byIds.all(tenant, JSON.stringify(ids)).map(endedTaskRow.read),
    endedTasksByKey: (tenant, keys) => byKeys.all(tenant, JSON.stringify(keys)).map(endedTaskRow.read),
    endedTaskPage: ({ tenant, limit, before = afterAllIds, status = null, taskType = null }) => {
      const tasks = page.all(tenant, before, tasksPerPage, status, taskType, limit).map(endedTaskRow.read);
      const last = tasks.at(-1);
      if (tasks.length >= limit && last !== undefined) return { tasks, next: last.id };
      const edge = boundary.get(tenant, before, tasksPerPage - 1);
      return { tasks, next: edge === undefined ? null : textOf(edge, "id") };
    },
  };
}
