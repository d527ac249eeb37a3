/**
 * The one place where requests begin to wait, are granted, end and are forgotten. A request that was granted at once
 * and without a key leaves no record: it is found again through its leases, which carry its id.
 */
import { becomeExecuting, noteIdle } from "../agents/agent-life.ts";
import type { RequestEvent } from "../contract/events.ts";
import { suffixOf } from "../contract/ids.ts";
import { limits } from "../contract/limits.ts";
import type { Intent, Lease, Millis, Request, RequestState } from "../contract/records.ts";
import { canonicalName, makeWish, type Wish } from "../deciding/conflicts.ts";
import { patternsOf } from "../deciding/picking.ts";
import { addKind, takeKind } from "../deciding/quotas.ts";
import { schedule, unschedule } from "../index/heap.ts";
import { nodeFor, type Place, put, take } from "../index/resource-tree.ts";
import { beginLease, cellOf, emitLease, expiryFor, type GrantTerms, updateLease } from "../leases/lease-life.ts";
import {
  type AgentEntry,
  type Claim,
  changed,
  emit,
  type LeaseEntry,
  type Party,
  type RequestEntry,
  rootOf,
  type State,
  type TenantEntry,
} from "../memory/state.ts";
import { noRequests, type TaskEntry } from "../memory/task-state.ts";
import { unparkFrom } from "../tasks/task-parking.ts";
import { makeReady } from "../tasks/task-queue.ts";

/** One wish per name: a rename is two, each linked to the other (C7). */
export interface LinkedWish {
  readonly wish: Wish;
  readonly linkedIndex: number | null;
}

export function wishesOf(
  tenant: TenantEntry,
  intents: readonly Intent[],
  picked: readonly string[] = nothingPicked,
): LinkedWish[] {
  const wishes: LinkedWish[] = [];
  let at = 0;
  for (const intent of intents) {
    const wish = makeWish(tenant, intent, canonicalName(picked[at++] ?? intent.resource));
    if (intent.to === null) wishes.push({ wish, linkedIndex: null });
    else {
      wishes.push({ wish, linkedIndex: wishes.length + 1 });
      wishes.push({ wish: makeWish(tenant, intent, canonicalName(intent.to)), linkedIndex: wishes.length - 1 });
    }
  }
  return wishes;
}

const nothingPicked: readonly string[] = [];

/** C6: what the manifest takes of the wish's counted resource altogether. */
export function unitsWished(wishes: readonly { readonly wish: Wish }[], { counted }: Wish): number {
  if (counted === null) return 0;
  let units = 0;
  for (const { wish } of wishes) if (wish.counted === counted) units += wish.intent.units;
  return units;
}

/** Where the request stands in the queue: by arrival, or under Wound-Wait by age (W3, W7). */
export function placeOf(tenant: TenantEntry, priority: number, arrival: number): Place {
  return tenant.record.settings.strategy === "wait_die"
    ? { order: arrival, suborder: 0 }
    : { order: priority, suborder: arrival };
}

/** Enters a waiting request, new or restored, into the queue and the index. */
export function enqueue(state: State, tenant: TenantEntry, request: RequestEntry): void {
  const { record, party } = request;
  const { order, suborder } = placeOf(tenant, party.priority, record.arrival);
  for (const { wish } of wishesOf(tenant, record.intents, record.picked)) {
    const { name, intent, strength, counted } = wish;
    const claim: Claim = {
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
    put("waiting", nodeFor(rootOf(tenant, name.type), name), claim);
    if (counted !== null) counted.waitingUnits += intent.units;
    if (name.wild) tenant.patternCount++;
    if (tenant.kindUnits !== null) addKind(tenant, name.text, intent.units);
    request.claims.push(claim);
  }
  if (record.picked.length > 0) tenant.picking.set(request, patternsOf(record.intents));
  tenant.waitingCount++;
  if (party.open === noRequests) (party as TaskEntry).open = new Set();
  party.open.add(request);
  schedule(state.waits, request, record.timeoutAt, record.arrival);
}

function dequeue(state: State, tenant: TenantEntry, request: RequestEntry): void {
  for (const claim of request.claims) {
    take("waiting", claim);
    if (claim.counted !== null) {
      claim.counted.waitingUnits -= claim.intent.units;
      if (claim.counted.parked !== null) unparkFrom(state, tenant, claim.counted);
    }
    if (claim.name.wild) tenant.patternCount--;
    if (tenant.kindUnits !== null) takeKind(state, tenant, claim.name.text, claim.intent.units);
  }
  request.claims.length = 0;
  if (request.record.picked.length > 0) tenant.picking.delete(request);
  tenant.waitingCount--;
  request.party.open.delete(request);
  unschedule(state.waits, request);
  if (request.parked !== null) unparkFrom(state, tenant, request);
}

export function updateRequest(state: State, request: RequestEntry, change: Partial<Request>): void {
  request.record = { ...request.record, ...change };
  changed(state, request);
}

export function needsCells(tenant: TenantEntry, wishes: readonly LinkedWish[]): boolean {
  return tenant.resources.size > 0 && wishes.some(({ wish }) => cellOf(tenant, wish) !== null);
}

/** Turns wishes into leases, all of them (W6). */
export function beginLeases(
  state: State,
  tenant: TenantEntry,
  party: Party,
  wishes: readonly LinkedWish[],
  terms: GrantTerms,
  now: Millis,
  firstIndex = 0,
): LeaseEntry[] {
  const leases: LeaseEntry[] = [];
  for (const { wish, linkedIndex } of wishes) {
    const index = firstIndex + leases.length;
    const linked = linkedIndex === null ? null : firstIndex + linkedIndex;
    leases.push(beginLease(state, tenant, party, wish, index, linked, terms, now));
  }
  return leases;
}

/** A waiter's turn has come (W3). Unless it collects the grant in time, it loses it (W8). */
export function grantWaiter(state: State, tenant: TenantEntry, request: RequestEntry, now: Millis): void {
  const { record, party } = request;
  dequeue(state, tenant, request);
  const wishes = wishesOf(tenant, record.intents, record.picked);
  const terms: GrantTerms = {
    suffix: suffixOf(record.id),
    ttl: record.ttl,
    idleTimeout: record.idleTimeout,
    purpose: record.purpose,
    tokens: record.tokens,
    claimBy: now + tenant.record.settings.claimWithinMs,
    binds: needsCells(tenant, wishes),
    agentId: record.agentId,
  };
  attachLeases(state, request, beginLeases(state, tenant, party, wishes, terms, now));
  if (request.record.state === "GRANTED") announceGrant(state, tenant, request, now);
}

/** The request is GRANTED, or BINDING while cells set some of its leases up. */
export function attachLeases(state: State, request: RequestEntry, leases: readonly LeaseEntry[]): void {
  for (const lease of leases) lease.request = request;
  const binds = leases.some((lease) => lease.record.state === "BINDING");
  if (binds) request.party.open.add(request);
  updateRequest(state, request, {
    state: binds ? "BINDING" : "GRANTED",
    leaseIds: leases.map((lease) => lease.record.id),
  });
}

export function announceGrant(state: State, tenant: TenantEntry, request: RequestEntry, now: Millis): void {
  emitRequest(state, request, "request.granted", null, now);
  if (request.party.kind === "agent") becomeExecuting(state, tenant, request.party, now);
}

/** G6: when the last of its cells has bound, the whole manifest is granted; its time begins, and it is to be collected. */
export function finishBinding(state: State, tenant: TenantEntry, request: RequestEntry, now: Millis): void {
  const leases = liveLeasesOf(tenant, request);
  if (leases.some((lease) => lease.record.cellBy !== null)) return;
  request.party.open.delete(request);
  updateRequest(state, request, { state: "GRANTED" });
  const claimBy = now + tenant.record.settings.claimWithinMs;
  for (const lease of leases) {
    const expiresAt = expiryFor(tenant, now, now, lease.record.ttl);
    const times = { acquiredAt: now, expiresAt, activeAt: now, claimBy };
    updateLease(state, lease, { ...lease.record, ...times, state: "ACTIVE" });
    emitLease(state, lease, "lease.granted", null, now);
  }
  announceGrant(state, tenant, request, now);
}

export function liveLeasesOf(tenant: TenantEntry, request: RequestEntry): LeaseEntry[] {
  const leases: LeaseEntry[] = [];
  for (const id of request.record.leaseIds) {
    const lease = tenant.leases.get(id);
    if (lease !== undefined) leases.push(lease);
  }
  return leases;
}

const fateEvents: Readonly<Partial<Record<RequestState, RequestEvent["type"]>>> = {
  TIMED_OUT: "request.timed_out",
  CANCELED: "request.canceled",
  PAUSED: "request.paused",
  BIND_FAILED: "request.paused",
};

/**
 * Ends a wait without a grant. Its key is free again, because refusals are not remembered (W10); its id still tells
 * its fate for a while. The names it waited for are returned: others may have stood behind it.
 */
export function endWait(
  state: State,
  tenant: TenantEntry,
  request: RequestEntry,
  fate: "TIMED_OUT" | "CANCELED" | "PAUSED" | "BIND_FAILED",
  reason: string | null,
  now: Millis,
): readonly Claim["name"][] {
  const names = request.claims.map((claim) => claim.name);
  if (request.record.state === "WAITING") dequeue(state, tenant, request);
  else request.party.open.delete(request);
  const { party } = request;
  if (party.kind === "task") {
    // Nobody asks for it by its id: the task tells where it stands.
    removeRequest(state, tenant, request);
    if (party.place === "parked" && party.parking === null) makeReady(state, tenant, party);
    return names;
  }
  if (request.record.key !== null) party.keys.delete(request.record.key);
  updateRequest(state, request, { state: fate, fateReason: reason });
  emitRequest(state, request, fateEvents[fate] ?? "request.canceled", reason, now);
  remember(state, tenant, party, request, now);
  noteIdle(state, party, now);
  return names;
}

/** A granted request keeps what its leases ended as, so that a repeated or late question is answered (W10). */
export function noteEndedLease(
  state: State,
  tenant: TenantEntry,
  request: RequestEntry,
  lease: Lease,
  now: Millis,
): void {
  updateRequest(state, request, { ended: [...request.record.ended, lease] });
  if (request.record.state !== "GRANTED" || request.record.ended.length < request.record.leaseIds.length) return;
  if (request.party.kind === "agent") remember(state, tenant, request.party, request, now);
}

function remember(state: State, tenant: TenantEntry, agent: AgentEntry, request: RequestEntry, now: Millis): void {
  const { remembered } = agent;
  updateRequest(state, request, { forgetAt: now + limits.requestMemoryMs });
  remembered.add(request);
  schedule(state.ends, request, now + limits.requestMemoryMs, request.record.arrival);
  if (remembered.size > limits.requestMemoryPerAgentMax) {
    let oldest = request;
    for (const one of remembered) if (isForgottenBefore(one.record, oldest.record)) oldest = one;
    forget(state, tenant, oldest);
  }
}

function isForgottenBefore(a: Request, b: Request): boolean {
  const [aAt, bAt] = [a.forgetAt ?? 0, b.forgetAt ?? 0];
  return aAt !== bAt ? aAt < bAt : a.arrival < b.arrival;
}

export function forget(state: State, tenant: TenantEntry, request: RequestEntry): void {
  const { party } = request;
  unschedule(state.ends, request);
  if (party.kind === "agent") {
    party.remembered.delete(request);
    if (request.record.key !== null && party.keys.get(request.record.key) === request)
      party.keys.delete(request.record.key);
  }
  removeRequest(state, tenant, request);
}

export function removeRequest(state: State, tenant: TenantEntry, request: RequestEntry): void {
  tenant.requests.delete(request.record.id);
  request.alive = false;
  changed(state, request);
}

export function emitRequest(
  state: State,
  request: RequestEntry,
  type: RequestEvent["type"],
  reason: string | null,
  now: Millis,
): void {
  emit(state, { type, tenant: request.tenantId, at: now, request: request.record, reason });
}
