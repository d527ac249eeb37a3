/** Written by scripts/generate.ts from src/kernel/contract. Run `npm run generate` to write it again. */

import type { Policy } from "../../kernel/contract/policy-records.ts";
import { type Predicate, predicates } from "../../kernel/contract/predicates.ts";
import {
  type Agent,
  type Cell,
  type Counters,
  type Digest,
  type Key,
  type Lease,
  type LeaseState,
  leaseStates,
  type RecordKind,
  type RecordOf,
  type Request,
  type Resource,
  type Tenant,
} from "../../kernel/contract/records.ts";
import type { ForeignObligation, Payload, Task, TaskType, Worker } from "../../kernel/contract/task-records.ts";
import type { Write } from "../../kernel/contract/write-records.ts";
import type { ListColumns } from "../../store/store.ts";
import { constants, isEmpty } from "./stored-values.ts";

type Columns<Row extends readonly unknown[]> = { readonly [Place in keyof Row]: readonly Row[Place][] };

/** Shared by the million records that have none of it. */
const none: readonly never[] = [];

function tenantSettingsFrom(from: Tenant["settings"]): Tenant["settings"] {
  return {
    strategy: from.strategy ?? "wait_die",
    ttlMsDefault: from.ttlMsDefault ?? 60000,
    ttlMsMax: from.ttlMsMax ?? 300000,
    waitTimeoutMsDefault: from.waitTimeoutMsDefault ?? 30000,
    waitTimeoutMsMax: from.waitTimeoutMsMax ?? 600000,
    claimWithinMs: from.claimWithinMs ?? 10000,
    retryMsBase: from.retryMsBase ?? 50,
    retryMsCap: from.retryMsCap ?? 5000,
    supervisor: from.supervisor ?? null,
    idleTimeoutMsByType: from.idleTimeoutMsByType ?? {},
    foreignReceipts: from.foreignReceipts ?? false,
  };
}

function tenantQuotasFrom(from: Tenant["quotas"]): Tenant["quotas"] {
  return {
    leasesMax: from.leasesMax ?? 2000000,
    waitersMax: from.waitersMax ?? 200000,
    agentsMax: from.agentsMax ?? 1000000,
    resourcesMax: from.resourcesMax ?? 100000,
    patternsMax: from.patternsMax ?? 10000,
    tasksMax: from.tasksMax ?? 2000000,
    receiptsMax: from.receiptsMax ?? 100000000,
    receiptBytesMax: from.receiptBytesMax ?? 107374182400,
    foreignObligationsMax: from.foreignObligationsMax ?? 100000,
    connectionsMax: from.connectionsMax ?? 16000,
    subscriptionsMax: from.subscriptionsMax ?? 16000,
    heldMax: from.heldMax ?? 16000,
    unreadBytesMax: from.unreadBytesMax ?? 67108864,
    requestsPerSecondMax: from.requestsPerSecondMax ?? null,
    artifactsMax: from.artifactsMax ?? 1000000,
    artifactBytesMax: from.artifactBytesMax ?? 10737418240,
    payloadBytesMax: from.payloadBytesMax ?? 8589934592,
    digestBytesMax: from.digestBytesMax ?? 2147483648,
    memoryBytesMax: from.memoryBytesMax ?? 2147483648,
    leaseTimeMsMax: from.leaseTimeMsMax ?? null,
    tenantLeaseTimeMsMax: from.tenantLeaseTimeMsMax ?? null,
    kinds: from.kinds ?? {},
  };
}

function tenantFrom(from: Tenant): Tenant {
  return {
    id: from.id,
    suspended: from.suspended,
    suspendReason: from.suspendReason ?? null,
    settings: tenantSettingsFrom(from.settings),
    quotas: tenantQuotasFrom(from.quotas),
    createdAt: from.createdAt,
  };
}

export function readTenant(text: string): Tenant {
  return tenantFrom(JSON.parse(text));
}

function countersFrom(from: Counters): Counters {
  return {
    tenant: from.tenant,
    fence: from.fence,
    priority: from.priority,
    arrival: from.arrival,
    epochFloor: from.epochFloor,
    keysStoredUntil: from.keysStoredUntil ?? 0,
    taskKeysStored: from.taskKeysStored ?? true,
    taskKeysStoredUntil: from.taskKeysStoredUntil ?? 0,
    leaseTimeMs: from.leaseTimeMs,
    windowStart: from.windowStart,
    receipts: from.receipts ?? 0,
    receiptBytes: from.receiptBytes ?? 0,
  };
}

export function readCounters(text: string): Counters {
  return countersFrom(JSON.parse(text));
}

/** What is undefined here is not written. */
export function agentText(agent: Agent): string {
  return JSON.stringify({
    tenant: agent.tenant,
    id: agent.id,
    state: agent.state,
    priority: agent.priority,
    attempts: agent.attempts,
    epoch: agent.epoch,
    registeredAt: agent.registeredAt,
    idleSince: agent.idleSince,
    labels: isEmpty(agent.labels) ? undefined : agent.labels,
    restarting: agent.restarting || undefined,
    pausedByOperator: agent.pausedByOperator || undefined,
    registeredBy: agent.registeredBy ?? undefined,
    pausedAt: agent.pausedAt ?? undefined,
    pausedFor: agent.pausedFor ?? undefined,
    retryAt: agent.retryAt ?? undefined,
    concerns: agent.concerns.length === 0 ? undefined : agent.concerns,
    concernsCut: agent.concernsCut || undefined,
    digestBytes: agent.digestBytes || undefined,
    keyId: agent.keyId ?? undefined,
    scopes: agent.scopes ?? undefined,
  });
}

function agentScopesFrom(from: NonNullable<Agent["scopes"]>): NonNullable<Agent["scopes"]> {
  return {
    resources: from.resources ?? none,
    predicates: from.predicates ?? none,
    taskTypes: from.taskTypes ?? none,
    ids: from.ids ?? none,
    patternDepthMin: from.patternDepthMin ?? null,
    ttlMsMax: from.ttlMsMax ?? null,
    leaseTimeMsMax: from.leaseTimeMsMax ?? null,
    unitsMax: from.unitsMax ?? null,
  };
}

function agentFrom(from: Agent): Agent {
  return {
    tenant: from.tenant,
    id: from.id,
    labels: from.labels ?? {},
    state: from.state,
    restarting: from.restarting ?? false,
    pausedByOperator: from.pausedByOperator ?? false,
    priority: from.priority,
    attempts: from.attempts,
    epoch: from.epoch,
    registeredAt: from.registeredAt,
    registeredBy: from.registeredBy ?? null,
    pausedAt: from.pausedAt ?? null,
    pausedFor: from.pausedFor ?? null,
    retryAt: from.retryAt ?? null,
    concerns: from.concerns ?? none,
    concernsCut: from.concernsCut ?? false,
    idleSince: from.idleSince,
    digestBytes: from.digestBytes ?? 0,
    keyId: from.keyId ?? null,
    scopes: from.scopes == null ? null : agentScopesFrom(from.scopes),
  };
}

export function readAgent(text: string): Agent {
  return agentFrom(JSON.parse(text));
}

function intentFrom(from: Request["intents"][number]): Request["intents"][number] {
  return {
    predicate: from.predicate,
    resource: from.resource,
    units: from.units,
    to: from.to ?? null,
    pick: from.pick ?? null,
  };
}

function digestFrom(from: Digest): Digest {
  return {
    tenant: from.tenant,
    agentId: from.agentId,
    checkpointId: from.checkpointId,
    resumePoint: from.resumePoint,
    context: from.context,
    intentBacklog: from.intentBacklog.map(intentFrom),
    resolutionStrategy: from.resolutionStrategy,
    assumptions: from.assumptions ?? none,
    priority: from.priority,
    savedAt: from.savedAt,
  };
}

export function readDigest(text: string): Digest {
  return digestFrom(JSON.parse(text));
}

function resourceFrom(from: Resource): Resource {
  return {
    tenant: from.tenant,
    name: from.name,
    capacity: from.capacity ?? null,
    refillMs: from.refillMs ?? null,
    spent: from.spent ?? none,
    cell: from.cell ?? null,
    driver: from.driver ?? null,
    hardware: from.hardware ?? none,
    fault: from.fault ?? null,
    fenced: from.fenced,
    fenceReason: from.fenceReason ?? null,
    fencedAt: from.fencedAt ?? null,
    withdrawn: from.withdrawn,
    declaredAt: from.declaredAt,
  };
}

export function readResource(text: string): Resource {
  return resourceFrom(JSON.parse(text));
}

function cellFrom(from: Cell): Cell {
  return {
    tenant: from.tenant,
    id: from.id,
    session: from.session,
    keyId: from.keyId ?? null,
    state: from.state,
    goneReason: from.goneReason ?? null,
    withdrawn: from.withdrawn,
    version: from.version ?? null,
    enrolledAt: from.enrolledAt,
    changedAt: from.changedAt,
    aliveBy: from.aliveBy,
  };
}

export function readCell(text: string): Cell {
  return cellFrom(JSON.parse(text));
}

function requestFrom(from: Request): Request {
  return {
    tenant: from.tenant,
    id: from.id,
    agentId: from.agentId,
    holder: from.holder,
    key: from.key ?? null,
    fingerprint: from.fingerprint,
    state: from.state,
    intents: from.intents.map(intentFrom),
    picked: from.picked ?? none,
    ttl: from.ttl,
    idleTimeout: from.idleTimeout ?? null,
    purpose: from.purpose ?? null,
    tokens: from.tokens,
    arrival: from.arrival,
    submittedAt: from.submittedAt,
    waitTimeout: from.waitTimeout,
    timeoutAt: from.timeoutAt,
    observeSince: from.observeSince ?? null,
    warnings: from.warnings,
    leaseIds: from.leaseIds,
    ended: from.ended,
    fateReason: from.fateReason ?? null,
    attempt: from.attempt ?? null,
    retryAfterMs: from.retryAfterMs ?? null,
    forgetAt: from.forgetAt ?? null,
  };
}

export function readRequest(text: string): Request {
  return requestFrom(JSON.parse(text));
}

interface LeaseRest {
  holder?: Lease["holder"] | undefined;
  units?: Lease["units"] | undefined;
  purpose?: Lease["purpose"] | undefined;
  tokens?: Lease["tokens"] | undefined;
  idleTimeout?: Lease["idleTimeout"] | undefined;
  activeAt?: Lease["activeAt"] | undefined;
  bookedAt?: Lease["bookedAt"] | undefined;
  claimBy?: Lease["claimBy"] | undefined;
  requestKey?: Lease["requestKey"] | undefined;
  fingerprint?: Lease["fingerprint"] | undefined;
  heldUntil?: Lease["heldUntil"] | undefined;
  verified?: Lease["verified"] | undefined;
  linkedTo?: Lease["linkedTo"] | undefined;
  cell?: Lease["cell"] | undefined;
  cellBy?: Lease["cellBy"] | undefined;
  coordinate?: Lease["coordinate"] | undefined;
  tornDown?: Lease["tornDown"] | undefined;
  closingAs?: Lease["closingAs"] | undefined;
  endedAt?: Lease["endedAt"] | undefined;
  endReason?: Lease["endReason"] | undefined;
  version?: Lease["version"] | undefined;
}

export type LeaseRow = [
  tenant: Lease["tenant"],
  id: Lease["id"],
  resource: Lease["resource"],
  predicate: Lease["predicate"],
  agentId: Lease["agentId"],
  state: Lease["state"],
  fence: Lease["fence"],
  generation: Lease["generation"],
  acquiredAt: Lease["acquiredAt"],
  expiresAt: Lease["expiresAt"],
  ttl: Lease["ttl"],
  rest?: LeaseRest,
];

export function leaseRow(lease: Lease): LeaseRow {
  const row: LeaseRow = [
    lease.tenant,
    lease.id,
    lease.resource,
    lease.predicate,
    lease.agentId,
    lease.state,
    lease.fence,
    lease.generation,
    lease.acquiredAt,
    lease.expiresAt,
    lease.ttl,
  ];
  const rest = leaseRest(lease);
  for (const _ in rest) {
    row.push(rest);
    break;
  }
  return row;
}

function leaseRest(lease: Lease): LeaseRest {
  const rest: LeaseRest = {};
  if (lease.holder !== lease.agentId) rest.holder = lease.holder;
  if (lease.units !== 1) rest.units = lease.units;
  if (lease.purpose !== null) rest.purpose = lease.purpose;
  if (lease.tokens) rest.tokens = lease.tokens;
  if (lease.idleTimeout !== null) rest.idleTimeout = lease.idleTimeout;
  if (lease.activeAt !== lease.acquiredAt) rest.activeAt = lease.activeAt;
  if (lease.bookedAt !== null) rest.bookedAt = lease.bookedAt;
  if (lease.claimBy !== null) rest.claimBy = lease.claimBy;
  if (lease.requestKey !== null) rest.requestKey = lease.requestKey;
  if (lease.fingerprint !== null) rest.fingerprint = lease.fingerprint;
  if (lease.heldUntil !== null) rest.heldUntil = lease.heldUntil;
  if (lease.verified) rest.verified = lease.verified;
  if (lease.linkedTo !== null) rest.linkedTo = lease.linkedTo;
  if (lease.cell !== null) rest.cell = lease.cell;
  if (lease.cellBy !== null) rest.cellBy = lease.cellBy;
  if (lease.coordinate !== null) rest.coordinate = lease.coordinate;
  if (lease.tornDown) rest.tornDown = lease.tornDown;
  if (lease.closingAs !== null) rest.closingAs = lease.closingAs;
  if (lease.endedAt !== null) rest.endedAt = lease.endedAt;
  if (lease.endReason !== null) rest.endReason = lease.endReason;
  if (lease.version !== null) rest.version = lease.version;
  return rest;
}

export function leaseText(lease: Lease): string {
  return JSON.stringify(leaseRow(lease));
}

const noLeaseRest: LeaseRest = {};

function leaseOf(
  ...[tenant, id, resource, predicate, agentId, state, fence, generation, acquiredAt, expiresAt, ttl, given]: LeaseRow
): Lease {
  const rest = given ?? noLeaseRest;
  return {
    tenant,
    id,
    resource,
    predicate,
    agentId,
    holder: rest.holder ?? agentId,
    state,
    fence,
    generation,
    units: rest.units ?? 1,
    purpose: rest.purpose ?? null,
    acquiredAt,
    expiresAt,
    ttl,
    tokens: rest.tokens ?? false,
    idleTimeout: rest.idleTimeout ?? null,
    activeAt: rest.activeAt ?? acquiredAt,
    bookedAt: rest.bookedAt ?? null,
    claimBy: rest.claimBy ?? null,
    requestKey: rest.requestKey ?? null,
    fingerprint: rest.fingerprint ?? null,
    heldUntil: rest.heldUntil ?? null,
    verified: rest.verified ?? false,
    linkedTo: rest.linkedTo ?? null,
    cell: rest.cell ?? null,
    cellBy: rest.cellBy ?? null,
    coordinate: rest.coordinate ?? null,
    tornDown: rest.tornDown ?? false,
    closingAs: rest.closingAs ?? null,
    endedAt: rest.endedAt ?? null,
    endReason: rest.endReason ?? null,
    version: rest.version ?? null,
  };
}

export function leaseFrom(row: LeaseRow): Lease {
  return leaseOf(row[0], row[1], row[2], row[3], row[4], row[5], row[6], row[7], row[8], row[9], row[10], row[11]);
}

export function readLease(text: string): Lease {
  return leaseFrom(JSON.parse(text) as LeaseRow);
}

/** Leases as the store hands them over, by column. */
export function readLeases({ n, columns }: ListColumns): Lease[] {
  const [
    tenantColumn,
    idColumn,
    resourceColumn,
    predicateColumn,
    agentIdColumn,
    stateColumn,
    fenceColumn,
    generationColumn,
    acquiredAtColumn,
    expiresAtColumn,
    ttlColumn,
    rests,
  ] = columns as unknown as Columns<LeaseRow>;
  const predicate = constants<Predicate>(predicates);
  const state = constants<LeaseState>(leaseStates);
  const read: Lease[] = [];
  for (let at = 0; at < n.length; at++) {
    const one = leaseOf(
      tenantColumn[at] as Lease["tenant"],
      idColumn[at] as Lease["id"],
      resourceColumn[at] as Lease["resource"],
      predicate(predicateColumn[at] as Lease["predicate"]),
      agentIdColumn[at] as Lease["agentId"],
      state(stateColumn[at] as Lease["state"]),
      fenceColumn[at] as Lease["fence"],
      generationColumn[at] as Lease["generation"],
      acquiredAtColumn[at] as Lease["acquiredAt"],
      expiresAtColumn[at] as Lease["expiresAt"],
      ttlColumn[at] as Lease["ttl"],
      rests?.[at],
    );
    read.push(one);
  }
  return read;
}

function keyScopesFrom(from: NonNullable<Key["scopes"]>): NonNullable<Key["scopes"]> {
  return {
    resources: from.resources ?? none,
    predicates: from.predicates ?? none,
    taskTypes: from.taskTypes ?? none,
    ids: from.ids ?? none,
    patternDepthMin: from.patternDepthMin ?? null,
    ttlMsMax: from.ttlMsMax ?? null,
    leaseTimeMsMax: from.leaseTimeMsMax ?? null,
    unitsMax: from.unitsMax ?? null,
  };
}

function keyFrom(from: Key): Key {
  return {
    id: from.id,
    hash: from.hash,
    role: from.role,
    tenant: from.tenant,
    label: from.label ?? null,
    scopes: from.scopes == null ? null : keyScopesFrom(from.scopes),
    createdAt: from.createdAt,
    expiresAt: from.expiresAt ?? null,
    lastUsedAt: from.lastUsedAt ?? null,
    rotatedAt: from.rotatedAt ?? null,
    formerHash: from.formerHash ?? null,
    formerUntil: from.formerUntil ?? null,
    generation: from.generation ?? 1,
  };
}

export function readKey(text: string): Key {
  return keyFrom(JSON.parse(text));
}

interface TaskRest {
  taskSummary?: Task["spec"]["taskSummary"] | undefined;
  payloadPointer?: Task["spec"]["payloadPointer"] | undefined;
  expectedOutcomeKind?: Task["spec"]["expectedOutcomeKind"] | undefined;
  expectedArtifactMime?: Task["spec"]["expectedArtifactMime"] | undefined;
  requires?: Task["spec"]["requires"] | undefined;
  intents?: Task["spec"]["intents"] | undefined;
  dependsOn?: Task["spec"]["dependsOn"] | undefined;
  concurrencyKey?: Task["spec"]["concurrencyKey"] | undefined;
  concurrencyLimit?: Task["spec"]["concurrencyLimit"] | undefined;
  speculative?: Task["spec"]["speculative"] | undefined;
  preemptible?: Task["spec"]["preemptible"] | undefined;
  parentTaskId?: Task["spec"]["parentTaskId"] | undefined;
  idempotencyKey?: Task["spec"]["idempotencyKey"] | undefined;
  supervisor?: Task["spec"]["supervisor"] | undefined;
  traceparent?: Task["spec"]["traceparent"] | undefined;
  createdBy?: Task["createdBy"] | undefined;
  notBefore?: Task["notBefore"] | undefined;
  offers?: Task["offers"] | undefined;
  live?: readonly TaskLiveRow[] | undefined;
  past?: readonly TaskPastRow[] | undefined;
  waitingOn?: Task["waitingOn"] | undefined;
  obligation?: TaskObligationRow | undefined;
  lastWorker?: Task["lastWorker"] | undefined;
  queuedAt?: Task["queuedAt"] | undefined;
  roomRequest?: Task["roomRequest"] | undefined;
  picked?: Task["picked"] | undefined;
  bindFailures?: Task["bindFailures"] | undefined;
  bindFailure?: Task["bindFailure"] | undefined;
  lastReceiptId?: Task["lastReceiptId"] | undefined;
  dedupes?: Task["dedupes"] | undefined;
  progress?: Task["progress"] | undefined;
  winningReceiptId?: Task["winningReceiptId"] | undefined;
  endedAt?: Task["endedAt"] | undefined;
  endReason?: Task["endReason"] | undefined;
  fingerprint?: Task["fingerprint"] | undefined;
  payloadBytes?: Task["payloadBytes"] | undefined;
}

export type TaskRow = [
  tenant: Task["tenant"],
  id: Task["id"],
  status: Task["status"],
  taskType: Task["spec"]["taskType"],
  principalAi: Task["spec"]["principalAi"],
  taskPriority: Task["spec"]["taskPriority"],
  attempts: Task["attempts"],
  createdAt: Task["createdAt"],
  timestamp: Task["timestamp"],
  maxAttempts: Task["spec"]["maxAttempts"],
  maxOffers: Task["spec"]["maxOffers"],
  leaseDurationMs: Task["spec"]["leaseDurationMs"],
  requeueDelayMs: Task["spec"]["requeueDelayMs"],
  rest?: TaskRest,
];

export function taskRow(task: Task): TaskRow {
  return [
    task.tenant,
    task.id,
    task.status,
    task.spec.taskType,
    task.spec.principalAi,
    task.spec.taskPriority,
    task.attempts,
    task.createdAt,
    task.timestamp,
    task.spec.maxAttempts,
    task.spec.maxOffers,
    task.spec.leaseDurationMs,
    task.spec.requeueDelayMs,
    taskRest(task),
  ];
}

export type TaskLiveRow = [
  Task["live"][number]["leaseId"],
  Task["live"][number]["fence"],
  Task["live"][number]["workerId"],
  Task["live"][number]["offeredAt"],
  Task["live"][number]["acceptedAt"],
  Task["live"][number]["receiptId"],
  Task["live"][number]["canceled"],
  Task["live"][number]["custodian"],
  Task["live"][number]["preemptFor"],
  Task["live"][number]["preemptBy"],
];

export function taskLiveRow({
  leaseId,
  fence,
  workerId,
  offeredAt,
  acceptedAt,
  receiptId,
  canceled,
  custodian,
  preemptFor,
  preemptBy,
}: Task["live"][number]): TaskLiveRow {
  return [leaseId, fence, workerId, offeredAt, acceptedAt, receiptId, canceled, custodian, preemptFor, preemptBy];
}

export function taskLiveOf([
  leaseId,
  fence,
  workerId,
  offeredAt,
  acceptedAt = null,
  receiptId = null,
  canceled,
  custodian = null,
  preemptFor = null,
  preemptBy = null,
]: TaskLiveRow): Task["live"][number] {
  return { leaseId, fence, workerId, offeredAt, acceptedAt, receiptId, canceled, custodian, preemptFor, preemptBy };
}

export type TaskPastRow = [
  Task["past"][number]["leaseId"],
  Task["past"][number]["fence"],
  Task["past"][number]["workerId"],
  Task["past"][number]["acceptedAt"],
  Task["past"][number]["receiptId"],
  Task["past"][number]["contested"],
];

export function taskPastRow({
  leaseId,
  fence,
  workerId,
  acceptedAt,
  receiptId,
  contested,
}: Task["past"][number]): TaskPastRow {
  return [leaseId, fence, workerId, acceptedAt, receiptId, contested];
}

export function taskPastOf([
  leaseId,
  fence,
  workerId,
  acceptedAt = null,
  receiptId = null,
  contested,
]: TaskPastRow): Task["past"][number] {
  return { leaseId, fence, workerId, acceptedAt, receiptId, contested };
}

export type TaskObligationRow = [
  NonNullable<Task["obligation"]>["id"],
  NonNullable<Task["obligation"]>["state"],
  NonNullable<Task["obligation"]>["custodian"],
  NonNullable<Task["obligation"]>["openedAt"],
];

export function taskObligationRow({
  id,
  state,
  custodian,
  openedAt,
}: NonNullable<Task["obligation"]>): TaskObligationRow {
  return [id, state, custodian, openedAt];
}

export function taskObligationOf([id, state, custodian, openedAt]: TaskObligationRow): NonNullable<Task["obligation"]> {
  return { id, state, custodian, openedAt };
}

function taskRest(task: Task): TaskRest {
  const rest: TaskRest = {};
  if (task.spec.taskSummary !== null) rest.taskSummary = task.spec.taskSummary;
  if (task.spec.payloadPointer !== null) rest.payloadPointer = task.spec.payloadPointer;
  if (task.spec.expectedOutcomeKind !== null) rest.expectedOutcomeKind = task.spec.expectedOutcomeKind;
  if (task.spec.expectedArtifactMime !== null) rest.expectedArtifactMime = task.spec.expectedArtifactMime;
  if (task.spec.requires.length > 0) rest.requires = task.spec.requires;
  if (task.spec.intents.length > 0) rest.intents = task.spec.intents;
  if (task.spec.dependsOn.length > 0) rest.dependsOn = task.spec.dependsOn;
  if (task.spec.concurrencyKey !== null) rest.concurrencyKey = task.spec.concurrencyKey;
  if (task.spec.concurrencyLimit !== 1) rest.concurrencyLimit = task.spec.concurrencyLimit;
  if (task.spec.speculative) rest.speculative = task.spec.speculative;
  if (task.spec.preemptible) rest.preemptible = task.spec.preemptible;
  if (task.spec.parentTaskId !== null) rest.parentTaskId = task.spec.parentTaskId;
  if (task.spec.idempotencyKey !== null) rest.idempotencyKey = task.spec.idempotencyKey;
  if (task.spec.supervisor !== null) rest.supervisor = task.spec.supervisor;
  if (task.spec.traceparent !== null) rest.traceparent = task.spec.traceparent;
  if (task.createdBy !== null) rest.createdBy = task.createdBy;
  if (task.notBefore !== null) rest.notBefore = task.notBefore;
  if (task.offers !== 0) rest.offers = task.offers;
  if (task.live.length > 0) rest.live = task.live.map(taskLiveRow);
  if (task.past.length > 0) rest.past = task.past.map(taskPastRow);
  if (task.waitingOn.length > 0) rest.waitingOn = task.waitingOn;
  if (task.obligation !== null) rest.obligation = taskObligationRow(task.obligation);
  if (task.lastWorker !== null) rest.lastWorker = task.lastWorker;
  if (task.queuedAt !== null) rest.queuedAt = task.queuedAt;
  if (task.roomRequest !== null) rest.roomRequest = task.roomRequest;
  if (task.picked.length > 0) rest.picked = task.picked;
  if (task.bindFailures !== 0) rest.bindFailures = task.bindFailures;
  if (task.bindFailure !== null) rest.bindFailure = task.bindFailure;
  if (task.lastReceiptId !== null) rest.lastReceiptId = task.lastReceiptId;
  if (task.dedupes.length > 0) rest.dedupes = task.dedupes;
  if (task.progress !== null) rest.progress = task.progress;
  if (task.winningReceiptId !== null) rest.winningReceiptId = task.winningReceiptId;
  if (task.endedAt !== null) rest.endedAt = task.endedAt;
  if (task.endReason !== null) rest.endReason = task.endReason;
  if (task.fingerprint !== null) rest.fingerprint = task.fingerprint;
  if (task.payloadBytes !== 0) rest.payloadBytes = task.payloadBytes;
  return rest;
}

export function taskText(task: Task): string {
  return JSON.stringify(taskRow(task));
}

const noTaskRest: TaskRest = {};

function taskDedupesFrom(from: Task["dedupes"][number]): Task["dedupes"][number] {
  return {
    key: from.key,
    fingerprint: from.fingerprint,
    receiptId: from.receiptId,
    submittedBy: from.submittedBy ?? null,
  };
}

function taskOf(
  ...[
    tenant,
    id,
    status,
    taskType,
    principalAi,
    taskPriority,
    attempts,
    createdAt,
    timestamp,
    maxAttempts,
    maxOffers,
    leaseDurationMs,
    requeueDelayMs,
    given,
  ]: TaskRow
): Task {
  const rest = given ?? noTaskRest;
  return {
    tenant,
    id,
    spec: {
      taskType,
      principalAi,
      taskSummary: rest.taskSummary ?? null,
      payloadPointer: rest.payloadPointer ?? null,
      expectedOutcomeKind: rest.expectedOutcomeKind ?? null,
      expectedArtifactMime: rest.expectedArtifactMime ?? null,
      taskPriority,
      requires: rest.requires ?? none,
      intents: rest.intents === undefined ? none : rest.intents.map(intentFrom),
      maxAttempts,
      maxOffers,
      leaseDurationMs,
      requeueDelayMs,
      dependsOn: rest.dependsOn ?? none,
      concurrencyKey: rest.concurrencyKey ?? null,
      concurrencyLimit: rest.concurrencyLimit ?? 1,
      speculative: rest.speculative ?? false,
      preemptible: rest.preemptible ?? false,
      parentTaskId: rest.parentTaskId ?? null,
      idempotencyKey: rest.idempotencyKey ?? null,
      supervisor: rest.supervisor ?? null,
      traceparent: rest.traceparent ?? null,
    },
    status,
    timestamp,
    createdAt,
    createdBy: rest.createdBy ?? null,
    notBefore: rest.notBefore ?? null,
    attempts,
    offers: rest.offers ?? 0,
    live: rest.live === undefined ? none : rest.live.map(taskLiveOf),
    past: rest.past === undefined ? none : rest.past.map(taskPastOf),
    waitingOn: rest.waitingOn ?? none,
    obligation: rest.obligation === undefined ? null : taskObligationOf(rest.obligation),
    lastWorker: rest.lastWorker ?? null,
    queuedAt: rest.queuedAt ?? null,
    roomRequest: rest.roomRequest ?? null,
    picked: rest.picked ?? none,
    bindFailures: rest.bindFailures ?? 0,
    bindFailure: rest.bindFailure ?? null,
    lastReceiptId: rest.lastReceiptId ?? null,
    dedupes: rest.dedupes === undefined ? none : rest.dedupes.map(taskDedupesFrom),
    progress: rest.progress ?? null,
    winningReceiptId: rest.winningReceiptId ?? null,
    endedAt: rest.endedAt ?? null,
    endReason: rest.endReason ?? null,
    fingerprint: rest.fingerprint ?? null,
    payloadBytes: rest.payloadBytes ?? 0,
  };
}

export function taskFrom(row: TaskRow): Task {
  return taskOf(
    row[0],
    row[1],
    row[2],
    row[3],
    row[4],
    row[5],
    row[6],
    row[7],
    row[8],
    row[9],
    row[10],
    row[11],
    row[12],
    row[13],
  );
}

export function readTask(text: string): Task {
  return taskFrom(JSON.parse(text) as TaskRow);
}

export type PayloadRow = [Payload["tenant"], Payload["taskId"], Payload["taskBody"], Payload["inputs"]];

export function payloadRow({ tenant, taskId, taskBody, inputs }: Payload): PayloadRow {
  return [tenant, taskId, taskBody, inputs];
}

export function payloadOf([tenant, taskId, taskBody = null, inputs = null]: PayloadRow): Payload {
  return { tenant, taskId, taskBody, inputs };
}

export function payloadText(record: Payload): string {
  return JSON.stringify(payloadRow(record));
}

export function readPayload(text: string): Payload {
  return payloadOf(JSON.parse(text));
}

function taskTypeFrom(from: TaskType): TaskType {
  return {
    tenant: from.tenant,
    taskType: from.taskType,
    leaseDuration: from.leaseDuration ?? null,
    maxAttempts: from.maxAttempts ?? null,
    maxOffers: from.maxOffers ?? null,
    requeueDelay: from.requeueDelay ?? null,
    speculateShare: from.speculateShare ?? null,
    usualDuration: from.usualDuration ?? null,
    samples: from.samples,
    supervisor: from.supervisor ?? null,
  };
}

export function readTaskType(text: string): TaskType {
  return taskTypeFrom(JSON.parse(text));
}

function workerFrom(from: Worker): Worker {
  return {
    tenant: from.tenant,
    id: from.id,
    keyId: from.keyId ?? null,
    capabilities: from.capabilities,
    firstSeenAt: from.firstSeenAt,
    seenAt: from.seenAt,
    completed: from.completed,
    failed: from.failed,
    lost: from.lost,
    health: from.health,
    polls: from.polls,
  };
}

export function readWorker(text: string): Worker {
  return workerFrom(JSON.parse(text));
}

function foreignObligationDedupesFrom(
  from: ForeignObligation["dedupes"][number],
): ForeignObligation["dedupes"][number] {
  return {
    key: from.key,
    fingerprint: from.fingerprint,
    receiptId: from.receiptId,
    submittedBy: from.submittedBy ?? null,
  };
}

function foreignObligationFrom(from: ForeignObligation): ForeignObligation {
  return {
    tenant: from.tenant,
    taskId: from.taskId,
    taskType: from.taskType,
    principalAi: from.principalAi,
    obligation: from.obligation,
    attempt: from.attempt,
    acceptedBy: from.acceptedBy ?? null,
    receiptId: from.receiptId ?? null,
    lastReceiptId: from.lastReceiptId,
    dedupes: from.dedupes === undefined ? none : from.dedupes.map(foreignObligationDedupesFrom),
  };
}

export function readForeignObligation(text: string): ForeignObligation {
  return foreignObligationFrom(JSON.parse(text));
}

function writeFrom(from: Write): Write {
  return {
    tenant: from.tenant,
    resource: from.resource,
    predicate: from.predicate,
    agentId: from.agentId,
    holder: from.holder,
    at: from.at,
    fence: from.fence,
    version: from.version ?? null,
    looked: from.looked ?? true,
  };
}

export function readWrite(text: string): Write {
  return writeFrom(JSON.parse(text));
}

function policyRulesFrom(from: Policy["rules"][number]): Policy["rules"][number] {
  return {
    name: from.name ?? null,
    effect: from.effect,
    actions: from.actions,
    resources: from.resources ?? none,
    predicates: from.predicates ?? none,
    taskTypes: from.taskTypes ?? none,
    ids: from.ids ?? none,
    patternDepthMin: from.patternDepthMin ?? null,
    ttlMsMax: from.ttlMsMax ?? null,
    leaseTimeMsMax: from.leaseTimeMsMax ?? null,
    unitsMax: from.unitsMax ?? null,
  };
}

function policyFrom(from: Policy): Policy {
  return {
    id: from.id,
    description: from.description ?? null,
    tenants: from.tenants ?? none,
    roles: from.roles ?? none,
    keyIds: from.keyIds ?? none,
    rules: from.rules.map(policyRulesFrom),
    changedAt: from.changedAt ?? null,
  };
}

export function readPolicy(text: string): Policy {
  return policyFrom(JSON.parse(text));
}

const writers: { readonly [K in RecordKind]: (record: RecordOf[K]) => string } = {
  tenant: JSON.stringify,
  counters: JSON.stringify,
  agent: agentText,
  digest: JSON.stringify,
  resource: JSON.stringify,
  cell: JSON.stringify,
  request: JSON.stringify,
  lease: leaseText,
  key: JSON.stringify,
  task: taskText,
  payload: payloadText,
  task_type: JSON.stringify,
  worker: JSON.stringify,
  foreign_obligation: JSON.stringify,
  write: JSON.stringify,
  policy: JSON.stringify,
};

/** The text that a record is stored as. */
export function recordText<K extends RecordKind>(kind: K, record: RecordOf[K]): string {
  return writers[kind](record);
}

export const readers: { readonly [K in RecordKind]: (text: string) => RecordOf[K] } = {
  tenant: readTenant,
  counters: readCounters,
  agent: readAgent,
  digest: readDigest,
  resource: readResource,
  cell: readCell,
  request: readRequest,
  lease: readLease,
  key: readKey,
  task: readTask,
  payload: readPayload,
  task_type: readTaskType,
  worker: readWorker,
  foreign_obligation: readForeignObligation,
  write: readWrite,
  policy: readPolicy,
};
