/** What can be asked of the kernel about tasks, workers and receipts. */
import type { Asked, IntentInput } from "./commands.ts";
import type { TaskStatus } from "./task-records.ts";

export interface TaskInput {
  readonly taskType: string;
  readonly principalAi: string;
  readonly taskSummary: string | null;
  readonly taskBody: string | null;
  readonly payloadPointer: string | null;
  readonly inputs: unknown;
  readonly expectedOutcomeKind: string | null;
  readonly expectedArtifactMime: string | null;
  readonly taskPriority: number | null;
  readonly requires: readonly string[] | null;
  readonly intents: readonly IntentInput[] | null;
  readonly delayMs: number | null;
  readonly maxAttempts: number | null;
  readonly maxOffers: number | null;
  readonly leaseDurationMs: number | null;
  readonly requeueDelayMs: number | null;
  readonly dependsOn: readonly string[] | null;
  readonly concurrencyKey: string | null;
  readonly concurrencyLimit: number | null;
  readonly speculative: boolean | null;
  readonly preemptible: boolean | null;
  readonly parentTaskId: string | null;
  readonly idempotencyKey: string | null;
}

export interface CreateTask extends Asked {
  readonly type: "create_task";
  readonly task: TaskInput;
  /**
   * How the tasks ended that it depends on and that the kernel does not know: it first answers `dependency_unknown`
   * with their ids, whoever runs it looks them up in history and asks again. Ended is final, so this cannot race.
   */
  readonly endedDependencies: Readonly<Record<string, TaskStatus>> | null;
}
export interface CancelTask extends Asked {
  readonly type: "cancel_task";
  readonly taskId: string;
  readonly reason: string | null;
}
/** Out of the dead letters, with all its attempts again. */
export interface RedriveTask extends Asked {
  readonly type: "redrive_task";
  readonly taskId: string;
}
export interface PollTasks extends Asked {
  readonly type: "poll_tasks";
  readonly workerId: string;
  /** Null: as it said before. */
  readonly capabilities: readonly string[] | null;
  readonly maxTasks: number;
  readonly preferredKinds: readonly string[] | null;
  /** Unlike what it prefers, this is kept: tasks of other types are not offered. Null or absent: of any type. */
  readonly acceptTypes?: readonly string[] | null;
  readonly requestKey: string | null;
  readonly reclaim: boolean;
}
export interface HeartbeatTask extends Asked {
  readonly type: "heartbeat_task";
  readonly leaseId: string;
  /** Undefined: nothing was said of it. */
  readonly progress: unknown;
}
/** Gives an offer back, or an accepted task (a drain). */
export interface ReleaseTask extends Asked {
  readonly type: "release_task";
  readonly leaseId: string;
}
export interface SetTaskType extends Asked {
  readonly type: "set_task_type";
  readonly taskType: string;
  readonly settings: {
    readonly leaseDurationMs?: number | null;
    readonly maxAttempts?: number | null;
    readonly maxOffers?: number | null;
    readonly requeueDelayMs?: number | null;
    readonly speculateShare?: number | null;
  };
}

/** A receipt as it was sent: null is left out (NA, TBD and the other marks of absence are turned into it at the edge). */
export interface ReceiptInput {
  readonly phase: string;
  readonly taskId: string | null;
  /** Names the attempt: the lease, or the task together with a fence or with the worker in `sourceSystem` (R2). */
  readonly leaseId: string | null;
  readonly fence: number | null;
  readonly receiptId: string | null;
  readonly tenantId: string | null;
  readonly obligationId: string | null;
  readonly parentTaskId: string | null;
  readonly causedByReceiptId: string | null;
  readonly dedupeKey: string | null;
  readonly attempt: number | null;
  readonly fromPrincipal: string | null;
  readonly forPrincipal: string | null;
  readonly sourceSystem: string | null;
  readonly recipientAi: string | null;
  readonly trustDomain: string | null;
  readonly status: string | null;
  readonly realtime: boolean | null;
  readonly taskType: string | null;
  readonly taskSummary: string | null;
  readonly taskBody: string | null;
  readonly inputs: unknown;
  readonly expectedOutcomeKind: string | null;
  readonly expectedArtifactMime: string | null;
  readonly outcomeKind: string | null;
  readonly outcomeText: string | null;
  readonly artifactLocation: string | null;
  readonly artifactPointer: string | null;
  readonly artifactChecksum: string | null;
  readonly artifactSizeBytes: number | null;
  readonly artifactMime: string | null;
  readonly artifactRefs: unknown;
  readonly escalationClass: string | null;
  readonly escalationReason: string | null;
  readonly escalationTo: string | null;
  readonly retryRequested: boolean | null;
  readonly body: unknown;
  readonly createdAt: number | null;
  readonly startedAt: number | null;
  readonly completedAt: number | null;
  readonly readAt: number | null;
  readonly archivedAt: number | null;
  readonly metadata: unknown;
}

export interface SubmitReceipt extends Asked {
  readonly type: "submit_receipt";
  readonly receipt: ReceiptInput;
}

export type TaskCommand =
  | CreateTask
  | CancelTask
  | RedriveTask
  | PollTasks
  | HeartbeatTask
  | ReleaseTask
  | SetTaskType
  | SubmitReceipt;
