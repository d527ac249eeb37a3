/** Ends and beginnings that a principal decides (T13): cancelling a task, and sending a dead one again. */

import { checkValue } from "../contract/bounds.ts";
import type { Actor } from "../contract/commands.ts";
import { type Refusal, refuse } from "../contract/refusals.ts";
import type { Reply } from "../contract/replies.ts";
import { type CancelTask, type RedriveTask, taskCommands } from "../contract/task-commands.ts";
import type { Task } from "../contract/task-records.ts";
import { isAbove } from "../memory/actors.ts";
import type { Turn } from "../memory/state.ts";
import type { TaskEntry } from "../memory/task-state.ts";
import { canceledReceipt } from "../receipts/append-receipt.ts";
import { emitTask, finish, isFinal } from "../tasks/task-life.ts";
import { enterQueue } from "../tasks/task-queue.ts";
import { moveTask } from "../tasks/task-states.ts";

export function cancelTask(turn: Turn, task: TaskEntry, command: CancelTask): Reply {
  const { reason } = command;
  const tooLong = checkValue("reason", taskCommands.cancel_task.reason, reason);
  if (tooLong !== null) return tooLong;
  // To cancel an ended task is allowed, and answered with how it ended.
  if (isFinal(task.record)) return { type: "task", task: task.record, created: false };
  const { obligation } = task.record;
  const isOwed = obligation !== null && obligation.state !== "CLOSED";
  const receipt = isOwed ? canceledReceipt(turn, task, reason) : null;
  finish(turn, task, "canceled", receipt?.id ?? null, reason ?? "canceled");
  emitTask(turn, task, "task.canceled", null, reason);
  return { type: "task", task: task.record, created: false };
}

export function redriveTask(turn: Turn, task: TaskEntry): Reply {
  if (task.record.status !== "dead") return notDead(task.record);
  moveTask(turn, task, "redrive", { attempts: 0, offers: 0, notBefore: null, endReason: null });
  emitTask(turn, task, "task.redriven", null, null);
  enterQueue(turn, task);
  return { type: "task", task: task.record, created: false };
}

export function notDead({ id, status }: Task): Refusal {
  return refuse("task_not_dead", `The task is ${status}; only a dead one can be sent again.`, { taskId: id });
}

export function findForPrincipal({ tenant }: Turn, command: CancelTask | RedriveTask): TaskEntry | Refusal {
  const task = tenant.tasks.get(command.taskId);
  if (task === undefined) return taskUnknown(command.taskId);
  return whyNotPrincipal(command.actor, task.record) ?? task;
}

export function taskUnknown(taskId: string): Refusal {
  return refuse("task_unknown", "There is no such task.", { taskId });
}

/** Its creator, or a supervisor. */
export function whyNotPrincipal(actor: Actor, { createdBy }: Task): Refusal | null {
  if (isAbove(actor)) return null;
  const mine = actor.keyId ?? actor.agentId;
  if (mine !== null && mine === createdBy) return null;
  return refuse("forbidden", "Only who created the task, or a supervisor, may do this.");
}
