/** A typical receipt of a worker, for tests and measurements. */
import { blank } from "../kernel/contract/field.ts";
import { receiptDraftOf } from "../kernel/contract/inputs.gen.ts";
import { receiptInput } from "../kernel/contract/inputs.ts";
import type { Receipt } from "../kernel/contract/task-records.ts";

const nothingSent = receiptDraftOf(blank(receiptInput));

export function sampleReceipt(sequence: number, other: Partial<Receipt> = {}): Receipt {
  const task = Math.ceil(sequence / 2);
  const taskId = `T-${String(task).padStart(10, "0")}0123456789ab`;
  const isFirst = sequence % 2 === 1;
  const storedAt = 1_800_000_000_000 + Math.floor(sequence / 20);
  return {
    ...nothingSent,
    tenant: "default",
    sequence,
    id: `rcp_${sequence.toString(32).padStart(10, "0")}`,
    taskId,
    obligationId: `obl_${taskId.slice(2)}-1`,
    storedAt,
    phase: isFirst ? "accepted" : "complete",
    causedByReceiptId: isFirst ? null : `rcp_${(sequence - 1).toString(32).padStart(10, "0")}`,
    dedupeKey: `${taskId}:${isFirst ? "accepted" : "complete"}`,
    attempt: 1,
    fromPrincipal: `code.${sequence % 50}`,
    forPrincipal: "planner",
    sourceSystem: `code.${sequence % 50}`,
    recipientAi: "planner",
    status: isFirst ? null : "success",
    taskType: "code.review",
    taskSummary: "Review the change to the parser",
    expectedOutcomeKind: "response_text",
    outcomeKind: isFirst ? null : "response_text",
    outcomeText: isFirst ? null : "Nothing is wrong with it; two names could be clearer.",
    createdAt: storedAt,
    startedAt: isFirst ? null : storedAt - 5_000,
    completedAt: isFirst ? null : storedAt,
    ...other,
  };
}
