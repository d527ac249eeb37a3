/**
 * The one place where leases begin, change and end, and where their entries stand in every index. Who may do it and
 * whether it is right is decided elsewhere; what waits is served by queue.ts.
 */

import { noteIdle } from "../agents/agent-life.ts";
import type { LeaseEvent } from "../contract/events.ts";
import { leaseIdWith } from "../contract/ids.ts";
import { limits } from "../contract/limits.ts";
import { EXCLUSIVE, type Predicate, strengthOf } from "../contract/predicates.ts";
import type { EndedLeaseState, Lease, Millis } from "../contract/records.ts";
import { canonicalName, type Wish } from "../deciding/conflicts.ts";
import { addKind, takeKind } from "../deciding/quotas.ts";
import { schedule, unschedule } from "../index/heap.ts";
import { append, move, type Node, nodeFor, take } from "../index/resource-tree.ts";
import {
  changed,
  createLeaseEntry,
  emit,
  type LeaseEntry,
  nextFence,
  type Party,
  type ResourceEntry,
  rootOf,
  type State,
  type TenantEntry,
} from "../memory/state.ts";
import type { ResourceName } from "../names/resource-name.ts";
import { noteEndedLease } from "../requests/request-life.ts";
import { contest } from "../tasks/task-contest.ts";
import { taskLeaseEnded } from "../tasks/task-life.ts";
import { unparkFrom } from "../tasks/task-parking.ts";

/** What a manifest's leases have in common. */
export interface GrantTerms {
  /** Of the request's id, and so of the leases' (see ids.ts). */
  readonly suffix: string;
  readonly ttl: number;
  readonly idleTimeout: number | null;
  readonly purpose: string | null;
  readonly tokens: boolean;
  readonly claimBy: Millis | null;
  /** Some of the manifest is on a bound resource. */
  readonly binds: boolean;
  /** Who acts: the party itself, or the worker of a task. */
  readonly agentId: string;
}

/** The cell that hosts the resource, if it is bound (G6). */
export function cellOf(tenant: TenantEntry, { name }: Wish): string | null {
  return tenant.resources.size === 0 ? null : (tenant.resources.get(name.text)?.record.cell ?? null);
}

/** Grants one intent. If any of its manifest is on a bound resource, all are BINDING until the last cell is done (G6). */
export function beginLease(
  state: State,
  tenant: TenantEntry,
  party: Party,
  wish: Wish,
  index: number,
  linkedIndex: number | null,
  terms: GrantTerms,
  now: Millis,
): LeaseEntry {
  const cell = cellOf(tenant, wish);
  const record: Lease = {
    tenant: tenant.record.id,
    id: leaseIdWith(terms.suffix, index),
    resource: wish.name.text,
    predicate: wish.intent.predicate,
    agentId: terms.agentId,
    holder: party.holder,
    state: terms.binds ? "BINDING" : "ACTIVE",
    fence: nextFence(state, tenant),
    generation: 1,
    units: wish.intent.units,
    purpose: terms.purpose,
    acquiredAt: now,
    expiresAt: expiryFor(tenant, now, now, terms.ttl),
    ttl: terms.ttl,
    tokens: terms.tokens,
    idleTimeout: terms.idleTimeout,
    activeAt: now,
    claimBy: terms.claimBy,
    heldUntil: null,
    verified: false,
    linkedTo: linkedIndex === null ? null : leaseIdWith(terms.suffix, linkedIndex),
    cell,
    cellBy: cell === null ? null : now + limits.bindMs,
    coordinate: null,
    closingAs: null,
    endedAt: null,
    endReason: null,
    version: null,
  };
  const entry = createLeaseEntry(record, party, wish.strength);
  if (tenant.book.haunted.size > 0) contest(state, tenant, party, wish);
  place(state, tenant, entry, nodeFor(rootOf(tenant, wish.name.type), wish.name), wish.name.wild);
  changed(state, entry);
  emitLease(state, entry, terms.binds ? "lease.binding" : "lease.granted", null, now);
  return entry;
}

/** Heartbeats reach no further than the quota on one lease's whole time (L10). */
export function expiryFor(tenant: TenantEntry, acquiredAt: Millis, now: Millis, ttl: number): Millis {
  const most = tenant.record.quotas.leaseTimeMsMax;
  return most === null ? now + ttl : Math.min(now + ttl, acquiredAt + most);
}

/** Enters a lease into every index: a new one, whose fence is the highest, or one that is restored. */
export function place(state: State, tenant: TenantEntry, entry: LeaseEntry, node: Node, wild: boolean): void {
  const { party } = entry;
  tenant.leases.set(entry.record.id, entry);
  append(node, entry);
  if (node.mark !== null) (node.mark as ResourceEntry).heldUnits += entry.record.units;
  entry.wild = wild;
  if (wild) tenant.patternCount++;
  if (tenant.kindUnits !== null) addKind(tenant, entry.record.resource, entry.record.units);
  linkToParty(entry, party);
  scheduleEnd(state, entry);
}

export function linkToParty(entry: LeaseEntry, party: Party): void {
  entry.party = party;
  entry.nextOfParty = party.leases;
  entry.previousOfParty = null;
  if (party.leases !== null) party.leases.previousOfParty = entry;
  party.leases = entry;
  party.leaseCount++;
}

export function unlinkFromParty(entry: LeaseEntry): void {
  const { party, previousOfParty: previous, nextOfParty: next } = entry;
  if (previous === null) party.leases = next;
  else previous.nextOfParty = next;
  if (next !== null) next.previousOfParty = previous;
  entry.previousOfParty = null;
  entry.nextOfParty = null;
  party.leaseCount--;
}

/** When something must happen to the lease if nobody says anything. */
function dueOf(lease: Lease): Millis {
  switch (lease.state) {
    case "BINDING":
      // One that is ready waits for the others of its manifest, whose deadlines stand for it.
      return lease.cellBy ?? Number.POSITIVE_INFINITY;
    case "CLOSING":
      return lease.cellBy ?? lease.expiresAt;
    case "HELD":
      return lease.heldUntil ?? lease.expiresAt;
    default: {
      const idleAt = lease.idleTimeout === null ? lease.expiresAt : lease.activeAt + lease.idleTimeout;
      return Math.min(lease.expiresAt, idleAt, lease.claimBy ?? lease.expiresAt);
    }
  }
}

function scheduleEnd(state: State, entry: LeaseEntry): void {
  schedule(state.ends, entry, dueOf(entry.record), entry.record.fence);
}

/** Replaces a live lease's record. */
export function updateLease(state: State, entry: LeaseEntry, record: Lease): void {
  entry.record = record;
  scheduleEnd(state, entry);
  changed(state, entry);
}

/** Same id, next generation, new fence: what a renewal, a re-issue and a transfer have in common (A3, G8, L15). */
export function reissue(state: State, tenant: TenantEntry, entry: LeaseEntry, record: Lease): void {
  const fence = nextFence(state, tenant);
  updateLease(state, entry, { ...record, generation: record.generation + 1, fence });
  move("held", entry, entry.strength, fence);
}

/** L15: a weaker predicate. Units do not depend on it (C6). */
export function weaken(state: State, tenant: TenantEntry, entry: LeaseEntry, predicate: Predicate): void {
  const resource = entry.node?.mark as ResourceEntry | null | undefined;
  const counted = resource !== null && resource !== undefined && resource.record.capacity !== null;
  updateLease(state, entry, { ...entry.record, predicate });
  move("held", entry, counted ? EXCLUSIVE : strengthOf(predicate), entry.order);
  if (entry.parked !== null) unparkFrom(state, tenant, entry);
}

/**
 * Ends a lease, or begins its end where a cell must tear it down first (G6). Answers whether its name is free now;
 * whoever calls then serves those who wait for it (L6).
 */
export function endLease(
  state: State,
  tenant: TenantEntry,
  entry: LeaseEntry,
  as: EndedLeaseState,
  reason: string | null,
  version: string | null,
  now: Millis,
): boolean {
  const { record } = entry;
  if (record.cell !== null && record.state !== "CLOSING") {
    updateLease(state, entry, {
      ...record,
      state: "CLOSING",
      closingAs: as,
      cellBy: now + limits.teardownMs,
      claimBy: null,
      endReason: reason,
      version,
    });
    emitLease(state, entry, "lease.closing", reason, now);
    return false;
  }
  finishLease(state, tenant, entry, as, reason, version, now);
  return true;
}

const endedEvents = { RELEASED: "lease.released", EXPIRED: "lease.expired", REVOKED: "lease.revoked" } as const;

/** The final end: out of every index, into history. */
export function finishLease(
  state: State,
  tenant: TenantEntry,
  entry: LeaseEntry,
  as: EndedLeaseState,
  reason: string | null,
  version: string | null,
  now: Millis,
): void {
  const { node } = entry;
  entry.record = { ...entry.record, state: as, endedAt: now, endReason: reason, version };
  entry.alive = false;
  changed(state, entry);
  unschedule(state.ends, entry);
  tenant.leases.delete(entry.record.id);
  if (node !== null && node.mark !== null) {
    const resource = node.mark as ResourceEntry;
    resource.heldUnits -= entry.record.units;
    if (resource.parked !== null) unparkFrom(state, tenant, resource);
  }
  if (entry.wild) tenant.patternCount--;
  if (tenant.kindUnits !== null) takeKind(state, tenant, entry.record.resource, entry.record.units);
  take("held", entry);
  unlinkFromParty(entry);
  addLeaseTime(state, tenant, now - entry.record.acquiredAt, now);
  emitLease(state, entry, endedEvents[as], reason, now);
  if (entry.request !== null) noteEndedLease(state, tenant, entry.request, entry.record, now);
  if (entry.parked !== null) unparkFrom(state, tenant, entry);
  if (entry.party.kind === "agent") noteIdle(state, entry.party, now);
  else taskLeaseEnded(state, tenant, entry.party, entry, now);
}

/** L10: lease time of the whole tenant, by the day. */
function addLeaseTime(state: State, tenant: TenantEntry, ms: number, now: Millis): void {
  if (tenant.record.quotas.tenantLeaseTimeMsMax === null) return;
  const { counters } = tenant;
  const windowStart = now - (now % limits.leaseTimeWindowMs);
  const used = counters.record.windowStart === windowStart ? counters.record.leaseTimeMs : 0;
  counters.record = { ...counters.record, windowStart, leaseTimeMs: used + ms };
  changed(state, counters);
}

export function emitLease(
  state: State,
  entry: LeaseEntry,
  type: LeaseEvent["type"],
  reason: string | null,
  now: Millis,
): void {
  // The events of a task tell of its lease (T10).
  if (isTaskLease(entry.record)) return;
  emit(state, { type, tenant: entry.tenantId, at: now, lease: entry.record, reason });
}

/** Both halves of a rename, or just the lease (C7). */
export function withLinked(tenant: TenantEntry, entry: LeaseEntry): LeaseEntry[] {
  const other = entry.record.linkedTo === null ? undefined : tenant.leases.get(entry.record.linkedTo);
  return other === undefined ? [entry] : [entry, other];
}

/** The lease on a task itself, not on what its manifest names. */
export function isTaskLease({ resource }: Lease): boolean {
  return resource.startsWith(taskPrefix);
}

export const taskPrefix = "TASK:/";

export function nameOf(entry: LeaseEntry): ResourceName {
  return canonicalName(entry.record.resource);
}
