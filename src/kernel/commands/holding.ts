/** What a holder does with its leases: heartbeat, renew, release (L4, L5, G8). */

import { followUp } from "../aftermath.ts";
import { moveAgent, pauseIfBare, unconcerned } from "../agents/agent-life.ts";
import { checkValue } from "../contract/bounds.ts";
import {
  type Actor,
  commands,
  type Heartbeat,
  type HeartbeatAll,
  type ReleaseAll,
  type ReleaseLease,
  type RenewLease,
} from "../contract/commands.ts";
import type { EndedLeaseState, Lease, Millis } from "../contract/records.ts";
import { type Refusal, type RefusalCode, refuse } from "../contract/refusals.ts";
import type { LostLease, Reply } from "../contract/replies.ts";
import { emitLease, expiryFor, extendedLease, extensionFor, reissue, updateLease } from "../leases/lease-life.ts";
import { isAbove, whyNotItsWorker } from "../memory/actors.ts";
import { isSwept } from "../memory/jobs.ts";
import {
  type AgentEntry,
  type Holder,
  type LeaseEntry,
  leasesOf,
  type RequestEntry,
  type TenantEntry,
  type Turn,
  withLinked,
} from "../memory/state.ts";
import { leasesOfAttempt } from "../memory/task-state.ts";
import { collect, observationOf } from "../requests/describe.ts";
import { endLeases } from "../requests/request-life.ts";
import { endIfSwept } from "../requests/sweep.ts";
import { noteReissued } from "../tasks/task-life.ts";

export function heartbeat(turn: Turn, lease: LeaseEntry, command: Heartbeat): Reply {
  const refusal = whyNotExtended(turn.tenant, lease.record, turn.now);
  if (refusal !== null) return refusal;
  const collected = extend(turn, lease, command.activity);
  const observation = collected === null ? null : observationOf(turn, [collected]);
  return { type: "lease", lease: lease.record, ...(observation !== null && { observation }) };
}

export function heartbeatAll(turn: Turn, agent: AgentEntry, command: HeartbeatAll): Reply {
  const { tenant, now } = turn;
  const { found, lost } = ownLeases(turn, agent, command.leaseIds);
  const kept: LeaseEntry[] = [];
  const collected = new Set<RequestEntry>();
  for (const lease of found) {
    const refusal = whyNotExtended(tenant, lease.record, now);
    // A bound lease lives on as it is: it is renewed, never extended (G8).
    if (refusal === null) {
      const request = extend(turn, lease, command.activity);
      if (request !== null) collected.add(request);
    } else if (refusal.code !== "renew_required") {
      lost.push({ id: lease.record.id, lease: lease.record, code: refusal.code });
      continue;
    }
    kept.push(lease);
  }
  const observation = collected.size === 0 ? null : observationOf(turn, [...collected]);
  const leases = kept.map((lease) => lease.record);
  return { type: "leases", leases, lost, ...(observation !== null && { observation }) };
}

export interface OwnLeases {
  readonly found: LeaseEntry[];
  readonly lost: LostLease[];
}

/** The agent's live leases, all or as named; whatever else is named has ended or never was its own. */
export function ownLeases(turn: Turn, agent: AgentEntry, leaseIds: readonly string[] | null): OwnLeases {
  const { tenant } = turn;
  if (leaseIds === null) return { found: leasesOf(agent).filter((lease) => !isSwept(tenant, lease)), lost: [] };
  const found: LeaseEntry[] = [];
  const lost: LostLease[] = [];
  for (const id of new Set(leaseIds)) {
    const lease = liveLease(turn, id);
    if (lease !== undefined && lease.holder === agent) found.push(lease);
    else lost.push({ id, lease: null, code: null });
  }
  return { found, lost };
}

const closingCodes: Readonly<Record<EndedLeaseState, RefusalCode>> = {
  RELEASED: "lease_released",
  EXPIRED: "lease_expired",
  REVOKED: "lease_revoked",
};

/** The refusal that a lease's end calls for (L4, G9). */
export function endedRefusal(id: string, state: EndedLeaseState, reason: string | null): Refusal {
  const detail = `The lease has ended (${state.toLowerCase()}${reason === null ? "" : `: ${reason}`}); acquire again.`;
  return refuse(closingCodes[state], detail, reason === null ? { leaseId: id } : { leaseId: id, problem: reason });
}

function whyNotExtended(tenant: TenantEntry, lease: Lease, now: Millis): Refusal | null {
  const { id } = lease;
  if (lease.state === "CLOSING") return endedRefusal(id, lease.closingAs ?? "RELEASED", lease.endReason);
  if (lease.state === "HELD" && !lease.verified) return verifyRequired(id);
  const isBound =
    lease.state === "BINDING" ||
    lease.cell !== null ||
    (lease.linkedTo !== null && tenant.leases.get(lease.linkedTo)?.record.cell != null);
  if (isBound) {
    return refuse("renew_required", "A lease on a bound resource is not extended; renew it.", { leaseId: id });
  }
  return whyTimeIsUp(tenant, lease, now);
}

/** A lease that was held past its quota on lease time cannot be brought back (L9, L10). */
function whyTimeIsUp(tenant: TenantEntry, lease: Lease, now: Millis): Refusal | null {
  if (expiryFor(tenant, lease.acquiredAt, now, lease.ttl) > now) return null;
  return refuse("lease_denied", "The lease has used up its lease time; acquire again.", {
    leaseId: lease.id,
    reason: "quota",
  });
}

function verifyRequired(leaseId: string): Refusal {
  return refuse("verify_required", "The lease is held for a restart; call verify-all first.", { leaseId });
}

/** Both halves of a rename, and a sign of life for the whole grant (C7, W8): the request that it collects, if it does. */
export function extend(turn: Turn, lease: LeaseEntry, activity: boolean): RequestEntry | null {
  const { tenant } = turn;
  if (lease.holder.kind === "task") {
    // T10: a task's leases are extended together, and none of an attempt that was called off.
    for (const one of leasesOfAttempt(tenant, lease.holder, lease)) extendOne(turn, one, activity);
    return null;
  }
  const collected = lease.record.claimBy === null ? null : lease.request;
  if (collected !== null) collect(turn, collected);
  extendOne(turn, lease, activity);
  const other = lease.record.linkedTo === null ? undefined : tenant.leases.get(lease.record.linkedTo);
  if (other !== undefined) extendOne(turn, other, activity);
  return collected;
}

function extendOne(turn: Turn, lease: LeaseEntry, activity: boolean): void {
  const { tenant, now } = turn;
  const { record } = lease;
  const expiresAt = extensionFor(tenant, lease, now);
  const wasHeld = record.state === "HELD";
  // An agent that comes back from a restart was not idle meanwhile (L9, L10).
  const activeAt = activity || wasHeld ? now : record.activeAt;
  updateLease(turn, lease, extendedLease(record, expiresAt, activeAt));
  if (wasHeld) emitLease(turn, lease, "lease.revived", null);
}

/** G8: a fresh grant under the same id; with it every older token and fence is stale. */
export function renewLease(turn: Turn, lease: LeaseEntry, command: RenewLease): Reply {
  const { tenant, now } = turn;

  const { record } = lease;
  if (record.state === "CLOSING") return endedRefusal(record.id, record.closingAs ?? "RELEASED", record.endReason);
  if (record.state === "HELD" && !record.verified) return verifyRequired(record.id);
  if (record.state === "BINDING") {
    return refuse("renew_required", "The lease is still being set up; renew it once it is active.", {
      leaseId: record.id,
    });
  }
  if (command.generation !== null && command.generation !== record.generation) {
    return refuse("stale_generation", `The lease is at generation ${record.generation}; renew from that one.`, {
      leaseId: record.id,
      generation: record.generation,
    });
  }
  const timeIsUp = whyTimeIsUp(tenant, record, now);
  if (timeIsUp !== null) return timeIsUp;
  const collected = lease.record.claimBy === null ? null : lease.request;
  if (collected !== null) collect(turn, collected);
  const together =
    lease.holder.kind === "task" ? leasesOfAttempt(tenant, lease.holder, lease) : withLinked(tenant, lease);
  for (const one of together) {
    const expiresAt = extensionFor(tenant, one, now);
    reissue(turn, one, extendedLease(one.record, expiresAt, now));
    emitLease(turn, one, "lease.renewed", null);
  }
  if (lease.holder.kind === "task") noteReissued(turn, lease.holder);
  const observation = collected === null ? null : observationOf(turn, [collected]);
  return { type: "lease", lease: lease.record, ...(observation !== null && { observation }) };
}

export function releaseLease(turn: Turn, lease: LeaseEntry, command: ReleaseLease): Reply {
  const tooLong = checkValue("version", commands.release_lease.version, command.version);
  if (tooLong !== null) return tooLong;
  release(turn, lease.holder, [lease], () => command.version);
  return { type: "lease", lease: lease.record };
}

export function releaseAll(turn: Turn, agent: AgentEntry, command: ReleaseAll): Reply {
  const versions = command.versions ?? {};
  const tooLong = checkValue("versions", commands.release_all.versions, command.versions);
  if (tooLong !== null) return tooLong;
  const { found, lost } = ownLeases(turn, agent, command.leaseIds);
  // Versions may be given by lease or by resource: a holder knows its files, not always its leases.
  const versionOf = ({ record }: LeaseEntry): string | null => {
    if (Object.hasOwn(versions, record.id)) return versions[record.id] ?? null;
    return Object.hasOwn(versions, record.resource) ? (versions[record.resource] ?? null) : null;
  };
  release(turn, agent, found, versionOf);
  return { type: "leases", leases: found.map((lease) => lease.record), lost };
}

function release(
  turn: Turn,
  holder: Holder,
  leases: readonly LeaseEntry[],
  versionOf: (lease: LeaseEntry) => string | null,
): void {
  const releases = leases.some(({ record }) => record.state !== "CLOSING");
  endLeases(turn, leases, "RELEASED", null, versionOf);
  if (releases && holder.kind === "agent") completeIfDone(turn, holder);
}

/**
 * W1: who gives up the last lease while at work, with nothing open, has completed its unit of work. With something open it
 * waits for that (A1).
 */
export function completeIfDone(turn: Turn, agent: AgentEntry): void {
  const { record } = agent;
  if (record.state !== "EXECUTING" && record.state !== "VERIFYING") return;
  if (agent.open.size > 0) return pauseIfBare(turn, agent);
  for (let lease = agent.leases; lease !== null; lease = lease.nextOfHolder)
    if (lease.record.state !== "CLOSING" && !isSwept(turn.tenant, lease)) return;
  moveAgent(turn, agent, "complete", { ...record, ...unconcerned });
}

/** A live lease that the caller may act on (L13). What has ended is answered from history (see ended.ts). */
export function findLease(
  turn: Turn,
  { actor, leaseId }: { readonly actor: Actor; readonly leaseId: string },
): LeaseEntry | Refusal {
  const { tenant } = turn;
  const lease = liveLease(turn, leaseId);
  if (lease === undefined) return refuse("lease_unknown", "There is no such lease.", { leaseId });
  if (isAbove(actor)) return lease;
  const { holder } = lease;
  if (holder.kind === "task") return whyNotItsWorker(tenant, actor, lease) ?? lease;
  if (actor.role !== "agent" || actor.agentId !== holder.record.id) return notHolder(leaseId);
  if (actor.epoch !== holder.record.epoch) {
    return refuse("stale_epoch", "Another instance has taken this agent up; register again to take it back.");
  }
  return lease;
}

/** A lease by its id, unless a sweep was about to end it: then it has ended now, or is closing (L14). */
export function liveLease(turn: Turn, leaseId: string): LeaseEntry | undefined {
  const { leases, sweeps } = turn.tenant;
  const lease = leases.get(leaseId);
  if (sweeps.length === 0 || lease === undefined || !endIfSwept(turn, lease)) return lease;
  followUp(turn);
  return leases.get(leaseId);
}

export function notHolder(leaseId: string): Refusal {
  return refuse("not_lease_holder", "The lease belongs to another agent.", { leaseId });
}
