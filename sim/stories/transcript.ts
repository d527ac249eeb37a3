/**
 * How a story writes a reply, the events and the changed records of a step: one line each, without what no rule
 * reads.
 */
import type { KernelEvent } from "../../src/kernel/contract/events.ts";
import type { Agent, Lease, Millis, Request, StoredRecord } from "../../src/kernel/contract/records.ts";
import type { Blocker, Observation, Reply } from "../../src/kernel/contract/replies.ts";
import type { Receipt, Task } from "../../src/kernel/contract/task-records.ts";

/** When every story begins; its times are counted from here. */
export const beginning: Millis = 1_700_000_000_000;

export function replyLine(reply: Reply): string {
  switch (reply.type) {
    case "refused":
      return words("REFUSED", reply.code, reply.reason, reply.winningReceiptId);
    case "granted": {
      const leases = reply.leases.map(({ id, fence }) => `${id} fence ${fence}`);
      return list("GRANTED", ...leases, ...reply.warnings, updateOf(reply.observation));
    }
    case "waiting":
      return words("WAIT", reply.requestId, behind(reply.blockers));
    case "standby":
      return words("STANDBY", reply.requestId, behind(reply.blockers));
    case "died":
      return words(
        "DIE",
        `attempt ${reply.attempt}, retry after ${duration(reply.retryAfterMs)}`,
        behind(reply.blockers),
      );
    case "paused":
      return words("PAUSED", reply.reason, reply.resource);
    case "agent":
      return list("OK", `${reply.agent.id} ${agentState(reply.agent)}`, updateOf(reply.observation));
    case "lease":
      return list("OK", `${reply.lease.id} ${reply.lease.state}`, updateOf(reply.observation));
    case "leases":
      return list(
        "OK",
        ...reply.leases.map(({ id, state }) => `${id} ${state}`),
        ...reply.lost.map(({ id, code, lease }) => `${id} lost ${lease?.state ?? code ?? ""}`),
      );
    case "resumed":
      return list(
        "OK",
        `${reply.agent.id} epoch ${reply.agent.epoch}`,
        ...reply.leases.map(reissued),
        updateOf(reply.observation),
      );
    case "task":
      return words("OK", reply.task.id, reply.task.status);
    case "offers": {
      const offers = reply.offers.map(({ task, lease, leases }) =>
        words(task.id, `under ${lease.id} fence ${lease.fence}`, leases.length > 0 && `with ${ids(leases)}`),
      );
      return offers.length === 0 ? "OFFERED nothing" : list("OFFERED", ...offers);
    }
    case "task_lease":
      return list("OK", `${reply.lease.id} ${reply.lease.state}`, ...reply.directives.map((one) => `directive ${one}`));
    case "receipt":
      return words("OK", reply.receipt.id);
    case "receipt_known":
      return words("OK", reply.receiptId, "known");
    case "obligation":
      return words("OK", reply.obligation.id, reply.obligation.state, "with", reply.obligation.custodian);
    case "cell_enrolled":
    case "cell":
      return words("OK", `cell ${reply.cell.id}`, reply.cell.state);
    case "resource":
      return words("OK", reply.resource.name);
    case "forgotten":
      return "OK";
    case "revoked":
      return words("OK", `${reply.count} revoked`);
    case "digest":
    case "request_key_unknown":
    case "task_key_unknown":
    case "payload_away":
    case "task_type":
    case "tenant":
    case "key":
    case "policy":
    case "done":
      return "OK";
  }
}

/** A4. */
function updateOf(observation: Observation | null | undefined): string | null {
  if (observation == null) return null;
  const { since, truncated, changes } = observation;
  const texts = changes.map(
    ({ agentId, predicate, resource, version }) =>
      `${agentId} ${predicate} ${resource}${version === null ? "" : ` (version ${version})`}`,
  );
  const news = texts.length === 0 ? "nothing" : texts.join(", ");
  return `update since ${moment(since)}: ${news}${truncated ? ", truncated" : ""}`;
}

export function eventLine(event: KernelEvent): string {
  switch (event.type) {
    case "agent.transitioned":
      return `${event.type} ${event.agentId} ${event.from} → ${event.to}`;
    case "request.died":
      return words(event.type, event.agentId, event.requestId, `attempt ${event.attempt}`);
    case "receipt.stored":
      return words(event.type, receiptText(event.receipt));
    default:
      if ("lease" in event) return words(event.type, event.lease.id, reasonOf(event.reason));
      if ("request" in event) return words(event.type, event.request.id, reasonOf(event.reason));
      if ("task" in event) return words(event.type, event.task.id, event.workerId, reasonOf(event.reason));
      if ("agent" in event) return words(event.type, event.agent.id);
      if ("resource" in event) return words(event.type, event.resource.name);
      if ("cell" in event) return words(event.type, event.cell.id);
      return event.type;
  }
}

/** Null for bookkeeping that a story leaves out: counters, keys, payloads, workers. */
export function recordLine({ kind, record }: StoredRecord, alive: boolean): string | null {
  switch (kind) {
    case "lease":
      return leaseText(record);
    case "request":
      return requestText(record, alive);
    case "agent":
      return `agent ${record.id} ${agentState(record)}, priority ${record.priority - beginning}${record.epoch > 1 ? `, epoch ${record.epoch}` : ""}`;
    case "task":
      return taskText(record);
    case "resource":
      return words(
        `resource ${record.name}`,
        record.fenced ? "FENCED" : record.withdrawn ? "WITHDRAWN" : "OPEN",
        record.capacity !== null && `capacity ${record.capacity}`,
      );
    case "cell":
      return words(`cell ${record.id}`, record.state, record.withdrawn && "withdrawn");
    case "tenant":
    case "counters":
    case "digest":
    case "key":
    case "policy":
    case "payload":
    case "task_type":
    case "worker":
    case "foreign_obligation":
    case "write":
      return null;
  }
}

function leaseText(lease: Lease): string {
  const { id, state, holder, predicate, resource, units, fence, generation } = lease;
  const ended = state === "RELEASED" || state === "EXPIRED" || state === "REVOKED";
  if (ended) return words(id, state, reasonOf(lease.endReason), lease.version !== null && `version ${lease.version}`);
  const until = state === "HELD" ? lease.heldUntil : state === "CLOSING" ? lease.cellBy : lease.expiresAt;
  const facts = [
    `${id} ${state}: ${holder} ${predicate} ${resource}${units > 1 ? ` x${units}` : ""}`,
    `fence ${fence}`,
    generation > 1 && `generation ${generation}`,
    until !== null && `until ${moment(until)}`,
    lease.claimBy !== null && `claim by ${moment(lease.claimBy)}`,
  ];
  return facts.filter(Boolean).join(", ");
}

function requestText({ id, state, agentId, timeoutAt, fateReason }: Request, alive: boolean): string {
  if (!alive) return `${id} forgotten`;
  return words(
    id,
    state,
    `${agentId}${state === "WAITING" || state === "STANDBY" ? `, until ${moment(timeoutAt)}` : ""}`,
    reasonOf(fateReason),
  );
}

function taskText({ id, status, attempts, offers, live, obligation, notBefore, endReason }: Task): string {
  const facts = [
    `${id} ${status}`,
    live.length > 0 && `with ${live.map(({ workerId }) => workerId).join(" and ")}`,
    attempts > 0 && `attempts ${attempts}`,
    offers > 0 && `offers ${offers}`,
    obligation !== null && `obligation ${obligation.state} with ${obligation.custodian}`,
    notBefore !== null && `not before ${moment(notBefore)}`,
    endReason,
  ];
  return facts.filter(Boolean).join(", ");
}

function receiptText({ id, phase, status, escalationReason, escalationTo }: Receipt): string {
  return words(id, phase, status, reasonOf(escalationReason), escalationTo !== null && `to ${escalationTo}`);
}

function agentState({ state, restarting, attempts }: Agent): string {
  return words(restarting ? `DIE_RESTART from ${state}` : state, attempts > 0 && `after ${attempts} DIE`);
}

function moment(at: Millis): string {
  return duration(at - beginning);
}

function duration(ms: number): string {
  return ms % 1_000 === 0 ? `${ms / 1_000}s` : `${ms}ms`;
}

function behind(blockers: readonly Blocker[]): string {
  const names = blockers.map(({ leaseId, requestId, holder }) => `${leaseId ?? requestId} of ${holder}`);
  return names.length === 0 ? "" : `behind ${names.join(" and ")}`;
}

function reissued({ id, generation, fence }: Lease): string {
  return `${id} generation ${generation} fence ${fence}`;
}

function ids(leases: readonly Lease[]): string {
  return leases.map(({ id }) => id).join(" and ");
}

function reasonOf(reason: string | null): string | null {
  return reason === null || reason === "" ? null : `(${reason})`;
}

function words(...parts: readonly (string | null | undefined | false)[]): string {
  return parts.filter(Boolean).join(" ");
}

function list(first: string, ...parts: readonly (string | null)[]): string {
  return `${first} ${parts.filter(Boolean).join(", ")}`.trimEnd();
}
