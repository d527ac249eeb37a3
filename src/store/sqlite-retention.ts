/** S8: what bounds the disk: where history is cut off by bytes, compressed blocks of events, and space given back. */
import type { DatabaseSync } from "node:sqlite";
import { staleEpoch } from "./faults.ts";
import { compress, joinPacked } from "./packed-events.ts";
import { numberOf, textOf } from "./rows.ts";
import type { EventBlock, Handlers, HistoryCuts } from "./sqlite-calls.ts";

/** Text of events that becomes one block. Larger ones compress little better, and a reader unpacks a whole one. */
const blockTextBytes = 128 * 1024;
/** Rows of ended tasks whose mean size stands for all. */
const sampleRows = 1_000;
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
  const lastTask = db.prepare("SELECT max(key) AS value FROM ended_tasks");
  const meanTask = db.prepare(`SELECT avg(octet_length(t.body) + coalesce(octet_length(p.body), 0)) AS bytes FROM (
    SELECT body, payload FROM ended_tasks ORDER BY key DESC LIMIT ${sampleRows}) AS t
    LEFT JOIN payloads AS p ON p.n = t.payload`);
  const cutTasks = (bytesMax: number): number => {
    const last = lastTask.get()?.["value"];
    if (typeof last !== "number") return 0;
    return last - Math.floor(bytesMax / (rowBytes + numberOf(meanTask.get(), "bytes")));
  };
  const oldestRows = db.prepare("SELECT first_seq, count, at, body FROM events ORDER BY first_seq");
  return {
    findCuts: ({ eventsKeep, eventsBytes, endedTasksBytes }): HistoryCuts => {
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
        endedTasksThrough: endedTasksBytes === undefined ? 0 : cutTasks(endedTasksBytes),
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
