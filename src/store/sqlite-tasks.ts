/** Queries on ended tasks by the read-only connection. */
import type { DatabaseSync } from "node:sqlite";
import { numberOf, type Row, textOf } from "./columns.ts";
import type { Handlers } from "./sqlite-calls.ts";
import type { EndedTaskRow } from "./store.ts";

/** How many rows a page examines while it searches by status or type. */
export const tasksPerPage = 20_000;

export type TaskCalls = "endedTasks" | "endedTaskPage";

export function prepareTaskQueries(db: DatabaseSync): Handlers<TaskCalls> {
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
    endedTasks: ({ tenant, ids }) => byIds.all(tenant, JSON.stringify(ids)).map(endedTaskFrom),
    endedTaskPage: ({ tenant, limit, before = afterAllIds, status = null, taskType = null }) => {
      const tasks = page.all(tenant, before, tasksPerPage, status, taskType, limit).map(endedTaskFrom);
      const last = tasks.at(-1);
      if (tasks.length >= limit && last !== undefined) return { tasks, next: last.id };
      const edge = boundary.get(tenant, before, tasksPerPage - 1);
      return { tasks, next: edge === undefined ? null : textOf(edge, "id") };
    },
  };
}

/** Sorts after every id. */
const afterAllIds = "\u{10ffff}";

function endedTaskFrom(row: Row): EndedTaskRow {
  return {
    tenant: textOf(row, "tenant"),
    id: textOf(row, "id"),
    taskType: textOf(row, "task_type"),
    status: textOf(row, "status"),
    endedAt: numberOf(row, "ended_at"),
    body: textOf(row, "body"),
  };
}
