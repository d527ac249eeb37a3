/** Queries on history, by a read-only connection in its own thread: they never delay a commit. */
import { DatabaseSync } from "node:sqlite";
import { numberOf, type Row, textOf } from "./columns.ts";
import type { EndedScan, EndedScanned, Handlers } from "./sqlite-calls.ts";
import type { DataFiles } from "./sqlite-files.ts";
import { type LedgerCalls, prepareLedgerQueries } from "./sqlite-ledger.ts";
import { prepareTaskQueries, type TaskCalls } from "./sqlite-tasks.ts";
import type { EndedLease, PackedEvents } from "./store.ts";

/** How many ended leases a slice of a search examines: some ten milliseconds, then other queries run. */
const rowsPerSlice = 20_000;

type LeaseCalls = "endedLease" | "endedPage" | "endedSince" | "earliestEnded" | "eventsAfter" | "earliestSeq";
type HistoryCalls = LeaseCalls | TaskCalls | LedgerCalls;

export function createReader(files: DataFiles): Handlers<HistoryCalls | "close"> {
  // The types promise an open connection; the first query opens it, long after the writer created the tables.
  let db: DatabaseSync | null = null;
  let queries: Handlers<HistoryCalls> | null = null;
  const opened = (): Handlers<HistoryCalls> => {
    if (queries === null) {
      db = new DatabaseSync(files.database, { readOnly: true, timeout: 5_000 });
      queries = { ...prepareQueries(db), ...prepareTaskQueries(db), ...prepareLedgerQueries(db) };
    }
    return queries;
  };
  return {
    endedLease: (send) => opened().endedLease(send),
    endedPage: (send) => opened().endedPage(send),
    endedSince: (send) => opened().endedSince(send),
    earliestEnded: (send) => opened().earliestEnded(send),
    eventsAfter: (send) => opened().eventsAfter(send),
    earliestSeq: (send) => opened().earliestSeq(send),
    endedTasks: (send) => opened().endedTasks(send),
    endedTaskPage: (send) => opened().endedTaskPage(send),
    receiptsById: (send) => opened().receiptsById(send),
    receiptsByDedupe: (send) => opened().receiptsByDedupe(send),
    receiptsOfTask: (send) => opened().receiptsOfTask(send),
    receiptsPage: (send) => opened().receiptsPage(send),
    receiptsAfter: (send) => opened().receiptsAfter(send),
    signedHeads: (send) => opened().signedHeads(send),
    close: () => {
      db?.close();
      db = null;
      queries = null;
      return null;
    },
  };
}

function prepareQueries(db: DatabaseSync): Handlers<LeaseCalls> {
  const byIds = db.prepare("SELECT * FROM ended WHERE tenant = ? AND id IN (SELECT value FROM json_each(?))");
  const pageFirst = db.prepare("SELECT * FROM ended WHERE tenant = ? ORDER BY id DESC LIMIT ?");
  const pageNext = db.prepare("SELECT * FROM ended WHERE tenant = ? AND id < ? ORDER BY id DESC LIMIT ?");
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
    endedLease: ({ tenant, ids }) => byIds.all(tenant, JSON.stringify(ids)).map(endedLeaseFrom),
    endedPage: ({ tenant, limit, before }) => {
      const rows = before === null ? pageFirst.all(tenant, limit) : pageNext.all(tenant, before, limit);
      return rows.map(endedLeaseFrom);
    },
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
function prepareScan(db: DatabaseSync): (scan: EndedScan) => EndedScanned {
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

  /** The key before the first lease committed at `since` or later: what ended then cannot have been committed before. */
  const startBefore = (since: number, low: number, high: number): number => {
    let [before, at] = [low - 1, high + 1];
    while (at - before > 1) {
      const middle = Math.floor((before + at) / 2);
      const row = timeOf.get(middle);
      // Pruning deletes from the old end only. A key that was just deleted counts as too old.
      if (row === undefined || numberOf(row, "at") < since) before = middle;
      else at = middle;
    }
    return before;
  };

  return ({ tenant, since, limit, touching, after }) => {
    const { low, high } = bounds.get() ?? {};
    if (typeof low !== "number" || typeof high !== "number") return { rows: [], next: null };
    const start = after ?? startBefore(since, low, high);
    const end = Math.min(start + rowsPerSlice, high);
    const rows =
      touching === null
        ? slice.all(start, end, tenant, since, limit)
        : filteredSlice.all(
            start,
            end,
            tenant,
            since,
            limit,
            JSON.stringify(touching.names),
            JSON.stringify(touching.prefixes),
          );
    return { rows: rows.map(endedLeaseFrom), next: end < high ? end : null };
  };
}

function endedLeaseFrom(row: Row): EndedLease {
  return {
    tenant: textOf(row, "tenant"),
    id: textOf(row, "id"),
    agentId: textOf(row, "agent_id"),
    resource: textOf(row, "resource"),
    predicate: textOf(row, "predicate"),
    writes: numberOf(row, "writes") === 1,
    endedAt: numberOf(row, "ended_at"),
    body: textOf(row, "body"),
  };
}
