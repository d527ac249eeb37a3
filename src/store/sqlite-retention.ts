/** S8: what bounds the disk: where history is cut off by bytes, compressed blocks of events, and space given back. */
import type { DatabaseSync } from "node:sqlite";
import { excessOf, halves, type Share } from "./fair-share.ts";
import { staleEpoch } from "./faults.ts";
import { compress, joinPacked } from "./packed-events.ts";
import { numberOf, textOf } from "./rows.ts";
import type { EventBlock, Handlers, HistoryCuts, TenantCut } from "./sqlite-calls.ts";

/** Text of events that becomes one block. Larger ones compress little better, and a reader unpacks a whole one. */
const blockTextBytes = 128 * 1024;
/** Rows of history whose mean size stands for all, and for those of a tenant. */
const sampleRows = 1_000;
const tenantSampleRows = 50;
/** What a row takes besides its body: columns, indexes, pages that are not full. */
const rowBytes = 350;
/** A slice of giving back: a few milliseconds. */
const pagesPerSlice = 256;
/** This share of the file, and at least this number of pages, stays free: it is written again soon. */
const freeShare = 0.1;
const freePagesMin = 1_024;

/** The reader's part: it finds where to cut, and compresses. */
export function prepareRetention(db: DatabaseSync): Handlers<"findCuts" | "packEvents"> {
  const eventSizes = db.prepare(`
    SELECT first_seq, count, octet_length(body) AS bytes FROM events
    UNION ALL SELECT first_seq, count, octet_length(body) AS bytes FROM event_blocks ORDER BY first_seq DESC`);
  const cutLeases = prepareTenantCuts(db, "ended", "octet_length(body)", "ended");
  const cutTasks = prepareTenantCuts(
    db,
    "ended_tasks",
    "octet_length(t.body) + coalesce(octet_length(p.body), 0)",
    "ended_tasks AS t LEFT JOIN payloads AS p ON p.n = t.payload",
  );
  const oldestRows = db.prepare("SELECT first_seq, count, at, body FROM events ORDER BY first_seq");
  return {
    findCuts: ({ eventsKeep, eventsBytes, endedKeep, endedTasksKeep, endedTasksBytes }): HistoryCuts => {
      let eventsThrough = 0;
      if (eventsKeep !== undefined || eventsBytes !== undefined) {
        let [count, bytes] = [0, 0];
        for (const row of eventSizes.iterate()) {
          count += numberOf(row, "count");
          bytes += numberOf(row, "bytes");
          if (count <= (eventsKeep ?? count) && bytes <= (eventsBytes ?? bytes)) continue;
          eventsThrough = numberOf(row, "first_seq");
          break;
        }
      }
      return {
        eventsThrough,
        tenants: [...cutLeases(endedKeep), ...cutTasks(endedTasksKeep, endedTasksBytes)],
      };
    },
    packEvents: (): EventBlock | null => {
      const bodies: string[] = [];
      let [firstSeq, nextSeq, at, bytes] = [0, 0, 0, 0];
      for (const row of oldestRows.iterate()) {
        const seq = numberOf(row, "first_seq");
        // Numbers that jumped are not in one block: a row's numbers have no gap.
        if (bodies.length > 0 && seq !== nextSeq) break;
        if (bodies.length === 0) firstSeq = seq;
        nextSeq = seq + numberOf(row, "count");
        at = numberOf(row, "at");
        const body = textOf(row, "body");
        bodies.push(body);
        bytes += body.length;
        if (bytes >= blockTextBytes) break;
      }
      if (bytes < blockTextBytes) return null;
      return { firstSeq, count: nextSeq - firstSeq, at, body: compress(joinPacked(bodies)) };
    },
  };
}

/**
 * Of a table of history, what the tenants with the most rows lose. Only where there may be too many rows at all are they
 * counted: by the index of ids, some 0.1 s for a million. Within a tenant the lowest ids go first, which are the earliest
 * grants: that is the order of the index.
 */
function prepareTenantCuts(
  db: DatabaseSync,
  table: TenantCut["table"],
  bytes: string,
  joined: string,
): (keep?: number, bytesMax?: number) => TenantCut[] {
  const range = db.prepare(`SELECT min(key) AS first, max(key) AS last FROM ${table}`);
  const counts = db.prepare(`
    SELECT tenant, count(*) AS rows FROM ${table} INDEXED BY ${table}_by_id WHERE key <= ? GROUP BY tenant`);
  const mean = db.prepare(`SELECT avg(bytes) AS bytes FROM (
    SELECT ${bytes} AS bytes FROM ${joined} ORDER BY key DESC LIMIT ${sampleRows})`);
  const meanOf = db.prepare(`SELECT avg(bytes) AS bytes FROM (
    SELECT ${bytes} AS bytes FROM ${joined} WHERE tenant = ? ORDER BY id DESC LIMIT ${tenantSampleRows})`);
  const cutAt = db.prepare(`
    SELECT id FROM ${table} INDEXED BY ${table}_by_id WHERE tenant = ? AND key <= ? ORDER BY id LIMIT 1 OFFSET ?`);
  const sizeOf = (row: ReturnType<typeof mean.get>): number => rowBytes + numberOf(row, "bytes");
  return (keep = 2 ** 50, bytesMax) => {
    const { first, last } = range.get() ?? {};
    if (typeof first !== "number" || typeof last !== "number") return [];
    const isSized = bytesMax !== undefined;
    const most = isSized ? Math.min(keep, Math.floor(bytesMax / sizeOf(mean.get()))) : keep;
    if (last - first < most) return [];
    const { youngest } = halves(most);
    const throughKey = last - youngest;
    const shares = counts.all(throughKey).map((row): Share => {
      const tenant = textOf(row, "tenant");
      return { tenant, rows: numberOf(row, "rows"), rowBytes: isSized ? sizeOf(meanOf.get(tenant)) : 1 };
    });
    const excess = excessOf(shares, halves(keep).shared, isSized ? bytesMax / 2 : undefined);
    return Array.from(excess, ([tenant, rows]) => {
      const throughId = textOf(cutAt.get(tenant, throughKey, rows - 1), "id");
      return { table, tenant, throughId, throughKey };
    });
  };
}

/** The writer's part, in slices between commits. */
export function prepareCompaction(db: DatabaseSync, epoch: number): Handlers<"storeBlock" | "giveBack"> {
  const isOurs = db.prepare("SELECT 1 AS ours FROM meta WHERE epoch = ?");
  const addBlock = db.prepare("INSERT INTO event_blocks VALUES (?, ?, ?, ?)");
  const deleteRows = db.prepare("DELETE FROM events WHERE first_seq >= ? AND first_seq < ?");
  const pages = (name: "freelist_count" | "page_count"): number => numberOf(db.prepare(`PRAGMA ${name}`).get(), name);
  const isIncremental = numberOf(db.prepare("PRAGMA auto_vacuum").get(), "auto_vacuum") === 2;
  return {
    storeBlock: ({ firstSeq, count, at, body }) => {
      db.exec("BEGIN IMMEDIATE");
      if (isOurs.get(epoch) === undefined) throw staleEpoch(epoch);
      // Unless they were pruned meanwhile.
      if (deleteRows.run(firstSeq, firstSeq + count).changes > 0) addBlock.run(firstSeq, count, at, body);
      db.exec("COMMIT");
    },
    giveBack: () => {
      if (!isIncremental) return 0;
      const spare = pages("freelist_count") - Math.max(freePagesMin, pages("page_count") * freeShare);
      if (spare <= 0) return 0;
      db.exec(`PRAGMA incremental_vacuum(${Math.min(pagesPerSlice, Math.ceil(spare))})`);
      return spare - pagesPerSlice > 0 ? spare - pagesPerSlice : 0;
    },
  };
}
