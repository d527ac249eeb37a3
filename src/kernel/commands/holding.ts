/** What a holder does with its leases: heartbeat, renew, release (L4, L5, G8). */

import { followUp } from "../aftermath.ts";
import { becomeCompleted, pauseIfBare, pauseWounded } from "../agents/agent-life.ts";
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
import { limits } from "../contract/limits.ts";
import type { Lease } from "../contract/records.ts";
import { refuse } from "../contract/refusals.ts";
import type { LostLease, NotExtended, Refusal, Reply } from "../contract/replies.ts";
import type { Bar } from "../deciding/admission.ts";
import { whyNotExtended, whyNotLonger, whyNotRenewed } from "../deciding/extension.ts";
import { whyNotManaged, whyNotPermittedLease } from "../deciding/permit.ts";
import { emitLease, extendedLease, rebindingLease, reissue, updateLease } from "../leases/lease-life.ts";
import { listedLeasesOf, walkLeases } from "../leases/lease-walk.ts";
import { isAbove, whyNotItsWorker } from "../memory/actors.ts";
import { isSwept, type LeaseEnd, sweepOver, woundedReason } from "../memory/jobs.ts";
import {
  type AgentEntry,
  type Holder,
  type LeaseEntry,
  leasesOf,
  type RequestEntry,
  type Turn,
  withLinked,
} from "../memory/state.ts";
import { leasesOfAttempt, type TaskEntry } from "../memory/task-state.ts";
import { collect, observationOf } from "../requests/describe.ts";
import { endLeases, endOneLease } from "../requests/request-life.ts";
import { answerAfter, endIfSwept, type Later, noRequestEnd, sweep, type Targets, these } from "../requests/sweep.ts";
import { renew } from "../tasks/task-binding.ts";
import { noteReissued } from "../tasks/task-life.ts";

export function heartbeat(turn: Turn, lease: LeaseEntry, command: Heartbeat): Reply {
  const { holder } = lease;
  const refusal =
    whyNotExtended(turn.tenant, lease, turn.now) ??
    (holder.kind === "task" ? whyNotTogether(turn, holder, lease) : null);
  if (refusal !== null) {
    noteLife(turn, lease, command.activity);
    return refusal;
  }
  const collected = extend(turn, lease, command.activity);
  const observation = collected === null ? null : observationOf(turn, [collected]);
  return { type: "lease", lease: lease.record, ...(observation !== null && { observation }) };
}

export function heartbeatAll(turn: Turn, agent: AgentEntry, command: HeartbeatAll): Reply | Later<Reply> {
  const report = new LeaseReport();
  const collected = new Set<RequestEntry>();
  const beat = (now: Turn, lease: LeaseEntry): void => {
    const request = beatOne(now, lease, command.activity, report);
    if (request !== null) collected.add(request);
  };
  const answer = (lost: readonly LostLease[]) => (later: Turn) => {
    const observation = collected.size === 0 ? null : observationOf(later, [...collected]);
    return { ...report.reply(lost), ...(observation !== null && { observation }) };
  };
  if (command.leaseIds === null && agent.leaseCount > turn.state.sliceMax)
    return answerAfter(turn, walkLeases(turn, agent, beat), answer([]));
  const { found, lost } = ownLeases(turn, agent, command.leaseIds);
  for (const lease of found) beat(turn, lease);
  return answer(lost)(turn);
}

/** The request that it collects, if it does. */
function beatOne(turn: Turn, lease: LeaseEntry, activity: boolean, report: LeaseReport): RequestEntry | null {
  const { id, state } = lease.record;
  const refusal = whyNotExtended(turn.tenant, lease, turn.now);
  if (refusal !== null && state !== "ACTIVE" && state !== "BINDING") {
    report.addLost({ id, lease: lease.record, code: refusal.code });
    return null;
  }
  // Not extended, it lives on as it is: renewed instead (G8), withdrawn (G12), or out of lease time (L10).
  const request = (refusal === null ? extend : noteLife)(turn, lease, activity);
  if (refusal !== null) report.addNotExtended({ id, state, code: refusal.code });
  report.add(lease);
  return request;
}

/** What is answered about an agent's leases: of very many only as many as an answer lists, and how many there are. */
export class LeaseReport {
  private readonly kept: LeaseEntry[] = [];
  private readonly lost: LostLease[] = [];
  private readonly notExtended: NotExtended[] = [];
  private total = 0;

  add(lease: LeaseEntry): void {
    this.total++;
    if (this.kept.length < limits.leasesListedMax) this.kept.push(lease);
  }

  addLost(lost: LostLease): void {
    if (this.lost.length < limits.leasesListedMax) this.lost.push(lost);
  }

  addNotExtended(one: NotExtended): void {
    if (this.notExtended.length < limits.leasesListedMax) this.notExtended.push(one);
  }

  reply(unknown: readonly LostLease[]): Extract<Reply, { readonly type: "leases" }> {
    const { kept, lost, notExtended, total } = this;
    return {
      type: "leases",
      leases: kept.map(recordOf),
      lost: unknown.length === 0 ? lost : [...unknown, ...lost],
      notExtended,
      total: total > kept.length ? total : null,
    };
  }
}

/** T10: a task's leases are extended together, or none is. */
export function whyNotTogether({ tenant, now }: Turn, task: TaskEntry, lease: LeaseEntry): Refusal | Bar | null {
  for (const one of leasesOfAttempt(tenant, task, lease)) {
    const refusal = whyNotLonger(tenant, one, now);
    if (refusal !== null) return refusal;
  }
  return null;
}

/**
 * A heartbeat that extends nothing is a sign of life all the same: it collects the grant (W8), and reports activity (L10).
 * The request that it collects, if it does.
 */
function noteLife(turn: Turn, lease: LeaseEntry, activity: boolean): RequestEntry | null {
  if (lease.record.state !== "ACTIVE") return null;
  const collected = lease.record.claimBy === null ? null : lease.request;
  if (collected !== null) collect(turn, collected);
  if (activity) {
    for (const one of withLinked(turn.tenant, lease)) updateLease(turn, one, { ...one.record, activeAt: turn.now });
  }
  return collected;
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

/** Both halves of a rename, and a sign of life for the whole grant (C7, W8): the request that it collects, if it does. */
export function extend(turn: Turn, lease: LeaseEntry, activity: boolean): RequestEntry | null {
  const { tenant } = turn;
  if (lease.holder.kind === "task") {
    // T10: a task's leases are extended together, and none of an attempt that was called off.
    for (const one of leasesOfAttempt(tenant, lease.holder, lease)) {
      if (one.record.cell === null) extendOne(turn, one, activity);
      else renew(turn, one, extendedLease(turn, one, activity));
    }
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
  const wasHeld = lease.record.state === "HELD";
  updateLease(turn, lease, extendedLease(turn, lease, activity));
  if (wasHeld) emitLease(turn, lease, "lease.revived", null);
}

/** G8: a fresh grant under the same id; with it every older token and fence is stale. */
export function renewLease(turn: Turn, lease: LeaseEntry, command: RenewLease): Reply {
  const { tenant, now } = turn;
  const { record, holder } = lease;
  const together = holder.kind === "task" ? leasesOfAttempt(tenant, holder, lease) : withLinked(tenant, lease);
  const refusal = whyNotRenewed(tenant, lease, together, now) ?? whyNotPermittedAgain(turn, command.actor, together);
  if (refusal !== null) return refusal;
  if (command.generation !== null && command.generation !== record.generation) {
    return refuse("stale_generation", `The lease is at generation ${record.generation}; renew from that one.`, {
      leaseId: record.id,
      generation: record.generation,
    });
  }
  // The heartbeat that has collected a bound lease was refused, and could not tell what had changed (A4).
  const isFirst = record.claimBy !== null || (record.cell !== null && record.generation === 1);
  const collected = isFirst ? lease.request : null;
  if (collected !== null) collect(turn, collected);
  for (const one of together) renewOne(turn, one, command.activity);
  if (holder.kind === "task") noteReissued(turn, holder);
  const observation = collected === null ? null : observationOf(turn, [collected]);
  return { type: "lease", lease: lease.record, ...(observation !== null && { observation }) };
}

/** G8: policies may have changed since. A task's leases were allowed to its creator, not to its worker. */
function whyNotPermittedAgain(turn: Turn, actor: Actor, leases: readonly LeaseEntry[]): Refusal | null {
  for (const lease of leases) {
    const refusal = lease.holder.kind === "task" ? null : whyNotPermittedLease(turn, actor, lease);
    if (refusal !== null) return refusal;
  }
  return null;
}

/** What a cell has torn down while it was HELD is set up again before it is honoured (L9). */
function renewOne(turn: Turn, lease: LeaseEntry, activity: boolean): void {
  const { state, cell } = lease.record;
  const rebinds = state === "HELD" && cell !== null;
  reissue(turn, lease, rebinds ? rebindingLease(turn, lease.record) : extendedLease(turn, lease, activity));
  emitLease(turn, lease, rebinds ? "lease.binding" : "lease.renewed", null);
}

export function releaseLease(turn: Turn, lease: LeaseEntry, command: ReleaseLease): Reply {
  const tooLong = checkValue("version", commands.release_lease.version, command.version);
  if (tooLong !== null) return tooLong;
  const { holder } = lease;
  const releases = lease.record.state !== "CLOSING";
  endOneLease(turn, lease, "RELEASED", null, command.version);
  if (releases && holder.kind === "agent") completeIfDone(turn, holder);
  return { type: "lease", lease: lease.record };
}

export function releaseAll(turn: Turn, agent: AgentEntry, command: ReleaseAll): Reply | Later<Reply> {
  const versions = command.versions ?? {};
  const tooLong = checkValue("versions", commands.release_all.versions, command.versions);
  if (tooLong !== null) return tooLong;
  // Versions may be given by lease or by resource: a holder knows its files, not always its leases.
  const versionOf = ({ record }: LeaseEntry): string | null => {
    if (Object.hasOwn(versions, record.id)) return versions[record.id] ?? null;
    return Object.hasOwn(versions, record.resource) ? (versions[record.resource] ?? null) : null;
  };
  const end: LeaseEnd = { as: "RELEASED", reason: null, versionOf };
  if (command.leaseIds === null && agent.leaseCount > turn.state.sliceMax) {
    const listed = listedLeasesOf(agent).filter((lease) => !isSwept(turn.tenant, lease));
    const leaseEnd = ({ holder }: LeaseEntry) => (holder === agent ? end : null);
    const targets = { find: () => null, leaseEnd, requestEnd: noRequestEnd };
    return releaseMany(turn, agent, targets, listed, []);
  }
  const { found, lost } = ownLeases(turn, agent, command.leaseIds);
  if (found.length > turn.state.sliceMax) return releaseMany(turn, agent, these(turn, found, end), found, lost);
  release(turn, agent, found, versionOf);
  return released(found, lost, found.length);
}

/** Slice by slice (L14). From now on the agent holds none of them, so that its work is done (W1). */
function releaseMany(
  turn: Turn,
  agent: AgentEntry,
  targets: Targets,
  listed: readonly LeaseEntry[],
  lost: readonly LostLease[],
): Reply | Later<Reply> {
  const letting = sweep(turn, targets);
  completeIfDone(turn, agent);
  return answerAfter(turn, letting, () => released(listed, lost, letting.count));
}

function released(listed: readonly LeaseEntry[], lost: readonly LostLease[], count: number): Reply {
  const total = count > listed.length ? count : null;
  return { type: "leases", leases: listed.map(recordOf), lost, notExtended: [], total };
}

const recordOf = ({ record }: LeaseEntry): Lease => record;

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
  for (let lease = agent.leases; lease !== null; lease = lease.nextOfHolder) {
    if (lease.record.state === "CLOSING") continue;
    const over = sweepOver(turn.tenant, lease);
    if (over === null) return;
    // W7: it is about to be wounded with many others, and keeps its age.
    if (over.leaseEnd(lease)?.reason === woundedReason) return pauseWounded(turn, lease);
  }
  becomeCompleted(turn, agent);
}

/** A live lease that the caller may act on (L13). What has ended is answered from history (see ended.ts). */
export function findLease(
  turn: Turn,
  { actor, leaseId }: { readonly actor: Actor; readonly leaseId: string },
): LeaseEntry | Refusal {
  const { tenant } = turn;
  const lease = liveLease(turn, leaseId);
  if (lease === undefined) return refuse("lease_unknown", "There is no such lease.", { leaseId });
  if (isAbove(actor)) return whyNotManaged(turn, actor, lease) ?? lease;
  const { holder } = lease;
  if (holder.kind === "task") return whyNotItsWorker(tenant, actor, lease) ?? lease;
  if (actor.role !== "agent" || actor.agentId !== holder.record.id) return notHolder(leaseId);
  if (actor.epoch !== holder.record.epoch) {
    return refuse(
      "stale_epoch",
      "Another instance has taken this agent up; its key can register it again to take it back.",
    );
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
