/** Tasks: creating them, listing them, canceling and redriving them (T10–T13). */

import { taskId } from "../../kernel/contract/inputs.ts";
import { page } from "../leases/shapes.ts";
import { delegating, following } from "../operating/roles.ts";
import { ok, operationsOf } from "../operation.ts";
import * as receipts from "../receipts/receipt-shapes.ts";
import { checkOf } from "../schema/check.ts";
import { paging } from "../schema/fields.ts";
import { inputs } from "../schema/from-fields.ts";
import { limits } from "../schema/limits.ts";
import { anything, list, nullable, record, text as textSchema } from "../schema/schema.ts";
import { decodeTask, newTask, taskExample, taskFault, taskFields } from "./task-fields.ts";
import { taskFilterFault, taskFilterInputs } from "./task-filter.ts";
import { createdAnswer, taskAnswer } from "./task-json.ts";
import * as shapes from "./task-shapes.ts";

const { command, query } = operationsOf("Tasks");

const example = { task_id: "T-01jcs8qm5t6w8y0a2b4d6f" };

const creationErrors = [
  "invalid_task",
  "invalid_resource",
  "reserved_resource",
  "invalid_predicate",
  "invalid_units",
  "invalid_target",
  "manifest_too_large",
  "duplicate_intent",
  "dependency_unknown",
  "idempotency_key_reused",
  "lease_denied",
  "tenant_suspended",
] as const;

export const createTask = command({
  name: "create_task",
  path: "/v1/tasks",
  fields: taskFields,
  roles: delegating,
  summary: "Creates a task",
  description:
    "A worker that polls is offered it: the most urgent first, and the older ones grow more urgent. With an " +
    "`idempotency_key` it can be sent again (T12).",
  example: taskExample,
  replies: [
    ok(shapes.createdTask, "Created.", 201),
    ok(shapes.createdTask, "Sent before: the first task, as it is now."),
  ],
  errors: creationErrors,
  refine: taskFault,
  encode: createdAnswer,
});

export const createTasks = command({
  name: "create_tasks",
  path: "/v1/tasks/batch",
  counted: "tasks",
  fields: {
    tasks: list(newTask, {
      minItems: 1,
      maxItems: limits.batchMax,
      description: "Each as for one; as many as fit into a body.",
      "x-apart": true,
    }),
  },
  roles: delegating,
  summary: "Creates many tasks",
  description:
    "Each has a status and a body of its own, in the order in which they were sent; a bad one costs no other.",
  example: { tasks: [taskExample] },
  replies: [ok(shapes.results(anything(), "CreatedTasks"), "What each would have been answered alone.")],
  errors: creationErrors,
  decode: ({ tasks }, { tenant, actor }) => ({
    type: "create_tasks",
    tenant,
    actor,
    items: tasks.map((task) => {
      const checked = checkOf(newTask)(task);
      const fault = checked.ok ? taskFault(checked.value) : checked;
      return checked.ok && fault === null
        ? { ok: true, value: decodeTask(checked.value) }
        : { ok: false, fault: fault ?? noFault };
    }),
  }),
});

const noFault = { code: "invalid_request", field: "", detail: "The task is not well-formed; send another." } as const;

export const getTask = query({
  name: "get_task",
  path: "/v1/tasks/{task_id}",
  fields: inputs({ taskId }, {}),
  roles: following,
  summary: "Shows a task, its result and its receipts",
  description: `The receipts are the first ${limits.taskReceiptsMax} of them, in order; \`/v1/receipts?task_id=\` has all.`,
  example,
  replies: [
    ok(
      record(
        {
          ...shapes.taskShape,
          task_body: nullable(textSchema()),
          inputs: anything(),
          result: nullable(receipts.receipt),
          receipts: list(receipts.receipt),
        },
        { title: "TaskWithReceipts" },
      ),
      "The task; `result` is the receipt that ended it.",
    ),
  ],
  errors: ["task_unknown"],
});

export const listTasks = query({
  name: "list_tasks",
  path: "/v1/tasks",
  fields: {
    ...taskFilterInputs,
    ...paging,
  },
  refine: (input) => taskFilterFault(input),
  roles: following,
  summary: "Lists tasks",
  description:
    "First those that are alive, dead letters among them, the oldest first; then those that have ended, the youngest " +
    "first. A page may be short where few match, and still have a next one.",
  example: { status: "queued", task_type: "code.generate", limit: 50 },
  replies: [ok(page("tasks", shapes.task), "One page.")],
});

export const explainTask = query({
  name: "explain_task",
  path: "/v1/tasks/{task_id}/explain",
  fields: inputs({ taskId }, {}),
  roles: following,
  summary: "Says why a task is not running",
  description: "Everything that it waits for: a worker, a slot, a time, other tasks, the lease of another (T11).",
  example,
  replies: [ok(shapes.explained, "What it waits for; nothing if it runs or has ended.")],
  errors: ["task_unknown"],
});

export const cancelTask = command({
  name: "cancel_task",
  path: "/v1/tasks/{task_id}/cancel",
  roles: delegating,
  summary: "Cancels a task",
  description:
    "For its creator, supervisors and operators. Its worker is notified at the next heartbeat; an open obligation is closed " +
    "(T13). A task that has ended stays as it is.",
  example: { ...example, reason: "no longer needed" },
  replies: [ok(shapes.task, "The task as it is now.")],
  errors: ["task_unknown"],
  encode: taskAnswer,
});

export const redriveTask = command({
  name: "redrive_task",
  path: "/v1/tasks/{task_id}/redrive",
  roles: delegating,
  summary: "Takes a task out of the dead letters",
  description: "It is queued again, with all its attempts (T5).",
  example,
  replies: [ok(shapes.task, "The task as it is now.")],
  errors: ["task_unknown", "task_not_dead", "tenant_suspended"],
  encode: taskAnswer,
});
