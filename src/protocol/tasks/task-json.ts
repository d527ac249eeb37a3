/**
 * Tasks, offers and workers on the wire. Offers are what a busy server says most, so their text is put together
 * directly; ids of the kernel's own making are plain, and need no look at each character.
 */
import type { Lease, Millis } from "../../kernel/contract/records.ts";
import type { Directive, Offer } from "../../kernel/contract/replies.ts";
import type { Obligation, Payload, Task, TaskType, Worker } from "../../kernel/contract/task-records.ts";
import { isoTime } from "../answers/iso-time.ts";
import { escaped } from "../answers/json-text.ts";
import { expiresInMs, leasesText } from "../leases/lease-json.ts";
import { intentObject } from "../operating/record-json.ts";

type TokenOf = (lease: Lease) => string | null;

export function offersText(offers: readonly Offer[], now: Millis, tokenOf?: TokenOf): string {
  let text = "";
  for (const offer of offers) {
    if (text !== "") text += ",";
    text += offerText(offer, now, tokenOf);
  }
  return `{"offers":[${text}]}`;
}

export function offerText({ task, payload, lease, leases, attempt }: Offer, now: Millis, tokenOf?: TokenOf): string {
  const text =
    `{"lease_id":"${lease.id}",${lastsText(lease, now)},"fence":${lease.fence}` +
    `,"attempt":${attempt},"task":${offeredText(task, payload)}`;
  return leases.length === 0 ? `${text}}` : `${text},"leases":${leasesText(leases, now, tokenOf)}}`;
}

/** The nine fields of the AsyncGate document. */
function offeredText({ id, spec }: Task, payload: Payload | null): string {
  const { principalAi, taskType, taskSummary, payloadPointer, expectedOutcomeKind, expectedArtifactMime } = spec;
  const inputs = payload?.inputs ?? null;
  return (
    `{"task_id":"${id}","principal_ai":"${escaped(principalAi)}","task_type":"${escaped(taskType)}"` +
    `,"task_summary":${text(taskSummary)},"task_body":${text(payload?.taskBody ?? null)}` +
    `,"payload_pointer":${text(payloadPointer)},"inputs":${inputs === null ? "null" : JSON.stringify(inputs)}` +
    `,"expected_outcome_kind":${text(expectedOutcomeKind)},"expected_artifact_mime":${text(expectedArtifactMime)}}`
  );
}

export function taskLeaseText(
  lease: Lease,
  leases: readonly Lease[],
  directives: readonly Directive[],
  now: Millis,
  tokenOf?: TokenOf,
): string {
  const told = directives.length === 0 ? "[]" : JSON.stringify(directives);
  const text = `{${lastsText(lease, now)},"directives":${told}`;
  return leases.length === 0 ? `${text}}` : `${text},"leases":${leasesText(leases, now, tokenOf)}}`;
}

function lastsText(lease: Lease, now: Millis): string {
  return `"lease_expires_at":"${isoTime(lease.expiresAt)}","expires_in_ms":${expiresInMs(lease, now)}`;
}

function text(value: string | null): string {
  return value === null ? "null" : `"${escaped(value)}"`;
}

export function createdText({ id, status }: Task): string {
  return `{"task_id":"${id}","status":"${status}"}`;
}

export function taskObject(task: Task) {
  const { spec } = task;
  return {
    task_id: task.id,
    status: task.status,
    task_type: spec.taskType,
    principal_ai: spec.principalAi,
    task_summary: spec.taskSummary,
    payload_pointer: spec.payloadPointer,
    expected_outcome_kind: spec.expectedOutcomeKind,
    expected_artifact_mime: spec.expectedArtifactMime,
    task_priority: spec.taskPriority,
    requires: spec.requires,
    intents: spec.intents.map(intentObject),
    max_attempts: spec.maxAttempts,
    max_offers: spec.maxOffers,
    lease_duration_ms: spec.leaseDurationMs,
    requeue_delay_ms: spec.requeueDelayMs,
    depends_on: spec.dependsOn,
    waiting_on: task.waitingOn,
    concurrency_key: spec.concurrencyKey,
    concurrency_limit: spec.concurrencyLimit,
    speculative: spec.speculative,
    preemptible: spec.preemptible,
    parent_task_id: spec.parentTaskId,
    idempotency_key: spec.idempotencyKey,
    created_at: isoTime(task.createdAt),
    not_before_at: time(task.notBefore),
    attempts: task.attempts,
    offers: task.offers,
    leases: task.live.map(({ leaseId, workerId, fence, offeredAt, acceptedAt }) => ({
      lease_id: leaseId,
      worker_id: workerId,
      fence,
      offered_at: isoTime(offeredAt),
      accepted_at: time(acceptedAt),
    })),
    obligation: task.obligation === null ? null : ownObligation(task.obligation),
    last_worker_id: task.lastWorker,
    last_receipt_id: task.lastReceiptId,
    progress: task.progress ?? null,
    winning_receipt_id: task.winningReceiptId,
    ended_at: time(task.endedAt),
    end_reason: task.endReason,
  };
}

function ownObligation({ id, state, custodian, openedAt }: Obligation) {
  return { obligation_id: id, state, custodian, opened_at: isoTime(openedAt) };
}

/** R5: what a custodian answers for, with the task that it is about. */
export function obligationObject(task: Task, { id, state, custodian, openedAt }: Obligation) {
  const { spec } = task;
  return {
    obligation_id: id,
    state,
    custodian,
    opened_at: isoTime(openedAt),
    closed_at: state === "CLOSED" ? time(task.endedAt) : null,
    task_id: task.id,
    task_type: spec.taskType,
    task_summary: spec.taskSummary,
    principal_ai: spec.principalAi,
    status: task.status,
    last_receipt_id: task.lastReceiptId,
  };
}

export function taskTypeObject(type: TaskType) {
  return {
    task_type: type.taskType,
    lease_duration_ms: type.leaseDuration,
    max_attempts: type.maxAttempts,
    max_offers: type.maxOffers,
    requeue_delay_ms: type.requeueDelay,
    speculate_share: type.speculateShare,
    usual_duration_ms: type.usualDuration,
    samples: type.samples,
  };
}

export function workerObject(worker: Worker, leases: number) {
  return {
    worker_id: worker.id,
    capabilities: worker.capabilities,
    health: worker.health,
    completed: worker.completed,
    failed: worker.failed,
    lost: worker.lost,
    leases,
    first_seen_at: isoTime(worker.firstSeenAt),
    seen_at: isoTime(worker.seenAt),
  };
}

function time(ms: Millis | null): string | null {
  return ms === null ? null : isoTime(ms);
}
