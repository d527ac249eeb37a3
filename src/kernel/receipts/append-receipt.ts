/** What the kernel adds to the ledger (R1): receipts of workers, and those that the rules call for by themselves (T5). */

import { blank } from "../contract/field.ts";
import { receiptInput } from "../contract/inputs.ts";
import type { Receipt, ReceiptDraft, ReceiptPhase, TaskAttempt } from "../contract/task-records.ts";
import { emit, type Turn, updateCounters } from "../memory/state.ts";
import { type TaskEntry, updateTask } from "../memory/task-state.ts";
import { contentOf, ownIdPrefix } from "./receipt-content.ts";

/** `source_system` of receipts written by the control plane. */
export const ownSource = "leasehold";

/** The next one of the tenant's chain. */
export function appendReceipt(turn: Turn, task: TaskEntry, draft: ReceiptDraft, givenId: string | null): Receipt {
  const { state, tenant, now } = turn;
  const sequence = tenant.counters.record.receipts + 1;
  updateCounters(turn, { receipts: sequence });
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
  const draft = ownDraft(turn, task, "escalate");
  draft.causedByReceiptId = attempt?.receiptId ?? task.record.lastReceiptId;
  draft.fromPrincipal = attempt?.workerId ?? null;
  draft.escalationClass = "policy";
  draft.escalationReason = reason;
  draft.escalationTo = principalAi;
  return appendReceipt(turn, task, draft, null);
}

/** T13: the principal called the task off while somebody was bound to it. */
export function canceledReceipt(turn: Turn, task: TaskEntry, reason: string | null) {
  const draft = ownDraft(turn, task, "complete");
  draft.status = "canceled";
  draft.outcomeKind = reason === null ? "none" : "response_text";
  draft.outcomeText = reason;
  draft.completedAt = turn.now;
  return appendReceipt(turn, task, draft, null);
}

/** Without the payload, which a worker's receipts repeat. */
function ownDraft({ now }: Turn, { record }: TaskEntry, phase: ReceiptPhase): ReceiptDraft {
  const { attempts: attempt, lastReceiptId: causedByReceiptId, spec } = record;
  const sender = { workerId: ownSource, attempt, startedAt: null, causedByReceiptId };
  return contentOf(nothingSent, phase, { record, payload: null }, sender, spec.principalAi, now);
}

const nothingSent = blank(receiptInput);
