/** Written by scripts/generate.ts from src/kernel/contract. Run `npm run generate` to write it again. */
import type { Receipt } from "../kernel/contract/task-records.ts";
import { readTime, timeOf } from "./ledger-json.ts";

/** The members as they stand in the text; what may be left out may be missing. */
export interface ReceiptMembers {
  readonly sequence: Receipt["sequence"];
  readonly tenant_id: Receipt["tenant"];
  readonly receipt_id: Receipt["id"];
  readonly task_id: Receipt["taskId"];
  readonly phase: Receipt["phase"];
  readonly recipient_ai: Receipt["recipientAi"];
  readonly source_system: Receipt["sourceSystem"];
  readonly dedupe_key?: Receipt["dedupeKey"] | undefined;
  readonly stored_at: unknown;
  readonly obligation_id?: Receipt["obligationId"] | undefined;
  readonly parent_task_id?: Receipt["parentTaskId"] | undefined;
  readonly caused_by_receipt_id?: Receipt["causedByReceiptId"] | undefined;
  readonly attempt?: Receipt["attempt"] | undefined;
  readonly from_principal?: Receipt["fromPrincipal"] | undefined;
  readonly for_principal?: Receipt["forPrincipal"] | undefined;
  readonly trust_domain?: Receipt["trustDomain"] | undefined;
  readonly status?: Receipt["status"] | undefined;
  readonly realtime?: Receipt["realtime"] | undefined;
  readonly task_type: Receipt["taskType"];
  readonly task_summary?: Receipt["taskSummary"] | undefined;
  readonly task_body?: Receipt["taskBody"] | undefined;
  readonly inputs?: Receipt["inputs"] | undefined;
  readonly expected_outcome_kind?: Receipt["expectedOutcomeKind"] | undefined;
  readonly expected_artifact_mime?: Receipt["expectedArtifactMime"] | undefined;
  readonly outcome_kind?: Receipt["outcomeKind"] | undefined;
  readonly outcome_text?: Receipt["outcomeText"] | undefined;
  readonly artifact_location?: Receipt["artifactLocation"] | undefined;
  readonly artifact_pointer?: Receipt["artifactPointer"] | undefined;
  readonly artifact_checksum?: Receipt["artifactChecksum"] | undefined;
  readonly artifact_size_bytes?: Receipt["artifactSizeBytes"] | undefined;
  readonly artifact_mime?: Receipt["artifactMime"] | undefined;
  readonly artifact_refs?: Receipt["artifactRefs"] | undefined;
  readonly escalation_class?: Receipt["escalationClass"] | undefined;
  readonly escalation_reason?: Receipt["escalationReason"] | undefined;
  readonly escalation_to?: Receipt["escalationTo"] | undefined;
  readonly retry_requested?: Receipt["retryRequested"] | undefined;
  readonly body?: Receipt["body"] | undefined;
  readonly created_at: unknown;
  readonly started_at?: unknown;
  readonly completed_at?: unknown;
  readonly read_at?: unknown;
  readonly archived_at?: unknown;
  readonly metadata?: Receipt["metadata"] | undefined;
  readonly submitted_by?: Receipt["submittedBy"] | undefined;
}

type Written = { -readonly [Name in keyof ReceiptMembers]?: ReceiptMembers[Name] };

/** The members in their order. To leave out what is undefined takes a fifth of the time that the text takes. */
export function receiptMembers(receipt: Receipt, previousHash: string): object {
  const members: Written & { readonly previous_hash: string } = {
    sequence: receipt.sequence,
    previous_hash: previousHash,
    tenant_id: receipt.tenant,
    receipt_id: receipt.id,
    task_id: receipt.taskId,
    phase: receipt.phase,
    recipient_ai: receipt.recipientAi,
    source_system: receipt.sourceSystem,
  };
  if (receipt.dedupeKey !== null) members.dedupe_key = receipt.dedupeKey;
  members.stored_at = timeOf(receipt.storedAt);
  if (receipt.obligationId !== null) members.obligation_id = receipt.obligationId;
  if (receipt.parentTaskId !== null) members.parent_task_id = receipt.parentTaskId;
  if (receipt.causedByReceiptId !== null) members.caused_by_receipt_id = receipt.causedByReceiptId;
  if (receipt.attempt) members.attempt = receipt.attempt;
  if (receipt.fromPrincipal !== null) members.from_principal = receipt.fromPrincipal;
  if (receipt.forPrincipal !== null) members.for_principal = receipt.forPrincipal;
  if (receipt.trustDomain !== null) members.trust_domain = receipt.trustDomain;
  if (receipt.status !== null) members.status = receipt.status;
  if (receipt.realtime) members.realtime = receipt.realtime;
  members.task_type = receipt.taskType;
  if (receipt.taskSummary !== null) members.task_summary = receipt.taskSummary;
  if (receipt.taskBody !== null) members.task_body = receipt.taskBody;
  if (receipt.inputs !== null) members.inputs = receipt.inputs;
  if (receipt.expectedOutcomeKind !== null) members.expected_outcome_kind = receipt.expectedOutcomeKind;
  if (receipt.expectedArtifactMime !== null) members.expected_artifact_mime = receipt.expectedArtifactMime;
  if (receipt.outcomeKind !== null) members.outcome_kind = receipt.outcomeKind;
  if (receipt.outcomeText !== null) members.outcome_text = receipt.outcomeText;
  if (receipt.artifactLocation !== null) members.artifact_location = receipt.artifactLocation;
  if (receipt.artifactPointer !== null) members.artifact_pointer = receipt.artifactPointer;
  if (receipt.artifactChecksum !== null) members.artifact_checksum = receipt.artifactChecksum;
  if (receipt.artifactSizeBytes) members.artifact_size_bytes = receipt.artifactSizeBytes;
  if (receipt.artifactMime !== null) members.artifact_mime = receipt.artifactMime;
  if (receipt.artifactRefs !== null) members.artifact_refs = receipt.artifactRefs;
  if (receipt.escalationClass !== null) members.escalation_class = receipt.escalationClass;
  if (receipt.escalationReason !== null) members.escalation_reason = receipt.escalationReason;
  if (receipt.escalationTo !== null) members.escalation_to = receipt.escalationTo;
  if (receipt.retryRequested) members.retry_requested = receipt.retryRequested;
  if (receipt.body !== null) members.body = receipt.body;
  members.created_at = timeOf(receipt.createdAt);
  if (receipt.startedAt !== null) members.started_at = timeOf(receipt.startedAt);
  if (receipt.completedAt !== null) members.completed_at = timeOf(receipt.completedAt);
  if (receipt.readAt !== null) members.read_at = timeOf(receipt.readAt);
  if (receipt.archivedAt !== null) members.archived_at = timeOf(receipt.archivedAt);
  if (receipt.metadata !== null) members.metadata = receipt.metadata;
  if (receipt.submittedBy !== null) members.submitted_by = receipt.submittedBy;
  return members;
}

export function receiptOf(members: ReceiptMembers): Receipt {
  return {
    sequence: members.sequence,
    tenant: members.tenant_id,
    id: members.receipt_id,
    taskId: members.task_id,
    phase: members.phase,
    recipientAi: members.recipient_ai,
    sourceSystem: members.source_system,
    dedupeKey: members.dedupe_key ?? null,
    storedAt: readTime(members.stored_at),
    obligationId: members.obligation_id ?? null,
    parentTaskId: members.parent_task_id ?? null,
    causedByReceiptId: members.caused_by_receipt_id ?? null,
    attempt: members.attempt ?? 0,
    fromPrincipal: members.from_principal ?? null,
    forPrincipal: members.for_principal ?? null,
    trustDomain: members.trust_domain ?? null,
    status: members.status ?? null,
    realtime: members.realtime ?? false,
    taskType: members.task_type,
    taskSummary: members.task_summary ?? null,
    taskBody: members.task_body ?? null,
    inputs: members.inputs ?? null,
    expectedOutcomeKind: members.expected_outcome_kind ?? null,
    expectedArtifactMime: members.expected_artifact_mime ?? null,
    outcomeKind: members.outcome_kind ?? null,
    outcomeText: members.outcome_text ?? null,
    artifactLocation: members.artifact_location ?? null,
    artifactPointer: members.artifact_pointer ?? null,
    artifactChecksum: members.artifact_checksum ?? null,
    artifactSizeBytes: members.artifact_size_bytes ?? 0,
    artifactMime: members.artifact_mime ?? null,
    artifactRefs: members.artifact_refs ?? null,
    escalationClass: members.escalation_class ?? null,
    escalationReason: members.escalation_reason ?? null,
    escalationTo: members.escalation_to ?? null,
    retryRequested: members.retry_requested ?? false,
    body: members.body ?? null,
    createdAt: readTime(members.created_at),
    startedAt: members.started_at === undefined ? null : readTime(members.started_at),
    completedAt: members.completed_at === undefined ? null : readTime(members.completed_at),
    readAt: members.read_at === undefined ? null : readTime(members.read_at),
    archivedAt: members.archived_at === undefined ? null : readTime(members.archived_at),
    metadata: members.metadata ?? null,
    submittedBy: members.submitted_by ?? null,
  };
}
