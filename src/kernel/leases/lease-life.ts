/** Leases begin, change and end here, and stand in every index. Who may do it, and when, is decided elsewhere. */
import { noteIdle, noteLost } from "../agents/agent-life.ts";
import type { LeaseEvent } from "../contract/events.ts";
import { leaseIdWith } from "../contract/ids.ts";
import { limits } from "../contract/limits.ts";
import { EXCLUSIVE, type Predicate, strengths } from "../contract/predicates.ts";
import type { EndedLeaseState, Lease, LeaseState, Millis, TenantSettings } from "../contract/records.ts";
import { addKind, leaseTimeUsed, takeKind, unbookedTime, windowAt } from "../deciding/admission.ts";
import { type Claim, cellOf } from "../deciding/manifest.ts";
import { rankIn, removeFrom } from "../index/heap.ts";
import { append, move, type Node, nodeFor, take } from "../index/resource-tree.ts";
import { forgetOld, noteEnd } from "../memory/past.ts";
import { holdUnits, isRefilled, spendUnits } from "../memory/refill.ts";
import {
  changed,
  createLeaseEntry,
  dropRoot,
  emit,
  enterSeniors,
  freeNameOf,
  type Holder,
  isTaskLease,
  type LeaseEntry,
  nameOf,
  nextFence,
  type ResourceEntry,
  rootOf,
  type TenantEntry,
  type Turn,
  updateCounters,
} from "../memory/state.ts";
import { announceAll, attemptOf } from "../memory/task-state.ts";
import { after, type Transitions } from "../memory/transitions.ts";
import { leaseTimeMax } from "../policies/permissions.ts";
import { contestLateResults } from "./late-results.ts";

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
  /** Who acts: the holder itself, or the worker of a task. */
  readonly agentId: string;
  /** Where the lease stands for its request (W10). */
  readonly requestKey?: string | null;
  readonly fingerprint?: string | null;
}

/** Grants one intent. If any of its manifest is on a bound resource, all are BINDING until the last cell is done (G6). */
export function beginLease(
  turn: Turn,
  holder: Holder,
  claim: Claim,
  index: number,
  linkedIndex: number | null,
  terms: GrantTerms,
): LeaseEntry {
  const { tenant, now } = turn;
  const cell = terms.binds ? cellOf(tenant, claim) : null;
  const record: Lease = {
    tenant: tenant.record.id,
    id: leaseIdWith(terms.suffix, index),
    resource: claim.name.text,
    predicate: claim.intent.predicate,
    agentId: terms.agentId,
    holder: holder.holderId,
    state: terms.binds ? "BINDING" : "ACTIVE",
    fence: nextFence(turn),
    generation: 1,
    units: claim.intent.units,
    purpose: terms.purpose,
    acquiredAt: now,
    expiresAt: expiryFor(tenant, now, now, terms.ttl),
    ttl: terms.ttl,
    tokens: terms.tokens,
    idleTimeout: idleTimeoutFor(tenant.record.settings, claim.name.text, terms.idleTimeout),
    activeAt: now,
    bookedAt: null,
    claimBy: terms.claimBy,
    requestKey: terms.requestKey ?? null,
    fingerprint: terms.fingerprint ?? null,
    heldUntil: null,
    verified: false,
    linkedTo: linkedIndex === null ? null : leaseIdWith(terms.suffix, linkedIndex),
    cell,
    cellBy: cell === null ? null : now + limits.bindMs,
    coordinate: null,
    tornDown: false,
    closingAs: null,
    endedAt: null,
    endReason: null,
    version: null,
  };
  const entry = createLeaseEntry(record, holder, claim.strength);
  if (tenant.book.lateResults.size > 0) contestLateResults(turn, holder, claim);
  place(turn, entry, nodeFor(rootOf(tenant, claim.name.type), claim.name), claim.name.wild);
  if (claim.counted !== null) spendUnits(turn, claim.counted, claim.intent.units, terms.binds ? limits.bindMs : 0);
  changed(turn, entry);
  emitLease(turn, entry, terms.binds ? "lease.binding" : "lease.granted", null);
  return entry;
}

/** Books what the lease has lived since it was booked last, on the present day; returns until when it is booked. */
export function bookLeaseTime(turn: Turn, lease: Lease): Millis | null {
  const { tenant, now } = turn;
  if (tenant.record.quotas.tenantLeaseTimeMsMax === null) return lease.bookedAt;
  const leaseTimeMs = leaseTimeUsed(tenant, now) + unbookedTime(lease, now);
  updateCounters(turn, { windowStart: windowAt(now), leaseTimeMs });
  return now;
}

/** The shorter of what the holder wants and what the tenant forces on the resource's type. */
export function idleTimeoutFor(settings: TenantSettings, resource: string, wanted: number | null): number | null {
  const { idleTimeoutMsByType: forced } = settings;
  for (const _ in forced) {
    const type = resource.slice(0, resource.indexOf(":"));
    const most = Object.hasOwn(forced, type) ? (forced[type] ?? null) : null;
    return most === null || wanted === null ? (most ?? wanted) : Math.min(most, wanted);
  }
  return wanted;
}

/** Heartbeats reach no further than the quota on one lease's whole time (L10). */
export function expiryFor(tenant: TenantEntry, acquiredAt: Millis, now: Millis, ttl: number): Millis {
  const most = tenant.record.quotas.leaseTimeMsMax;
  return most === null ? now + ttl : Math.min(now + ttl, acquiredAt + most);
}

/** How far a lease is extended. One whose worker was asked to make room keeps to its grace time (T8). */
export function extensionFor(tenant: TenantEntry, lease: LeaseEntry, now: Millis): Millis {
  const { acquiredAt, ttl } = lease.record;
  const byQuota = expiryFor(tenant, acquiredAt, now, ttl);
  const most = leaseTimeMax(tenant, lease);
  const expiresAt = most === null ? byQuota : Math.min(byQuota, acquiredAt + most);
  const preemptBy = lease.holder.kind === "task" ? attemptOf(lease.holder, lease)?.preemptBy : null;
  return typeof preemptBy === "number" ? Math.min(expiresAt, preemptBy) : expiresAt;
}

/** Enters a lease into every index: a new one, whose fence is the highest, or one that is restored. */
export function place(turn: Turn, entry: LeaseEntry, node: Node, wild: boolean): void {
  const { tenant } = turn;
  const { holder } = entry;
  tenant.leases.set(entry.record.id, entry);
  append(node, entry);
  if (node.mark !== null) holdUnits(node.mark as ResourceEntry, entry.record.units);
  entry.wild = wild;
  if (wild) tenant.patternCount++;
  if (tenant.kindUnits !== null) addKind(tenant, entry.record.resource, entry.record.units);
  linkToHolder(tenant, entry, holder);
  rankIn(turn.state.ends, entry, dueOf(entry.record).at, entry.record.fence);
}

export function linkToHolder(tenant: TenantEntry, entry: LeaseEntry, holder: Holder): void {
  if (holder.senior === null) enterSeniors(tenant, holder);
  entry.holder = holder;
  entry.nextOfHolder = holder.leases;
  entry.previousOfHolder = null;
  if (holder.leases !== null) holder.leases.previousOfHolder = entry;
  holder.leases = entry;
  holder.leaseCount++;
}

export function unlinkFromHolder(entry: LeaseEntry): void {
  const { holder, previousOfHolder: previous, nextOfHolder: next } = entry;
  if (previous === null) holder.leases = next;
  else previous.nextOfHolder = next;
  if (next !== null) next.previousOfHolder = previous;
  entry.previousOfHolder = null;
  entry.nextOfHolder = null;
  holder.leaseCount--;
}

type DueCause = "bind" | "teardown" | "unclaimed" | "idle" | "expired" | "ended";

/** When something must happen to the lease if nobody acts on it, and what. */
export function dueOf(lease: Lease): { readonly at: Millis; readonly cause: DueCause } {
  const { state, expiresAt, claimBy, idleTimeout, activeAt } = lease;
  switch (state) {
    case "BINDING":
      // One that is ready waits for the others of its manifest, whose deadlines stand for it.
      return { at: lease.cellBy ?? Number.POSITIVE_INFINITY, cause: "bind" };
    case "CLOSING":
      return { at: lease.cellBy ?? expiresAt, cause: "teardown" };
    case "HELD":
      return { at: lease.heldUntil ?? expiresAt, cause: "expired" };
    case "ACTIVE": {
      const idleAt = idleTimeout === null ? expiresAt : activeAt + idleTimeout;
      if (claimBy !== null && claimBy < expiresAt && claimBy <= idleAt) return { at: claimBy, cause: "unclaimed" };
      return idleAt < expiresAt ? { at: idleAt, cause: "idle" } : { at: expiresAt, cause: "expired" };
    }
    case "RELEASED":
    case "EXPIRED":
    case "REVOKED":
      return { at: expiresAt, cause: "ended" };
  }
}

/** Replaces a live lease's record. */
export function updateLease(turn: Turn, entry: LeaseEntry, record: Lease): void {
  entry.record = record;
  rankIn(turn.state.ends, entry, dueOf(entry.record).at, entry.record.fence);
  changed(turn, entry);
}

/** Same id, next generation, new fence: what a renewal, a re-issue and a transfer have in common (A3, G8, L15). */
export function reissue(turn: Turn, entry: LeaseEntry, record: Lease): void {
  const fence = nextFence(turn);
  updateLease(turn, entry, { ...record, generation: record.generation + 1, fence });
  move("held", entry, entry.strength, fence);
}

/** L15: a weaker predicate. Units do not depend on it (C6). */
export function weaken(turn: Turn, entry: LeaseEntry, predicate: Predicate): void {
  const resource = entry.node?.mark as ResourceEntry | null | undefined;
  const counted = resource !== null && resource !== undefined && resource.record.capacity !== null;
  updateLease(turn, entry, { ...entry.record, predicate });
  move("held", entry, counted ? EXCLUSIVE : strengths[predicate], entry.order);
  if (entry.parked !== null) turn.state.consequences.push({ type: "lease_weakened", lease: entry });
  freeNameOf(turn, entry);
}

/**
 * Ends a lease, or begins its end where a cell must tear it down first (G6).
 */
export function endLease(
  turn: Turn,
  entry: LeaseEntry,
  as: EndedLeaseState,
  reason: string | null,
  version: string | null,
): void {
  const { record } = entry;
  if (record.cell !== null && record.state !== "CLOSING" && !record.tornDown) {
    updateLease(turn, entry, closingLease(record, as, reason, version, turn.now + limits.teardownMs));
    emitLease(turn, entry, "lease.closing", reason);
    if (as !== "RELEASED") noteLost(turn, entry, record);
    if (entry.holder.kind === "task") turn.state.consequences.push({ type: "task_lease_closing", lease: entry });
    return;
  }
  finishLease(turn, entry, as, reason, version);
}

const endedEvents = { RELEASED: "lease.released", EXPIRED: "lease.expired", REVOKED: "lease.revoked" } as const;

/** The final end: out of every index, into history. */
export function finishLease(
  turn: Turn,
  entry: LeaseEntry,
  as: EndedLeaseState,
  reason: string | null,
  version: string | null,
): void {
  const { state, tenant, now } = turn;
  const { node, record: before } = entry;
  entry.record = endedLease(before, as, now, reason, version);
  entry.alive = false;
  changed(turn, entry);
  removeFrom(state.ends, entry);
  tenant.leases.delete(entry.record.id);
  if (tenant.book.isLeaseQuotaFull) offerAgain(turn);
  const resource = (node?.mark ?? null) as ResourceEntry | null;
  if (resource !== null && !isRefilled(resource)) {
    resource.heldUnits -= entry.record.units;
    if (resource.parked !== null) state.consequences.push({ type: "units_freed", resource });
  }
  if (entry.wild) tenant.patternCount--;
  if (tenant.kindUnits !== null) takeKind(turn, entry.record.resource, entry.record.units);
  if (take("held", entry)) dropRoot(tenant, nameOf(entry).type);
  unlinkFromHolder(entry);
  bookLeaseTime(turn, entry.record);
  emitLease(turn, entry, endedEvents[as], reason);
  state.past.endedCount++;
  const isTasks = entry.holder.kind === "task" && isTaskLease(entry.record);
  // Nobody observes the lease of a task itself; it only counts among the ended ones (A4).
  if (!isTasks) noteEnd(turn, entry.record);
  else if (state.past.recent.oldestOrdinal <= state.past.endedCount - limits.endsRememberedMax) forgetOld(state);
  if (as !== "RELEASED" && before.state !== "CLOSING") noteLost(turn, entry, before);
  if (entry.holder.kind === "agent") noteIdle(turn, entry.holder);
  const isAskedFor = entry.request !== null || entry.record.requestKey !== null;
  const concernsOthers = isAskedFor || entry.parked !== null || entry.holder.kind === "task";
  if (concernsOthers) state.consequences.push({ type: "lease_ended", lease: entry });
  if (!isTasks) freeNameOf(turn, entry);
}

/** There is room under the quota again: held polls are tried once more (T1, G2). */
export function offerAgain(turn: Turn): void {
  turn.tenant.book.isLeaseQuotaFull = false;
  announceAll(turn);
}

export function emitLease(turn: Turn, entry: LeaseEntry, type: LeaseEvent["type"], reason: string | null): void {
  // The events of a task tell of its lease (T10).
  if (entry.holder.kind === "task" && isTaskLease(entry.record)) return;
  emit(turn, { type, tenant: entry.tenantId, at: turn.now, lease: entry.record, reason });
}

/**
 * A lease's states (L3, L9, G6, G7). Nothing else writes `state` of a lease.
 *
 *              bind            hold
 *   BINDING ────────► ACTIVE ────────► HELD        on a bound resource it begins as BINDING, otherwise as ACTIVE
 *      │  ▲           │    ▲             │
 *      │  │           │    └── extend ───┤         HELD: its agent restarts, and nobody else gets it for a while
 *      │  └───────────┼──── rebind ──────┤         a bound one is set up again
 *      │ close        │ close            │ close
 *      ├──────────────┴──────────────────┴───► CLOSING    while a cell tears it down
 *      │ revoke       │ release, expire, revoke   │ as it was to end
 *      ▼              ▼                           ▼
 *   REVOKED        RELEASED | EXPIRED | REVOKED
 */

export type LeaseMove = "bind" | "rebind" | "extend" | "hold" | "close" | "release" | "expire" | "revoke";

const no = "refused";

// biome-ignore format: a table, one row per state
export const leaseTransitions: Transitions<LeaseState, LeaseMove> = {
  BINDING:  { bind: "ACTIVE", rebind: no,        extend: no,       hold: no,     close: "CLOSING", release: no,         expire: no,        revoke: "REVOKED" },
  ACTIVE:   { bind: no,       rebind: no,        extend: "ACTIVE", hold: "HELD", close: "CLOSING", release: "RELEASED", expire: "EXPIRED", revoke: "REVOKED" },
  HELD:     { bind: no,       rebind: "BINDING", extend: "ACTIVE", hold: no,     close: "CLOSING", release: "RELEASED", expire: "EXPIRED", revoke: "REVOKED" },
  CLOSING:  { bind: no,       rebind: no,        extend: no,       hold: no,     close: no,        release: "RELEASED", expire: "EXPIRED", revoke: "REVOKED" },
  RELEASED: { bind: no,       rebind: no,        extend: no,       hold: no,     close: no,        release: no,         expire: no,        revoke: no },
  EXPIRED:  { bind: no,       rebind: no,        extend: no,       hold: no,     close: no,        release: no,         expire: no,        revoke: no },
  REVOKED:  { bind: no,       rebind: no,        extend: no,       hold: no,     close: no,        release: no,         expire: no,        revoke: no },
};

const endMoves = { RELEASED: "release", EXPIRED: "expire", REVOKED: "revoke" } as const;

/** All cells of its manifest have set it up; its time begins. */
export function boundLease(
  lease: Lease,
  times: Pick<Lease, "acquiredAt" | "expiresAt" | "activeAt" | "claimBy">,
): Lease {
  return { ...lease, ...times, state: after(leaseTransitions, lease.state, "bind") };
}

/** A heartbeat or a renewal: its holder is there, and has collected it. Both book its time and apply the tenant's settings. */
export function extendedLease(turn: Turn, entry: LeaseEntry, activity: boolean): Lease {
  const { tenant, now } = turn;
  const { record: lease } = entry;
  const state = after(leaseTransitions, lease.state, "extend");
  const idleTimeout = idleTimeoutFor(tenant.record.settings, lease.resource, lease.idleTimeout);
  // An agent that comes back from a restart was not idle meanwhile (L9); a timeout that is new begins now (L10).
  const isActive = activity || lease.state === "HELD" || idleTimeout !== lease.idleTimeout;
  return {
    ...lease,
    state,
    expiresAt: extensionFor(tenant, entry, now),
    activeAt: isActive ? now : lease.activeAt,
    idleTimeout,
    bookedAt: bookLeaseTime(turn, lease),
    claimBy: null,
    verified: false,
  };
}

/** L9: the leases of an agent that announced a restart are held after their expiry, once. */
export function mayBeHeld({ holder, record }: LeaseEntry): boolean {
  if (record.state !== "ACTIVE" || holder.kind !== "agent") return false;
  return holder.record.restarting && record.heldUntil === null;
}

/** L9: a held lease on a cell is revived by setting it up again. */
export function rebindingLease(turn: Turn, lease: Lease): Lease {
  const state = after(leaseTransitions, lease.state, "rebind");
  const cellBy = turn.now + limits.bindMs;
  return { ...lease, state, cellBy, coordinate: null, tornDown: false, verified: false };
}

export function heldLease(lease: Lease, tornDown: boolean): Lease {
  const state = after(leaseTransitions, lease.state, "hold");
  return { ...lease, state, heldUntil: lease.expiresAt + limits.heldMs, claimBy: null, tornDown };
}

export function closingLease(
  lease: Lease,
  closingAs: EndedLeaseState,
  endReason: string | null,
  version: string | null,
  cellBy: Millis,
): Lease {
  const state = after(leaseTransitions, lease.state, "close");
  return { ...lease, state, closingAs, cellBy, claimBy: null, endReason, version };
}

export function endedLease(
  lease: Lease,
  as: EndedLeaseState,
  endedAt: Millis,
  endReason: string | null,
  version: string | null,
): Lease {
  return { ...lease, state: after(leaseTransitions, lease.state, endMoves[as]), endedAt, endReason, version };
}
