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

/** The members in their order; what is undefined here is not written. */
export function receiptMembers(
  receipt: Receipt,
  previousHash: string,
): ReceiptMembers & { readonly previous_hash: string } {
  return {
    sequence: receipt.sequence,
    previous_hash: previousHash,
    tenant_id: receipt.tenant,
    receipt_id: receipt.id,
    task_id: receipt.taskId,
    phase: receipt.phase,
    recipient_ai: receipt.recipientAi,
    source_system: receipt.sourceSystem,
    dedupe_key: receipt.dedupeKey ?? undefined,
    stored_at: timeOf(receipt.storedAt),
    obligation_id: receipt.obligationId ?? undefined,
    parent_task_id: receipt.parentTaskId ?? undefined,
    caused_by_receipt_id: receipt.causedByReceiptId ?? undefined,
    attempt: receipt.attempt || undefined,
    from_principal: receipt.fromPrincipal ?? undefined,
    for_principal: receipt.forPrincipal ?? undefined,
    trust_domain: receipt.trustDomain ?? undefined,
    status: receipt.status ?? undefined,
    realtime: receipt.realtime || undefined,
    task_type: receipt.taskType,
    task_summary: receipt.taskSummary ?? undefined,
    task_body: receipt.taskBody ?? undefined,
    inputs: receipt.inputs ?? undefined,
    expected_outcome_kind: receipt.expectedOutcomeKind ?? undefined,
    expected_artifact_mime: receipt.expectedArtifactMime ?? undefined,
    outcome_kind: receipt.outcomeKind ?? undefined,
    outcome_text: receipt.outcomeText ?? undefined,
    artifact_location: receipt.artifactLocation ?? undefined,
    artifact_pointer: receipt.artifactPointer ?? undefined,
    artifact_checksum: receipt.artifactChecksum ?? undefined,
    artifact_size_bytes: receipt.artifactSizeBytes || undefined,
    artifact_mime: receipt.artifactMime ?? undefined,
    artifact_refs: receipt.artifactRefs ?? undefined,
    escalation_class: receipt.escalationClass ?? undefined,
    escalation_reason: receipt.escalationReason ?? undefined,
    escalation_to: receipt.escalationTo ?? undefined,
    retry_requested: receipt.retryRequested || undefined,
    body: receipt.body ?? undefined,
    created_at: timeOf(receipt.createdAt),
    started_at: receipt.startedAt === null ? undefined : timeOf(receipt.startedAt),
    completed_at: receipt.completedAt === null ? undefined : timeOf(receipt.completedAt),
    read_at: receipt.readAt === null ? undefined : timeOf(receipt.readAt),
    archived_at: receipt.archivedAt === null ? undefined : timeOf(receipt.archivedAt),
    metadata: receipt.metadata ?? undefined,
    submitted_by: receipt.submittedBy ?? undefined,
  };
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
