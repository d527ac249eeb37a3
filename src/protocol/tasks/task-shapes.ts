/** What replies about tasks and workers look like. */
import { only, without } from "../../kernel/contract/field.ts";
import { taskReplies } from "../../kernel/contract/replies.ts";
import {
  obligation,
  taskAttempt,
  task as taskFields,
  taskSpec,
  taskStatuses,
  taskTypeRecord,
  worker as workerFields,
} from "../../kernel/contract/task-records.ts";
import { registeredBy } from "../leases/shapes.ts"; // It registers the shape of a lease.
import { outputs, parts, registerShape, type Words } from "../schema/from-fields.ts";
import { anything, choice, integer, list, nullable, record, text } from "../schema/schema.ts";
import * as views from "../schema/views.ts";
import { taskWords } from "./task-fields.ts";

const status = choice(taskStatuses);

export const createdTask = record(parts(views.createdTask, { warnings: "What was capped (L2)." }), {
  title: "CreatedTask",
});

registerShape(views.offeredTask, record(parts(views.offeredTask), { title: "OfferedTask" }));

const lastsWords = { expires_in_ms: "How long it can still be used; needs no clock of yours." };

export const offer = record(
  parts(views.offer, {
    ...lastsWords,
    fence: "Greater than every earlier fence of the tenant.",
    attempt: "Which attempt this would be, or is.",
    accepted_receipt_id:
      "The `accepted` receipt, where there is one already: it is an obligation, and the work can begin.",
    leases: "Those of the task's manifest (T10).",
  }),
  {
    title: "Offer",
    description: "Not an obligation yet: an `accepted` receipt makes it one, unless the poll accepted it.",
  },
);
registerShape(views.offer, offer);

export const offers = record(parts(views.offers), { title: "Offers" });

export const taskLease = record(
  parts(views.taskLease, {
    ...lastsWords,
    directives: "What the worker is asked to do: stop, or make room.",
    leases: "Those of the task's manifest, extended with it.",
  }),
  { title: "TaskLease" },
);

export const obligationWords: Words<typeof obligation> = {
  obligation_id: "The obligation's id.",
  state: "OPEN, OVERDUE once its lease was lost, or CLOSED.",
  custodian: "Who answers for it now.",
  opened_at: "When the task was accepted.",
};

export const taskShape = {
  ...outputs(without(taskFields, "spec", "live", "obligation"), {
    status: "Where it is in its life (T13).",
    not_before_at: "Not offered before.",
    attempts: "Accepted attempts that count.",
    offers: "Offers that came to nothing since it was last accepted.",
    waiting_on: "Of what it depends on, what has not succeeded yet.",
    last_worker_id: "The worker that had it last.",
    last_receipt_id: "The last receipt about it.",
    progress: "What its worker last reported with a heartbeat.",
    winning_receipt_id: "The receipt that ended it.",
    ended_at: "When it ended.",
    end_reason: "Why it ended.",
  }),
  ...outputs(taskSpec, taskWords),
  leases: list(
    record(
      outputs(taskAttempt, {
        worker_id: "The worker that has it.",
        offered_at: "When it was offered.",
        accepted_at: "When it was accepted; null while it is an offer.",
      }),
    ),
    { description: "The workers that have it now: one, or two where it runs speculatively." },
  ),
  obligation: nullable(record(outputs(obligation, obligationWords))),
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

const taskTypeProperties = outputs(taskTypeRecord, {
  lease_duration_ms: "How long a worker has without a heartbeat.",
  max_attempts: "Accepted attempts before a task is dead.",
  max_offers: "Offers in a row that nobody accepts before a task is dead.",
  requeue_delay_ms: "The pause before a retry.",
  speculate_share: "Past this many times the usual duration a second worker is offered it.",
  usual_duration_ms: "How long such tasks usually take.",
  samples: "How many of them were measured.",
  supervisor: "Who gets their policy escalations (T5).",
});

export const taskTypeShape = record(taskTypeProperties, { title: "TaskType" });
export const setTaskType = record(
  { ...taskTypeProperties, ...parts(only(taskReplies.task_type, "warnings"), { warnings: "What was capped (L2)." }) },
  { title: "SetTaskType" },
);

export const worker = record(
  {
    ...outputs(workerFields, {
      worker_id: "`{type}.{instance}`.",
      capabilities: "What it can do.",
      first_seen_at: "Its first poll.",
      seen_at: "Its last poll, to half a minute.",
      completed: "Tasks that it completed.",
      failed: "Tasks that it reported as failed.",
      lost: "Accepted attempts whose lease it lost.",
      health: "1 is perfect; completions and losses move it.",
    }),
    ...registeredBy,
    leases: integer({ description: "Tasks that it has now." }),
  },
  { title: "Worker" },
);

/** The answer that each of many would have been given alone. */
export function results(body: Parameters<typeof list>[0], title: string) {
  return record({ results: list(record({ status: integer(), body })) }, { title });
}
