/** Written by scripts/generate.ts from the descriptions beside it. Run `npm run generate` to write it again. */
import { exceedsBytes, exceedsCharacters, jsonExceedsBytes, outOfBounds } from "./bounds.ts";
import { type Acquire, commands, type DigestInput, digestInput } from "./commands.ts";
import { receiptInput, taskInput, taskTypeSettings } from "./inputs.ts";
import type { Refusal } from "./refusals.ts";
import { type PollTasks, type ReceiptInput, type SetTaskType, type TaskInput, taskCommands } from "./task-commands.ts";
import type { ReceiptDraft, TaskSpec, taskDecided } from "./task-records.ts";

export function checkTask(input: TaskInput): Refusal | null {
  if (input.taskType.length === 0 || exceedsCharacters(input.taskType, 128) || input.taskType.includes("\n"))
    return outOfBounds("task_type", taskInput.taskType);
  if (input.principalAi.length === 0 || exceedsCharacters(input.principalAi, 128))
    return outOfBounds("principal_ai", taskInput.principalAi);
  if (input.taskSummary !== null && exceedsCharacters(input.taskSummary, 4096))
    return outOfBounds("task_summary", taskInput.taskSummary);
  if (input.taskBody !== null && exceedsBytes(input.taskBody, 102400))
    return outOfBounds("task_body", taskInput.taskBody);
  if (
    input.payloadPointer !== null &&
    (input.payloadPointer.length === 0 || exceedsCharacters(input.payloadPointer, 4096))
  )
    return outOfBounds("payload_pointer", taskInput.payloadPointer);
  if (jsonExceedsBytes(input.inputs, 65536)) return outOfBounds("inputs", taskInput.inputs);
  if (
    input.expectedOutcomeKind !== null &&
    (input.expectedOutcomeKind.length === 0 || exceedsCharacters(input.expectedOutcomeKind, 256))
  )
    return outOfBounds("expected_outcome_kind", taskInput.expectedOutcomeKind);
  if (
    input.expectedArtifactMime !== null &&
    (input.expectedArtifactMime.length === 0 || exceedsCharacters(input.expectedArtifactMime, 256))
  )
    return outOfBounds("expected_artifact_mime", taskInput.expectedArtifactMime);
  if (
    input.taskPriority !== null &&
    (!Number.isSafeInteger(input.taskPriority) || input.taskPriority < -1000 || input.taskPriority > 1000)
  )
    return outOfBounds("task_priority", taskInput.taskPriority);
  if (input.requires !== null && input.requires.length > 32) return outOfBounds("requires", taskInput.requires);
  if (input.requires !== null) {
    for (let at = 0; at < input.requires.length; at++) {
      const item = input.requires[at] ?? "";
      if (item.length === 0 || exceedsCharacters(item, 128) || item.includes("\n"))
        return outOfBounds(`requires.${at}`, taskInput.requires.items ?? taskInput.requires);
    }
  }
  if (
    input.delayMs !== null &&
    (!Number.isSafeInteger(input.delayMs) || input.delayMs < 0 || input.delayMs > 31622400000)
  )
    return outOfBounds("delay_ms", taskInput.delayMs);
  if (
    input.maxAttempts !== null &&
    (!Number.isSafeInteger(input.maxAttempts) || input.maxAttempts < 1 || input.maxAttempts > 1000)
  )
    return outOfBounds("max_attempts", taskInput.maxAttempts);
  if (
    input.maxOffers !== null &&
    (!Number.isSafeInteger(input.maxOffers) || input.maxOffers < 1 || input.maxOffers > 10000)
  )
    return outOfBounds("max_offers", taskInput.maxOffers);
  if (input.leaseDurationMs !== null && (!Number.isSafeInteger(input.leaseDurationMs) || input.leaseDurationMs < 100))
    return outOfBounds("lease_duration_ms", taskInput.leaseDurationMs);
  if (
    input.requeueDelayMs !== null &&
    (!Number.isSafeInteger(input.requeueDelayMs) || input.requeueDelayMs < 0 || input.requeueDelayMs > 31622400000)
  )
    return outOfBounds("requeue_delay_ms", taskInput.requeueDelayMs);
  if (input.dependsOn !== null && input.dependsOn.length > 256) return outOfBounds("depends_on", taskInput.dependsOn);
  if (input.dependsOn !== null) {
    for (let at = 0; at < input.dependsOn.length; at++) {
      const item = input.dependsOn[at] ?? "";
      if (item.length === 0 || exceedsCharacters(item, 128))
        return outOfBounds(`depends_on.${at}`, taskInput.dependsOn.items ?? taskInput.dependsOn);
    }
  }
  if (
    input.concurrencyKey !== null &&
    (input.concurrencyKey.length === 0 || exceedsCharacters(input.concurrencyKey, 256))
  )
    return outOfBounds("concurrency_key", taskInput.concurrencyKey);
  if (
    input.concurrencyLimit !== null &&
    (!Number.isSafeInteger(input.concurrencyLimit) || input.concurrencyLimit < 1 || input.concurrencyLimit > 1000000)
  )
    return outOfBounds("concurrency_limit", taskInput.concurrencyLimit);
  if (input.parentTaskId !== null && (input.parentTaskId.length === 0 || exceedsCharacters(input.parentTaskId, 128)))
    return outOfBounds("parent_task_id", taskInput.parentTaskId);
  if (
    input.idempotencyKey !== null &&
    (input.idempotencyKey.length === 0 || exceedsCharacters(input.idempotencyKey, 256))
  )
    return outOfBounds("idempotency_key", taskInput.idempotencyKey);
  if (input.supervisor !== null && (input.supervisor.length === 0 || exceedsCharacters(input.supervisor, 256)))
    return outOfBounds("supervisor", taskInput.supervisor);
  if (input.traceparent !== null && exceedsCharacters(input.traceparent, 55))
    return outOfBounds("traceparent", taskInput.traceparent);
  return null;
}

export function checkTaskTypeSettings(input: SetTaskType["settings"]): Refusal | null {
  if (
    input.leaseDurationMs !== null &&
    input.leaseDurationMs !== undefined &&
    (!Number.isSafeInteger(input.leaseDurationMs) || input.leaseDurationMs < 100)
  )
    return outOfBounds("lease_duration_ms", taskTypeSettings.leaseDurationMs);
  if (
    input.maxAttempts !== null &&
    input.maxAttempts !== undefined &&
    (!Number.isSafeInteger(input.maxAttempts) || input.maxAttempts < 1 || input.maxAttempts > 1000)
  )
    return outOfBounds("max_attempts", taskTypeSettings.maxAttempts);
  if (
    input.maxOffers !== null &&
    input.maxOffers !== undefined &&
    (!Number.isSafeInteger(input.maxOffers) || input.maxOffers < 1 || input.maxOffers > 10000)
  )
    return outOfBounds("max_offers", taskTypeSettings.maxOffers);
  if (
    input.requeueDelayMs !== null &&
    input.requeueDelayMs !== undefined &&
    (!Number.isSafeInteger(input.requeueDelayMs) || input.requeueDelayMs < 0 || input.requeueDelayMs > 31622400000)
  )
    return outOfBounds("requeue_delay_ms", taskTypeSettings.requeueDelayMs);
  if (
    input.speculateShare !== null &&
    input.speculateShare !== undefined &&
    !(input.speculateShare >= 0.001 && input.speculateShare <= 1000)
  )
    return outOfBounds("speculate_share", taskTypeSettings.speculateShare);
  if (
    input.supervisor !== null &&
    input.supervisor !== undefined &&
    (input.supervisor.length === 0 || exceedsCharacters(input.supervisor, 256))
  )
    return outOfBounds("supervisor", taskTypeSettings.supervisor);
  return null;
}

export function checkTaskType(input: Pick<SetTaskType, "taskType">): Refusal | null {
  if (input.taskType.length === 0 || exceedsCharacters(input.taskType, 128) || input.taskType.includes("\n"))
    return outOfBounds("task_type", taskInput.taskType);
  return null;
}

export function checkPoll(input: PollTasks): Refusal | null {
  if (input.capabilities !== null && input.capabilities !== undefined && input.capabilities.length > 256)
    return outOfBounds("capabilities", taskCommands.poll_tasks.capabilities);
  if (input.capabilities !== null && input.capabilities !== undefined) {
    for (let at = 0; at < input.capabilities.length; at++) {
      const item = input.capabilities[at] ?? "";
      if (item.length === 0 || exceedsCharacters(item, 128) || item.includes("\n"))
        return outOfBounds(
          `capabilities.${at}`,
          taskCommands.poll_tasks.capabilities.items ?? taskCommands.poll_tasks.capabilities,
        );
    }
  }
  if (
    input.maxTasks !== null &&
    input.maxTasks !== undefined &&
    (!Number.isSafeInteger(input.maxTasks) || input.maxTasks < 1 || input.maxTasks > 1000)
  )
    return outOfBounds("max_tasks", taskCommands.poll_tasks.maxTasks);
  if (input.preferredKinds !== null && input.preferredKinds !== undefined && input.preferredKinds.length > 32)
    return outOfBounds("preferred_kinds", taskCommands.poll_tasks.preferredKinds);
  if (input.preferredKinds !== null && input.preferredKinds !== undefined) {
    for (let at = 0; at < input.preferredKinds.length; at++) {
      const item = input.preferredKinds[at] ?? "";
      if (item.length === 0 || exceedsCharacters(item, 128) || item.includes("\n"))
        return outOfBounds(
          `preferred_kinds.${at}`,
          taskCommands.poll_tasks.preferredKinds.items ?? taskCommands.poll_tasks.preferredKinds,
        );
    }
  }
  if (
    input.acceptTypes !== null &&
    input.acceptTypes !== undefined &&
    (input.acceptTypes.length < 1 || input.acceptTypes.length > 32)
  )
    return outOfBounds("accept_types", taskCommands.poll_tasks.acceptTypes);
  if (input.acceptTypes !== null && input.acceptTypes !== undefined) {
    for (let at = 0; at < input.acceptTypes.length; at++) {
      const item = input.acceptTypes[at] ?? "";
      if (item.length === 0 || exceedsCharacters(item, 128) || item.includes("\n"))
        return outOfBounds(
          `accept_types.${at}`,
          taskCommands.poll_tasks.acceptTypes.items ?? taskCommands.poll_tasks.acceptTypes,
        );
    }
  }
  if (
    input.requestKey !== null &&
    input.requestKey !== undefined &&
    (input.requestKey.length === 0 || exceedsCharacters(input.requestKey, 256))
  )
    return outOfBounds("request_id", taskCommands.poll_tasks.requestKey);
  return null;
}

export function checkReceipt(input: ReceiptInput): Refusal | null {
  if (input.phase.length === 0 || exceedsCharacters(input.phase, 256)) return outOfBounds("phase", receiptInput.phase);
  if (input.taskId !== null && (input.taskId.length === 0 || exceedsCharacters(input.taskId, 128)))
    return outOfBounds("task_id", receiptInput.taskId);
  if (input.leaseId !== null && (input.leaseId.length === 0 || exceedsCharacters(input.leaseId, 128)))
    return outOfBounds("lease_id", receiptInput.leaseId);
  if (input.fence !== null && (!Number.isSafeInteger(input.fence) || input.fence < 0))
    return outOfBounds("fence", receiptInput.fence);
  if (input.receiptId !== null && (input.receiptId.length === 0 || exceedsCharacters(input.receiptId, 128)))
    return outOfBounds("receipt_id", receiptInput.receiptId);
  if (input.tenantId !== null && (input.tenantId.length === 0 || exceedsCharacters(input.tenantId, 256)))
    return outOfBounds("tenant_id", receiptInput.tenantId);
  if (input.obligationId !== null && (input.obligationId.length === 0 || exceedsCharacters(input.obligationId, 128)))
    return outOfBounds("obligation_id", receiptInput.obligationId);
  if (input.parentTaskId !== null && (input.parentTaskId.length === 0 || exceedsCharacters(input.parentTaskId, 128)))
    return outOfBounds("parent_task_id", receiptInput.parentTaskId);
  if (
    input.causedByReceiptId !== null &&
    (input.causedByReceiptId.length === 0 || exceedsCharacters(input.causedByReceiptId, 128))
  )
    return outOfBounds("caused_by_receipt_id", receiptInput.causedByReceiptId);
  if (input.dedupeKey !== null && (input.dedupeKey.length === 0 || exceedsCharacters(input.dedupeKey, 256)))
    return outOfBounds("dedupe_key", receiptInput.dedupeKey);
  if (input.attempt !== null && (!Number.isSafeInteger(input.attempt) || input.attempt < 1))
    return outOfBounds("attempt", receiptInput.attempt);
  if (input.fromPrincipal !== null && (input.fromPrincipal.length === 0 || exceedsCharacters(input.fromPrincipal, 256)))
    return outOfBounds("from_principal", receiptInput.fromPrincipal);
  if (input.forPrincipal !== null && (input.forPrincipal.length === 0 || exceedsCharacters(input.forPrincipal, 256)))
    return outOfBounds("for_principal", receiptInput.forPrincipal);
  if (input.sourceSystem !== null && (input.sourceSystem.length === 0 || exceedsCharacters(input.sourceSystem, 256)))
    return outOfBounds("source_system", receiptInput.sourceSystem);
  if (input.recipientAi !== null && (input.recipientAi.length === 0 || exceedsCharacters(input.recipientAi, 256)))
    return outOfBounds("recipient_ai", receiptInput.recipientAi);
  if (input.trustDomain !== null && (input.trustDomain.length === 0 || exceedsCharacters(input.trustDomain, 256)))
    return outOfBounds("trust_domain", receiptInput.trustDomain);
  if (input.status !== null && (input.status.length === 0 || exceedsCharacters(input.status, 256)))
    return outOfBounds("status", receiptInput.status);
  if (input.taskType !== null && (input.taskType.length === 0 || exceedsCharacters(input.taskType, 256)))
    return outOfBounds("task_type", receiptInput.taskType);
  if (input.taskSummary !== null && (input.taskSummary.length === 0 || exceedsCharacters(input.taskSummary, 4096)))
    return outOfBounds("task_summary", receiptInput.taskSummary);
  if (input.taskBody !== null && (input.taskBody.length === 0 || exceedsBytes(input.taskBody, 102400)))
    return outOfBounds("task_body", receiptInput.taskBody);
  if (jsonExceedsBytes(input.inputs, 65536)) return outOfBounds("inputs", receiptInput.inputs);
  if (
    input.expectedOutcomeKind !== null &&
    (input.expectedOutcomeKind.length === 0 || exceedsCharacters(input.expectedOutcomeKind, 256))
  )
    return outOfBounds("expected_outcome_kind", receiptInput.expectedOutcomeKind);
  if (
    input.expectedArtifactMime !== null &&
    (input.expectedArtifactMime.length === 0 || exceedsCharacters(input.expectedArtifactMime, 256))
  )
    return outOfBounds("expected_artifact_mime", receiptInput.expectedArtifactMime);
  if (input.outcomeKind !== null && (input.outcomeKind.length === 0 || exceedsCharacters(input.outcomeKind, 256)))
    return outOfBounds("outcome_kind", receiptInput.outcomeKind);
  if (input.outcomeText !== null && (input.outcomeText.length === 0 || exceedsBytes(input.outcomeText, 102400)))
    return outOfBounds("outcome_text", receiptInput.outcomeText);
  if (
    input.artifactLocation !== null &&
    (input.artifactLocation.length === 0 || exceedsCharacters(input.artifactLocation, 4096))
  )
    return outOfBounds("artifact_location", receiptInput.artifactLocation);
  if (
    input.artifactPointer !== null &&
    (input.artifactPointer.length === 0 || exceedsCharacters(input.artifactPointer, 4096))
  )
    return outOfBounds("artifact_pointer", receiptInput.artifactPointer);
  if (
    input.artifactChecksum !== null &&
    (input.artifactChecksum.length === 0 || exceedsCharacters(input.artifactChecksum, 256))
  )
    return outOfBounds("artifact_checksum", receiptInput.artifactChecksum);
  if (
    input.artifactSizeBytes !== null &&
    (!Number.isSafeInteger(input.artifactSizeBytes) || input.artifactSizeBytes < 0)
  )
    return outOfBounds("artifact_size_bytes", receiptInput.artifactSizeBytes);
  if (input.artifactMime !== null && (input.artifactMime.length === 0 || exceedsCharacters(input.artifactMime, 256)))
    return outOfBounds("artifact_mime", receiptInput.artifactMime);
  if (jsonExceedsBytes(input.artifactRefs, 16384)) return outOfBounds("artifact_refs", receiptInput.artifactRefs);
  if (
    input.escalationClass !== null &&
    (input.escalationClass.length === 0 || exceedsCharacters(input.escalationClass, 256))
  )
    return outOfBounds("escalation_class", receiptInput.escalationClass);
  if (
    input.escalationReason !== null &&
    (input.escalationReason.length === 0 || exceedsCharacters(input.escalationReason, 4096))
  )
    return outOfBounds("escalation_reason", receiptInput.escalationReason);
  if (input.escalationTo !== null && (input.escalationTo.length === 0 || exceedsCharacters(input.escalationTo, 256)))
    return outOfBounds("escalation_to", receiptInput.escalationTo);
  if (jsonExceedsBytes(input.body, 102400)) return outOfBounds("body", receiptInput.body);
  if (jsonExceedsBytes(input.metadata, 16384)) return outOfBounds("metadata", receiptInput.metadata);
  return null;
}

export function checkDigest(input: DigestInput): Refusal | null {
  if (input.checkpointId.length === 0 || exceedsCharacters(input.checkpointId, 256))
    return outOfBounds("checkpoint_id", digestInput.checkpointId);
  if (input.resumePoint.length === 0 || exceedsCharacters(input.resumePoint, 256))
    return outOfBounds("resume_point", digestInput.resumePoint);
  if (jsonExceedsBytes(input.context, 262144)) return outOfBounds("context", digestInput.context);
  if (input.intentBacklog !== null && input.intentBacklog.length > 256)
    return outOfBounds("intent_backlog", digestInput.intentBacklog);
  if (
    input.resolutionStrategy !== null &&
    input.resolutionStrategy !== "RETRY" &&
    input.resolutionStrategy !== "ABORT" &&
    input.resolutionStrategy !== "MERGE"
  )
    return outOfBounds("resolution_strategy", digestInput.resolutionStrategy);
  if (input.assumptions !== null && input.assumptions.length > 1024)
    return outOfBounds("assumptions", digestInput.assumptions);
  return null;
}

export function checkTerms(input: Acquire): Refusal | null {
  if (input.ttlMs !== null && (!Number.isSafeInteger(input.ttlMs) || input.ttlMs < 100))
    return outOfBounds("ttl_ms", commands.acquire.ttlMs);
  if (input.waitTimeoutMs !== null && (!Number.isSafeInteger(input.waitTimeoutMs) || input.waitTimeoutMs < 0))
    return outOfBounds("wait_timeout_ms", commands.acquire.waitTimeoutMs);
  if (
    input.standbyMs !== null &&
    (!Number.isSafeInteger(input.standbyMs) || input.standbyMs < 0 || input.standbyMs > 55000)
  )
    return outOfBounds("standby_ms", commands.acquire.standbyMs);
  if (input.idleTimeoutMs !== null && (!Number.isSafeInteger(input.idleTimeoutMs) || input.idleTimeoutMs < 100))
    return outOfBounds("idle_timeout_ms", commands.acquire.idleTimeoutMs);
  if (input.purpose !== null && exceedsCharacters(input.purpose, 1024))
    return outOfBounds("purpose", commands.acquire.purpose);
  if (input.requestKey !== null && (input.requestKey.length === 0 || exceedsCharacters(input.requestKey, 256)))
    return outOfBounds("request_id", commands.acquire.requestKey);
  return null;
}

/** The spec of a task: what a rule decides, and the rest as it was given. */
export function taskSpecOf(input: TaskInput, decided: Pick<TaskSpec, (typeof taskDecided)[number]>): TaskSpec {
  return {
    taskType: input.taskType,
    principalAi: input.principalAi,
    taskSummary: input.taskSummary,
    payloadPointer: input.payloadPointer,
    expectedOutcomeKind: input.expectedOutcomeKind,
    expectedArtifactMime: input.expectedArtifactMime,
    taskPriority: input.taskPriority ?? 0,
    requires: decided.requires,
    intents: decided.intents,
    maxAttempts: decided.maxAttempts,
    maxOffers: decided.maxOffers,
    leaseDurationMs: decided.leaseDurationMs,
    requeueDelayMs: decided.requeueDelayMs,
    dependsOn: decided.dependsOn,
    concurrencyKey: input.concurrencyKey,
    concurrencyLimit: input.concurrencyLimit ?? 1,
    speculative: input.speculative ?? false,
    preemptible: input.preemptible ?? false,
    parentTaskId: input.parentTaskId,
    idempotencyKey: input.idempotencyKey,
    supervisor: input.supervisor,
    traceparent: input.traceparent,
  };
}

/** A receipt with what was sent; the rules fill in the rest. */
export function receiptDraftOf(input: ReceiptInput): ReceiptDraft {
  return {
    sequence: 0,
    tenant: "",
    id: "",
    taskId: input.taskId ?? "",
    phase: "progress",
    recipientAi: input.recipientAi ?? "",
    sourceSystem: input.sourceSystem ?? "",
    dedupeKey: input.dedupeKey,
    storedAt: 0,
    obligationId: input.obligationId,
    parentTaskId: input.parentTaskId,
    causedByReceiptId: input.causedByReceiptId,
    attempt: input.attempt ?? 0,
    fromPrincipal: input.fromPrincipal,
    forPrincipal: input.forPrincipal,
    trustDomain: input.trustDomain,
    status: null,
    realtime: input.realtime ?? false,
    taskType: input.taskType ?? "",
    taskSummary: input.taskSummary,
    taskBody: input.taskBody,
    inputs: input.inputs ?? null,
    expectedOutcomeKind: input.expectedOutcomeKind,
    expectedArtifactMime: input.expectedArtifactMime,
    outcomeKind: null,
    outcomeText: input.outcomeText,
    artifactLocation: input.artifactLocation,
    artifactPointer: input.artifactPointer,
    artifactChecksum: input.artifactChecksum,
    artifactSizeBytes: input.artifactSizeBytes ?? 0,
    artifactMime: input.artifactMime,
    artifactRefs: input.artifactRefs ?? null,
    escalationClass: null,
    escalationReason: input.escalationReason,
    escalationTo: input.escalationTo,
    retryRequested: input.retryRequested ?? false,
    body: input.body ?? null,
    createdAt: input.createdAt ?? 0,
    startedAt: input.startedAt,
    completedAt: input.completedAt,
    readAt: input.readAt,
    archivedAt: input.archivedAt,
    metadata: input.metadata ?? null,
    submittedBy: null,
  };
}
