/**
 * What a worker does with its lease on a task: heartbeat, and giving it back (T2, T7, T8, T13). What a principal decides:
 * cancelling a task, and sending a dead one again (T13).
 */
import { checkValue } from "../contract/bounds.ts";
import type { Actor } from "../contract/commands.ts";
import { refuse } from "../contract/refusals.ts";
import type { Directive, Refusal, Reply } from "../contract/replies.ts";
import {
  type CancelTask,
  type HeartbeatTask,
  type RedriveTask,
  type ReleaseTask,
  taskCommands,
} from "../contract/task-commands.ts";
import type { Task } from "../contract/task-records.ts";
import { whyNoMemory } from "../deciding/admission.ts";
import { taskQuestion } from "../deciding/permit.ts";
import { agentOf, isAbove, submitterOf } from "../memory/actors.ts";
import { isTaskLease, type LeaseEntry, type Turn } from "../memory/state.ts";
import { attemptOf, manifestLeases, type TaskEntry, updateTask } from "../memory/task-state.ts";
import { whyNotPermitted } from "../policies/permissions.ts";
import { canceledReceipt } from "../receipts/receipts.ts";
import { endLeases } from "../requests/request-life.ts";
import { emitTask, finish, isFinal } from "../tasks/task-life.ts";
import { askToMakeRoom } from "../tasks/task-preemption.ts";
import { enterQueue } from "../tasks/task-queue.ts";
import { moveTask } from "../tasks/task-states.ts";
import { extend, findLease, whyNotTogether } from "./holding.ts";

interface TaskLease {
  readonly lease: LeaseEntry;
  readonly task: TaskEntry;
}

export function findTaskLease(turn: Turn, command: HeartbeatTask | ReleaseTask): TaskLease | Refusal {
  const lease = findLease(turn, command);
  if ("code" in lease) return lease;
  if (lease.holder.kind !== "task" || !isTaskLease(lease.record)) {
    return refuse("lease_unknown", "This is not a lease on a task.", { leaseId: command.leaseId });
  }
  return { lease, task: lease.holder };
}

export function heartbeatTask(turn: Turn, { lease, task }: TaskLease, command: HeartbeatTask): Reply {
  const { tenant } = turn;
  const tooLarge = checkValue("progress", taskCommands.heartbeat_task.progress, command.progress);
  if (tooLarge !== null) return tooLarge;
  const attempt = attemptOf(task, lease);
  if (attempt?.canceled) return { type: "task_lease", lease: lease.record, leases: [], directives: ["cancel"] };
  const refusal = whyNotTogether(turn, task, lease);
  if (refusal !== null) return refusal;
  const isPreempted = askToMakeRoom(turn, task, lease);
  extend(turn, lease, true);
  // The lease counts for more than what is reported with it: that is not kept where there is no memory for it (S4).
  if (command.progress !== undefined && command.progress !== null && whyNoMemory(tenant) === null)
    updateTask(turn, task, { progress: command.progress });
  const leases = manifestLeases(tenant, task, lease);
  const directives = isPreempted ? preempt : none;
  return { type: "task_lease", lease: lease.record, leases, directives };
}

const none: readonly Directive[] = [];
const preempt: readonly Directive[] = ["preempt"];

/** An offer goes back to the queue; an accepted task too, with a receipt, and without losing the attempt (T13). */
export function releaseTask(turn: Turn, { lease, task }: TaskLease, { undelivered = false }: ReleaseTask): Reply {
  // T2: an offer that the server takes back is nobody's refusal of the task.
  const isTakenBack = undelivered && attemptOf(task, lease)?.acceptedAt === null;
  if (isTakenBack) endLeases(turn, [lease], "REVOKED", "undelivered");
  else endLeases(turn, [lease], "RELEASED", null);
  return { type: "lease", lease: lease.record };
}

export function cancelTask(turn: Turn, task: TaskEntry, command: CancelTask): Reply {
  const { reason } = command;
  const tooLong = checkValue("reason", taskCommands.cancel_task.reason, reason);
  if (tooLong !== null) return tooLong;
  // To cancel an ended task is allowed, and answered with how it ended.
  if (isFinal(task.record)) return { type: "task", task: task.record, created: false, warnings: [] };
  const { obligation } = task.record;
  const isOwed = obligation !== null && obligation.state !== "CLOSED";
  const receipt = isOwed ? canceledReceipt(turn, task, reason, submitterOf(command.actor)) : null;
  finish(turn, task, "canceled", receipt?.id ?? null, reason ?? "canceled");
  emitTask(turn, task, "task.canceled", null, reason);
  return { type: "task", task: task.record, created: false, warnings: [] };
}

export function redriveTask(turn: Turn, task: TaskEntry): Reply {
  if (task.record.status !== "dead") return notDead(task.record);
  moveTask(turn, task, "redrive", { attempts: 0, offers: 0, notBefore: null, endReason: null, queuedAt: turn.now });
  emitTask(turn, task, "task.redriven", null, null);
  enterQueue(turn, task);
  return { type: "task", task: task.record, created: false, warnings: [] };
}

export function notDead({ id, status }: Task): Refusal {
  return refuse("task_not_dead", `The task is ${status}; only a dead one can be sent again.`, { taskId: id });
}

export function findForPrincipal(turn: Turn, command: CancelTask | RedriveTask): TaskEntry | Refusal {
  const { actor } = command;
  // An older instance's token creates and cancels nothing (A3).
  const agent = actor.agentId === null ? null : agentOf(turn, { actor, agentId: actor.agentId });
  if (agent !== null && "code" in agent) return agent;
  const task = turn.tenant.tasks.get(command.taskId);
  if (task === undefined) return taskUnknown(command.taskId);
  const refusal = whyNotPrincipal(actor, task.record);
  if (refusal !== null) return refusal;
  // Its creator was allowed to, and may take it back.
  const asked = isAbove(actor) ? taskQuestion(task.record.spec.taskType) : null;
  return (asked === null ? null : whyNotPermitted(turn, actor, asked, "task_id")) ?? task;
}

export function taskUnknown(taskId: string): Refusal {
  return refuse("task_unknown", "There is no such task.", { taskId });
}

/** Its creator, or a supervisor. */
export function whyNotPrincipal(actor: Actor, { createdBy }: Task): Refusal | null {
  if (isAbove(actor)) return null;
  const mine = submitterOf(actor);
  if (mine !== null && mine === createdBy) return null;
  return refuse("forbidden", "Only who created the task, or a supervisor, may do this.");
}
