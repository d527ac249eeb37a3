/**
 * What answers show beside whole records, each part described once: its type, its schema and its JSON are derived from
 * it, as those of records are from the contract.
 */
import {
  always,
  choice,
  fixed,
  flag,
  flat,
  from,
  integer,
  list,
  named,
  omitted,
  only,
  optional,
  record,
  remaining,
  text,
  time,
  whereGiven,
} from "../../kernel/contract/field.ts";
import { agent, lease, resource, wireAgentStates } from "../../kernel/contract/records.ts";
import { observationUpdate, refusal, refusalContext, taskReplies, verdicts } from "../../kernel/contract/replies.ts";
import { obligation, payload, receipt, task, taskSpec } from "../../kernel/contract/task-records.ts";
import { leaseStates, unknownState } from "./vocabulary.ts";

/** Null for a dry run. */
const requestId = optional(text());

/** The table of verdicts (W9): what an acquire, or the question after its request, is answered. */
export const granted = {
  verdict: fixed("GRANTED"),
  ...verdicts.granted,
  requestId,
};
export const waiting = { verdict: fixed("WAIT"), ...verdicts.waiting, requestId };
export const standby = { verdict: fixed("STANDBY"), ...verdicts.standby, requestId };
export const died = {
  verdict: fixed("DIE"),
  error: fixed("die"),
  detail: always(
    "An older agent is in the way; roll back, let go of what you hold, and ask again after retry_after_ms.",
    text(),
  ),
  ...verdicts.died,
};
export const paused = { verdict: fixed("PAUSED"), error: fixed("paused"), ...verdicts.paused };

/** An error of the kernel. Which context goes with it depends on the code. */
export const refusalBody = { ...refusal, ...whereGiven(refusalContext) };

/** A registration shows the credential and no more than the instance needs. */
export const registered = {
  id: agent.id,
  agentToken: text(),
  agentTokenExpiresInMs: integer(),
  ...only(agent, "priority", "epoch"),
  state: choice(wireAgentStates),
};

/** L8: the truth about a lease. */
export const verifiedLease = {
  ...only(lease, "id", "state", "resource", "predicate", "fence"),
  expiresInMs: integer(),
};

/** What is left of a lease that is not extended or was released (L5). */
export const leaseEnd = {
  id: text(),
  state: choice([...leaseStates, unknownState]),
  code: named("error", omitted(optional(text()))),
};

const leasesTotal = named("leases_total", omitted(optional(integer())));

/** The answer to a release of several. */
export const leaseEnds = { leases: list(record(leaseEnd)), total: leasesTotal };

/** The answer to heartbeats: those that are extended, and those that are not. */
export const heartbeats = {
  leases: list(record(lease)),
  lost: list(record(leaseEnd)),
  notExtended: omitted(optional(list(record(leaseEnd)))),
  total: leasesTotal,
  directives: always([], list(text())),
  observation: observationUpdate,
};

/** A resource of a cell. */
export const hosted = {
  ...only(resource, "name", "driver", "capacity", "hardware"),
  ready: flag(),
  fault: resource.fault,
  fenceReason: named("fenced", optional(text())),
  withdrawn: flag(),
  leases: integer(),
};

/** What a token was narrowed by, as its verifier found it (G4). */
export const tokenCaveat = {
  type: text(),
  expiresAt: omitted(optional(time())),
  path: omitted(optional(text())),
  operations: omitted(optional(list(text()))),
  program: omitted(optional(text())),
  hardware: omitted(optional(text())),
  bytesMax: omitted(optional(integer())),
};

/** A master key of tokens, without the key. */
export const tokenKey = { id: named("key_id", text()), createdAt: time(), retiresAt: optional(time()) };

/** The work, as the AsyncGate document has it: nine fields of an offer's task and payload, and its trace. */
export const offeredTask = {
  taskId: from("task.id", text()),
  principalAi: ofSpec("principalAi"),
  taskType: ofSpec("taskType"),
  taskSummary: ofSpec("taskSummary"),
  taskBody: from("payload?.taskBody", payload.taskBody),
  payloadPointer: ofSpec("payloadPointer"),
  inputs: from("payload?.inputs", payload.inputs),
  expectedOutcomeKind: ofSpec("expectedOutcomeKind"),
  expectedArtifactMime: ofSpec("expectedArtifactMime"),
  traceparent: ofSpec("traceparent"),
};

function ofSpec<K extends keyof typeof taskSpec>(key: K): (typeof taskSpec)[K] {
  return from(`task.spec.${key}`, taskSpec[key]);
}

/** How long a task's lease lasts, and the leases of the task's manifest (T10). */
const lasts = {
  leaseExpiresAt: from("lease.expiresAt", time()),
  expiresInMs: from("lease.expiresAt", remaining()),
};
const leases = omitted(optional(list(record(lease)), []));

export const offer = {
  leaseId: from("lease.id", text()),
  ...lasts,
  fence: from("lease.fence", integer()),
  attempt: integer(),
  acceptedAs: named("accepted_receipt_id", omitted(optional(text()))),
  task: from("", record(offeredTask)),
  leases,
};
export const offers = { offers: list(record(offer)) };
export const taskLease = { ...lasts, directives: taskReplies.task_lease.directives, leases };
export const createdTask = {
  taskId: from("task.id", text()),
  status: from("task.status", task.status),
  warnings: taskReplies.task.warnings,
};

const inChain = { hash: text(), previousHash: text() };

/** A receipt in full, with its place in the ledger's chain. */
export const storedReceipt = { receipt: flat(record(receipt)), schemaVersion: fixed("1.0"), ...inChain };

const nextCursor = optional(text());
const sequence = omitted(optional(integer()));
export const leasePage = { leases: list(record(lease)), sequence, nextCursor };
export const receiptPage = { receipts: list(record(storedReceipt)), nextCursor };

/** What the sender of many receipts needs to know of each. */
export const receiptMark = {
  receiptId: from("receipt.id", text()),
  taskId: from("receipt.taskId", text()),
  phase: from("receipt.phase", receipt.phase),
  sequence: from("receipt.sequence", receipt.sequence),
  storedAt: from("receipt.storedAt", time()),
  ...inChain,
};

/** R5: what a custodian answers for, with the task that it is about. */
export const taskObligation = {
  ...obligation,
  deadline: named("deadline_at", optional(time())),
  closedAt: optional(time()),
  taskId: text(),
  ...only(taskSpec, "taskType", "taskSummary", "principalAi"),
  ...only(task, "status", "lastReceiptId"),
  /** The task is another system's: only what its receipts say of it is known. */
  foreign: flag(),
};

/** What is signed comes first, in the order in which it is signed. */
export const ledgerHead = {
  tenant: named("tenant_id", text()),
  sequence: integer(),
  hash: text(),
  at: time(),
  keyId: text(),
  signature: text(),
  publicKey: text(),
};
