/** The worker protocol of the AsyncGate document: polls, heartbeats, giving back (T1, T2, T7). */

import { leaseStates } from "../../kernel/contract/records.ts";
import { type HeartbeatTask, taskCommands } from "../../kernel/contract/task-commands.ts";
import { releasedAnswer } from "../answers/reply-json.ts";
import { working } from "../operating/roles.ts";
import { ok, operationsOf } from "../operation.ts";
import { holding } from "../schema/fields.ts";
import { findJsonFault } from "../schema/free-json.ts";
import { inputs } from "../schema/from-fields.ts";
import { limits } from "../schema/limits.ts";
import { anything, choice, list, nothing, record, text } from "../schema/schema.ts";
import { leaseWords, workerIdWords } from "./task-fields.ts";
import * as shapes from "./task-shapes.ts";

const { command } = operationsOf("Tasks");

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
  path: "/v1/lease",
  also: [{ method: "POST", path: "/lease" }],
  fields: {
    ...inputs(taskCommands.poll_tasks, {
      worker_id: workerIdWords,
      capabilities: "What the worker can do; left out: as in its last poll.",
      max_tasks: "At most this many offers; 1 if left out.",
      preferred_kinds: "Types of tasks that it would rather have.",
      accept_types: "The only types of tasks that it takes: others are not offered to it.",
      request_id: "Sent again, the same offers are the answer: for an answer that was lost (T1).",
      reclaim: "After a restart: first the leases that this worker_id still has, with new fences.",
      accept:
        "Accept with the offer: its `accepted` receipt is in the ledger when the answer leaves, and the offer has its " +
        "`accepted_receipt_id`. An offer without one was not accepted, and is accepted by a receipt as usual.",
    }),
    ...holding,
  },
  roles: working,
  summary: "Polls for work",
  description:
    "An offer is not an obligation: without an `accepted` receipt it ends by itself and costs nothing (T2). Several come in " +
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
  errors: ["tenant_suspended", "lease_denied"],
});

export const heartbeatTask = command({
  name: "heartbeat_task",
  path: "/v1/lease/{lease_id}/heartbeat",
  also: [{ method: "POST", path: "/lease/{lease_id}/heartbeat" }],
  fields: inputs(taskCommands.heartbeat_task, {
    ...leaseWords,
    progress: "Any JSON, up to 16 KiB: shown with the task, and never in the ledger (R4).",
  }),
  roles: working,
  summary: "Extends a task's lease",
  description:
    "And those of its manifest; what of them is on a cell is renewed, with a new fence and a fresh token in `leases` (G8). " +
    "`directives` asks the worker to stop (`cancel`) or to make room (`preempt`).",
  example: { lease_id: "lse_01jcs8qm5t6w8y0a2b4d6f", progress: { percent: 40 } },
  replies: [ok(shapes.taskLease, "Extended.")],
  errors: [...ends, "invalid_task", "tenant_suspended", "resource_withdrawn", "lease_denied", "paused"],
  refine: ({ progress }) => (progress === undefined || progress === null ? null : findJsonFault(progress, "progress")),
});

const heartbeat = heartbeatTask.input;

export const heartbeatTasks = command({
  name: "heartbeat_tasks",
  path: "/v1/lease/heartbeats",
  counted: "heartbeats",
  fields: {
    heartbeats: list(heartbeat, {
      minItems: 1,
      maxItems: limits.batchMax,
      description: "Each as for one task; as many as fit into a body.",
      "x-apart": true,
    }),
  },
  roles: working,
  summary: "Extends the leases of many tasks",
  description:
    "Each has a status and a body of its own, in the order in which they were sent; one that is refused costs no other. The " +
    "answer waits for the slowest cell (G8), so send what is on a cell by itself.",
  example: { heartbeats: [{ lease_id: "lse_01jcs8qm5t6w8y0a2b4d6f" }] },
  replies: [ok(shapes.results(anything(), "TaskLeases"), "What each would have been answered alone.")],
  errors: heartbeatTask.errors,
  decode: ({ heartbeats }, sender) => ({
    type: "heartbeat_tasks",
    tenant: sender.tenant,
    actor: sender.actor,
    items: heartbeats.map((one) => {
      const checked = heartbeatTask.check(one);
      return checked.ok
        ? { ok: true, value: heartbeatTask.decode(checked.value, sender) as HeartbeatTask }
        : { ok: false, fault: checked };
    }),
  }),
});

export const releaseTask = command({
  name: "release_task",
  path: "/v1/lease/{lease_id}/release",
  also: [{ method: "POST", path: "/lease/{lease_id}/release" }],
  fields: inputs(taskCommands.release_task, leaseWords),
  roles: working,
  summary: "Releases an offer, or an accepted task",
  description: "It is queued again at once and costs no attempt. Releasing what has ended changes nothing.",
  example: { lease_id: "lse_01jcs8qm5t6w8y0a2b4d6f" },
  replies: [ok(record({ id: text(), state: choice(leaseStates) }), "How the lease ended.")],
  errors: ["lease_unknown", "not_lease_holder"],
  encode: releasedAnswer,
});
