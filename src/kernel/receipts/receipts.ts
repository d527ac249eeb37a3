/**
 * From what was sent to what is stored (R2): what is left out is filled from the task and the attempt, then the phase's
 * invariants are checked, field by field. Nothing is stored of a receipt that breaks one. What is stored is added to the
 * ledger (R1), with the receipts that the rules call for by themselves (T5).
 */

import { blank, wireName } from "../contract/field.ts";
import { checkReceipt, receiptDraftOf } from "../contract/inputs.gen.ts";
import { receiptInput } from "../contract/inputs.ts";
import type { Millis } from "../contract/records.ts";
import type { Refusal } from "../contract/replies.ts";
import type { ReceiptInput } from "../contract/task-commands.ts";
import {
  type CompleteStatus,
  completeStatuses,
  type EscalationClass,
  escalationClasses,
  type OutcomeKind,
  outcomeKinds,
  type Receipt,
  type ReceiptDraft,
  type ReceiptPhase,
  receiptPhases,
  type TaskAttempt,
} from "../contract/task-records.ts";
import { receiptSize } from "../deciding/admission.ts";
import { emit, type Turn, updateCounters } from "../memory/state.ts";
import { type TaskEntry, updateTask } from "../memory/task-state.ts";
import { leaseOfKey } from "./marks.ts";
import { custodianOf, invalidReceipt, type Subject, supervisorOf } from "./principals.ts";

export function readPhase(text: string): ReceiptPhase | Refusal {
  return receiptPhases.find((phase) => phase === text) ?? invalidReceipt("phase", `must be ${oneOf(receiptPhases)}`);
}

function oneOf(values: readonly string[]): string {
  return `one of ${values.join(", ")}`;
}

/** Of ids that the ledger gives; a given one could be that of a later receipt. */
export const ownIdPrefix = "rcp_";

/** The sender, and the attempt that it speaks for. */
export interface Sender {
  readonly workerId: string;
  readonly attempt: number;
  readonly startedAt: Millis | null;
  readonly causedByReceiptId: string | null;
  /** The executor: who answers for the attempt (R5). */
  readonly forPrincipal: string | null;
  /** The credential that was shown (R7). */
  readonly submittedBy: string | null;
}

export function fillReceipt(
  input: ReceiptInput,
  phase: ReceiptPhase,
  task: Subject,
  sender: Sender,
  { tenant, now }: Turn,
): ReceiptDraft | Refusal {
  const problem = findProblem(input);
  if (problem !== null) return problem;
  switch (phase) {
    case "accepted":
      return findAbsent(input, notWhenAccepted) ?? acceptedOf(input, task, sender, now);
    case "complete":
      return findAbsent(input, escalationFields) ?? completeOf(input, task, sender, now);
    case "escalate":
      return (
        findAbsent(input, notWhenEscalated) ??
        escalateOf(input, task, sender, supervisorOf(tenant, task.record.spec), now)
      );
    case "progress":
      return findAbsent(input, notInProgress) ?? progressOf(input, task, sender, now);
  }
}

type Nullable = keyof ReceiptInput;
const escalationFields: readonly Nullable[] = ["escalationClass", "escalationReason", "escalationTo"];
const outcomeFields: readonly Nullable[] = [
  "status",
  "outcomeKind",
  "outcomeText",
  "artifactLocation",
  "artifactPointer",
  "artifactChecksum",
  "artifactSizeBytes",
  "artifactMime",
  "artifactRefs",
];

const notWhenAccepted: readonly Nullable[] = [...outcomeFields, ...escalationFields, "completedAt"];
const notWhenEscalated: readonly Nullable[] = ["status"];
const notInProgress: readonly Nullable[] = ["status", ...escalationFields, "completedAt"];

/** What has no place in this phase. */
function findAbsent(input: ReceiptInput, fields: readonly Nullable[]): Refusal | null {
  const given = fields.find((field) => input[field] !== null && input[field] !== undefined);
  return given === undefined
    ? null
    : invalidReceipt(wireName(given, receiptInput[given]), `has no place in a receipt of phase ${input.phase}`);
}

export function contentOf(
  input: ReceiptInput,
  phase: ReceiptPhase,
  { record, payload }: Subject,
  sender: Sender,
  recipientAi: string,
  now: Millis,
): ReceiptDraft {
  const { spec } = record;
  const draft = receiptDraftOf(input);
  draft.tenant = record.tenant;
  draft.taskId = record.id;
  draft.phase = phase;
  draft.recipientAi = recipientAi;
  draft.sourceSystem = input.sourceSystem ?? sender.workerId;
  draft.storedAt = now;
  draft.obligationId = null;
  draft.parentTaskId = input.parentTaskId ?? spec.parentTaskId;
  draft.causedByReceiptId = input.causedByReceiptId ?? sender.causedByReceiptId;
  draft.attempt = input.attempt ?? sender.attempt;
  draft.fromPrincipal = input.fromPrincipal ?? spec.principalAi;
  draft.forPrincipal = input.forPrincipal ?? sender.forPrincipal;
  draft.taskType = input.taskType ?? spec.taskType;
  draft.taskSummary = input.taskSummary ?? spec.taskSummary ?? spec.taskType;
  // Of what is said while the work goes on, the task's own part is in the accepted receipt (R2).
  const own = phase === "progress" ? null : payload;
  draft.taskBody = input.taskBody ?? own?.record.taskBody ?? null;
  draft.inputs = input.inputs ?? own?.record.inputs ?? null;
  draft.expectedOutcomeKind = input.expectedOutcomeKind ?? spec.expectedOutcomeKind;
  draft.expectedArtifactMime = input.expectedArtifactMime ?? spec.expectedArtifactMime;
  draft.escalationReason = null;
  draft.escalationTo = null;
  draft.createdAt = input.createdAt ?? now;
  draft.startedAt = input.startedAt ?? sender.startedAt;
  draft.completedAt = null;
  draft.submittedBy = sender.submittedBy;
  if (spec.traceparent !== null) draft.metadata = traced(input.metadata, spec.traceparent);
  return draft;
}

/** The task's trace beside what the sender says; what it says of a trace itself is kept. */
function traced(metadata: unknown, traceparent: string): unknown {
  if (metadata === null) return { traceparent };
  if (typeof metadata !== "object" || Array.isArray(metadata)) return metadata;
  return { traceparent, ...metadata };
}

function acceptedOf(input: ReceiptInput, task: Subject, sender: Sender, now: Millis): ReceiptDraft | Refusal {
  if (input.retryRequested === true) return invalidReceipt("retry_requested", "must be false when a task is accepted");
  return contentOf(input, "accepted", task, sender, input.recipientAi ?? sender.workerId, now);
}

function progressOf(input: ReceiptInput, task: Subject, sender: Sender, now: Millis): ReceiptDraft {
  return contentOf(input, "progress", task, sender, input.recipientAi ?? task.record.spec.principalAi, now);
}

function completeOf(input: ReceiptInput, task: Subject, sender: Sender, now: Millis): ReceiptDraft | Refusal {
  const status = completeStatuses.find((one) => one === input.status) satisfies CompleteStatus | undefined;
  if (status === undefined)
    return invalidReceipt("status", `must be ${oneOf(completeStatuses)} when a task is complete`);
  const { spec } = task.record;
  const content = contentOf(input, "complete", task, sender, input.recipientAi ?? spec.principalAi, now);
  const place = input.artifactPointer ?? input.artifactLocation;
  const outcomeKind = readOutcomeKind(input, place);
  if (typeof outcomeKind !== "string") return outcomeKind;
  content.status = status;
  content.outcomeKind = outcomeKind;
  content.completedAt = input.completedAt ?? now;
  if (outcomeKind !== "artifact_pointer" && outcomeKind !== "mixed") return content;
  if (place === null) return invalidReceipt("artifact_pointer", `is needed for outcome_kind ${outcomeKind}`);
  content.artifactPointer = place;
  content.artifactLocation = input.artifactLocation ?? place;
  content.artifactMime = input.artifactMime ?? spec.expectedArtifactMime ?? "application/octet-stream";
  return content;
}

/** Said, or seen from what there is. */
function readOutcomeKind({ outcomeKind, outcomeText }: ReceiptInput, place: string | null): OutcomeKind | Refusal {
  if (outcomeKind !== null) {
    const known = outcomeKinds.find((one) => one === outcomeKind);
    return known ?? invalidReceipt("outcome_kind", `must be ${oneOf(outcomeKinds)}`);
  }
  if (place !== null) return outcomeText === null ? "artifact_pointer" : "mixed";
  return outcomeText === null ? "none" : "response_text";
}

function escalateOf(
  input: ReceiptInput,
  task: Subject,
  sender: Sender,
  supervisor: string,
  now: Millis,
): ReceiptDraft | Refusal {
  const kind = escalationClasses.find((one) => one === input.escalationClass) satisfies EscalationClass | undefined;
  if (kind === undefined) return invalidReceipt("escalation_class", `must be ${oneOf(escalationClasses)}`);
  if (input.escalationReason === null) return invalidReceipt("escalation_reason", "must say why");
  const to = input.escalationTo ?? input.recipientAi ?? supervisor;
  if (input.recipientAi !== null && input.recipientAi !== to) {
    return invalidReceipt("recipient_ai", "must be escalation_to");
  }
  const content = contentOf(input, "escalate", task, sender, to, now);
  content.escalationClass = kind;
  content.escalationReason = input.escalationReason;
  content.escalationTo = to;
  content.completedAt = input.completedAt;
  return content;
}

/** What the bounds of single fields do not say. */
function findProblem(input: ReceiptInput): Refusal | null {
  const problem = checkReceipt(input);
  if (problem !== null) return problem;
  if (input.receiptId?.startsWith(ownIdPrefix))
    return invalidReceipt("receipt_id", `must not begin with ${ownIdPrefix}, as the ledger's own ids do`);
  const keyLease = leaseOfKey(input.dedupeKey);
  if (keyLease !== null && keyLease !== input.leaseId)
    return invalidReceipt(
      "dedupe_key",
      "begins with the id of a lease that is not the receipt's; send lease_id, or another key",
    );
  if (input.retryRequested === true && input.phase === "progress")
    return invalidReceipt("retry_requested", "has no place in a receipt of phase progress");
  return null;
}

/** `source_system` of receipts written by the control plane. */
export const ownSource = "leasehold";

/** A receipt about an offer that was not accepted is bound to no obligation (R5). */
export function appendReceipt(
  turn: Turn,
  task: TaskEntry,
  draft: ReceiptDraft,
  givenId: string | null,
  isBound = true,
): Receipt {
  const receipt = addToLedger(turn, draft, givenId, isBound ? (task.record.obligation?.id ?? null) : null);
  updateTask(turn, task, { lastReceiptId: receipt.id });
  return receipt;
}

/** The next one of the tenant's chain. */
export function addToLedger(
  turn: Turn,
  draft: ReceiptDraft,
  givenId: string | null,
  obligationId: string | null,
): Receipt {
  const { state, tenant, now } = turn;
  const { receipts, receiptBytes } = tenant.counters.record;
  const sequence = receipts + 1;
  updateCounters(turn, { receipts: sequence, receiptBytes: receiptBytes + receiptSize(draft) });
  draft.sequence = sequence;
  draft.id = givenId ?? receiptIdOf(sequence);
  draft.obligationId = obligationId;
  draft.storedAt = now;
  const receipt: Receipt = draft;
  state.receipts.push(receipt);
  emit(turn, { type: "receipt.stored", tenant: tenant.record.id, at: now, receipt });
  return receipt;
}

export function receiptIdOf(sequence: number): string {
  return `${ownIdPrefix}${sequence.toString(32).padStart(10, "0")}`;
}

/** T2, T5: an escalation by policy, of an attempt's work or of a task that nobody works on. */
export function policyReceipt(
  turn: Turn,
  task: TaskEntry,
  reason: string,
  attempt: TaskAttempt | null,
  to: string,
): Receipt {
  const draft = ownDraft(turn, task, "escalate", to, null);
  draft.causedByReceiptId = attempt?.receiptId ?? task.record.lastReceiptId;
  draft.forPrincipal = attempt === null ? null : custodianOf(attempt);
  draft.escalationClass = "policy";
  draft.escalationReason = reason;
  draft.escalationTo = to;
  return appendReceipt(turn, task, draft, null);
}

/** R5: a supervisor has given an overdue obligation to a new custodian. */
export function recoveredReceipt(
  turn: Turn,
  task: TaskEntry,
  custodian: string,
  reason: string,
  submittedBy: string | null,
): Receipt {
  const draft = ownDraft(turn, task, "escalate", custodian, submittedBy);
  draft.forPrincipal = task.record.obligation?.custodian ?? null;
  draft.escalationClass = "owner";
  draft.escalationReason = reason;
  draft.escalationTo = custodian;
  return appendReceipt(turn, task, draft, null);
}

/** T13: the principal called the task off while somebody was bound to it. */
export function canceledReceipt(turn: Turn, task: TaskEntry, reason: string | null, submittedBy: string | null) {
  const { obligation, spec } = task.record;
  const draft = ownDraft(turn, task, "complete", spec.principalAi, submittedBy);
  draft.forPrincipal = obligation?.custodian ?? null;
  draft.status = "canceled";
  draft.outcomeKind = reason === null ? "none" : "response_text";
  draft.outcomeText = reason;
  draft.completedAt = turn.now;
  return appendReceipt(turn, task, draft, null);
}

/** Without the payload, which a worker's receipts repeat. */
function ownDraft(
  { now }: Turn,
  { record }: TaskEntry,
  phase: ReceiptPhase,
  recipientAi: string,
  submittedBy: string | null,
): ReceiptDraft {
  const { attempts: attempt, lastReceiptId: causedByReceiptId } = record;
  const own = { workerId: ownSource, startedAt: null, forPrincipal: null };
  const sender = { ...own, attempt, causedByReceiptId, submittedBy };
  return contentOf(nothingSent, phase, { record, payload: null }, sender, recipientAi, now);
}

const nothingSent = blank(receiptInput);
