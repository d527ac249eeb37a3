/** A typical receipt of a worker, for tests and measurements. */
import type { Receipt } from "../kernel/contract/task-records.ts";

export function sampleReceipt(sequence: number, other: Partial<Receipt> = {}): Receipt {
  const task = Math.ceil(sequence / 2);
  const taskId = `T-${String(task).padStart(10, "0")}0123456789ab`;
  const isFirst = sequence % 2 === 1;
  const storedAt = 1_800_000_000_000 + Math.floor(sequence / 20);
  return {
    tenant: "default",
    sequence,
    id: `rcp_${sequence.toString(32).padStart(10, "0")}`,
    taskId,
    obligationId: `obl_${taskId.slice(2)}-1`,
    storedAt,
    phase: isFirst ? "accepted" : "complete",
    parentTaskId: null,
    causedByReceiptId: isFirst ? null : `rcp_${(sequence - 1).toString(32).padStart(10, "0")}`,
    dedupeKey: `${taskId}:${isFirst ? "accepted" : "complete"}`,
    attempt: 1,
    fromPrincipal: `code.${sequence % 50}`,
    forPrincipal: "planner",
    sourceSystem: `code.${sequence % 50}`,
    recipientAi: "planner",
    trustDomain: null,
    status: isFirst ? null : "success",
    realtime: false,
    taskType: "code.review",
    taskSummary: "Review the change to the parser",
    taskBody: null,
    inputs: null,
    expectedOutcomeKind: "response_text",
    expectedArtifactMime: null,
    outcomeKind: isFirst ? null : "response_text",
    outcomeText: isFirst ? null : "Nothing is wrong with it; two names could be clearer.",
    artifactLocation: null,
    artifactPointer: null,
    artifactChecksum: null,
    artifactSizeBytes: 0,
    artifactMime: null,
    artifactRefs: null,
    escalationClass: null,
    escalationReason: null,
    escalationTo: null,
    retryRequested: false,
    body: null,
    createdAt: storedAt,
    startedAt: isFirst ? null : storedAt - 5_000,
    completedAt: isFirst ? null : storedAt,
    readAt: null,
    archivedAt: null,
    metadata: null,
    ...other,
  };
}
