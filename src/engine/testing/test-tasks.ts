/** Tasks and receipts as an edge would ask for them, for tests of the engine. */
import type { Actor, Command } from "../../kernel/contract/commands.ts";
import type { ReceiptInput, TaskInput } from "../../kernel/contract/task-commands.ts";
import { drawEntropy } from "../entropy.ts";

const actor: Actor = { role: "operator", agentId: null, epoch: null };

function asked(tenant = "default") {
  return { tenant, actor, entropy: drawEntropy() };
}

export function createTask(task: Partial<TaskInput> = {}, tenant?: string): Command {
  const blank: TaskInput = {
    taskType: "code.review",
    principalAi: "planner",
    taskSummary: "Review the change",
    taskBody: null,
    payloadPointer: null,
    inputs: null,
    expectedOutcomeKind: null,
    expectedArtifactMime: null,
    taskPriority: null,
    requires: null,
    intents: null,
    delayMs: null,
    maxAttempts: null,
    maxOffers: null,
    leaseDurationMs: null,
    requeueDelayMs: null,
    dependsOn: null,
    concurrencyKey: null,
    concurrencyLimit: null,
    speculative: null,
    preemptible: null,
    parentTaskId: null,
    idempotencyKey: null,
  };
  return { ...asked(tenant), type: "create_task", task: { ...blank, ...task }, endedDependencies: null };
}

export function poll(workerId: string, maxTasks = 1, tenant?: string): Command {
  const wish = { capabilities: null, maxTasks, preferredKinds: null, requestKey: null, reclaim: false };
  return { ...asked(tenant), type: "poll_tasks", workerId, ...wish };
}

export function heartbeatTask(leaseId: string): Command {
  return { ...asked(), type: "heartbeat_task", leaseId, progress: undefined };
}

export function releaseTask(leaseId: string): Command {
  return { ...asked(), type: "release_task", leaseId };
}

export function submit(receipt: Partial<ReceiptInput> & Pick<ReceiptInput, "phase">, tenant?: string): Command {
  const blank: Omit<ReceiptInput, "phase"> = {
    taskId: null,
    leaseId: null,
    fence: null,
    receiptId: null,
    tenantId: null,
    obligationId: null,
    parentTaskId: null,
    causedByReceiptId: null,
    dedupeKey: null,
    attempt: null,
    fromPrincipal: null,
    forPrincipal: null,
    sourceSystem: null,
    recipientAi: null,
    trustDomain: null,
    status: null,
    realtime: null,
    taskType: null,
    taskSummary: null,
    taskBody: null,
    inputs: null,
    expectedOutcomeKind: null,
    expectedArtifactMime: null,
    outcomeKind: null,
    outcomeText: null,
    artifactLocation: null,
    artifactPointer: null,
    artifactChecksum: null,
    artifactSizeBytes: null,
    artifactMime: null,
    artifactRefs: null,
    escalationClass: null,
    escalationReason: null,
    escalationTo: null,
    retryRequested: null,
    body: null,
    createdAt: null,
    startedAt: null,
    completedAt: null,
    readAt: null,
    archivedAt: null,
    metadata: null,
  };
  return { ...asked(tenant), type: "submit_receipt", receipt: { ...blank, ...receipt } };
}
