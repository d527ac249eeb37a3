/** Queries on history, by a read-only connection in its own thread: they never delay a commit. */
import { DatabaseSync } from "node:sqlite";
import { endedLeaseRow, endedTaskRow, numberOf, textOf } from "./rows.ts";
import type { Handlers } from "./sqlite-calls.ts";
import type { DataFiles } from "./sqlite-files.ts";
import { type LedgerCalls, lastOld, prepareLedgerQueries } from "./sqlite-ledger.ts";
import type { PackedEvents } from "./store.ts";

/** How many ended leases a slice of a search examines: some ten milliseconds, then other queries run. */
const rowsPerSlice = 20_000;

/** How many rows a page of ended tasks examines while it searches by status or type. */
const tasksPerPage = 20_000;
/** Sorts after every id. */
const afterAllIds = "\u{10ffff}";

type LeaseCalls = "endedLease" | "endedPage" | "endedSince" | "earliestEnded" | "eventsAfter" | "earliestSeq";
type TaskCalls = "endedTasks" | "endedTaskPage";

/** Opened by the first query, long after the writer created the tables. */
export function openReader(files: DataFiles): Handlers<LeaseCalls | TaskCalls | LedgerCalls | "close"> {
  const db = new DatabaseSync(files.database, { readOnly: true, timeout: 5_000 });
  return {
    ...prepareQueries(db),
    ...prepareTaskQueries(db),
    ...prepareLedgerQueries(db),
    close: () => db.close(),
  };
}

function prepareQueries(db: DatabaseSync): Handlers<LeaseCalls> {
  const byIds = db.prepare("SELECT * FROM ended WHERE tenant = ? AND id IN (SELECT value FROM json_each(?))");
  const page = db.prepare("SELECT * FROM ended WHERE tenant = ? AND id < ? ORDER BY id DESC LIMIT ?");
  const endedFrom = db.prepare("SELECT ended_from AS value FROM meta");
  // The row before the first wanted number may contain it, because rows are packed.
  const eventRows = db.prepare(`
    SELECT first_seq, count, body FROM events
    WHERE first_seq >= coalesce((SELECT max(first_seq) FROM events WHERE first_seq <= ?1), 0)
      AND first_seq + count > ?1
    ORDER BY first_seq`);
  const firstSeq = db.prepare(
    "SELECT coalesce((SELECT min(first_seq) FROM events), (SELECT last_seq + 1 FROM meta)) AS value",
  );
  return {
    endedLease: (tenant, ids) => byIds.all(tenant, JSON.stringify(ids)).map(endedLeaseRow.read),
    endedPage: ({ tenant, limit, before = afterAllIds }) => page.all(tenant, before, limit).map(endedLeaseRow.read),
    endedSince: prepareScan(db),
    earliestEnded: () => numberOf(endedFrom.get(), "value"),
    eventsAfter: ({ seq, limit }) => {
      const packed: PackedEvents[] = [];
      let found = 0;
      for (const row of eventRows.iterate(seq + 1)) {
        if (found >= limit) break;
        const first = numberOf(row, "first_seq");
        const count = numberOf(row, "count");
        found += first + count - Math.max(seq + 1, first);
        packed.push({ firstSeq: first, count, body: textOf(row, "body") });
      }
      return packed;
    },
    earliestSeq: () => numberOf(firstSeq.get(), "value"),
  };
}

/** A search by time without an index on it: keys and commit times grow together, so the start is found by binary search. */
function prepareScan(db: DatabaseSync): Handlers<"endedSince">["endedSince"] {
  const bounds = db.prepare("SELECT min(key) AS low, max(key) AS high FROM ended");
  const timeOf = db.prepare("SELECT at FROM ended WHERE key = ?");
  // The plus keeps SQLite from using the index on tenants, which would scan all of a tenant's leases each time.
  const slice = db.prepare(`
    SELECT * FROM ended WHERE key > ?1 AND key <= ?2 AND +tenant = ?3 AND writes = 1 AND ended_at >= ?4
    ORDER BY key LIMIT ?5`);
  // A lease on a pattern is always included; the kernel decides whether it overlaps (C4).
  const filteredSlice = db.prepare(`
    SELECT * FROM ended WHERE key > ?1 AND key <= ?2 AND +tenant = ?3 AND writes = 1 AND ended_at >= ?4
      AND (resource IN (SELECT value FROM json_each(?6))
        OR EXISTS (SELECT 1 FROM json_each(?7) WHERE substr(resource, 1, length(value)) = value)
        OR instr(resource, '*') OR instr(resource, '?'))
    ORDER BY key LIMIT ?5`);

  return ({ tenant, since, limit, touching }, after) => {
    const { low, high } = bounds.get() ?? {};
    if (typeof low !== "number" || typeof high !== "number") return { rows: [], next: null };
    // What ended at `since` cannot have been committed before. Pruning deletes from the old end only, so that a key
    // that was just deleted counts as too old.
    const isOld = (key: number): boolean => {
      const row = timeOf.get(key);
      return row === undefined || numberOf(row, "at") < since;
    };
    const start = after ?? lastOld(low - 1, high, isOld);
    const end = Math.min(start + rowsPerSlice, high);
    const asked = [start, end, tenant, since, limit];
    const rows =
      touching === undefined
        ? slice.all(...asked)
        : filteredSlice.all(...asked, JSON.stringify(touching.names), JSON.stringify(touching.prefixes));
    return { rows: rows.map(endedLeaseRow.read), next: end < high ? end : null };
  };
}

function prepareTaskQueries(db: DatabaseSync): Handlers<TaskCalls> {
  const byIds = db.prepare("SELECT * FROM ended_tasks WHERE tenant = ? AND id IN (SELECT value FROM json_each(?))");
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
  return {
    endedTasks: (tenant, ids) => byIds.all(tenant, JSON.stringify(ids)).map(endedTaskRow.read),
    endedTaskPage: ({ tenant, limit, before = afterAllIds, status = null, taskType = null }) => {
      const tasks = page.all(tenant, before, tasksPerPage, status, taskType, limit).map(endedTaskRow.read);
      const last = tasks.at(-1);
      if (tasks.length >= limit && last !== undefined) return { tasks, next: last.id };
      const edge = boundary.get(tenant, before, tasksPerPage - 1);
      return { tasks, next: edge === undefined ? null : textOf(edge, "id") };
    },
  };
}
