/** What replies about tasks and workers look like. */

import { lease } from "../leases/shapes.ts";
import { intent } from "../schema/fields.ts";
import {
  anything,
  choice,
  flag,
  integer,
  list,
  nullable,
  number,
  record,
  sometimes,
  text,
  time,
} from "../schema/schema.ts";
import { directives, obligationStates, taskStatuses } from "../schema/vocabulary.ts";

const status = choice(taskStatuses);
const expiresInMs = integer({ description: "How long it can still be used; needs no clock of yours." });

export const createdTask = record({ task_id: text(), status }, { title: "CreatedTask" });

/** The work, as the AsyncGate document has it. */
const offeredTask = record(
  {
    task_id: text(),
    principal_ai: text(),
    task_type: text(),
    task_summary: nullable(text()),
    task_body: nullable(text()),
    payload_pointer: nullable(text()),
    inputs: anything(),
    expected_outcome_kind: nullable(text()),
    expected_artifact_mime: nullable(text()),
  },
  { title: "OfferedTask" },
);

export const offer = record(
  {
    lease_id: text(),
    lease_expires_at: time(),
    expires_in_ms: expiresInMs,
    fence: integer({ description: "Greater than every earlier fence of the tenant." }),
    attempt: integer({ description: "Which attempt this would be, or is." }),
    task: offeredTask,
    leases: sometimes(list(lease, { description: "Those of the task's manifest (T10)." })),
  },
  { title: "Offer", description: "Not an obligation yet: an `accepted` receipt makes it one." },
);

export const offers = record({ offers: list(offer) }, { title: "Offers" });

export const taskLease = record(
  {
    lease_expires_at: time(),
    expires_in_ms: expiresInMs,
    directives: list(choice(directives), { description: "What the worker is asked to do: stop, or make room." }),
    leases: sometimes(list(lease, { description: "Those of the task's manifest, extended with it." })),
  },
  { title: "TaskLease" },
);

const taskObligation = record({
  obligation_id: text(),
  state: choice(obligationStates),
  custodian: text(),
  opened_at: time(),
});

export const taskShape = {
  task_id: text(),
  status,
  task_type: text(),
  principal_ai: text(),
  task_summary: nullable(text()),
  payload_pointer: nullable(text()),
  expected_outcome_kind: nullable(text()),
  expected_artifact_mime: nullable(text()),
  task_priority: integer({ minimum: Number.MIN_SAFE_INTEGER }),
  requires: list(text()),
  intents: list(intent),
  max_attempts: integer(),
  max_offers: integer(),
  lease_duration_ms: integer(),
  requeue_delay_ms: integer(),
  depends_on: list(text()),
  waiting_on: list(text({ description: "Of what it depends on, what has not succeeded yet." })),
  concurrency_key: nullable(text()),
  concurrency_limit: integer(),
  speculative: flag(),
  preemptible: flag(),
  parent_task_id: nullable(text()),
  idempotency_key: nullable(text()),
  created_at: time(),
  not_before_at: nullable(time()),
  attempts: integer({ description: "Accepted attempts that count." }),
  offers: integer({ description: "Offers that came to nothing since it was last accepted." }),
  leases: list(
    record({
      lease_id: text(),
      worker_id: text(),
      fence: integer(),
      offered_at: time(),
      accepted_at: nullable(time()),
    }),
    { description: "Who has it now: one worker, or two where it runs speculatively." },
  ),
  obligation: nullable(taskObligation),
  last_worker_id: nullable(text()),
  last_receipt_id: nullable(text()),
  progress: anything({ description: "What its worker last said with a heartbeat." }),
  winning_receipt_id: nullable(text()),
  ended_at: nullable(time()),
  end_reason: nullable(text()),
};

export const task = record(taskShape, { title: "Task" });

export const explained = record(
  {
    task_id: text(),
    status,
    waiting_for: list(anything({ description: "`{kind, detail, …}`: one thing that it waits for." })),
  },
  { title: "Explained" },
);

export const taskTypeShape = record(
  {
    task_type: text(),
    lease_duration_ms: nullable(integer()),
    max_attempts: nullable(integer()),
    max_offers: nullable(integer()),
    requeue_delay_ms: nullable(integer()),
    speculate_share: nullable(
      number({ description: "Past so many times the usual duration a second worker is offered it." }),
    ),
    usual_duration_ms: nullable(number({ description: "How long such tasks take, as seen." })),
    samples: integer({ description: "How many of them were seen." }),
  },
  { title: "TaskType" },
);

export const worker = record(
  {
    worker_id: text(),
    capabilities: list(text()),
    health: number({ description: "1 is perfect; completions and losses move it." }),
    completed: integer(),
    failed: integer(),
    lost: integer({ description: "Accepted attempts whose lease it lost." }),
    leases: integer({ description: "Tasks that it has now." }),
    first_seen_at: time(),
    seen_at: time({ description: "To half a minute." }),
  },
  { title: "Worker" },
);

/** The answer that each of many would have been given alone. */
export function results(body: Parameters<typeof list>[0], title: string) {
  return record({ results: list(record({ status: integer(), body })) }, { title });
}
