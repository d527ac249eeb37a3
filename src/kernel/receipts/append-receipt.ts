/** What the kernel adds to the ledger (R1): receipts of workers, and those that the rules call for by themselves (T5). */

import { blank } from "../contract/field.ts";
import { receiptDraftOf } from "../contract/inputs.gen.ts";
import { receiptInput } from "../contract/inputs.ts";
import type { Millis } from "../contract/records.ts";
import type { Receipt, ReceiptDraft, TaskAttempt } from "../contract/task-records.ts";
import { changed, emit, type Turn } from "../memory/state.ts";
import { type TaskEntry, updateTask } from "../memory/task-state.ts";
import { ownIdPrefix } from "./receipt-content.ts";

/** `source_system` of receipts written by the control plane. */
export const ownSource = "leasehold";

/** The next one of the tenant's chain. */
export function appendReceipt(turn: Turn, task: TaskEntry, draft: ReceiptDraft, givenId: string | null): Receipt {
  const { state, tenant, now } = turn;
  const { counters } = tenant;
  const sequence = counters.record.receipts + 1;
  counters.record = { ...counters.record, receipts: sequence };
  changed(turn, counters);
  draft.sequence = sequence;
  draft.id = givenId ?? receiptIdOf(sequence);
  draft.obligationId = task.record.obligation?.id ?? null;
  draft.storedAt = now;
  const receipt: Receipt = draft;
  state.receipts.push(receipt);
  emit(turn, { type: "receipt.stored", tenant: tenant.record.id, at: now, receipt });
  updateTask(turn, task, { lastReceiptId: receipt.id });
  return receipt;
}

export function receiptIdOf(sequence: number): string {
  return `${ownIdPrefix}${sequence.toString(32).padStart(10, "0")}`;
}

/** T2, T5: an escalation by policy, to the task's principal. */
export function policyReceipt(turn: Turn, task: TaskEntry, reason: string, attempt: TaskAttempt | null): Receipt {
  const { principalAi } = task.record.spec;
  const draft = blankDraft(task, turn.now);
  draft.phase = "escalate";
  draft.causedByReceiptId = attempt?.receiptId ?? task.record.lastReceiptId;
  draft.fromPrincipal = attempt?.workerId ?? null;
  draft.escalationClass = "policy";
  draft.escalationReason = reason;
  draft.escalationTo = principalAi;
  return appendReceipt(turn, task, draft, null);
}

/** T13: the principal called the task off while somebody was bound to it. */
export function canceledReceipt(turn: Turn, task: TaskEntry, reason: string | null) {
  const { now } = turn;
  const draft = blankDraft(task, now);
  draft.phase = "complete";
  draft.status = "canceled";
  draft.outcomeKind = reason === null ? "none" : "response_text";
  draft.outcomeText = reason;
  draft.completedAt = now;
  return appendReceipt(turn, task, draft, null);
}

function blankDraft({ record }: TaskEntry, now: Millis): ReceiptDraft {
  const { spec } = record;
  const draft = receiptDraftOf(nothingSent);
  draft.tenant = record.tenant;
  draft.taskId = record.id;
  draft.recipientAi = spec.principalAi;
  draft.sourceSystem = ownSource;
  draft.storedAt = now;
  draft.parentTaskId = spec.parentTaskId;
  draft.causedByReceiptId = record.lastReceiptId;
  draft.attempt = record.attempts;
  draft.forPrincipal = spec.principalAi;
  draft.taskType = spec.taskType;
  draft.taskSummary = spec.taskSummary ?? spec.taskType;
  draft.expectedOutcomeKind = spec.expectedOutcomeKind;
  draft.expectedArtifactMime = spec.expectedArtifactMime;
  draft.createdAt = now;
  return draft;
}

const nothingSent = blank(receiptInput);
