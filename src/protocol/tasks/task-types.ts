/** Types of tasks, whose defaults a tenant can set (T6), and the workers that do them (T8). */

import { page } from "../leases/shapes.ts";
import { above, following } from "../operating/roles.ts";
import { command, ok, query } from "../operation.ts";
import { pageOf, paging } from "../schema/fields.ts";
import { limits } from "../schema/limits.ts";
import { integer, number, optional } from "../schema/schema.ts";
import { taskType } from "./task-fields.ts";
import * as shapes from "./task-shapes.ts";

export const setTaskType = command({
  name: "set_task_type",
  tag: "Tasks",
  method: "PUT",
  path: "/v1/task-types/{task_type}",
  fields: {
    task_type: taskType,
    lease_duration_ms: optional(
      integer({ minimum: limits.ttlMsMin, maximum: limits.taskLeaseMsMax, "x-error": "invalid_task" }),
    ),
    max_attempts: optional(integer({ minimum: 1, maximum: limits.taskAttemptsMax, "x-error": "invalid_task" })),
    max_offers: optional(integer({ minimum: 1, maximum: limits.taskOffersMax, "x-error": "invalid_task" })),
    requeue_delay_ms: optional(integer({ maximum: limits.taskDelayMsMax, "x-error": "invalid_task" })),
    speculate_share: optional(
      number({
        description: "Past so many times its usual duration a task without a manifest is offered to a second worker.",
        "x-error": "invalid_task",
      }),
    ),
  },
  roles: above,
  summary: "Sets what tasks of a type get where they say nothing",
  description:
    "All five are set: what is left out, or null, is the service's default again. For tasks created from then on.",
  example: { task_type: "code.generate", lease_duration_ms: 120_000, max_attempts: 5, speculate_share: 2 },
  replies: [ok(shapes.taskTypeShape, "As it is now.")],
  errors: ["invalid_task"],
  decode: (input, { tenant, actor, entropy }) => ({
    type: "set_task_type",
    tenant,
    actor,
    entropy,
    taskType: input.task_type,
    settings: {
      leaseDurationMs: input.lease_duration_ms ?? null,
      maxAttempts: input.max_attempts ?? null,
      maxOffers: input.max_offers ?? null,
      requeueDelayMs: input.requeue_delay_ms ?? null,
      speculateShare: input.speculate_share ?? null,
    },
  }),
});

export const listTaskTypes = query({
  name: "list_task_types",
  tag: "Tasks",
  method: "GET",
  path: "/v1/task-types",
  fields: { ...paging },
  roles: following,
  summary: "Lists types of tasks",
  description: "Those that were set, and those whose usual duration is known. null is the service's default.",
  example: { limit: 50 },
  replies: [ok(page("task_types", shapes.taskTypeShape), "One page.")],
  decode: (input, { tenant, actor }) => ({ type: "list_task_types", tenant, actor, ...pageOf(input) }),
});

export const listWorkers = query({
  name: "list_workers",
  tag: "Tasks",
  method: "GET",
  path: "/v1/workers",
  fields: { ...paging },
  roles: following,
  summary: "Lists workers",
  description: "Who has polled, with what they can do and how they have done (T8).",
  example: { limit: 50 },
  replies: [ok(page("workers", shapes.worker), "One page.")],
  decode: (input, { tenant, actor }) => ({ type: "list_workers", tenant, actor, ...pageOf(input) }),
});
