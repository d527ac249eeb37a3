/**
 * Receipts of workers (T3, T4, T13, R2, R3). First: was this said before? Then: which attempt speaks, and may it? Then
 * the receipt is filled and checked, and only then is anything changed.
 */
import type { Actor } from "../contract/commands.ts";
import { refuse } from "../contract/refusals.ts";
import type { Refusal, Reply } from "../contract/replies.ts";
import type { ReceiptInput, SubmitReceipt } from "../contract/task-commands.ts";
import type { PastAttempt, Receipt, ReceiptDraft, ReceiptPhase, TaskAttempt } from "../contract/task-records.ts";
import { whyNotWithinLedger } from "../deciding/admission.ts";
import { isAbove, isOpenTo, submitterOf, whyNotWorkerNamed } from "../memory/actors.ts";
import { isTaskLease, type TenantEntry, type Turn } from "../memory/state.ts";
import { isPayloadAway, type TaskEntry, updateTask } from "../memory/task-state.ts";
import { question } from "../policies/matching.ts";
import { whyNotPermitted } from "../policies/permissions.ts";
import { findKnown, markReceipt } from "../receipts/marks.ts";
import {
  custodianOf,
  invalidReceipt,
  namedCustodian,
  speaksAsCustodian,
  supervisorOf,
  whyNotObligation,
  whyNotWorkersToSay,
} from "../receipts/principals.ts";
import { appendReceipt, fillReceipt, readPhase, type Sender } from "../receipts/receipts.ts";
import {
  die,
  dropAttempt,
  emitTask,
  finish,
  followLive,
  isFinal,
  passOn,
  requeueOffer,
  retryOrDie,
  statusAfter,
} from "../tasks/task-life.ts";
import { noteDuration, resumeSpeculation, speculateAt } from "../tasks/task-speculation.ts";
import { moveObligation, moveTask, openObligation } from "../tasks/task-states.ts";
import { noteOutcome } from "../tasks/workers.ts";
import { submitAsCustodian } from "./custody.ts";
import { answerForLateReceipt } from "./ended.ts";
import { submitForeign } from "./foreign-receipts.ts";
import { liveLease } from "./holding.ts";
import { taskUnknown } from "./tasks.ts";

export function submitReceipt(turn: Turn, command: SubmitReceipt): Reply {
  const { tenant } = turn;
  const { actor, receipt: input } = command;
  const phase = readPhase(input.phase);
  if (typeof phase !== "string") return phase;
  if (input.tenantId !== null && input.tenantId !== tenant.record.id)
    return invalidReceipt("tenant_id", "must be the credential's tenant");
  const task = findTask(tenant, command);
  if ("code" in task) return task.code === "task_unknown" ? submitForeign(turn, command, phase, task) : task;
  // A receipt repeats the task's payload (R2). What only reports need not wait for it, but stays behind what does.
  if (isPayloadAway(task) && (phase !== "progress" || task.isPayloadAwaited)) {
    task.isPayloadAwaited = true;
    return { type: "payload_away", taskId: task.record.id, agentId: null };
  }
  // A lease that a sweep is about to end speaks for nothing any more (L14).
  if (tenant.sweeps.length > 0) for (const { leaseId } of task.record.live) liveLease(turn, leaseId);
  const known = findKnown(tenant, task.record, command);
  if (known !== null) return known;
  if (isFinal(task.record)) return answerForLateReceipt(input, task.record);
  if (speaksAsCustodian(task, input, phase)) return submitAsCustodian(turn, task, command, phase);
  const speaker = findSpeaker(task, input);
  if ("code" in speaker) return speaker;
  const refusal = whyNotWorkerNamed(tenant, actor, speaker.attempt.workerId) ?? null;
  if (refusal !== null)
    return refuse("not_lease_holder", "The task's lease belongs to another worker.", { taskId: task.record.id });
  if (input.sourceSystem !== null && input.sourceSystem !== speaker.attempt.workerId) {
    return invalidReceipt("source_system", "is not the worker whose lease this is");
  }
  const allowed = whyNot(task, speaker, phase, input);
  if (allowed !== null) return allowed;
  const { workerId, acceptedAt } = speaker.attempt;
  const denied = whyNotReceipt(turn, actor, task, workerId, phase);
  if (denied !== null) return denied;
  const notIts =
    whyNotObligation(tenant, task, input, phase, acceptedAt !== null) ??
    whyNotWorkersToSay(actor, input, task, workerId);
  if (notIts !== null) return notIts;
  const sender = senderOf(task, speaker, phase, command);
  if (input.attempt !== null && input.attempt !== sender.attempt && !isAbove(actor))
    return invalidReceipt("attempt", `is not this attempt, which is ${sender.attempt}; leave it out`);
  const content = fillReceipt(input, phase, task, sender, turn);
  if ("code" in content) return content;
  const full = whyNotWithinLedger(tenant, content);
  if (full !== null) return full;
  return { type: "receipt", receipt: write(turn, task, speaker, input, content) };
}

/** S4: to accept is to begin. What a worker has begun it can end, whatever the policies are by then. */
function whyNotReceipt(
  turn: Turn,
  actor: Actor,
  { record }: TaskEntry,
  id: string,
  phase: ReceiptPhase,
): Refusal | null {
  if (phase !== "accepted" && !isAbove(actor)) return null;
  if (isOpenTo(turn.tenant, actor, "work")) return null;
  const { taskType } = record.spec;
  return whyNotPermitted(turn, actor, { ...question, action: "work", id, taskType }, "task_id");
}

function findTask(tenant: TenantEntry, { receipt, taskOfLease = null }: SubmitReceipt): TaskEntry | Refusal {
  const { leaseId } = receipt;
  const taskId = receipt.taskId ?? taskOfLease;
  const lease = leaseId === null ? undefined : tenant.leases.get(leaseId);
  if (lease !== undefined) {
    const { holder } = lease;
    if (holder.kind !== "task" || !isTaskLease(lease.record))
      return invalidReceipt("lease_id", "is not a lease on a task");
    if (taskId !== null && taskId !== holder.record.id) return invalidReceipt("lease_id", "is of another task");
    return holder;
  }
  if (taskId !== null) return tenant.tasks.get(taskId) ?? taskUnknown(taskId);
  if (leaseId === null) return invalidReceipt("task_id", "is needed, or lease_id");
  return refuse("lease_unknown", "There is no such lease.", { leaseId });
}

/** The attempt that a receipt speaks for: alive, or one of those that ended before the task did. */
type Speaker =
  | { readonly type: "live"; readonly attempt: TaskAttempt }
  | { readonly type: "past"; readonly attempt: PastAttempt };

function findSpeaker({ record }: TaskEntry, { leaseId, fence, sourceSystem }: ReceiptInput): Speaker | Refusal {
  const { live, past } = record;
  const isNamed = leaseId !== null || fence !== null;
  const isMeant = (one: TaskAttempt | PastAttempt): boolean => {
    if (isNamed) return (leaseId === null || one.leaseId === leaseId) && (fence === null || one.fence === fence);
    return sourceSystem === null || one.workerId === sourceSystem;
  };
  const now = live.filter(isMeant);
  const [attempt] = now;
  if (attempt !== undefined) {
    if (now.length === 1) return { type: "live", attempt };
    return invalidReceipt("source_system", "is needed: two workers have this task");
  }
  const before = past.findLast((one) => isMeant(one) && one.acceptedAt !== null) ?? past.findLast(isMeant);
  if (before !== undefined) return { type: "past", attempt: before };
  if (isNamed) return refuse("stale_fence", "This lease or fence is not the task's any more.", { taskId: record.id });
  if (sourceSystem === null) return refuse("lease_expired", "Nobody has a lease on this task.", { taskId: record.id });
  return refuse("not_lease_holder", "This worker has no lease on the task; poll for it first.", { taskId: record.id });
}

/** T13's refusals. */
function whyNot({ record }: TaskEntry, speaker: Speaker, phase: ReceiptPhase, input: ReceiptInput): Reply | null {
  const { id: taskId } = record;
  const { attempt } = speaker;
  if (phase === "accepted") {
    if (speaker.type === "past")
      return refuse("lease_expired", "The lease has ended; poll for the task again.", { taskId });
    // Said before, without a key: the first answer stands.
    if (attempt.acceptedAt === null || attempt.receiptId === null) return null;
    return { type: "receipt_known", receiptId: attempt.receiptId };
  }
  if (speaker.type === "live") {
    if (attempt.acceptedAt !== null || phase === "escalate") return null;
    return refuse("complete_without_accept", "The task was not accepted; send the accepted receipt first.", { taskId });
  }
  if (attempt.acceptedAt === null) {
    return refuse("complete_without_accept", "The lease has ended, and was never accepted.", { taskId });
  }
  if (record.live.length > 0) return refuse("stale_fence", "Another worker has the task now.", { taskId });
  if (phase !== "complete" || input.status !== "success") {
    return refuse("lease_expired", "The lease has ended; only a success still counts.", { taskId });
  }
  if (record.obligation?.state === "CLOSED") {
    return refuse("stale_fence", "A later attempt has answered for this one; its result does not count.", { taskId });
  }
  return speaker.attempt.contested
    ? refuse("stale_fence", "What the task had leased was granted to others since; its result does not count.", {
        taskId,
      })
    : null;
}

function senderOf(
  { record }: TaskEntry,
  { type, attempt }: Speaker,
  phase: ReceiptPhase,
  { actor, receipt }: SubmitReceipt,
): Sender {
  const { workerId } = attempt;
  const custodian = type === "live" ? custodianOf(attempt) : workerId;
  return {
    workerId,
    forPrincipal: phase === "accepted" ? namedCustodian(actor, receipt, workerId) : custodian,
    submittedBy: submitterOf(actor),
    attempt: phase === "accepted" || record.attempts === 0 ? record.attempts + 1 : record.attempts,
    startedAt: attempt.acceptedAt,
    causedByReceiptId: attempt.receiptId ?? record.lastReceiptId,
  };
}

function write(turn: Turn, task: TaskEntry, speaker: Speaker, input: ReceiptInput, content: ReceiptDraft): Receipt {
  if (content.phase === "accepted") open(turn, task, content, input.obligationId);
  const isBound = content.phase === "accepted" || speaker.attempt.acceptedAt !== null;
  const receipt = appendReceipt(turn, task, content, input.receiptId, isBound);
  markReceipt(turn, task, input, receipt);
  switch (content.phase) {
    case "accepted":
      if (speaker.type === "live") accept(turn, task, speaker.attempt, receipt);
      break;
    case "complete":
      complete(turn, task, speaker, receipt);
      break;
    case "escalate":
      if (speaker.type === "live") escalate(turn, task, speaker.attempt, receipt);
      break;
    case "progress":
      break;
  }
  return receipt;
}

/** T3, R5: the obligation opens, or goes on under a new custodian where the last one lost it. */
function open(turn: Turn, task: TaskEntry, content: ReceiptDraft, givenId: string | null): void {
  const { obligation, live } = task.record;
  const custodian = content.forPrincipal ?? content.sourceSystem;
  if (obligation !== null && obligation.state !== "CLOSED") {
    // A second worker that tries the same task does not take it over (T8).
    const isTaken = obligation.state === "OPEN" && live.some(({ acceptedAt }) => acceptedAt !== null);
    if (!isTaken) moveObligation(turn, task, "accept", custodian);
    return;
  }
  openObligation(turn, task, custodian, givenId);
}

function accept(turn: Turn, task: TaskEntry, attempt: TaskAttempt, { id: receiptId, forPrincipal }: Receipt): void {
  const { tenant, now } = turn;
  const { record } = task;
  const isFirst = record.status === "leased";
  const isCounted = record.live.every((one) => one.receiptId === null);
  const custodian = forPrincipal === attempt.workerId ? null : forPrincipal;
  const accepted = { ...attempt, acceptedAt: now, receiptId, custodian };
  moveTask(turn, task, "accept", {
    attempts: record.attempts + (isCounted ? 1 : 0),
    offers: 0,
    notBefore: isFirst ? speculateAt(tenant, record.spec, now) : record.notBefore,
    lastWorker: attempt.workerId,
    live: record.live.map((one) => (one === attempt ? accepted : one)),
  });
  if (isFirst) resumeSpeculation(turn, task);
  emitTask(turn, task, "task.accepted", accepted, null);
}

/** T4: exactly once. */
function complete(
  turn: Turn,
  task: TaskEntry,
  { type, attempt }: Speaker,
  { id, status, retryRequested }: Receipt,
): void {
  if (type === "live") dropAttempt(turn, task, attempt, "RELEASED", null);
  const isSuccess = status === "success";
  if (status !== "canceled") noteOutcome(turn, attempt.workerId, isSuccess ? "completed" : "failed");
  if (isSuccess && attempt.acceptedAt !== null)
    noteDuration(turn, turn.tenant, task.record.spec.taskType, turn.now - attempt.acceptedAt);
  const { attempts, spec } = task.record;
  if (status === "failure" && retryRequested && attempts < spec.maxAttempts && type === "live") {
    passOn(turn, task, "close", task.record.obligation?.custodian ?? attempt.workerId);
    // A second worker that has it is the retry (T8).
    if (task.record.live.length > 0) return followLive(turn, task, attempt.receiptId);
    return retryOrDie(turn, task, attempt, "failed");
  }
  finish(turn, task, statusAfter[status ?? "failure"], id, null);
  emitTask(turn, task, "task.completed", attempt, null);
}

/** The worker hands it on: to another attempt, or to whom it names (T13). */
function escalate(
  turn: Turn,
  task: TaskEntry,
  attempt: TaskAttempt,
  { retryRequested, escalationTo, escalationReason }: Receipt,
): void {
  dropAttempt(turn, task, attempt, "RELEASED", "escalated");
  emitTask(turn, task, "task.escalated", attempt, escalationReason);
  const { attempts, spec } = task.record;
  if (attempt.acceptedAt !== null) passOn(turn, task, "hand_over", escalationTo ?? supervisorOf(turn.tenant, spec));
  if (task.record.live.length > 0) return followLive(turn, task, attempt.receiptId);
  if (attempt.acceptedAt === null) {
    // Not accepted: an offer that came to nothing, said aloud (T2).
    updateTask(turn, task, { offers: task.record.offers + 1 });
    return requeueOffer(turn, task, attempt, "escalated");
  }
  if (retryRequested && attempts < spec.maxAttempts) return retryOrDie(turn, task, attempt, "escalated");
  die(turn, task, null);
}
