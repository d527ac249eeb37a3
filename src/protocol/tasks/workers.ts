/** The worker protocol of the AsyncGate document: polls, heartbeats, giving back (T1, T2, T7). */

import { releasedAnswer } from "../answers/reply-json.ts";
import { working } from "../operating/roles.ts";
import { command, ok } from "../operation.ts";
import { holdMs } from "../schema/fields.ts";
import { findJsonFault } from "../schema/free-json.ts";
import { limits } from "../schema/limits.ts";
import { anything, choice, flag, integer, list, nothing, optional, record, text } from "../schema/schema.ts";
import { leaseStates } from "../schema/vocabulary.ts";
import { capability, taskLeaseId, taskType, workerId } from "./task-fields.ts";
import * as shapes from "./task-shapes.ts";

const ends = [
  "lease_unknown",
  "lease_expired",
  "lease_released",
  "lease_revoked",
  "not_lease_holder",
  "task_unknown",
] as const;

export const pollTasks = command({
  name: "poll_tasks",
  tag: "Tasks",
  method: "POST",
  path: "/v1/lease",
  also: [{ method: "POST", path: "/lease" }],
  fields: {
    worker_id: workerId,
    capabilities: optional(
      list(capability, {
        maxItems: limits.taskRequiresMax,
        description: "What the worker can do; left out: as it said before.",
      }),
    ),
    max_tasks: optional(
      integer({ minimum: 1, maximum: limits.taskPollMax, description: "At most so many offers; 1 if left out." }),
    ),
    preferred_kinds: optional(
      list(taskType, { maxItems: limits.taskRequiresMax, description: "Types of tasks that it would rather have." }),
    ),
    accept_types: optional(
      list(taskType, {
        minItems: 1,
        maxItems: limits.taskRequiresMax,
        description: "The only types of tasks that it takes: others are not offered to it.",
      }),
    ),
    hold_ms: optional(holdMs),
    request_id: optional(
      text({
        minLength: 1,
        maxLength: limits.keyLengthMax,
        description: "Sent again, the same offers are the answer: for an answer that was lost (T1).",
        "x-error": "invalid_request_id",
      }),
    ),
    reclaim: optional(
      flag({ description: "After a restart: first the leases that this worker_id still has, with new fences." }),
    ),
  },
  roles: working,
  summary: "Polls for work",
  description:
    "An offer is no obligation: without an `accepted` receipt it ends by itself and costs nothing (T2). Several come in " +
    "`offers`, and so does one where `max_tasks` is over 1. With `hold_ms` the answer waits until there is work.",
  example: {
    worker_id: "worker.codegen-aws-i-1234567",
    capabilities: ["python", "rust", "code-generation"],
    max_tasks: 1,
    preferred_kinds: ["code.generate", "code.refactor"],
  },
  replies: [
    ok(shapes.offer, "An offer."),
    ok(shapes.offers, "Several, or several were asked for."),
    ok(nothing(), "No work: poll again after `Retry-After`.", 204),
  ],
  errors: ["invalid_worker_id", "invalid_task", "tenant_suspended", "lease_denied"],
  decode: (input, { tenant, actor, entropy }) => ({
    type: "poll_tasks",
    tenant,
    actor,
    entropy,
    workerId: input.worker_id,
    capabilities: input.capabilities ?? null,
    maxTasks: input.max_tasks ?? 1,
    preferredKinds: input.preferred_kinds ?? null,
    acceptTypes: input.accept_types ?? null,
    requestKey: input.request_id ?? null,
    reclaim: input.reclaim ?? false,
  }),
});

export const heartbeatTask = command({
  name: "heartbeat_task",
  tag: "Tasks",
  method: "POST",
  path: "/v1/lease/{lease_id}/heartbeat",
  also: [{ method: "POST", path: "/lease/{lease_id}/heartbeat" }],
  fields: {
    lease_id: taskLeaseId,
    progress: optional(anything({ description: "Any JSON: shown with the task, and never in the ledger (R4)." })),
  },
  roles: working,
  summary: "Extends a task's lease",
  description:
    "And those of its manifest. `directives` asks the worker to stop (`cancel`) or to make room (`preempt`).",
  example: { lease_id: "lse_01jcs8qm5t6w8y0a2b4d6f", progress: { percent: 40 } },
  replies: [ok(shapes.taskLease, "Extended.")],
  errors: [...ends, "invalid_task", "tenant_suspended"],
  refine: ({ progress }) => (progress === undefined || progress === null ? null : findJsonFault(progress, "progress")),
  decode: (input, { tenant, actor, entropy }) => ({
    type: "heartbeat_task",
    tenant,
    actor,
    entropy,
    leaseId: input.lease_id,
    progress: input.progress ?? undefined,
  }),
});

export const releaseTask = command({
  name: "release_task",
  tag: "Tasks",
  method: "POST",
  path: "/v1/lease/{lease_id}/release",
  also: [{ method: "POST", path: "/lease/{lease_id}/release" }],
  fields: { lease_id: taskLeaseId },
  roles: working,
  summary: "Gives an offer, or an accepted task, back",
  description: "It is queued again at once and costs no attempt. Giving back what has ended changes nothing.",
  example: { lease_id: "lse_01jcs8qm5t6w8y0a2b4d6f" },
  replies: [ok(record({ id: text(), state: choice(leaseStates) }), "How the lease ended.")],
  errors: ["lease_unknown", "not_lease_holder"],
  decode: (input, { tenant, actor, entropy }) => ({
    type: "release_task",
    tenant,
    actor,
    entropy,
    leaseId: input.lease_id,
  }),
  encode: releasedAnswer,
});
