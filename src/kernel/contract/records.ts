/**
 * What is alive, as plain readonly data. A change replaces the record, so what was passed on (in a reply, an event, a
 * batch being committed) stays as it was then. From these records alone a kernel is restored and continues.
 */
import { pauseCauses } from "./activities.ts";
import {
  choice,
  flag,
  hidden,
  integer,
  json,
  list,
  map,
  named,
  omitted,
  optional,
  record,
  text,
  time,
  type Values,
} from "./field.ts";
import { endedLeaseStates, type Lease, lease } from "./lease-records.ts";
import { limits } from "./limits.ts";
import { keyScopes, type Policy, roles } from "./policy-records.ts";
import { predicates } from "./predicates.ts";
import type { Cell, Resource } from "./resource-records.ts";
import type { ForeignObligation, Payload, Task, TaskType, Worker } from "./task-records.ts";
import type { Tenant } from "./tenant-records.ts";
import { type Concern, concern, type Write } from "./write-records.ts";

export {
  type EndedLeaseState,
  type Lease,
  type LeaseState,
  lease,
  leaseRepeating,
  leaseRow,
  leaseStates,
} from "./lease-records.ts";
export { type Role, roles } from "./policy-records.ts";
export {
  type Cell,
  type CellBinding,
  type CellEndCode,
  type CellResource,
  cell,
  cellBinding,
  cellEndCodes,
  cellResource,
  cellStates,
  type Resource,
  resource,
} from "./resource-records.ts";
export {
  quotasDefault,
  type Strategy,
  settingsDefault,
  strategies,
  type Tenant,
  type TenantQuotas,
  type TenantSettings,
  tenant,
  tenantQuotas,
  tenantSettings,
} from "./tenant-records.ts";

/** Milliseconds since 1970 by the control plane's clock (L7). */
export type Millis = number;

export const intent = {
  predicate: choice(predicates),
  resource: text(),
  units: integer(),
  /** The target of a rename (C7). */
  to: optional(text()),
  /** "any": the resource is a pattern, and one declared resource that it matches is chosen. */
  pick: omitted(optional(choice(["any"]))),
};
export interface Intent extends Values<typeof intent> {}

/**
 * WAITING and STANDBY hold nothing. BINDING has leases that cells are setting up. The others are outcomes, remembered
 * for a while for callers that ask late.
 */
export const requestStates = [
  "WAITING",
  "STANDBY",
  "BINDING",
  "GRANTED",
  "DIED",
  "TIMED_OUT",
  "CANCELED",
  "PAUSED",
  "BIND_FAILED",
] as const;
export type RequestState = (typeof requestStates)[number];

export const request = {
  tenant: hidden(text()),
  id: named("request_id", text()),
  agentId: text(),
  holder: hidden(text()),
  /** The client's idempotency key, and the fingerprint of what was asked under it (W10). */
  key: hidden(optional(text())),
  fingerprint: hidden(text()),
  state: choice(requestStates),
  intents: list(record(intent)),
  /** Where an intent has `pick`: for each intent the name that it stands for now. Empty where none has. */
  picked: hidden(optional(list(text()), [] as readonly string[])),
  ttl: hidden(integer()),
  idleTimeout: hidden(optional(integer())),
  purpose: optional(text()),
  tokens: hidden(flag()),
  /** Place in the queue among the tenant's requests; never given twice. */
  arrival: hidden(integer()),
  submittedAt: time(),
  waitTimeout: named("wait_timeout_ms", integer()),
  timeoutAt: hidden(time()),
  /** Since when its agent could not see what it asks for: the update that the grant carries reaches back to here (A4). */
  observeSince: hidden(optional(time())),
  warnings: hidden(list(text())),
  /** Of a granted request: its leases, in the manifest's order, and those of them that have ended. */
  leaseIds: list(text()),
  ended: hidden(list(record(lease))),
  /** Why it was PAUSED, or could not be bound. */
  fateReason: hidden(optional(text())),
  /** Of one that stood by and DIED: which attempt that was, and the hint that it got (W5, W14). */
  attempt: hidden(optional(integer())),
  retryAfterMs: hidden(optional(integer())),
  /** Once nothing of it is alive, it is remembered until then. */
  forgetAt: hidden(optional(time())),
};
export interface Request extends Values<typeof request> {}

/** What the store keeps of a granted request with a key when memory forgets it: how its grant ended (W10). */
export const endedRequest = {
  tenant: text(),
  agentId: text(),
  key: text(),
  fingerprint: text(),
  leaseId: text(),
  endedAs: choice(endedLeaseStates),
  endReason: optional(text()),
};
export interface EndedRequest extends Values<typeof endedRequest> {}

export const agentStates = [
  "PLANNING",
  "ACQUIRING",
  "EXECUTING",
  "PAUSED",
  "VERIFYING",
  "COMPLETED",
  "ABORTED",
] as const;
export type AgentState = (typeof agentStates)[number];

/** On the wire DIE_RESTART is a state like the others (A1). */
export const wireAgentStates = [...agentStates, "DIE_RESTART"] as const;

const noLabels: Readonly<Record<string, string>> = {};

const noConcerns: readonly Concern[] = [];

export const agent = {
  tenant: hidden(text()),
  id: named("agent_id", text()),
  labels: optional(map(text(), { max: limits.labelsMax }), noLabels),
  state: choice(agentStates),
  /** DIE_RESTART stands beside the state, to which the agent returns (A1, L9). */
  restarting: hidden(optional(flag(), false)),
  /** Paused by its operator (W9). */
  pausedByOperator: optional(flag(), false),
  priority: named("priority_timestamp", integer()),
  /** How often this unit of work has died since its last grant (W5). */
  attempts: integer(),
  epoch: integer(),
  registeredAt: time(),
  /** L13: the key that registered it; null: no key did, and only those above may take it up. */
  registeredBy: hidden(optional(text())),
  /** Since when it is PAUSED; the update of A4 reaches back to here. */
  pausedAt: optional(time()),
  pausedFor: omitted(optional(choice(pauseCauses))),
  /** After DIE: when it is to ask again (W5). */
  retryAt: omitted(optional(time())),
  /** Kept until the agent holds it and an update had it, or its unit of work is over (A4). */
  concerns: hidden(optional(list(record(concern)), noConcerns)),
  /** There were more than are kept, so that the next update is truncated. */
  concernsCut: hidden(optional(flag(), false)),
  /** Since when it has neither lease nor request; after a week it is forgotten (S4). */
  idleSince: hidden(time()),
  /** The size of its digest as it is stored; 0: it has none (S4). */
  digestBytes: hidden(optional(integer(), 0)),
  /** The key that registered or took it up last, and what that was narrowed to: its token is too, for as long as it lives. */
  keyId: hidden(optional(text())),
  scopes: hidden(optional(record(keyScopes))),
};
export interface Agent extends Values<typeof agent> {}

export const resolutionStrategies = ["RETRY", "ABORT", "MERGE"] as const;
const assumed = { resource: text(), version: text() };
/** A2: an agent's checkpoint. */
export const digest = {
  tenant: hidden(text()),
  agentId: text(),
  checkpointId: text(),
  resumePoint: text(),
  context: json(),
  intentBacklog: list(record(intent)),
  resolutionStrategy: choice(resolutionStrategies),
  assumptions: optional(list(record(assumed)), [] as readonly Values<typeof assumed>[]),
  priority: named("priority_timestamp", integer()),
  savedAt: time(),
};
export interface Digest extends Values<typeof digest> {}

/** What only ever grows, apart from the tenant's settings because it changes with every grant. */
export const counters = {
  tenant: text(),
  fence: integer(),
  priority: integer(),
  arrival: integer(),
  /** The greatest epoch of an agent that was forgotten; one that registers again begins above it (A3). */
  epochFloor: integer(),
  /** Until then the store may know keys of ended requests (W10); whether of ended tasks, and until when short ones (T12). */
  keysStoredUntil: optional(time(), 0),
  taskKeysStored: optional(flag(), true),
  taskKeysStoredUntil: optional(time(), 0),
  /** Lease time booked in the present window (L10). */
  leaseTimeMs: integer(),
  windowStart: time(),
  /** Receipts in the tenant's ledger: the last one's sequence number (R6). */
  receipts: optional(integer(), 0),
  /** Their size, about as it is stored (R8); of receipts since this is counted. */
  receiptBytes: optional(integer(), 0),
};
export interface Counters extends Values<typeof counters> {}

/** A credential; only its hash is known. */
export const key = {
  id: named("key_id", text()),
  hash: hidden(text()),
  role: choice(roles),
  tenant: named("tenant_id", text()),
  label: optional(text()),
  /** What it is narrowed to (S4); null: to nothing. */
  scopes: optional(record(keyScopes)),
  createdAt: time(),
  /** It is refused from then on, and with it the agents' tokens that were drawn from it; null: it has no end. */
  expiresAt: optional(time()),
  /** When it, or a token drawn from it, was last shown; kept to the minute, because it is stored. */
  lastUsedAt: optional(time()),
  /** When its secret was last replaced. The secret before is good until `formerUntil`. */
  rotatedAt: optional(time()),
  formerHash: hidden(optional(text())),
  formerUntil: optional(time()),
  /** Counts its secrets: an agent's token ends with the secret that it was drawn with. */
  generation: hidden(optional(integer({ min: 1 }), 1)),
};
export interface Key extends Values<typeof key> {}

/** Every kind of record, by the name under which it is stored. */
export interface RecordOf {
  readonly tenant: Tenant;
  readonly counters: Counters;
  readonly agent: Agent;
  readonly digest: Digest;
  readonly resource: Resource;
  readonly cell: Cell;
  readonly request: Request;
  readonly lease: Lease;
  readonly key: Key;
  readonly task: Task;
  readonly payload: Payload;
  readonly task_type: TaskType;
  readonly worker: Worker;
  readonly foreign_obligation: ForeignObligation;
  readonly write: Write;
  readonly policy: Policy;
}
export type RecordKind = keyof RecordOf;

/** A record with its kind: what a snapshot holds and a restore takes. */
export type StoredRecord = { [K in RecordKind]: { readonly kind: K; readonly record: RecordOf[K] } }[RecordKind];
