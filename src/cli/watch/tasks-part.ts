/** Tasks that are watched. Their events say status and attempts; who works on one has to be read. */
import { eventTypes } from "../../protocol/schema/vocabulary.ts";
import type { LeaseholdEvent } from "../../sdk/events.ts";
import type { Task } from "../../sdk/wire.ts";
import type { ListedSince } from "../pages.ts";
import type { Column } from "../table.ts";
import type { Effect, Part } from "./part.ts";

/** As the fields of the list's filters are. */
interface Filter {
  readonly status?: unknown;
  readonly task_type?: unknown;
}

export function tasksPart(
  read: () => Promise<ListedSince<Task>>,
  columns: readonly Column<Task>[],
  filter: Filter,
): Part<Task> {
  return {
    command: "tasks ls",
    name: "task",
    columns,
    none: "There are no tasks.",
    count: (length) => `${length} ${length === 1 ? "task" : "tasks"}`,
    keyOf: ({ task_id: id }) => id,
    read,
    types: eventTypes.filter((type) => type.startsWith("task.")),
    effectOf: (event, known) => effectOf(event as TaskEvent, known, filter),
    later: (task) => task,
    json: (task) => ({ task }),
  };
}

type TaskEvent = LeaseholdEvent & {
  readonly task_id: string;
  readonly task_type: string;
  readonly status: Task["status"];
  readonly attempt: number;
};

function effectOf(
  event: TaskEvent,
  known: ReadonlyMap<string, Task>,
  { status, task_type: type }: Filter,
): Effect<Task> {
  const { task_id: id } = event;
  if (type !== undefined && event.task_type !== type) return {};
  if (status !== undefined && event.status !== status) return { gone: [id] };
  const task = known.get(id);
  return {
    isStale: true,
    ...(task !== undefined && { put: [{ ...task, status: event.status, attempts: event.attempt }] }),
  };
}
