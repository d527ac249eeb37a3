/** What those who watch a fleet are shown: the figures of now, agents with what they do, who waits for whom, and what was held. */
import { activities, pauseCauses } from "../../kernel/contract/activities.ts";
import { type Fields, list as listOf, record as recordOf } from "../../kernel/contract/field.ts";
import { intent, lease as leaseFields } from "../../kernel/contract/records.ts";
import { blocker as blockerFields } from "../../kernel/contract/replies.ts";
import { leaseParts } from "../leases/shapes.ts";
import { parts } from "../schema/from-fields.ts";
import { limits } from "../schema/limits.ts";
import { choice, flag, integer, list, map, nullable, record, sometimes, text, time } from "../schema/schema.ts";
import { taskStatuses, wireAgentStates } from "../schema/vocabulary.ts";

const sequence = integer({
  description:
    "The number of the last event that this is sure to include: `/v1/events?since=` from here on has no gap.",
});

const blockers: Fields = { blocked_by: listOf(recordOf(blockerFields)) };
const intents: Fields = { intents: listOf(recordOf(intent)) };
const leases: Fields = { leases: listOf(recordOf(leaseFields)) };

/** Counts by name. */
function counts(names: readonly string[], description: string) {
  return record(Object.fromEntries(names.map((name) => [name, integer()])), { description });
}

export const liveTaskStatuses = taskStatuses.filter((status) => !["succeeded", "failed", "canceled"].includes(status));
export const waitStates = ["WAITING", "STANDBY", "BINDING"] as const;
export const workerActivities = ["working", "idle", "lost"] as const;

export const overview = record(
  {
    at: time({ description: "When it was counted; it may be a second old." }),
    sequence,
    agents: counts(activities, "Agents, by what they do."),
    workers: counts(workerActivities, "Workers: with a task, without one, and not seen for a while."),
    leases: integer({ description: "Live ones." }),
    requests: counts(waitStates, "Requests that are not decided, by state."),
    tasks: counts(liveTaskStatuses, "Tasks that are not over, by status; dead letters among them."),
    obligations: counts(["OPEN", "OVERDUE"], "Obligations that are not closed, by state."),
    resources: counts(["READY", "FENCED", "WITHDRAWN"], "Declared resources, by state."),
    cells: counts(["READY", "GONE"], "Cells, by state."),
  },
  { title: "Overview" },
);

const openAsk = record(
  {
    request_id: text(),
    state: choice(waitStates),
    ...parts(intents),
    purpose: nullable(text()),
    submitted_at: time(),
    times_out_in_ms: integer({ description: "How long it can still wait; needs no clock of yours." }),
  },
  { title: "OpenAsk", description: "What an agent asks for and has not got." },
);

export const agentActivity = record(
  {
    agent_id: text({ description: "The agent's id." }),
    labels: map(text(), {}, limits.labelsMax),
    state: choice(wireAgentStates, { description: "Where it is in its unit of work (A1)." }),
    activity: choice(activities, { description: "What it does, in one of five words." }),
    since: time({ description: "About since when." }),
    paused_for: sometimes(choice(pauseCauses, { description: "Why it is PAUSED." })),
    paused_by_operator: flag(),
    attempts: integer({ description: "How often it died since its last grant." }),
    retry_in_ms: sometimes(integer({ description: "After DIE: when it is to ask again (W5)." })),
    ...parts(leases, { leases: "The oldest of them." }),
    leases_total: integer({ description: "How many it holds, listed or not." }),
    requests: list(openAsk),
  },
  { title: "AgentActivity" },
);

export const waiters = ["request", "agent", "task"] as const;
export const waitReasons = [
  "wait",
  "standby",
  "binding",
  "die",
  "paused",
  "agent_paused",
  "wounded",
  "lost",
  "resource",
  "resource_fenced",
  "cell_not_ready",
  "dependency",
  "delay",
] as const;

export const wait = record(
  {
    waiter: choice(waiters, {
      description: "A request that is not decided; an agent that has none and is to ask again; a task.",
    }),
    agent_id: sometimes(text()),
    task_id: sometimes(text()),
    request_id: sometimes(text()),
    reason: choice(waitReasons),
    detail: text({ description: "A sentence about it, and what would end it." }),
    since: time(),
    ends_in_ms: sometimes(
      integer({ description: "When it ends by itself: a timeout, the time to ask again, the end of a delay." }),
    ),
    ...parts(intents, { intents: "What it asks for; empty where that is not known." }),
    resources: list(text(), { description: "What it wants, died for or lost." }),
    purpose: nullable(text()),
    attempt: sometimes(integer({ description: "How often it died or was tried." })),
    ...parts(blockers, { blocked_by: "At most 16, leases first. Each is an edge: for whom it waits, and how long." }),
    blocked_by_total: integer({ description: "How many there are, listed or not." }),
    waits_for_tasks: sometimes(list(text(), { description: "Tasks that must succeed first." })),
  },
  { title: "Wait", description: "One that waits, with those it waits for." },
);

/** How a wait ended. */
export const waitEnds = ["granted", "timed_out", "canceled", "paused", "died"] as const;

const heldThen = record(
  {
    ...leaseParts,
    ended_at: nullable(time({ description: "null: it is live still." })),
    end_reason: nullable(text()),
  },
  { title: "HeldThen", description: "A lease that was held at that moment, as its record is now." },
);

const waitedThen = record(
  {
    request_id: text(),
    agent_id: text(),
    ...parts(intents, { intents: "What it asked for; empty for one that stood by and DIED." }),
    resources: list(text()),
    purpose: nullable(text()),
    submitted_at: time(),
    ended_as: nullable(choice(waitEnds, { description: "null: it waits still." })),
    ended_at: nullable(time()),
  },
  { title: "WaitedThen", description: "A request that waited, stood by or was being set up at that moment." },
);

export const history = record(
  {
    at: time({ description: "The moment that was asked for." }),
    complete: flag({ description: "false: history since then is pruned, and some may be missing." }),
    leases: list(heldThen),
    waits: list(waitedThen),
    next_cursor: nullable(text({ description: "null on the last page." })),
  },
  { title: "HistoryAt" },
);
