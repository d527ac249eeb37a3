/**
 * Who waits for whom: requests that are not decided, agents without one that are to ask again, and tasks that cannot be
 * offered; each with what is in its way now.
 */
import type { Engine } from "../../engine/engine.ts";
import {
  type Agent,
  type Intent,
  intent as intentFields,
  type Millis,
  type Request,
} from "../../kernel/contract/records.ts";
import { refuse } from "../../kernel/contract/refusals.ts";
import { type Blocker, blocker as blockerFields } from "../../kernel/contract/replies.ts";
import type { Task } from "../../kernel/contract/task-records.ts";
import type { State, WaitingFor } from "../../kernel/kernel.ts";
import {
  activityOfAgent,
  describeOpen,
  explain,
  findRecord,
  inTheWayOf,
  isOpen,
  namesOverlap,
  parseResourceName,
  type ResourceName,
  recordsOf,
} from "../../kernel/views.ts";
import type { QueryOf } from "../../protocol/answers/queries.ts";
import { show, type WireObject } from "../../protocol/schema/convert.ts";
import { isoTime } from "../../protocol/schema/text.ts";
import type { Service } from "../service.ts";
import { listPage, type QueryResult } from "./scan.ts";

type Waiter =
  | { readonly waiter: "request"; readonly request: Request }
  | { readonly waiter: "agent"; readonly agent: Agent }
  | { readonly waiter: "task"; readonly task: Task };

/** This many are described between two turns of the loop; each may have thousands of others in its way. */
const describedAtOnce = 16;

export async function listWaits({ engine }: Service, query: QueryOf<"list_waits">): Promise<QueryResult> {
  const { tenant } = query;
  const resource = query.resource === null ? null : parseResourceName(query.resource);
  if (resource !== null && "problem" in resource)
    return { reply: refuse("invalid_resource", resource.problem, { field: "resource" }), now: engine.now() };
  const { reply } = await listPage<Waiter>(engine, query, {
    reader: query,
    name: "waits",
    items: (state) => waitersOf(state, query),
    keyOf,
    isWanted: (waiter) => resource === null || namesOf(waiter).some((name) => overlaps(name, resource)),
    reply: async (found, nextCursor) => {
      const waits: WireObject[] = [];
      for (let done = 0; done < found.length; done += describedAtOnce) {
        for (const one of await describe(engine, tenant, found.slice(done, done + describedAtOnce))) waits.push(one);
      }
      return { type: "wait_page", waits, nextCursor };
    },
  });
  return { reply, now: engine.now() };
}

function* waitersOf(state: State, query: QueryOf<"list_waits">): Generator<Waiter> {
  const { tenant, agentId, taskId, waiter } = query;
  if ((waiter ?? "request") === "request" && taskId === null) {
    for (const request of recordsOf(state, tenant, "request")) {
      // A task's own request is described with the task.
      const isMeant = agentId === null || request.agentId === agentId;
      if (isMeant && isOpen(request) && request.holder === request.agentId) yield { waiter: "request", request };
    }
  }
  if ((waiter ?? "agent") === "agent" && taskId === null) {
    for (const agent of named(state, tenant, "agent", agentId)) if (isToReturn(agent)) yield { waiter: "agent", agent };
  }
  if ((waiter ?? "task") === "task" && agentId === null) {
    for (const task of named(state, tenant, "task", taskId)) if (mayWait(task)) yield { waiter: "task", task };
  }
}

function named<K extends "agent" | "task">(state: State, tenant: string, kind: K, id: string | null) {
  if (id === null) return recordsOf(state, tenant, kind);
  const found = findRecord(state, tenant, kind, id);
  return found === undefined ? [] : [found];
}

/** It has something in mind; whether it has no request, its activity says. */
function isToReturn({ state, restarting, pausedByOperator }: Agent): boolean {
  return state === "PAUSED" || restarting || pausedByOperator;
}

/** Not one that waits for a worker only. */
function mayWait({ status, spec, waitingOn }: Task): boolean {
  if (status !== "queued" && status !== "retry_pending") return false;
  return status === "retry_pending" || spec.intents.length > 0 || waitingOn.length > 0;
}

/** In order of arrival, which as text takes leading zeros; then by id. */
function keyOf(one: Waiter): string {
  switch (one.waiter) {
    case "request":
      return `1${String(one.request.arrival).padStart(16, "0")}`;
    case "agent":
      return `2${one.agent.id}`;
    case "task":
      return `3${one.task.id}`;
  }
}

function namesOf(one: Waiter): readonly string[] {
  switch (one.waiter) {
    case "request":
      return one.request.intents.map(({ resource }) => resource);
    case "agent":
      return one.agent.concerns.map(({ resource }) => resource);
    case "task":
      return one.task.spec.intents.map(({ resource }) => resource);
  }
}

function overlaps(name: string, wanted: ResourceName): boolean {
  const parsed = parseResourceName(name);
  return !("problem" in parsed) && namesOverlap(wanted, parsed);
}

/** Those that were decided or have moved on since they were found are left out. */
function describe(engine: Engine, tenant: string, waiters: readonly Waiter[]): Promise<WireObject[]> {
  return engine.ask((state, now) =>
    waiters.map((one) => waitOf(state, tenant, one, now)).filter((one) => one !== null),
  );
}

function waitOf(state: State, tenant: string, one: Waiter, now: Millis): WireObject | null {
  switch (one.waiter) {
    case "request":
      return requestWait(state, tenant, one.request.id, now);
    case "agent":
      return agentWait(state, tenant, one.agent.id, now);
    case "task":
      return taskWait(state, tenant, one.task.id, now);
  }
}

const requestReasons = { WAITING: "wait", STANDBY: "standby", BINDING: "binding" } as const;
const requestDetails = {
  wait: "In line; it is granted in its turn, as soon as nothing is in its way.",
  standby: "It would die; it is granted as soon as it fits, else it ends in DIE.",
  binding: "Cells are setting its leases up.",
} as const;

function requestWait(state: State, tenant: string, requestId: string, now: Millis): WireObject | null {
  const open = describeOpen(state, tenant, requestId);
  if (open === null) return null;
  const { request, wait } = open;
  const reason = requestReasons[request.state as keyof typeof requestReasons];
  return {
    waiter: "request",
    agent_id: request.agentId,
    request_id: request.id,
    reason,
    detail: requestDetails[reason],
    since: isoTime(request.submittedAt),
    ends_in_ms: Math.max(0, request.timeoutAt - now),
    ...wanted(request.intents, request.purpose),
    ...edges(wait.blockers, wait.blockersTotal, now),
  };
}

/** An agent without an open request: others are listed with their requests. */
function agentWait(state: State, tenant: string, agentId: string, now: Millis): WireObject | null {
  const described = activityOfAgent(state, tenant, agentId, now, 0);
  if (described === null || described.requests.length > 0 || !isToReturn(described.agent)) return null;
  const { agent, since } = described;
  const { retryAt, attempts, concerns } = agent;
  const reason = agentReason(agent);
  const { blockers, total } = inTheWayOf(state, tenant, agentId);
  return {
    waiter: "agent",
    agent_id: agentId,
    reason,
    detail: agentDetails[reason],
    since: isoTime(since),
    ...(retryAt !== null && { ends_in_ms: Math.max(0, retryAt - now) }),
    intents: [],
    resources: concerns.map(({ resource }) => resource),
    purpose: null,
    ...(attempts > 0 && { attempt: attempts }),
    ...edges(blockers, total, now),
  };
}

function agentReason({ restarting, pausedByOperator, pausedFor }: Agent) {
  if (pausedByOperator) return "agent_paused";
  return restarting ? "lost" : (pausedFor ?? "wait");
}

const agentDetails = {
  agent_paused: "Its operator has paused it; unpause it.",
  paused: "Its last verdict was PAUSED: something it wants is fenced, withdrawn or not ready, and somebody must act.",
  die: "It got DIE and rolls back; it keeps its age and asks again.",
  wounded: "An older agent took what it held; it rolls back and asks again.",
  wait: "Its wait is over; it is to ask again.",
  lost: "It restarts, or lost its leases; nothing was heard of it since.",
} as const;

/** Reasons that somebody, or time, stands behind; a task that waits for a worker waits for nobody in particular. */
const taskReasons: readonly string[] = [
  "resource",
  "resource_fenced",
  "cell_not_ready",
  "binding",
  "dependency",
  "delay",
];

function taskWait(state: State, tenant: string, taskId: string, now: Millis): WireObject | null {
  const task = findRecord(state, tenant, "task", taskId);
  const reasons = explain(state, tenant, taskId, now).filter(({ kind }) => taskReasons.includes(kind));
  const [first] = reasons;
  if (task === undefined || first === undefined) return null;
  const inTheWay = reasons.find((one): one is WaitingFor & { readonly kind: "resource" } => one.kind === "resource");
  const tasks = reasons.flatMap((one) => (one.kind === "dependency" ? one.taskIds : []));
  const until = reasons.flatMap((one) => ("until" in one ? [one.until] : [])).at(0);
  return {
    waiter: "task",
    task_id: taskId,
    reason: first.kind,
    detail: reasons.map(({ detail }) => detail).join(" "),
    since: isoTime(task.queuedAt ?? task.createdAt),
    ...(until !== undefined && { ends_in_ms: Math.max(0, until - now) }),
    ...wanted(task.spec.intents, task.spec.taskSummary),
    ...(task.attempts > 0 && { attempt: task.attempts }),
    ...edges(inTheWay?.blockers ?? [], inTheWay?.total ?? 0, now),
    ...(tasks.length > 0 && { waits_for_tasks: tasks }),
  };
}

function wanted(intents: readonly Intent[], purpose: string | null): WireObject {
  return {
    intents: intents.map((one) => show(intentFields, one)),
    resources: intents.map(({ resource }) => resource),
    purpose,
  };
}

function edges(blockers: readonly Blocker[], total: number, now: Millis): WireObject {
  return { blocked_by: blockers.map((one) => show(blockerFields, one, { now })), blocked_by_total: total };
}
