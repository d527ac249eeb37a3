/** `POST /lease` (T1): what a worker is offered. An offer is a lease on the task, and on all that its manifest names. */

import { followUp } from "../aftermath.ts";
import { blank } from "../contract/field.ts";
import { suffixFrom } from "../contract/ids.ts";
import { checkPoll } from "../contract/inputs.gen.ts";
import { receiptInput } from "../contract/inputs.ts";
import { limits } from "../contract/limits.ts";
import type { Intent } from "../contract/records.ts";
import type { Offer, Refusal, Reply } from "../contract/replies.ts";
import type { PollTasks } from "../contract/task-commands.ts";
import { isLeaseTimeUsedUp } from "../deciding/admission.ts";
import { type LinkedClaim, makeClaim, needsCells } from "../deciding/manifest.ts";
import { firstOf } from "../index/heap.ts";
import { contestPast } from "../leases/late-results.ts";
import { beginLease, emitLease, extensionFor, type GrantTerms, reissue, updateLease } from "../leases/lease-life.ts";
import { isOpenTo } from "../memory/actors.ts";
import { isSwept } from "../memory/jobs.ts";
import { type LeaseEntry, type TenantEntry, type Turn, taskPrefix } from "../memory/state.ts";
import {
  attemptOf,
  isPayloadAway,
  type Lane,
  leasesOfAttempt,
  leasesOfWorker,
  manifestLeases,
  rankOf,
  type TaskEntry,
  type WorkerEntry,
} from "../memory/task-state.ts";
import { canonicalName } from "../names/resource-name.ts";
import { mayWorkOn, question } from "../policies/matching.ts";
import { permissionsOf, whyNotPermitted } from "../policies/permissions.ts";
import { beginLeases } from "../requests/request-life.ts";
import { type Collected, collectPrepared, prepare, preparingFor } from "../tasks/task-binding.ts";
import { emitTask, noteReissued } from "../tasks/task-life.ts";
import { canRunNow, claimTask, pickedOf } from "../tasks/task-manifest.ts";
import { afterTry } from "../tasks/task-parking.ts";
import { leaveQueue, offerSlots } from "../tasks/task-queue.ts";
import { resumeSpeculation, secondFor } from "../tasks/task-speculation.ts";
import { moveTask } from "../tasks/task-states.ts";
import { covers, meetWorker, tasksFor, updateWorker } from "../tasks/workers.ts";
import { submitReceipt } from "./submit-receipt.ts";

export function pollTasks(turn: Turn, command: PollTasks): Reply {
  const { tenant, now } = turn;
  const refusal = checkPoll(command) ?? whyNotTypes(turn, command);
  if (refusal !== null) return refusal;
  const worker = meetWorker(turn, command.actor, command.workerId, command.capabilities);
  if ("code" in worker) return worker;
  const repeated = repeatedOffers(tenant, worker, command);
  if (repeated !== null) return { type: "offers", offers: repeated, more: false };
  const offers = command.reclaim ? reclaim(turn, worker) : [];
  const isReclaimed = offers.length > 0;
  const isBarred = tenant.record.suspended || isLeaseTimeUsedUp(tenant, now);
  const more = isReclaimed || isBarred ? false : offerTasks(turn, worker, command, offers);
  // Under Wound-Wait an older task may have wounded one that was offered just before (W7).
  const kept = offers.filter(({ lease }) => tenant.leases.get(lease.id) !== undefined);
  if (command.requestKey !== null && kept.length > 0) rememberPoll(turn, worker, command.requestKey, kept);
  const given = command.accept === true ? kept.map((one) => acceptOffer(turn, command, one)) : kept;
  return { type: "offers", offers: given, more };
}

/** A type that the worker names, and may not work on; of what it does not name it is offered what it may. */
function whyNotTypes(turn: Turn, { actor, workerId: id, acceptTypes }: PollTasks): Refusal | null {
  for (const taskType of acceptTypes ?? []) {
    const denied = whyNotPermitted(turn, actor, { ...question, action: "work", id, taskType }, "accept_types");
    if (denied !== null) return denied;
  }
  return null;
}

/** T1: a lost answer, asked for again. What of it has ended meanwhile is left out. */
function repeatedOffers(tenant: TenantEntry, worker: WorkerEntry, { requestKey }: PollTasks): Offer[] | null {
  if (requestKey === null) return null;
  const known = worker.record.polls.find((poll) => poll.requestKey === requestKey);
  if (known === undefined) return null;
  const offers: Offer[] = [];
  for (const id of known.leaseIds) {
    const lease = tenant.leases.get(id);
    if (lease !== undefined && isSwept(tenant, lease)) continue;
    // What was called off lives on for a while, but is nothing to begin with.
    if (lease !== undefined && attemptOf(taskOf(lease), lease)?.canceled === false)
      offers.push(describeOffer(tenant, lease));
  }
  return offers;
}

/** Of earlier polls it is enough to know the leases that live: the rest would be left out of the answer, and is stored each time. */
function rememberPoll(turn: Turn, worker: WorkerEntry, requestKey: string, offers: readonly Offer[]): void {
  const { leases } = turn.tenant;
  const known = worker.record.polls.slice(1 - limits.workerPollsRemembered).map((poll) => {
    const leaseIds = poll.leaseIds.filter((id) => leases.get(id) !== undefined);
    return leaseIds.length === poll.leaseIds.length ? poll : { ...poll, leaseIds };
  });
  const leaseIds = offers.map(({ lease }) => lease.id);
  updateWorker(turn, worker, { polls: [...known, { requestKey, leaseIds }] });
}

/** T3: as its worker would by a receipt; where that is refused, or has to wait for the payload, it stays an offer. */
function acceptOffer(turn: Turn, { tenant, actor, workerId, entropy }: PollTasks, given: Offer): Offer {
  const lease = turn.tenant.leases.get(given.lease.id);
  if (lease === undefined || given.acceptedAs !== null || isPayloadAway(taskOf(lease))) return given;
  const receipt = { ...nothingSaid, phase: "accepted", leaseId: given.lease.id, sourceSystem: workerId };
  const reply = submitReceipt(turn, { type: "submit_receipt", tenant, actor, entropy, receipt });
  return reply.type === "receipt" ? describeOffer(turn.tenant, lease) : given;
}

const nothingSaid = blank(receiptInput);

/** T1: a worker that was restarted gets back what it had, with new fences: its former self is locked out. */
function reclaim(turn: Turn, worker: WorkerEntry): Offer[] {
  const { tenant, now } = turn;
  const offers: Offer[] = [];
  for (const lease of leasesOfWorker(worker)) {
    if (isSwept(tenant, lease)) continue;
    const task = taskOf(lease);
    const together = leasesOfAttempt(tenant, task, lease);
    if (together.length === 0) continue;
    for (const one of together) {
      const expiresAt = extensionFor(tenant, one, now);
      reissue(turn, one, { ...one.record, expiresAt, activeAt: now });
      emitLease(turn, one, "lease.reissued", null);
    }
    noteReissued(turn, task);
    offers.push(describeOffer(tenant, lease));
  }
  return offers;
}

export function taskOf({ holder, record }: LeaseEntry): TaskEntry {
  if (holder.kind !== "task") throw new Error(`Not a task's lease: ${record.id}`);
  return holder;
}

function describeOffer(tenant: TenantEntry, lease: LeaseEntry): Offer {
  const task = taskOf(lease);
  const { record } = task;
  const accepted = record.live.find(({ leaseId, acceptedAt }) => leaseId === lease.record.id && acceptedAt !== null);
  return {
    task: record,
    payload: task.payload?.record ?? null,
    lease: lease.record,
    leases: manifestLeases(tenant, task, lease),
    attempt: Math.max(record.attempts + (accepted === undefined ? 1 : 0), 1),
    acceptedAs: accepted?.receiptId ?? null,
  };
}

/** True: the limit of tasks to try was reached; the rest is for the next poll. */
function offerTasks(
  turn: Turn,
  worker: WorkerEntry,
  { actor, maxTasks, preferredKinds, acceptTypes, entropy }: PollTasks,
  offers: Offer[],
): boolean {
  const { tenant, now } = turn;
  const work = isOpenTo(tenant, actor, "work") ? [] : permissionsOf(tenant, actor).parts.work;
  const wanted = tasksFor(worker, maxTasks);
  const accepted = acceptTypes === undefined || acceptTypes === null ? null : new Set(acceptTypes);
  const suits = (lane: Lane): boolean =>
    covers(worker, lane) &&
    (accepted === null || accepted.has(lane.taskType)) &&
    (work.length === 0 || mayWorkOn(work, worker.record.id, lane.taskType));
  const lanes = new Set([...tenant.book.lanes.values()].filter(suits));
  const chooser = chooserFor(tenant, lanes, worker, preferredKinds ?? []);
  const terms = { suffix: suffixFrom(now, entropy), begun: 0 };
  let bytes = 0;
  for (let examined = 0; offers.length < wanted && bytes < limits.offerBytesMax; examined++) {
    if (examined >= limits.taskExaminedMax) return true;
    const task = chooser();
    if (task === null) break;
    if (task.preparedFor === null && mayBind(tenant, task) && offers.length + preparingFor(tenant, worker) >= wanted) {
      // As many as it asked for are prepared for it, or are already its own.
      lanes.delete(task.lane);
      continue;
    }
    // One that cannot run is put aside, and does not hold up those behind it.
    if (!isWithinQuota(tenant, task) && canRunNow(tenant, task)) return false;
    if (task.preparedFor !== null) {
      offers.push(offer(turn, worker, task, noClaims, terms, collectPrepared(turn, task, worker.record.id)));
      bytes += task.record.payloadBytes;
      continue;
    }
    const { parking } = task;
    task.parking = null;
    leaveQueue(turn, task);
    const hasNothingToClaim = task.key === null && task.record.spec.intents.length === 0;
    const claims = hasNothingToClaim ? noClaims : claimTask(turn, task, true);
    // Those that it wounded lose what it is granted (W7, T13).
    followUp(turn);
    if (claims !== null && needsCells(tenant, claims)) prepare(turn, worker, task, claims);
    else if (claims !== null) offers.push(offer(turn, worker, task, claims, terms));
    if (claims !== null) bytes += task.record.payloadBytes;
    if (parking !== null) afterTry(turn, task, parking);
    if (task.key !== null) offerSlots(turn, task.key);
  }
  while (offers.length < wanted && bytes < limits.offerBytesMax) {
    const task = secondFor([...lanes], worker);
    if (task === null || !isWithinQuota(tenant, task)) break;
    offers.push(offer(turn, worker, task, noClaims, terms));
    bytes += task.record.payloadBytes;
  }
  return false;
}

/** G2: for the task itself, and for all that its manifest names. */
function isWithinQuota({ book, leases, waitingClaims, record }: TenantEntry, task: TaskEntry): boolean {
  let more = 1 + waitingClaims;
  // What it waits for itself is what it is to get, and what was prepared it has.
  for (const { claims } of task.open) more -= claims.length;
  if (task.preparedFor !== null) more -= task.leaseCount;
  for (const { to } of task.record.spec.intents) more += to === null ? 1 : 2;
  const isWithin = leases.size + more <= record.quotas.leasesMax;
  if (!isWithin) book.isLeaseQuotaFull = true;
  return isWithin;
}

/** Whether cells may have to set something up first (G6); which resource is chosen is not known yet. */
function mayBind(tenant: TenantEntry, { record: { spec } }: TaskEntry): boolean {
  if (tenant.cells.size === 0 && tenant.resources.size === 0) return false;
  return spec.intents.some(({ pick, resource }) => pick !== null || isBound(tenant, resource));
}

function isBound({ resources }: TenantEntry, resource: string): boolean {
  return (resources.get(resource)?.record.cell ?? null) !== null;
}

const nothingPicked: readonly string[] = [];
const noClaims: readonly LinkedClaim[] = [];

/**
 * The next task for the worker, call by call: of all lanes whose capabilities it has, the first by rank; kinds that it
 * prefers and tasks that it had before are ahead by some levels (T7, T9).
 */
function chooserFor(
  { book }: TenantEntry,
  lanes: ReadonlySet<Lane>,
  worker: WorkerEntry,
  preferredKinds: readonly string[],
) {
  const preferred = new Set(preferredKinds);
  const headStart = (levels: number): number => levels * limits.taskAgeingMsPerLevel;
  return (): TaskEntry | null => {
    let best: TaskEntry | null = null;
    let bestRank = Number.POSITIVE_INFINITY;
    const consider = (task: TaskEntry, isAffine: boolean): void => {
      let rank = rankOf(task.record);
      if (preferred.has(task.lane.taskType)) rank -= headStart(limits.taskPreferredLevels);
      if (isAffine) rank -= headStart(limits.taskAffinityLevels);
      // T8: a worker that made room for an urgent task gets that one, not the one back that it gave up.
      const madeRoom = task.record.roomRequest?.workerId === worker.record.id;
      if (madeRoom || task.preparedFor !== null) rank = Number.NEGATIVE_INFINITY;
      if (best !== null && (rank > bestRank || (rank === bestRank && task.priority > best.priority))) return;
      best = task;
      bestRank = rank;
    };
    for (const lane of lanes) {
      const first = firstOf(lane.ready);
      if (first !== undefined) consider(first, first.record.lastWorker === worker.record.id);
    }
    const had = book.affine.get(worker.record.id);
    const affine = had === undefined ? undefined : firstOf(had)?.task;
    if (affine !== undefined && lanes.has(affine.lane)) consider(affine, true);
    return best;
  };
}

const wholeTask = { predicate: "MUTATES", units: 1, to: null, pick: null } as const;

function offer(
  turn: Turn,
  worker: WorkerEntry,
  task: TaskEntry,
  claims: readonly LinkedClaim[],
  numbering: { readonly suffix: string; begun: number },
  prepared: Collected | null = null,
): Offer {
  const { tenant, now } = turn;
  const { record } = task;
  const terms: GrantTerms = {
    suffix: numbering.suffix,
    ttl: record.spec.leaseDurationMs,
    idleTimeout: null,
    purpose: record.spec.taskSummary,
    tokens: false,
    claimBy: null,
    binds: false,
    agentId: worker.record.id,
  };
  const { intents } = record.spec;
  if (intents.length > 0) contestPast(turn, task);
  const intent: Intent = { ...wholeTask, resource: taskPrefix + record.id };
  const claim = makeClaim(tenant, intent, canonicalName(intent.resource));
  const lease = beginLease(turn, task, claim, numbering.begun++, null, terms);
  const leases = claims.length === 0 ? [] : beginLeases(turn, task, claims, terms, numbering.begun);
  numbering.begun += leases.length;
  if (prepared !== null) {
    // As old as what was prepared, so that a quota on lease time ends them together too (L10).
    const { acquiredAt } = prepared;
    const expiresAt = Math.min(lease.record.expiresAt, prepared.expiresAt);
    updateLease(turn, lease, { ...lease.record, acquiredAt, expiresAt });
  }
  worker.leases.add(lease);
  task.passedOver = 0;
  const attempt = {
    leaseId: lease.record.id,
    fence: lease.record.fence,
    workerId: worker.record.id,
    offeredAt: now,
    acceptedAt: null,
    receiptId: null,
    canceled: false,
    custodian: null,
    preemptFor: null,
    preemptBy: null,
  };
  const isFirst = record.live.length === 0;
  if (isFirst && task.key !== null) task.key.running++;
  const chosen = intents.length === 0 ? nothingPicked : pickedOf(intents, claims);
  const picked = prepared === null ? chosen : prepared.picked;
  const change = {
    live: [...task.record.live, attempt],
    roomRequest: null,
    picked,
    bindFailures: 0,
    bindFailure: null,
  };
  moveTask(turn, task, "offer", change);
  resumeSpeculation(turn, task);
  emitTask(turn, task, "task.offered", attempt, null);
  return describeOffer(tenant, lease);
}
