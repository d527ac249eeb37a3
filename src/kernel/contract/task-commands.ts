/** Commands about tasks, workers and receipts. */
import type { CommandOf } from "./commands.ts";
import {
  choice,
  type Field,
  type Fields,
  flag,
  flat,
  given,
  hidden,
  type InputValues,
  integer,
  json,
  list,
  map,
  optional,
} from "./field.ts";
import {
  capability,
  leaseId,
  obligationId,
  principal,
  reason,
  receiptInput,
  requestKey,
  taskId,
  taskInput,
  taskType,
  taskTypeSettings,
  workerId,
} from "./inputs.ts";
import { limits } from "./limits.ts";
import { taskStatuses } from "./task-records.ts";

export interface TaskInput extends InputValues<typeof taskInput> {}
export interface ReceiptInput extends InputValues<typeof receiptInput> {}

/** What is missing stays as it was; over the wire all are set. */
const settings: Field<Partial<InputValues<typeof taskTypeSettings>>> = given(taskTypeSettings);

export const taskCommands = {
  create_task: {
    task: flat(given(taskInput)),
    /**
     * How the tasks ended that it depends on and that the kernel does not know: it first answers `dependency_unknown`
     * with their ids, the engine looks them up in history and asks again. Ended is final, so this cannot race.
     */
    endedDependencies: hidden(optional(map(choice(taskStatuses)))),
    /**
     * An idempotency key that no live task has, and that a task which has ended may have had, is answered with
     * `task_key_unknown`: history is asked before it is taken for a new one (T12).
     */
    asksHistory: hidden(optional(flag(), false)),
  },
  cancel_task: { taskId, reason: optional(reason) },
  /** Out of the dead letters, with all its attempts again. */
  redrive_task: { taskId },
  poll_tasks: {
    workerId,
    /** Null: those of the last poll. */
    capabilities: optional(list(capability, { max: limits.workerCapabilitiesMax, error: "invalid_task" })),
    maxTasks: optional(integer({ min: 1, max: limits.taskPollMax, error: "invalid_task" }), 1),
    preferredKinds: optional(list(taskType, { max: limits.taskPreferredMax, error: "invalid_task" })),
    /** Enforced, unlike what it prefers: tasks of other types are not offered. Null: of any type. */
    acceptTypes: optional(list(taskType, { min: 1, max: limits.taskPreferredMax, error: "invalid_task" })),
    requestKey,
    reclaim: optional(flag(), false),
    /** Each offer is accepted with the offer, as by an `accepted` receipt of its worker (T3); what cannot be stays an offer. */
    accept: optional(flag(), false),
  },
  /** Without progress the task keeps what was last reported. */
  heartbeat_task: { leaseId, progress: optional(json({ bytesMax: limits.metadataBytesMax, error: "invalid_task" })) },
  /** Gives an offer back, or an accepted task (a drain). */
  release_task: {
    leaseId,
    /** The offer did not reach its worker: the server takes it back, and it does not count (T2). */
    undelivered: hidden(optional(flag(), false)),
  },
  set_task_type: { taskType, settings: flat(settings) },
  submit_receipt: {
    receipt: flat(given(receiptInput)),
    /**
     * The task of the lease that the receipt names, where the kernel has answered `lease_unknown` and history knows it.
     * It is not part of what was sent (R3).
     */
    taskOfLease: hidden(optional(taskId)),
    /** History does not know its task either, so that it may be about one that this system does not own (R1). */
    unowned: hidden(optional(flag(), false)),
  },
  /** R5: an overdue obligation gets a new custodian, and is open again. */
  recover_obligation: { obligationId, custodian: principal, reason },
} satisfies Readonly<Record<string, Fields>>;

type Of<K extends keyof typeof taskCommands> = CommandOf<typeof taskCommands, K>;
/** What most callers have nothing to say about may be missing. */
type MayLack<C, K extends keyof C> = Omit<C, K> & Partial<Pick<C, K>>;
export type CreateTask = MayLack<Of<"create_task">, "asksHistory">;
export type CancelTask = Of<"cancel_task">;
export type RedriveTask = Of<"redrive_task">;
export type PollTasks = MayLack<Of<"poll_tasks">, "acceptTypes" | "accept">;
export type HeartbeatTask = Of<"heartbeat_task">;
export type ReleaseTask = MayLack<Of<"release_task">, "undelivered">;
export type SetTaskType = Of<"set_task_type">;
export type SubmitReceipt = MayLack<Of<"submit_receipt">, "taskOfLease" | "unowned">;
export type RecoverObligation = Of<"recover_obligation">;

type TaskCommandType = Exclude<
  keyof typeof taskCommands,
  "poll_tasks" | "create_task" | "release_task" | "submit_receipt"
>;
export type TaskCommand =
  | { [K in TaskCommandType]: Of<K> }[TaskCommandType]
  | (PollTasks | CreateTask | ReleaseTask | SubmitReceipt);
