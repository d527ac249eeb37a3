/** What is alive of tasks and workers (T1–T13), and what a receipt is (R1–R6). Plain readonly data, like all records. */
import {
  choice,
  flag,
  flat,
  hidden,
  integer,
  json,
  list,
  listed,
  marked,
  named,
  number,
  omitted,
  optional,
  record,
  text,
  time,
  type Values,
  without,
} from "./field.ts";
import { taskInput } from "./inputs.ts";
import { intent } from "./records.ts";

export const taskStatuses = [
  "queued",
  "leased",
  "accepted",
  "retry_pending",
  "succeeded",
  "failed",
  "canceled",
  "dead",
] as const;
export type TaskStatus = (typeof taskStatuses)[number];
/** Final: the task goes to history. A dead one can be sent again, so it stays. */
export type FinalTaskStatus = "succeeded" | "failed" | "canceled";

const none: readonly never[] = [];

/** What was asked for, with what its type or the service decides where nothing was said. It never changes. */
export const taskSpec = {
  ...without(taskInput, "taskBody", "inputs", "delayMs"),
  intents: optional(list(record(intent)), none),
  traceparent: omitted(taskInput.traceparent),
};
export interface TaskSpec extends Values<typeof taskSpec> {}

/** Of these a rule decides what is stored; the others are carried as given. */
export const taskDecided = [
  "requires",
  "intents",
  "maxAttempts",
  "maxOffers",
  "leaseDurationMs",
  "requeueDelayMs",
  "dependsOn",
] as const;

/** An attempt's live lease, as far as the task must know of it: one, or two where it runs speculatively (T8). */
export const taskAttempt = {
  leaseId: text(),
  fence: integer(),
  workerId: text(),
  offeredAt: time(),
  /** Null while it is only an offer. */
  acceptedAt: optional(time()),
  /** Its accepted receipt; while it is an offer, that of an attempt beside it that was lost (T8). */
  receiptId: hidden(optional(text())),
  /** The task has ended without it; its worker is notified with the next heartbeat. */
  canceled: hidden(flag()),
  /** Who answers for it, as its accepted receipt says (R5); null: its worker. */
  custodian: hidden(optional(text())),
  /** Its worker was asked to make room for this task, and loses the lease if it has not done so by then (T8). */
  preemptFor: hidden(optional(text())),
  preemptBy: hidden(optional(time())),
};
export interface TaskAttempt extends Values<typeof taskAttempt> {}

/** A lease that ended before the task did: its worker may still send a late complete (T13). */
export const pastAttempt = {
  leaseId: text(),
  fence: integer(),
  workerId: text(),
  acceptedAt: optional(time()),
  receiptId: optional(text()),
  /** What it held has been granted to another since. */
  contested: flag(),
};
export interface PastAttempt extends Values<typeof pastAttempt> {}

export const obligationStates = ["OPEN", "OVERDUE", "CLOSED"] as const;

/** R5: opened by an accepted receipt, or by the escalation of a task that nobody accepted; closed by a complete one. */
export const obligation = {
  id: named("obligation_id", text()),
  state: choice(obligationStates),
  custodian: text(),
  openedAt: time(),
};
export interface Obligation extends Values<typeof obligation> {}

/** A receipt that was given a key, so that a repetition is known (R3). */
export const dedupeMark = { key: text(), fingerprint: text(), receiptId: text(), submittedBy: optional(text()) };
export interface DedupeMark extends Values<typeof dedupeMark> {}

/** R5: an open obligation on a task that this system does not own. Once it is closed, only the ledger has it. */
export const foreignObligation = {
  tenant: hidden(text()),
  taskId: text(),
  taskType: text(),
  /** The requester, as its acceptance says. */
  principalAi: text(),
  obligation: record(obligation),
  attempt: integer(),
  /** Who sent the acceptance, and which receipt that is; null: it was escalated since. */
  acceptedBy: optional(text()),
  receiptId: optional(text()),
  lastReceiptId: text(),
  dedupes: optional(list(record(dedupeMark)), none),
};
export interface ForeignObligation extends Values<typeof foreignObligation> {}

/** T8: the attempt whose worker was asked to make room for a task by then, and gets it; until then no other is asked. */
export const roomRequest = { leaseId: text(), workerId: text(), by: time() };
export interface RoomRequest extends Values<typeof roomRequest> {}

export const task = {
  tenant: hidden(text()),
  id: named("task_id", text()),
  spec: flat(record(taskSpec)),
  status: choice(taskStatuses),
  /** T10: its age, as agents have one (W1). */
  timestamp: hidden(integer()),
  createdAt: time(),
  /** The key that created it, which may cancel it. */
  createdBy: hidden(optional(text())),
  /** Not offered before: a delay, or the pause before a retry. */
  notBefore: named("not_before_at", optional(time())),
  /** Attempts that were accepted and count (T5). */
  attempts: integer(),
  /** Offers that came to nothing since the last acceptance (T2). */
  offers: optional(integer(), 0),
  live: named("leases", optional(list(listed(taskAttempt)), none)),
  past: hidden(optional(list(listed(pastAttempt)), none)),
  /** Of what it depends on, what has not yet succeeded. */
  waitingOn: optional(list(text()), none),
  obligation: optional(listed(obligation)),
  lastWorker: named("last_worker_id", optional(text())),
  /** Since when it could have been offered, as far as it is up to itself; null: since it was created (T8). */
  queuedAt: hidden(optional(time())),
  roomRequest: hidden(optional(record(roomRequest))),
  /** What its last attempt had for each intent, where one leaves the choice open (T10). */
  picked: hidden(optional(list(text()), none)),
  /** How often cells have failed to set its resources up since it was last offered, and why the last time (T10, G6). */
  bindFailures: hidden(optional(integer(), 0)),
  bindFailure: hidden(optional(text())),
  /** The last receipt about it: the cause of the next (R5). */
  lastReceiptId: optional(text()),
  dedupes: hidden(optional(list(record(dedupeMark)), none)),
  /** What its worker last reported with a heartbeat; never in the ledger (R4). */
  progress: optional(json()),
  /** Of a task that has ended: the complete receipt that ended it, when, and why. */
  winningReceiptId: optional(text()),
  endedAt: optional(time()),
  endReason: optional(text()),
  /** T12: of a creation with an idempotency key: tells a repetition from another task under the same key. */
  fingerprint: hidden(optional(text())),
  /** The size of its body and inputs as they are stored; 0: it has none (S4). */
  payloadBytes: hidden(optional(integer(), 0)),
};
export interface Task extends Values<typeof task> {}

/** Stored by position in this order, then an object of what is not usual. The order is fixed: databases have it. */
export const taskRow = [
  "tenant",
  "id",
  "status",
  "taskType",
  "principalAi",
  "taskPriority",
  "attempts",
  "createdAt",
  "timestamp",
  "maxAttempts",
  "maxOffers",
  "leaseDurationMs",
  "requeueDelayMs",
] as const;

/** What a task carries besides, apart from it because it is large and never changes. Stored as a list. */
export const payload = { tenant: text(), taskId: text(), taskBody: optional(text()), inputs: optional(json()) };
export interface Payload extends Values<typeof payload> {}

/** A task of history: with its payload, as nothing else keeps that. */
export interface EndedTask extends Task {
  readonly payload: Payload | null;
}

/** A poll that had a request_id: sent again, it gets the same offers (T1). */
const rememberedPoll = { requestKey: text(), leaseIds: list(text()) };

export const worker = {
  tenant: hidden(text()),
  /** `{type}.{instance}` */
  id: named("worker_id", text()),
  /** L13: the key that used it first; null: no key did, and only those above may use it. */
  keyId: hidden(optional(text())),
  capabilities: list(text()),
  firstSeenAt: time(),
  /** Kept to half a minute, because it is stored. */
  seenAt: time(),
  completed: integer(),
  failed: integer(),
  /** Accepted attempts of which the lease was lost. */
  lost: integer(),
  /** T8: 1 is perfect; an average that forgets slowly. */
  health: number(),
  polls: hidden(list(record(rememberedPoll))),
};
export interface Worker extends Values<typeof worker> {}

/** T6: what a tenant has set for a type of task (null: the service's default), and how long such tasks usually take. */
export const taskTypeRecord = {
  tenant: hidden(text()),
  taskType: text(),
  leaseDuration: named("lease_duration_ms", optional(integer())),
  maxAttempts: optional(integer()),
  maxOffers: optional(integer()),
  requeueDelay: named("requeue_delay_ms", optional(integer())),
  /** Past this share of the usual duration a task without a manifest is offered to a second worker (T8); null: never. */
  speculateShare: optional(number()),
  usualDuration: named("usual_duration_ms", optional(number())),
  samples: integer(),
  supervisor: optional(text()),
};
export interface TaskType extends Values<typeof taskTypeRecord> {}

export const receiptPhases = ["accepted", "complete", "escalate", "progress"] as const;
export type ReceiptPhase = (typeof receiptPhases)[number];
export const completeStatuses = ["success", "failure", "canceled"] as const;
export type CompleteStatus = (typeof completeStatuses)[number];
export const outcomeKinds = ["none", "response_text", "artifact_pointer", "mixed"] as const;
export type OutcomeKind = (typeof outcomeKinds)[number];
export const escalationClasses = ["owner", "capability", "trust", "policy", "scope", "other"] as const;
export type EscalationClass = (typeof escalationClasses)[number];

const name = marked("NA", optional(text()));
const lateText = marked("TBD", optional(text()));
const free = marked({}, optional(json()));

/**
 * R1: written once, never changed. The order is that of the text that is hashed (docs/ledger.md), and null is what the
 * wire calls NA or TBD. Its hash, and that of the one before, are added when it is stored (R6).
 */
export const receipt = {
  /** Its place in the ledger: 1 for the tenant's first; no number is left out. */
  sequence: integer({ min: 1 }),
  tenant: named("tenant_id", text()),
  id: named("receipt_id", text()),
  taskId: text(),
  phase: choice(receiptPhases),
  recipientAi: text(),
  sourceSystem: text(),
  dedupeKey: name,
  storedAt: time(),
  obligationId: name,
  parentTaskId: name,
  causedByReceiptId: name,
  attempt: optional(integer(), 0),
  fromPrincipal: name,
  forPrincipal: name,
  trustDomain: name,
  status: marked("NA", optional(choice(completeStatuses))),
  realtime: optional(flag(), false),
  taskType: text(),
  taskSummary: lateText,
  taskBody: lateText,
  inputs: free,
  expectedOutcomeKind: name,
  expectedArtifactMime: name,
  outcomeKind: marked("NA", optional(choice(outcomeKinds))),
  outcomeText: name,
  artifactLocation: name,
  artifactPointer: name,
  artifactChecksum: name,
  artifactSizeBytes: optional(integer(), 0),
  artifactMime: name,
  artifactRefs: marked([], optional(json())),
  escalationClass: marked("NA", optional(choice(escalationClasses))),
  escalationReason: lateText,
  escalationTo: name,
  retryRequested: optional(flag(), false),
  body: free,
  createdAt: time(),
  startedAt: optional(time()),
  completedAt: optional(time()),
  readAt: optional(time()),
  archivedAt: optional(time()),
  metadata: free,
  /** R7: the key that submitted it; null where there was none. Only the control plane writes it. */
  submittedBy: optional(text()),
};
export interface Receipt extends Values<typeof receipt> {}

/** A receipt while it is filled in: one object from the first field to the last, because each step of each task makes one. */
export type ReceiptDraft = { -readonly [K in keyof Receipt]: Receipt[K] };
