/** A kernel from its records alone, and its records again. What is restored goes on as if nothing had happened. */
import { scheduleForgetting } from "./agent-life.ts";
import { canonicalName, makeWish } from "./conflicts.ts";
import { schedule } from "./deadlines.ts";
import { requestIdOf } from "./ids.ts";
import { place } from "./lease-life.ts";
import { limits } from "./limits.ts";
import type { Agent, Counters, Digest, Key, Lease, Request, Resource, StoredRecord, Tenant } from "./records.ts";
import { enqueue } from "./request-life.ts";
import { placeResource } from "./resources.ts";
import {
  changed,
  createAgentEntry,
  createDigestEntry,
  createKeyEntry,
  createLeaseEntry,
  createRequestEntry,
  createState,
  createTenantEntry,
  type Handle,
  type State,
  type TenantEntry,
} from "./state.ts";

interface Sorted {
  readonly tenants: Tenant[];
  readonly counters: Map<string, Counters>;
  readonly agents: Agent[];
  readonly digests: Digest[];
  readonly resources: Resource[];
  readonly requests: Request[];
  readonly leases: Lease[];
  readonly keys: Key[];
}

export function restore(records: Iterable<StoredRecord>): State {
  const sorted = sort(records);
  const state = createState();
  for (const record of sorted.tenants) {
    const counters = sorted.counters.get(record.id);
    if (counters === undefined) throw new Error(`The counters of tenant ${record.id} are missing.`);
    state.tenants.set(record.id, createTenantEntry(record, counters));
  }
  for (const record of sorted.keys) state.keys.set(record.id, createKeyEntry(record));
  for (const record of sorted.agents) {
    const agent = createAgentEntry(record);
    tenantOf(state, record.tenant).agents.set(record.id, agent);
    scheduleForgetting(state, agent);
  }
  for (const record of sorted.digests) agentOf(state, record).digest = createDigestEntry(record);
  for (const record of sorted.resources)
    placeResource(tenantOf(state, record.tenant), record, canonicalName(record.name));
  for (const record of sorted.requests) restoreRequest(state, record);
  for (const record of sorted.leases) restoreLease(state, record);
  // A crash between two slices may have left waiters unserved; looking at all of them once is harmless otherwise.
  for (const tenant of state.tenants.values()) {
    for (const { claims } of tenant.requests.values()) {
      if (claims.length > 0) state.unserved.push({ tenant, names: claims.map(({ name }) => name) });
    }
  }
  return state;
}

function sort(records: Iterable<StoredRecord>): Sorted {
  const sorted: Sorted = {
    tenants: [],
    counters: new Map(),
    agents: [],
    digests: [],
    resources: [],
    requests: [],
    leases: [],
    keys: [],
  };
  for (const { kind, record } of records) {
    switch (kind) {
      case "tenant":
        sorted.tenants.push(record);
        break;
      case "counters":
        sorted.counters.set(record.tenant, record);
        break;
      case "agent":
        sorted.agents.push(record);
        break;
      case "digest":
        sorted.digests.push(record);
        break;
      case "resource":
        sorted.resources.push(record);
        break;
      case "request":
        sorted.requests.push(record);
        break;
      case "lease":
        sorted.leases.push(record);
        break;
      case "key":
        sorted.keys.push(record);
        break;
    }
  }
  // Appending in order is what makes each list at a node cheap to rebuild.
  sorted.leases.sort((a, b) => a.fence - b.fence);
  sorted.requests.sort((a, b) => a.arrival - b.arrival);
  return sorted;
}

function restoreRequest(state: State, record: Request): void {
  const tenant = tenantOf(state, record.tenant);
  const agent = agentOf(state, record);
  const request = createRequestEntry(record, agent);
  tenant.requests.set(record.id, request);
  const holdsKey = record.state === "WAITING" || record.state === "BINDING" || record.state === "GRANTED";
  if (record.key !== null && holdsKey) agent.keys.set(record.key, request);
  if (record.state === "WAITING") enqueue(state, tenant, request);
  else if (record.state === "BINDING") agent.open.add(request);
  if (record.forgetAt !== null) {
    agent.remembered.add(request);
    schedule(state.ends, request, record.forgetAt, record.arrival);
  }
}

function restoreLease(state: State, record: Lease): void {
  const tenant = tenantOf(state, record.tenant);
  const name = canonicalName(record.resource);
  const intent = { predicate: record.predicate, resource: record.resource, units: record.units, to: null };
  const entry = createLeaseEntry(record, agentOf(state, record), makeWish(tenant, intent, name).strength);
  const request = tenant.requests.get(requestIdOf(record.id));
  // Handed over, it no longer belongs to the request through which it was granted.
  const isHandedOver = request?.record.ended.some((ended) => ended.id === record.id) ?? true;
  entry.request = isHandedOver ? null : (request ?? null);
  place(state, tenant, entry, name);
}

function tenantOf(state: State, id: string): TenantEntry {
  const tenant = state.tenants.get(id);
  if (tenant === undefined) throw new Error(`A record belongs to no tenant: ${id}`);
  return tenant;
}

function agentOf(state: State, { tenant, agentId }: { readonly tenant: string; readonly agentId: string }) {
  const agent = tenantOf(state, tenant).agents.get(agentId);
  if (agent === undefined) throw new Error(`A record belongs to no agent: ${agentId}`);
  return agent;
}

/** Every live record, as a handle: what a restored kernel's records are to be stored under. */
export function* liveHandles(state: State): Generator<Handle> {
  for (const tenant of state.tenants.values()) {
    yield tenant;
    yield tenant.counters;
    for (const agent of tenant.agents.values()) {
      yield agent;
      if (agent.digest !== null) yield agent.digest;
    }
    yield* tenant.resources.values();
    yield* tenant.requests.values();
    yield* tenant.leases.values();
  }
  yield* state.keys.values();
}

export function snapshot(state: State): StoredRecord[] {
  return Array.from(liveHandles(state), ({ kind, record }) => ({ kind, record }) as StoredRecord);
}

/** L11, S6: after a restored backup every fence of before must be behind, and every older token with it. */
export function jumpFences(state: State): void {
  for (const { counters } of state.tenants.values()) {
    counters.record = { ...counters.record, fence: counters.record.fence + limits.restoreFenceJump };
    changed(state, counters);
  }
}
