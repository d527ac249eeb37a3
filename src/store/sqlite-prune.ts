import type { DatabaseSync } from "node:sqlite";
import { staleEpoch } from "./faults.ts";
import type { Handlers } from "./sqlite-calls.ts";

/** A slice delays a commit by a few milliseconds at most; a packed row of events can have a hundred pages. */
const endedPerSlice = 500;
const eventsPerSlice = 20;
const tasksPerSlice = 200;

/** Deletes one slice from the old end of history. No statement here names live rows, so they are not touched (L16). */
export function preparePrune(db: DatabaseSync, epoch: number): Handlers<"prune">["prune"] {
  // The inner query keeps the search at the old end: only the first rows are examined.
  const oldEvents = db.prepare(`
    DELETE FROM events WHERE first_seq IN (
      SELECT first_seq FROM (SELECT first_seq, at FROM events ORDER BY first_seq LIMIT ?) WHERE at < ?)`);
  const oldEnded = db.prepare(`
    DELETE FROM ended WHERE key IN (
      SELECT key FROM (SELECT key, at FROM ended ORDER BY key LIMIT ?)
      WHERE at < ? OR key <= (SELECT last_ended FROM meta) - ?)
    RETURNING at`);
  const oldTasks = db.prepare(`
    DELETE FROM ended_tasks WHERE key IN (
      SELECT key FROM (SELECT key, at FROM ended_tasks ORDER BY key LIMIT ?)
      WHERE at < ? OR key <= (SELECT max(key) FROM ended_tasks) - ?)`);
  const moveEndedFrom = db.prepare("UPDATE meta SET ended_from = max(ended_from, ?) WHERE epoch = ?");

  return ({ eventsBefore, endedBefore, endedKeep, endedTasksBefore = 0, endedTasksKeep = 2 ** 50 }) => {
    db.exec("BEGIN IMMEDIATE");
    const events = Number(oldEvents.run(eventsPerSlice, eventsBefore).changes);
    let ended = 0;
    let endedFrom = 0;
    for (const { at } of oldEnded.iterate(endedPerSlice, endedBefore, endedKeep)) {
      ended += 1;
      endedFrom = Math.max(endedFrom, Number(at) + 1);
    }
    const endedTasks = Number(oldTasks.run(tasksPerSlice, endedTasksBefore, endedTasksKeep).changes);
    if (moveEndedFrom.run(endedFrom, epoch).changes !== 1) throw staleEpoch(epoch);
    db.exec("COMMIT");
    const more = events === eventsPerSlice || ended === endedPerSlice || endedTasks === tasksPerSlice;
    return { events, ended, endedTasks, more };
  };
}
