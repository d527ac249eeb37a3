/** Canceling and redriving all tasks that match, as one operation of the server with progress. */
import { optional as optionalField, text as textField } from "../../kernel/contract/field.ts";
import { reason } from "../../kernel/contract/inputs.ts";
import { above, watching } from "../operating/roles.ts";
import { ok, operationsOf } from "../operation.ts";
import type { Fault } from "../schema/explain.ts";
import { inputs } from "../schema/from-fields.ts";
import { limits } from "../schema/limits.ts";
import { choice, flag, integer, nullable, optional, record, text, time } from "../schema/schema.ts";
import { type TaskFilter, taskFilterFault, taskFilterInputs } from "./task-filter.ts";

const { command, query } = operationsOf("Tasks");

const filter = record(taskFilterInputs, {
  title: "TaskFilter",
  description:
    "What is to be done to which tasks: all that match, when the operation comes to them. Name at least one.",
});
const dryRun = optional(flag({ description: "Count what matches, and change nothing." }));
const begun = record({ operation_id: text({ description: "For `GET /v1/operations/{operation_id}`." }) });

type FilterInput = Readonly<Partial<Record<string, string | null>>>;

function filterFault({ filter: given }: { readonly filter: FilterInput }): Fault | null {
  const isEmpty = Object.values(given).every((value) => value === null || value === undefined);
  if (isEmpty) {
    const detail = "The filter is empty; name at least one of its fields, such as a status.";
    return { code: "invalid_request", field: "filter", detail };
  }
  return taskFilterFault(given, "filter.");
}

function readFilter(given: FilterInput): TaskFilter {
  const of = (name: string): string | null => given[name] ?? null;
  return {
    status: of("status") as TaskFilter["status"],
    taskType: of("task_type"),
    principalAi: of("principal_ai"),
    workerId: of("worker_id"),
    createdAfter: of("created_after"),
    createdBefore: of("created_before"),
    search: of("search"),
  };
}

const description =
  "What matches is decided on the server, and done task by task with other commands in between (L14). Tasks that come " +
  "later are not covered. A restart of the server ends the operation; what it had done is done, and it can be sent again.";

export const cancelTasks = command({
  name: "cancel_tasks",
  path: "/v1/tasks/cancel",
  fields: { filter, dry_run: dryRun, ...inputs({ reason: optionalField(reason) }, {}) },
  roles: above,
  summary: "Cancels all tasks that match",
  description,
  example: { filter: { status: "queued", task_type: "code.generate" }, dry_run: true },
  replies: [ok(begun, "Begun.", 202)],
  errors: ["too_many_in_flight"],
  refine: filterFault,
  decode: (input, { tenant, actor }) => ({
    type: "bulk_tasks",
    tenant,
    actor,
    action: "cancel",
    filter: readFilter(input.filter),
    dryRun: input.dry_run ?? false,
    reason: input.reason ?? null,
  }),
});

export const redriveTasks = command({
  name: "redrive_tasks",
  path: "/v1/tasks/redrive",
  fields: { filter, dry_run: dryRun },
  roles: above,
  summary: "Takes all tasks that match out of the dead letters",
  description,
  example: { filter: { task_type: "code.generate" } },
  replies: [ok(begun, "Begun.", 202)],
  errors: ["too_many_in_flight"],
  refine: filterFault,
  decode: (input, { tenant, actor }) => ({
    type: "bulk_tasks",
    tenant,
    actor,
    action: "redrive",
    filter: { ...readFilter(input.filter), status: "dead" },
    dryRun: input.dry_run ?? false,
    reason: null,
  }),
});

export const operationStates = ["matching", "running", "done", "failed"] as const;

export const getOperation = query({
  name: "get_operation",
  path: "/v1/operations/{operation_id}",
  fields: inputs(
    { operationId: textField({ min: 1, max: limits.idLengthMax }) },
    { operation_id: "As it was answered." },
  ),
  roles: watching,
  summary: "Shows how far an operation is",
  description: "It is known for an hour after its end, by the server that it was sent to and until that restarts.",
  example: { operation_id: "opr_01jcs8qm5t6w8y0a" },
  replies: [
    ok(
      record(
        {
          operation_id: text(),
          action: choice(["cancel", "redrive"]),
          state: choice(operationStates, {
            description: "`matching` while it looks for tasks; `failed`: it could not go on, and `detail` says why.",
          }),
          dry_run: flag(),
          matched: integer({ description: "Tasks that match, as far as is known." }),
          done: integer(),
          failed: integer({ description: "Tasks that could not be changed, mostly because they ended meanwhile." }),
          detail: nullable(text()),
          begun_at: time(),
          ended_at: nullable(time()),
        },
        { title: "BulkOperation" },
      ),
      "The operation.",
    ),
  ],
  errors: ["operation_unknown"],
});
