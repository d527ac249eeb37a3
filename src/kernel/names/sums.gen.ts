/** Written by scripts/generate.ts from src/kernel/contract. Run `npm run generate` to write it again. */
import type { ReceiptInput, TaskInput } from "../contract/task-commands.ts";
import { sum } from "./sum.ts";

export function sumTask(input: TaskInput): void {
  sum.field("taskType=", input.taskType);
  sum.field("principalAi=", input.principalAi);
  sum.field("taskSummary=", input.taskSummary);
  sum.field("taskBody=", input.taskBody);
  sum.field("payloadPointer=", input.payloadPointer);
  sum.field("inputs=", input.inputs);
  sum.field("expectedOutcomeKind=", input.expectedOutcomeKind);
  sum.field("expectedArtifactMime=", input.expectedArtifactMime);
  sum.field("taskPriority=", input.taskPriority);
  sum.field("requires=", input.requires);
  sum.field("delayMs=", input.delayMs);
  sum.field("maxAttempts=", input.maxAttempts);
  sum.field("maxOffers=", input.maxOffers);
  sum.field("leaseDurationMs=", input.leaseDurationMs);
  sum.field("requeueDelayMs=", input.requeueDelayMs);
  sum.field("dependsOn=", input.dependsOn);
  sum.field("concurrencyKey=", input.concurrencyKey);
  sum.field("concurrencyLimit=", input.concurrencyLimit);
  sum.field("speculative=", input.speculative);
  sum.field("preemptible=", input.preemptible);
  sum.field("parentTaskId=", input.parentTaskId);
  sum.field("idempotencyKey=", input.idempotencyKey);
  sum.field("supervisor=", input.supervisor);
}

export function sumIntent(input: NonNullable<TaskInput["intents"]>[number]): void {
  sum.field("predicate=", input.predicate);
  sum.field("resource=", input.resource);
  sum.field("units=", input.units);
  sum.field("to=", input.to);
  sum.field("pick=", input.pick);
}

/** How the attempt was named is not part of what a receipt says. */
export function sumReceipt(input: ReceiptInput): void {
  sum.field("phase=", input.phase);
  sum.field("taskId=", input.taskId);
  sum.field("receiptId=", input.receiptId);
  sum.field("tenantId=", input.tenantId);
  sum.field("obligationId=", input.obligationId);
  sum.field("parentTaskId=", input.parentTaskId);
  sum.field("causedByReceiptId=", input.causedByReceiptId);
  sum.field("dedupeKey=", input.dedupeKey);
  sum.field("attempt=", input.attempt);
  sum.field("fromPrincipal=", input.fromPrincipal);
  sum.field("forPrincipal=", input.forPrincipal);
  sum.field("sourceSystem=", input.sourceSystem);
  sum.field("recipientAi=", input.recipientAi);
  sum.field("trustDomain=", input.trustDomain);
  sum.field("status=", input.status);
  sum.field("realtime=", input.realtime);
  sum.field("taskType=", input.taskType);
  sum.field("taskSummary=", input.taskSummary);
  sum.field("taskBody=", input.taskBody);
  sum.field("inputs=", input.inputs);
  sum.field("expectedOutcomeKind=", input.expectedOutcomeKind);
  sum.field("expectedArtifactMime=", input.expectedArtifactMime);
  sum.field("outcomeKind=", input.outcomeKind);
  sum.field("outcomeText=", input.outcomeText);
  sum.field("artifactLocation=", input.artifactLocation);
  sum.field("artifactPointer=", input.artifactPointer);
  sum.field("artifactChecksum=", input.artifactChecksum);
  sum.field("artifactSizeBytes=", input.artifactSizeBytes);
  sum.field("artifactMime=", input.artifactMime);
  sum.field("artifactRefs=", input.artifactRefs);
  sum.field("escalationClass=", input.escalationClass);
  sum.field("escalationReason=", input.escalationReason);
  sum.field("escalationTo=", input.escalationTo);
  sum.field("retryRequested=", input.retryRequested);
  sum.field("body=", input.body);
  sum.field("createdAt=", input.createdAt);
  sum.field("startedAt=", input.startedAt);
  sum.field("completedAt=", input.completedAt);
  sum.field("readAt=", input.readAt);
  sum.field("archivedAt=", input.archivedAt);
  sum.field("metadata=", input.metadata);
}
