/** What tasks are chosen by, in lists and in operations on all that match. */
import { choice, type InputValues, optional, text } from "../../kernel/contract/field.ts";
import { type Task, taskStatuses } from "../../kernel/contract/task-records.ts";
import type { Fault } from "../schema/explain.ts";
import { inputs } from "../schema/from-fields.ts";
import { limits } from "../schema/limits.ts";

const id = optional(text({ max: limits.idLengthMax }));
const moment = optional(text({ max: limits.timeLengthMax }));

export const taskFilterFields = {
  status: optional(choice(taskStatuses)),
  taskType: id,
  principalAi: id,
  workerId: id,
  createdAfter: moment,
  createdBefore: moment,
  search: optional(text({ min: 1, max: limits.searchLengthMax })),
};
export type TaskFilter = InputValues<typeof taskFilterFields>;

export const taskFilterInputs = inputs(taskFilterFields, {
  status: "Only tasks of this status.",
  principal_ai: "Only tasks of this principal.",
  worker_id: "Only tasks that this worker has, or had last.",
  created_after: "Created at this time or later; ISO 8601.",
  created_before: "Created before this time; ISO 8601.",
  search:
    "Only tasks with this text in their id, summary, body or inputs, in upper or lower case. A page reads 1 MiB of bodies and inputs; next_cursor goes on.",
});

interface FilterInput {
  readonly created_after?: string | null;
  readonly created_before?: string | null;
}

/** What the schema cannot say of it. */
export function taskFilterFault(filter: FilterInput, prefix = ""): Fault | null {
  for (const name of ["created_after", "created_before"] as const) {
    const value = filter[name] ?? null;
    if (value === null || !Number.isNaN(Date.parse(value))) continue;
    const field = `${prefix}${name}`;
    return { code: "invalid_request", field, detail: `${field} is not a time; send one in ISO 8601.` };
  }
  return null;
}

/** Everything but the text that is searched for, which may be in the store alone. */
export function matchesTask(task: Task, filter: Omit<TaskFilter, "search">): boolean {
  const { status, taskType, principalAi, workerId, createdAfter, createdBefore } = filter;
  const { spec, live, lastWorker, createdAt } = task;
  if (status !== null && task.status !== status) return false;
  if (taskType !== null && spec.taskType !== taskType) return false;
  if (principalAi !== null && spec.principalAi !== principalAi) return false;
  if (workerId !== null && lastWorker !== workerId && !live.some((one) => one.workerId === workerId)) return false;
  if (createdAfter !== null && createdAt < Date.parse(createdAfter)) return false;
  return createdBefore === null || createdAt < Date.parse(createdBefore);
}
