/**
 * Receipts on the wire, in full: LegiVellum's version 1 with its marks for what is absent, and the place in the chain
 * (R2, R6). Every step of every task is answered with one, so the text is put together directly.
 */
import type { Receipt } from "../../kernel/contract/task-records.ts";
import { isoTime } from "../answers/iso-time.ts";
import { escaped } from "../answers/json-text.ts";

/** A receipt with its place in the ledger's chain. */
export interface ShownReceipt {
  readonly receipt: Receipt;
  readonly hash: string;
  readonly previousHash: string;
}

/** What the sender of many needs to know of each. */
export function receiptMarkText({ receipt, hash, previousHash }: ShownReceipt): string {
  const { id, taskId, phase, sequence, storedAt } = receipt;
  return (
    `{"receipt_id":"${escaped(id)}","task_id":"${taskId}","phase":"${phase}","sequence":${sequence}` +
    `,"stored_at":"${isoTime(storedAt)}","hash":"${hash}","previous_hash":"${previousHash}"}`
  );
}

export function receiptText(shown: ShownReceipt): string {
  const { receipt } = shown;
  return (
    `${receiptMarkText(shown).slice(0, -1)},"schema_version":"1.0","tenant_id":"${escaped(receipt.tenant)}"` +
    `,"obligation_id":${na(receipt.obligationId)},"parent_task_id":${na(receipt.parentTaskId)}` +
    `,"caused_by_receipt_id":${na(receipt.causedByReceiptId)},"dedupe_key":${na(receipt.dedupeKey)}` +
    `,"attempt":${receipt.attempt},"from_principal":${na(receipt.fromPrincipal)}` +
    `,"for_principal":${na(receipt.forPrincipal)},"source_system":${na(receipt.sourceSystem)}` +
    `,"recipient_ai":${na(receipt.recipientAi)},"trust_domain":${na(receipt.trustDomain)}` +
    `,"status":"${receipt.status ?? "NA"}","realtime":${receipt.realtime},"task_type":${na(receipt.taskType)}` +
    `,"task_summary":${tbd(receipt.taskSummary)},"task_body":${tbd(receipt.taskBody)}` +
    `,"inputs":${free(receipt.inputs, "{}")},"expected_outcome_kind":${na(receipt.expectedOutcomeKind)}` +
    `,"expected_artifact_mime":${na(receipt.expectedArtifactMime)},"outcome_kind":"${receipt.outcomeKind ?? "NA"}"` +
    `,"outcome_text":${na(receipt.outcomeText)}${artifactText(receipt)}` +
    `,"escalation_class":"${receipt.escalationClass ?? "NA"}","escalation_reason":${tbd(receipt.escalationReason)}` +
    `,"escalation_to":${na(receipt.escalationTo)},"retry_requested":${receipt.retryRequested}` +
    `,"body":${free(receipt.body, "{}")},"created_at":"${isoTime(receipt.createdAt)}"` +
    `,"started_at":${time(receipt.startedAt)},"completed_at":${time(receipt.completedAt)}` +
    `,"read_at":${time(receipt.readAt)},"archived_at":${time(receipt.archivedAt)}` +
    `,"metadata":${free(receipt.metadata, "{}")}}`
  );
}

/** Most receipts are about no artifact. */
const noArtifact =
  `,"artifact_location":"NA","artifact_pointer":"NA","artifact_checksum":"NA","artifact_size_bytes":0` +
  `,"artifact_mime":"NA","artifact_refs":[]`;

function artifactText(receipt: Receipt): string {
  const { artifactLocation, artifactPointer, artifactChecksum, artifactSizeBytes, artifactMime, artifactRefs } =
    receipt;
  if (artifactLocation === null && artifactPointer === null && artifactMime === null && artifactRefs === null) {
    if (artifactChecksum === null && artifactSizeBytes === 0) return noArtifact;
  }
  return (
    `,"artifact_location":${na(artifactLocation)},"artifact_pointer":${na(artifactPointer)}` +
    `,"artifact_checksum":${na(artifactChecksum)},"artifact_size_bytes":${artifactSizeBytes}` +
    `,"artifact_mime":${na(artifactMime)},"artifact_refs":${free(artifactRefs, "[]")}`
  );
}

export function receiptsText(receipts: readonly ShownReceipt[]): string {
  return `[${receipts.map(receiptText).join(",")}]`;
}

function na(text: string | null): string {
  return text === null ? `"NA"` : `"${escaped(text)}"`;
}

function tbd(text: string | null): string {
  return text === null ? `"TBD"` : `"${escaped(text)}"`;
}

function free(value: unknown, absent: string): string {
  return value === null || value === undefined ? absent : JSON.stringify(value);
}

function time(ms: number | null): string {
  return ms === null ? "null" : `"${isoTime(ms)}"`;
}
