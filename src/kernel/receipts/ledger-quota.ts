/**
 * R8: how much of the ledger a tenant may use. Nothing is ever taken out of a ledger (R1), so what is counted only
 * grows. A full quota refuses what begins something, and what only reports: what was accepted can still be completed or
 * escalated, and what the rules write themselves is always written.
 */
import { type Refusal, refuse } from "../contract/refusals.ts";
import type { ReceiptDraft } from "../contract/task-records.ts";
import type { TenantEntry } from "../memory/state.ts";

/** What a receipt takes besides its long fields: member names, ids, times, hashes. */
const otherBytes = 1_024;

/** About what it takes as it is stored: an ASCII text, in which any other character is written with six. */
export function receiptSize(draft: ReceiptDraft): number {
  return (
    otherBytes +
    textSize(draft.taskSummary) +
    textSize(draft.taskBody) +
    jsonSize(draft.inputs) +
    textSize(draft.outcomeText) +
    textSize(draft.artifactLocation) +
    textSize(draft.artifactPointer) +
    jsonSize(draft.artifactRefs) +
    textSize(draft.escalationReason) +
    jsonSize(draft.body) +
    jsonSize(draft.metadata)
  );
}

function textSize(text: string | null): number {
  if (text === null) return 0;
  let size = text.length;
  for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) > 0x7e) size += 5;
  return size;
}

function jsonSize(value: unknown): number {
  return value === null || value === undefined ? 0 : textSize(JSON.stringify(value));
}

export function whyNotWithinLedger({ counters, record }: TenantEntry, draft: ReceiptDraft): Refusal | null {
  if (draft.phase === "complete" || draft.phase === "escalate") return null;
  const { receipts, receiptBytes } = counters.record;
  const { receiptsMax, receiptBytesMax } = record.quotas;
  if (receipts >= receiptsMax) return quotaExceeded("receipts_max", receipts, receiptsMax);
  if (receiptBytes + receiptSize(draft) <= receiptBytesMax) return null;
  return quotaExceeded("receipt_bytes_max", receiptBytes, receiptBytesMax);
}

export function quotaExceeded(quota: string, used: number, limit: number): Refusal {
  return refuse("quota_exceeded", `The tenant's quota ${quota} is used up; its operator can raise it.`, {
    quota,
    used,
    limit,
  });
}
