/**
 * The one place where requests begin to wait, are granted, end and are forgotten, alone or with their leases. A request
 * that was granted at once and without a key leaves no record: it is found again through its leases, which carry its id.
 */
import { becomeExecuting, noteIdle, pauseWounded, updateAgent } from "../agents/agent-life.ts";
import type { RequestEvent } from "../contract/events.ts";
import { suffixOf } from "../contract/ids.ts";
import { limits } from "../contract/limits.ts";
import type { EndedLeaseState, Lease, Request } from "../contract/records.ts";
import { addKind, takeKind } from "../deciding/admission.ts";
import { claimsOf, type LinkedClaim, needsCells, placeOf } from "../deciding/manifest.ts";
import { patternsOf } from "../deciding/picking.ts";
import { rankIn, removeFrom } from "../index/heap.ts";
import { nodeFor, put, take } from "../index/resource-tree.ts";
import {
  beginLease,
  boundLease,
  emitLease,
  endLease,
  expiryFor,
  type GrantTerms,
  offerAgain,
  updateLease,
} from "../leases/lease-life.ts";
import { createRequestEntry } from "../memory/entries.ts";
import { woundedReason } from "../memory/jobs.ts";
import { spentNow } from "../memory/refill.ts";
import {
  type AgentEntry,
  changed,
  dropRoot,
  emit,
  enterSeniors,
  freeName,
  type Holder,
  type LeaseEntry,
  type RequestEntry,
  rootOf,
  type TenantEntry,
  type Turn,
  updateCounters,
  type WaitingClaim,
  withLinked,
} from "../memory/state.ts";
import { noRequests, type TaskEntry } from "../memory/task-state.ts";
import { type FirstRequestState, moveRequest } from "./request-states.ts";
import { leaveStandby } from "./standby-index.ts";
import { leaveKeyToStore } from "./stored-keys.ts";

/** What a request asks for; it begins the same for all. */
type RequestTerms = Omit<
  Request,
  | ("tenant" | "holder" | "state" | "arrival" | "submittedAt" | "timeoutAt")
  | ("leaseIds" | "ended" | "fateReason" | "attempt" | "retryAfterMs" | "forgetAt")
>;

export function addRequest(
  turn: Turn,
  holder: Holder,
  terms: RequestTerms,
  state: FirstRequestState = "WAITING",
): RequestEntry {
  const { tenant, now } = turn;
  updateCounters(turn, { arrival: tenant.counters.record.arrival + 1 });
  const record: Request = {
    ...terms,
    tenant: tenant.record.id,
    holder: holder.holderId,
    state,
    arrival: tenant.counters.record.arrival,
    submittedAt: now,
    timeoutAt: now + terms.waitTimeout,
    leaseIds: [],
    ended: [],
    fateReason: null,
    attempt: null,
    retryAfterMs: null,
    forgetAt: null,
  };
  const request = createRequestEntry(record, holder);
  tenant.requests.set(record.id, request);
  changed(turn, request);
  return request;
}

/** Enters a waiting request, new or restored, into the queue and the index. */
export function enqueue({ state, tenant }: Turn, request: RequestEntry): void {
  const { record, holder } = request;
  const { order, suborder } = placeOf(tenant, holder.priority, record.arrival);
  for (const { claim } of claimsOf(tenant, record.intents, record.picked)) {
    const { name, intent, strength, counted } = claim;
    const waiting: WaitingClaim = {
      request,
      name,
      intent,
      counted,
      node: null,
      strength,
      order,
      suborder,
      previous: null,
      next: null,
    };
    put("waiting", nodeFor(rootOf(tenant, name.type), name), waiting);
    if (counted !== null) counted.waitingUnits += intent.units;
    if (name.wild) tenant.patternCount++;
    if (tenant.kindUnits !== null) addKind(tenant, name.text, intent.units);
    request.claims.push(waiting);
  }
  if (record.picked.length > 0) tenant.picking.set(request, patternsOf(record.intents));
  if (holder.senior === null) enterSeniors(tenant, holder);
  tenant.waitingCount++;
  tenant.waitingClaims += request.claims.length;
  openFor(holder, request);
  rankIn(state.waits, request, record.timeoutAt, record.arrival);
}

/** Among what its holder has open. */
export function openFor(holder: Holder, request: RequestEntry): void {
  if (holder.open === noRequests) (holder as TaskEntry).open = new Set();
  holder.open.add(request);
}

/** Out of the queue without a grant: others may have stood behind it. */
function leaveQueue(turn: Turn, request: RequestEntry): void {
  const names = request.claims.map(({ name }) => name);
  dequeue(turn, request);
  for (const name of names) freeName(turn, name);
}

function dequeue(turn: Turn, request: RequestEntry): void {
  const { state, tenant } = turn;
  for (const claim of request.claims) {
    if (take("waiting", claim)) dropRoot(tenant, claim.name.type);
    if (claim.counted !== null) {
      claim.counted.waitingUnits -= claim.intent.units;
      if (claim.counted.parked !== null) state.consequences.push({ type: "units_freed", resource: claim.counted });
    }
    if (claim.name.wild) tenant.patternCount--;
    if (tenant.kindUnits !== null) takeKind(turn, claim.name.text, claim.intent.units);
  }
  tenant.waitingClaims -= request.claims.length;
  if (tenant.book.isLeaseQuotaFull) offerAgain(turn);
  request.claims.length = 0;
  if (request.record.picked.length > 0) tenant.picking.delete(request);
  tenant.waitingCount--;
  request.holder.open.delete(request);
  removeFrom(state.waits, request);
  if (request.parked !== null || request.holder.kind === "task") {
    state.consequences.push({ type: "request_left", request });
  }
}

export function updateRequest(turn: Turn, request: RequestEntry, change: Partial<Omit<Request, "state">>): void {
  request.record = { ...request.record, ...change };
  changed(turn, request);
}

/** Turns claims into leases, all of them (W6). */
export function beginLeases(
  turn: Turn,
  holder: Holder,
  claims: readonly LinkedClaim[],
  terms: GrantTerms,
  firstIndex = 0,
): LeaseEntry[] {
  const [only] = claims;
  // Most manifests are one intent, and a list that grows has room for 17.
  if (only !== undefined && claims.length === 1) return [beginLease(turn, holder, only.claim, firstIndex, null, terms)];
  const leases: LeaseEntry[] = [];
  for (const { claim, linkedIndex } of claims) {
    const index = firstIndex + leases.length;
    const linked = linkedIndex === null ? null : firstIndex + linkedIndex;
    leases.push(beginLease(turn, holder, claim, index, linked, terms));
  }
  return leases;
}

/** A waiter's turn has come (W3). Unless it collects the grant in time, it loses it (W8). */
export function grantWaiter(turn: Turn, request: RequestEntry): void {
  dequeue(turn, request);
  grantRequest(turn, request, request.record.picked);
}

/** One that waited or stood by, and has left that place. */
export function grantRequest(turn: Turn, request: RequestEntry, picked: readonly string[]): void {
  const { tenant, now } = turn;
  if (picked.length > 0) updateRequest(turn, request, { picked });
  const { record, holder } = request;
  const claims = claimsOf(tenant, record.intents, picked);
  const terms: GrantTerms = {
    suffix: suffixOf(record.id),
    ttl: record.ttl,
    idleTimeout: record.idleTimeout,
    purpose: record.purpose,
    tokens: record.tokens,
    claimBy: now + tenant.record.settings.claimWithinMs,
    binds: needsCells(tenant, claims),
    agentId: record.agentId,
  };
  attachLeases(turn, request, beginLeases(turn, holder, claims, terms));
  if (request.record.state === "GRANTED") announceGrant(turn, request);
}

/** The request is GRANTED, or BINDING while cells set some of its leases up. */
export function attachLeases(turn: Turn, request: RequestEntry, leases: readonly LeaseEntry[]): void {
  for (const lease of leases) lease.request = request;
  const binds = leases.some((lease) => lease.record.state === "BINDING");
  if (binds) openFor(request.holder, request);
  moveRequest(turn, request, binds ? "bind" : "grant", { leaseIds: leases.map((lease) => lease.record.id) });
}

export function announceGrant(turn: Turn, request: RequestEntry): void {
  emitRequest(turn, request, "request.granted", null);
  if (request.holder.kind === "agent") becomeExecuting(turn, request.holder);
}

/** G6: when the last of its cells has bound, the whole manifest is granted; its time begins, and it is to be collected. */
export function finishBinding(turn: Turn, request: RequestEntry): void {
  const { tenant, now } = turn;
  const leases = liveLeasesOf(tenant, request);
  if (leases.some((lease) => lease.record.cellBy !== null)) return;
  request.holder.open.delete(request);
  moveRequest(turn, request, "grant");
  for (const lease of leases) {
    spentNow(turn, lease);
    const expiresAt = expiryFor(tenant, now, now, lease.record.ttl);
    const times = { acquiredAt: now, expiresAt, activeAt: now, claimBy: now + tenant.record.settings.claimWithinMs };
    updateLease(turn, lease, boundLease(lease.record, times));
    emitLease(turn, lease, "lease.granted", null);
  }
  if (request.holder.kind === "task") return settleForTask(turn, request, leases);
  announceGrant(turn, request);
}

/** T10: nobody asks for it by its id; the leases are the task's, for the worker that collects them in time. */
function settleForTask(turn: Turn, request: RequestEntry, leases: readonly LeaseEntry[]): void {
  for (const lease of leases) lease.request = null;
  removeRequest(turn, request);
  turn.state.consequences.push({ type: "task_bound", task: request.holder as TaskEntry });
}

export function liveLeasesOf(tenant: TenantEntry, request: RequestEntry): LeaseEntry[] {
  return request.record.leaseIds.flatMap((id) => tenant.leases.get(id) ?? []);
}

const fates = {
  TIMED_OUT: { move: "time_out", event: "request.timed_out" },
  CANCELED: { move: "cancel", event: "request.canceled" },
  PAUSED: { move: "pause", event: "request.paused" },
  BIND_FAILED: { move: "fail", event: "request.paused" },
} as const;

/**
 * Ends a wait without a grant. Its key is free again, because refusals are not remembered (W10); its id still tells
 * its fate for a while. Waiters behind it are served at the end of the turn.
 */
export function endWait(turn: Turn, request: RequestEntry, fate: keyof typeof fates, reason: string | null): void {
  if (request.record.state === "WAITING") leaveQueue(turn, request);
  else if (request.record.state === "STANDBY") leaveStandby(turn, request);
  else request.holder.open.delete(request);
  const { holder } = request;
  if (holder.kind === "task") {
    // Nobody asks for it by its id: the task tells where it stands.
    return removeRequest(turn, request);
  }
  moveRequest(turn, request, fates[fate].move, { fateReason: reason });
  emitRequest(turn, request, fates[fate].event, reason);
  if (fate === "PAUSED" && holder.record.state === "PAUSED")
    updateAgent(turn, holder, { ...holder.record, pausedFor: "paused" });
  rememberEnd(turn, holder, request);
}

/** Of a request that was not granted: its key is free, its fate can be asked for. */
export function rememberEnd(turn: Turn, agent: AgentEntry, request: RequestEntry): void {
  if (request.record.key !== null) agent.keys.delete(request.record.key);
  remember(turn, agent, request);
  noteIdle(turn, agent);
}

/** A granted request keeps what its leases ended as, so that a repeated or late question is answered (W10). */
export function noteEndedLease(turn: Turn, request: RequestEntry, lease: Lease): void {
  updateRequest(turn, request, { ended: [...request.record.ended, lease] });
  if (request.record.state !== "GRANTED" || request.record.ended.length < request.record.leaseIds.length) return;
  if (request.holder.kind === "agent") remember(turn, request.holder, request);
}

function remember(turn: Turn, agent: AgentEntry, request: RequestEntry): void {
  const { state, tenant, now } = turn;
  const { remembered } = tenant;
  updateRequest(turn, request, { forgetAt: now + limits.requestMemoryMs });
  agent.remembered.add(request);
  remembered.add(request);
  rankIn(state.ends, request, now + limits.requestMemoryMs, request.record.arrival);
  if (remembered.size > limits.requestMemoryPerTenantMax) {
    const oldest = tenant.longestRemembered.next().value ?? request;
    leaveKeyToStore(turn, oldest.record);
    forget(turn, oldest);
  }
}

export function forget(turn: Turn, request: RequestEntry): void {
  const { holder } = request;
  removeFrom(turn.state.ends, request);
  turn.tenant.remembered.delete(request);
  if (holder.kind === "agent") {
    holder.remembered.delete(request);
    if (request.record.key !== null && holder.keys.get(request.record.key) === request)
      holder.keys.delete(request.record.key);
  }
  removeRequest(turn, request);
}

export function removeRequest(turn: Turn, request: RequestEntry): void {
  turn.tenant.requests.delete(request.record.id);
  request.alive = false;
  changed(turn, request);
}

export function emitRequest(
  turn: Turn,
  request: RequestEntry,
  type: RequestEvent["type"],
  reason: string | null,
): void {
  emit(turn, { type, tenant: request.tenantId, at: turn.now, request: request.record, reason });
}

/** W7: those of younger holders. */
export function woundLeases(turn: Turn, leases: readonly LeaseEntry[]): void {
  endLeases(turn, leases, "REVOKED", woundedReason);
  for (const lease of leases) pauseWounded(turn, lease);
}

/** Ends leases, each with the other half of its rename, and a request that was still binding as a whole. */
export function endLeases(
  turn: Turn,
  leases: readonly LeaseEntry[],
  as: EndedLeaseState,
  reason: string | null,
  versionOf: ((lease: LeaseEntry) => string | null) | null = null,
): void {
  for (const lease of leases) {
    // What is left of a task's manifest ends with the attempt (T10).
    const halves = lease.holder.kind === "task" ? [lease] : withLinked(turn.tenant, lease);
    for (const half of halves) endHalf(turn, half, as, reason, versionOf === null ? null : versionOf(half));
  }
}

/** The same for one, whose version is known: no list and no function for each release. */
export function endOneLease(
  turn: Turn,
  lease: LeaseEntry,
  as: EndedLeaseState,
  reason: string | null,
  version: string | null,
): void {
  if (lease.record.linkedTo === null) return endHalf(turn, lease, as, reason, version);
  endLeases(turn, [lease], as, reason, () => version);
}

function endHalf(
  turn: Turn,
  lease: LeaseEntry,
  as: EndedLeaseState,
  reason: string | null,
  version: string | null,
): void {
  if (!lease.alive || lease.record.state === "CLOSING") return;
  if (lease.request?.record.state === "BINDING") {
    return endBinding(turn, lease.request, "CANCELED", reason ?? as.toLowerCase());
  }
  endLease(turn, lease, as, reason, version);
}

/** One failed or abandoned bind undoes the whole manifest. */
export function endBinding(
  turn: Turn,
  request: RequestEntry,
  fate: "CANCELED" | "PAUSED" | "BIND_FAILED",
  reason: string,
): void {
  const leases = liveLeasesOf(turn.tenant, request);
  endWait(turn, request, fate, reason);
  for (const lease of leases) {
    if (lease.record.state !== "CLOSING") endLease(turn, lease, "REVOKED", reason, null);
  }
  if (request.holder.kind !== "task") return;
  const failure = fate === "BIND_FAILED" ? reason : null;
  turn.state.consequences.push({ type: "task_unbound", task: request.holder, failure });
}

/** Ends what a request waits, stands by or binds for. */
export function endRequest(turn: Turn, request: RequestEntry, fate: "CANCELED" | "PAUSED", reason: string): void {
  const { state } = request.record;
  if (state === "WAITING" || state === "STANDBY") endWait(turn, request, fate, reason);
  else if (state === "BINDING") endBinding(turn, request, fate, reason);
}
