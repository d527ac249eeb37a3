/**
 * From what was sent to what is stored (R2): what is left out is filled from the task and the attempt, then the phase's
 * invariants are checked, field by field. Nothing is stored of a receipt that breaks one.
 */
import { limits } from "../contract/limits.ts";
import type { Millis } from "../contract/records.ts";
import { type Refusal, refuse } from "../contract/refusals.ts";
import type { ReceiptInput } from "../contract/task-commands.ts";
import {
  type CompleteStatus,
  completeStatuses,
  type EscalationClass,
  escalationClasses,
  type OutcomeKind,
  outcomeKinds,
  type ReceiptDraft,
  type ReceiptPhase,
  receiptPhases,
} from "../contract/task-records.ts";
import type { TaskEntry } from "../memory/task-state.ts";
import { fingerprint } from "../names/fingerprint.ts";
import { exceedsBytes, jsonExceedsBytes } from "../names/text-size.ts";

/** R3: which receipts count as the same. How the attempt was named is not part of what is said. */
export function receiptFingerprint(receipt: ReceiptInput): string {
  return fingerprint(JSON.stringify({ ...receipt, leaseId: null, fence: null }));
}

/** Under which marks a receipt is known again. */
export function dedupeMarksOf({ dedupeKey, receiptId }: ReceiptInput): string[] {
  const marks: string[] = [];
  if (dedupeKey !== null) marks.push(`key:${dedupeKey}`);
  if (receiptId !== null) marks.push(`id:${receiptId}`);
  return marks;
}

export function invalidReceipt(field: string, problem: string): Refusal {
  return refuse("invalid_receipt", `${field}: ${problem}.`, { field, problem });
}

export function readPhase(text: string): ReceiptPhase | Refusal {
  return receiptPhases.find((phase) => phase === text) ?? invalidReceipt("phase", `must be ${oneOf(receiptPhases)}`);
}

function oneOf(values: readonly string[]): string {
  return `one of ${values.join(", ")}`;
}

/** Of ids that the ledger gives; a given one could be that of a later receipt. */
export const ownIdPrefix = "rcp_";

/** Who sends it, and as which attempt. */
export interface Sender {
  readonly workerId: string;
  readonly attempt: number;
  readonly startedAt: Millis | null;
  readonly causedByReceiptId: string | null;
}

export function fillReceipt(
  input: ReceiptInput,
  phase: ReceiptPhase,
  task: TaskEntry,
  sender: Sender,
  now: Millis,
): ReceiptDraft | Refusal {
  const problem = findSizeProblem(input);
  if (problem !== null) return problem;
  switch (phase) {
    case "accepted":
      return findAbsent(input, notWhenAccepted) ?? acceptedOf(input, task, sender, now);
    case "complete":
      return findAbsent(input, escalationFields) ?? completeOf(input, task, sender, now);
    case "escalate":
      return findAbsent(input, notWhenEscalated) ?? escalateOf(input, task, sender, now);
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
    : invalidReceipt(wireName(given), `has no place in a receipt of phase ${input.phase}`);
}

function wireName(field: string): string {
  return field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function contentOf(
  input: ReceiptInput,
  phase: ReceiptPhase,
  { record, payload }: TaskEntry,
  sender: Sender,
  recipientAi: string,
  now: Millis,
): ReceiptDraft {
  const { spec } = record;
  return {
    phase,
    taskId: record.id,
    parentTaskId: input.parentTaskId ?? spec.parentTaskId,
    causedByReceiptId: input.causedByReceiptId ?? sender.causedByReceiptId,
    dedupeKey: input.dedupeKey,
    attempt: input.attempt ?? sender.attempt,
    fromPrincipal: input.fromPrincipal,
    forPrincipal: input.forPrincipal ?? spec.principalAi,
    sourceSystem: input.sourceSystem ?? sender.workerId,
    recipientAi,
    trustDomain: input.trustDomain,
    status: null,
    realtime: input.realtime ?? false,
    taskType: input.taskType ?? spec.taskType,
    taskSummary: input.taskSummary ?? spec.taskSummary ?? spec.taskType,
    taskBody: input.taskBody ?? payload?.record.taskBody ?? null,
    inputs: input.inputs ?? payload?.record.inputs ?? null,
    expectedOutcomeKind: input.expectedOutcomeKind ?? spec.expectedOutcomeKind,
    expectedArtifactMime: input.expectedArtifactMime ?? spec.expectedArtifactMime,
    outcomeKind: null,
    outcomeText: input.outcomeText,
    artifactLocation: input.artifactLocation,
    artifactPointer: input.artifactPointer,
    artifactChecksum: input.artifactChecksum,
    artifactSizeBytes: input.artifactSizeBytes ?? 0,
    artifactMime: input.artifactMime,
    artifactRefs: input.artifactRefs ?? null,
    escalationClass: null,
    escalationReason: null,
    escalationTo: null,
    retryRequested: input.retryRequested ?? false,
    body: input.body ?? null,
    createdAt: input.createdAt ?? now,
    startedAt: input.startedAt ?? sender.startedAt,
    completedAt: null,
    readAt: input.readAt,
    archivedAt: input.archivedAt,
    metadata: input.metadata ?? null,
    tenant: record.tenant,
    // Its place in the ledger is given when it is appended.
    sequence: 0,
    id: "",
    obligationId: null,
    storedAt: now,
  };
}

function acceptedOf(input: ReceiptInput, task: TaskEntry, sender: Sender, now: Millis): ReceiptDraft | Refusal {
  if (input.retryRequested === true) return invalidReceipt("retry_requested", "must be false when a task is accepted");
  return contentOf(input, "accepted", task, sender, input.recipientAi ?? sender.workerId, now);
}

function progressOf(input: ReceiptInput, task: TaskEntry, sender: Sender, now: Millis): ReceiptDraft {
  return contentOf(input, "progress", task, sender, input.recipientAi ?? task.record.spec.principalAi, now);
}

function completeOf(input: ReceiptInput, task: TaskEntry, sender: Sender, now: Millis): ReceiptDraft | Refusal {
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

function escalateOf(input: ReceiptInput, task: TaskEntry, sender: Sender, now: Millis): ReceiptDraft | Refusal {
  const kind = escalationClasses.find((one) => one === input.escalationClass) satisfies EscalationClass | undefined;
  if (kind === undefined) return invalidReceipt("escalation_class", `must be ${oneOf(escalationClasses)}`);
  if (input.escalationReason === null) return invalidReceipt("escalation_reason", "must say why");
  const to = input.escalationTo ?? input.recipientAi ?? task.record.spec.principalAi;
  if (input.recipientAi !== null && input.recipientAi !== to) {
    return invalidReceipt("recipient_ai", "must be whom it is escalated to (escalation_to)");
  }
  const content = contentOf(input, "escalate", task, sender, to, now);
  content.escalationClass = kind;
  content.escalationReason = input.escalationReason;
  content.escalationTo = to;
  content.completedAt = input.completedAt;
  return content;
}

/** The limits of LegiVellum receipts, in bytes; names and pointers have one of our own. */
const textLimits: readonly (readonly [Nullable, number])[] = [
  ["taskBody", limits.taskBodyBytesMax],
  ["outcomeText", limits.taskBodyBytesMax],
  ["taskSummary", limits.receiptTextMax],
  ["escalationReason", limits.receiptTextMax],
  ["artifactLocation", limits.receiptTextMax],
  ["artifactPointer", limits.receiptTextMax],
  ["artifactChecksum", limits.keyLengthMax],
  ["artifactMime", limits.keyLengthMax],
  ["dedupeKey", limits.keyLengthMax],
  ["receiptId", limits.keyLengthMax],
  ["sourceSystem", limits.keyLengthMax],
  ["recipientAi", limits.keyLengthMax],
  ["escalationTo", limits.keyLengthMax],
  ["fromPrincipal", limits.keyLengthMax],
  ["forPrincipal", limits.keyLengthMax],
  ["trustDomain", limits.keyLengthMax],
  ["parentTaskId", limits.keyLengthMax],
  ["causedByReceiptId", limits.keyLengthMax],
  ["taskType", limits.keyLengthMax],
  ["expectedOutcomeKind", limits.keyLengthMax],
  ["expectedArtifactMime", limits.keyLengthMax],
];
const objectLimits: readonly (readonly [Nullable, number])[] = [
  ["inputs", limits.inputsBytesMax],
  ["metadata", limits.metadataBytesMax],
  ["body", limits.receiptBodyBytesMax],
  ["artifactRefs", limits.metadataBytesMax],
];

function findSizeProblem(input: ReceiptInput): Refusal | null {
  for (const [field, most] of textLimits) {
    const text = input[field];
    if (text === null || typeof text !== "string") continue;
    if (text.length === 0) return invalidReceipt(wireName(field), "must not be empty");
    if (exceedsBytes(text, most)) return invalidReceipt(wireName(field), `must have at most ${most} bytes`);
  }
  for (const [field, most] of objectLimits) {
    if (jsonExceedsBytes(input[field], most)) return invalidReceipt(wireName(field), `must have at most ${most} bytes`);
  }
  const { attempt, artifactSizeBytes, retryRequested } = input;
  if (input.receiptId?.startsWith(ownIdPrefix))
    return invalidReceipt("receipt_id", `must not begin with ${ownIdPrefix}: so the ledger names its own`);
  if (attempt !== null && !(Number.isSafeInteger(attempt) && attempt >= 1))
    return invalidReceipt("attempt", "must be a whole number of at least 1");
  if (artifactSizeBytes !== null && !(Number.isSafeInteger(artifactSizeBytes) && artifactSizeBytes >= 0))
    return invalidReceipt("artifact_size_bytes", "must be a whole number");
  if (retryRequested === true && input.phase === "progress")
    return invalidReceipt("retry_requested", "has no place in a receipt of phase progress");
  return null;
}
