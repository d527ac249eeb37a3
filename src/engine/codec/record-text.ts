/**
 * Records as they are stored: JSON with what is null, false or usual left out, because most of a lease is. A test
 * holds that nothing is lost on the way.
 */

import { quotasDefault, settingsDefault } from "../../kernel/contract/limits.ts";
import { type Predicate, predicates } from "../../kernel/contract/predicates.ts";
import type {
  Agent,
  Counters,
  Digest,
  Lease,
  LeaseState,
  RecordKind,
  RecordOf,
  Request,
  Resource,
  Tenant,
} from "../../kernel/contract/records.ts";
import type { Payload, Task, TaskKey } from "../../kernel/contract/task-records.ts";
import type { RestoredRecord } from "../../kernel/kernel.ts";
import type { ListColumns } from "../../store/store.ts";
import { quote } from "./json-quote.ts";
import { payloadText, readPayload, readTask, taskKeyText, taskText, withPick } from "./task-text.ts";

export function recordText<K extends RecordKind>(kind: K, record: RecordOf[K]): string {
  switch (kind) {
    case "lease":
      return leaseText(record as Lease);
    case "agent":
      return agentText(record as Agent);
    case "task":
      return taskText(record as Task);
    case "payload":
      return payloadText(record as Payload);
    case "task_key":
      return taskKeyText(record as TaskKey);
    default:
      return JSON.stringify(record);
  }
}

/**
 * A list of what every lease has, in this order, and after it an object of what only some have. Without names it is
 * parsed in half the time, which a million leases at a restart feel, and is a third smaller; the store's view `leases`
 * puts the names back for people. An ended lease in history reads the same. Measured: through one list and the
 * language's own routine it takes half as long as put together from pieces, which are joined only when they are sent.
 */
export function leaseText(lease: Lease): string {
  const list: LeaseList = [
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
  const rest = restOf(lease);
  for (const _ in rest) {
    list.push(rest);
    break;
  }
  return JSON.stringify(list);
}

/** Empty for most leases. */
function restOf(lease: Lease): LeaseRest {
  const rest: LeaseRest = {};
  if (lease.holder !== lease.agentId) rest.holder = lease.holder;
  if (lease.units !== 1) rest.units = lease.units;
  if (lease.purpose !== null) rest.purpose = lease.purpose;
  if (lease.tokens) rest.tokens = true;
  if (lease.idleTimeout !== null) rest.idleTimeout = lease.idleTimeout;
  if (lease.activeAt !== lease.acquiredAt) rest.activeAt = lease.activeAt;
  if (lease.claimBy !== null) rest.claimBy = lease.claimBy;
  if (lease.heldUntil !== null) rest.heldUntil = lease.heldUntil;
  if (lease.verified) rest.verified = true;
  if (lease.linkedTo !== null) rest.linkedTo = lease.linkedTo;
  if (lease.cell !== null) rest.cell = lease.cell;
  if (lease.cellBy !== null) rest.cellBy = lease.cellBy;
  if (lease.coordinate !== null) rest.coordinate = lease.coordinate;
  if (lease.closingAs !== null) rest.closingAs = lease.closingAs;
  if (lease.endedAt !== null) rest.endedAt = lease.endedAt;
  if (lease.endReason !== null) rest.endReason = lease.endReason;
  if (lease.version !== null) rest.version = lease.version;
  return rest;
}

type LeaseRest = { -readonly [K in keyof Lease]?: Lease[K] };
type LeaseList = [
  tenant: string,
  id: string,
  resource: string,
  predicate: Lease["predicate"],
  agentId: string,
  state: Lease["state"],
  fence: number,
  generation: number,
  acquiredAt: number,
  expiresAt: number,
  ttl: number,
  rest?: Partial<Lease>,
];

const noRest: Partial<Lease> = {};
const leaseStates = ["BINDING", "ACTIVE", "HELD", "CLOSING", "RELEASED", "EXPIRED", "REVOKED"] as const;

function agentText(agent: Agent): string {
  let text = `{"tenant":${quote(agent.tenant)},"id":${quote(agent.id)},"state":"${agent.state}","priority":${agent.priority},"attempts":${agent.attempts},"epoch":${agent.epoch},"registeredAt":${agent.registeredAt},"idleSince":${agent.idleSince}`;
  for (const _ in agent.labels) {
    text += `,"labels":${JSON.stringify(agent.labels)}`;
    break;
  }
  if (agent.restarting) text += `,"restarting":true`;
  if (agent.pausedByOperator) text += `,"pausedByOperator":true`;
  if (agent.pausedAt !== null) text += `,"pausedAt":${agent.pausedAt}`;
  return `${text}}`;
}

function readAgent(text: string): Agent {
  const agent = JSON.parse(text) as Omit<Agent, "labels" | "restarting" | "pausedByOperator" | "pausedAt"> &
    Partial<Agent>;
  return {
    tenant: agent.tenant,
    id: agent.id,
    labels: agent.labels ?? {},
    state: agent.state,
    restarting: agent.restarting ?? false,
    pausedByOperator: agent.pausedByOperator ?? false,
    priority: agent.priority,
    attempts: agent.attempts,
    epoch: agent.epoch,
    registeredAt: agent.registeredAt,
    pausedAt: agent.pausedAt ?? null,
    idleSince: agent.idleSince,
  };
}

export function readLease(text: string): Lease {
  const list = JSON.parse(text) as LeaseList;
  return leaseOf(
    list[0],
    list[1],
    list[2],
    list[3],
    list[4],
    list[5],
    list[6],
    list[7],
    list[8],
    list[9],
    list[10],
    list[11],
  );
}

/** How the store is to load leases: their tenants, predicates, agents and states are few. */
export const leaseLists = { kind: "lease", repeating: [0, 3, 4, 5] } as const;

/** Leases as the store hands them over, by column. */
export function readLeases({ n, columns }: ListColumns): Lease[] {
  const [tenants, ids, resources, texts, agentIds, states, fences, generations, acquired, expires, ttls, rests] =
    columns as unknown as Columns<LeaseList>;
  const predicate = constants<Predicate>(predicates);
  const state = constants<LeaseState>(leaseStates);
  const leases: Lease[] = [];
  for (let at = 0; at < n.length; at++) {
    const lease = leaseOf(
      tenants[at] as string,
      ids[at] as string,
      resources[at] as string,
      predicate(texts[at] as Predicate),
      agentIds[at] as string,
      state(states[at] as LeaseState),
      fences[at] as number,
      generations[at] as number,
      acquired[at] as number,
      expires[at] as number,
      ttls[at] as number,
      rests?.[at],
    );
    leases.push(lease);
  }
  return leases;
}

type Columns<List extends readonly unknown[]> = { readonly [Place in keyof List]: readonly List[Place][] };

/** Texts as the constants that they equal, which every later comparison then finds at once. */
function constants<T extends string>(known: readonly T[]): (text: T) => T {
  let [last, found]: [T | null, T | null] = [null, null];
  return (text) => {
    if (text === last && found !== null) return found;
    last = text;
    found = known.find((one) => one === text) ?? text;
    return found;
  };
}

/** One literal, so that a million restored leases share one hidden shape with those that are granted later. */
function leaseOf(
  ...[tenant, id, resource, predicate, agentId, state, fence, generation, acquiredAt, expiresAt, ttl, some]: LeaseList
): Lease {
  const rest = some ?? noRest;
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
    claimBy: rest.claimBy ?? null,
    heldUntil: rest.heldUntil ?? null,
    verified: rest.verified ?? false,
    linkedTo: rest.linkedTo ?? null,
    cell: rest.cell ?? null,
    cellBy: rest.cellBy ?? null,
    coordinate: rest.coordinate ?? null,
    closingAs: rest.closingAs ?? null,
    endedAt: rest.endedAt ?? null,
    endReason: rest.endReason ?? null,
    version: rest.version ?? null,
  };
}

export function readRecord(kind: string, text: string, row: number): RestoredRecord {
  switch (kind) {
    case "lease":
      return { kind, record: readLease(text), row };
    case "agent":
      return { kind, record: readAgent(text), row };
    case "task":
      return { kind, record: readTask(text), row };
    case "payload":
      return { kind, record: readPayload(text), row };
    case "counters":
      return { kind, record: readCounters(text), row };
    case "tenant":
      return { kind, record: readTenant(text), row };
    case "resource":
      return { kind, record: readResource(text), row };
    case "request":
      return { kind, record: readRequest(text), row };
    case "digest":
      return { kind, record: readDigest(text), row };
    default:
      return { kind, record: JSON.parse(text), row } as RestoredRecord;
  }
}

/** Data from before there was a ledger has no number for it. */
function readCounters(text: string): Counters {
  return { receipts: 0, ...(JSON.parse(text) as Omit<Counters, "receipts"> & Partial<Counters>) };
}

/** Data from before cells enrolled does not say what they told of a resource. */
function readResource(text: string): Resource {
  const resource = JSON.parse(text) as Omit<Resource, "driver" | "hardware" | "fault"> & Partial<Resource>;
  return {
    ...resource,
    driver: resource.driver ?? null,
    hardware: resource.hardware ?? [],
    fault: resource.fault ?? null,
  };
}

/** Nor did intents leave a choice then. */
function readRequest(text: string): Request {
  const request = JSON.parse(text) as Omit<Request, "picked"> & Partial<Request>;
  return { ...request, picked: request.picked ?? [], intents: request.intents.map(withPick) };
}

function readDigest(text: string): Digest {
  const digest = JSON.parse(text) as Digest;
  return { ...digest, intentBacklog: digest.intentBacklog.map(withPick) };
}

/** What can be set has grown since older data was written; what it does not know is as usual. */
function readTenant(text: string): Tenant {
  const tenant = JSON.parse(text) as Tenant;
  return {
    ...tenant,
    settings: { ...settingsDefault, ...tenant.settings },
    quotas: { ...quotasDefault, ...tenant.quotas },
  };
}
