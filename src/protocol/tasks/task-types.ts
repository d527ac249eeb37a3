/** Types of tasks, whose defaults a tenant can set (T6), and the workers that do them (T8). */

import { taskType, taskTypeSettings } from "../../kernel/contract/inputs.ts";
import { page } from "../leases/shapes.ts";
import { above, following } from "../operating/roles.ts";
import { ok, operationsOf } from "../operation.ts";
import { paging } from "../schema/fields.ts";
import { inputs } from "../schema/from-fields.ts";
import * as shapes from "./task-shapes.ts";

const { command, query } = operationsOf("Tasks");

export const setTaskType = command({
  name: "set_task_type",
  method: "PUT",
  path: "/v1/task-types/{task_type}",
  fields: {
    ...inputs({ taskType }, {}),
    ...inputs(taskTypeSettings, {
      lease_duration_ms: "How long a worker has without a heartbeat; capped at a day with a warning (L2).",
      max_attempts: "Accepted attempts before a task is dead.",
      max_offers: "Offers in a row that nobody accepts before a task is dead.",
      requeue_delay_ms: "The pause before a retry.",
      speculate_share:
        "Past this many times its usual duration a task without a manifest is offered to a second worker.",
      supervisor: "Who gets their policy escalations, where a task names nobody (T5).",
    }),
  },
  roles: above,
  summary: "Sets what tasks of a type get where they say nothing",
  description:
    "All are set: what is left out, or null, is the service's default again. For tasks created from then on; a supervisor at once.",
  example: { task_type: "code.generate", lease_duration_ms: 120_000, max_attempts: 5, speculate_share: 2 },
  replies: [ok(shapes.setTaskType, "As it is now.")],
});

export const listTaskTypes = query({
  name: "list_task_types",
  path: "/v1/task-types",
  fields: { ...paging },
  roles: following,
  summary: "Lists types of tasks",
  description: "Those that were set, and those whose usual duration is known. null is the service's default.",
  example: { limit: 50 },
  replies: [ok(page("task_types", shapes.taskTypeShape), "One page.")],
});

export const listWorkers = query({
  name: "list_workers",
  path: "/v1/workers",
  fields: { ...paging },
  roles: following,
  summary: "Lists workers",
  description: "The workers that have polled, with their capabilities and their health (T8).",
  example: { limit: 50 },
  replies: [ok(page("workers", shapes.worker), "One page.")],
});
