/** Ends and beginnings that a principal decides (T13): cancelling a task, and sending a dead one again. */

import type { Actor } from "../contract/commands.ts";
import { limits } from "../contract/limits.ts";
import type { Millis } from "../contract/records.ts";
import { type Refusal, refuse } from "../contract/refusals.ts";
import type { Reply } from "../contract/replies.ts";
import type { CancelTask, RedriveTask } from "../contract/task-commands.ts";
import type { Task } from "../contract/task-records.ts";
import { findTenant, isAbove } from "../memory/actors.ts";
import type { State, TenantEntry } from "../memory/state.ts";
import type { TaskEntry } from "../memory/task-state.ts";
import { canceledReceipt } from "../receipts/append-receipt.ts";
import { emitTask, finish, isFinal, updateTask } from "./task-life.ts";
import { enterQueue } from "./task-queue.ts";

export function cancelTask(state: State, command: CancelTask, now: Millis): Reply {
  const found = findForPrincipal(state, command);
  if ("code" in found) return found;
  const { tenant, task } = found;
  const { reason } = command;
  if (reason !== null && reason.length > limits.reasonLengthMax) {
    return refuse("invalid_reason", `reason has at most ${limits.reasonLengthMax} characters.`, { field: "reason" });
  }
  // Who cancels what has ended is told how it ended: asking twice is no fault.
  if (isFinal(task.record)) return { type: "task", task: task.record, created: false };
  const { obligation } = task.record;
  const isOwed = obligation !== null && obligation.state !== "CLOSED";
  const receipt = isOwed ? canceledReceipt(state, tenant, task, reason, now) : null;
  finish(state, tenant, task, "canceled", receipt?.id ?? null, reason ?? "canceled", now);
  emitTask(state, task, "task.canceled", null, reason, now);
  return { type: "task", task: task.record, created: false };
}

export function redriveTask(state: State, command: RedriveTask, now: Millis): Reply {
  const found = findForPrincipal(state, command);
  if ("code" in found) return found;
  const { tenant, task } = found;
  if (task.record.status !== "dead") return notDead(task.record);
  updateTask(state, task, { status: "queued", attempts: 0, offers: 0, notBefore: null, endReason: null });
  emitTask(state, task, "task.redriven", null, null, now);
  enterQueue(state, tenant, task);
  return { type: "task", task: task.record, created: false };
}

export function notDead({ id, status }: Task): Refusal {
  return refuse("task_not_dead", `The task is ${status}; only a dead one can be sent again.`, { taskId: id });
}

function findForPrincipal(
  state: State,
  command: CancelTask | RedriveTask,
): { readonly tenant: TenantEntry; readonly task: TaskEntry } | Refusal {
  const tenant = findTenant(state, command.tenant);
  if ("code" in tenant) return tenant;
  const task = tenant.tasks.get(command.taskId);
  if (task === undefined) return taskUnknown(command.taskId);
  return whyNotPrincipal(command.actor, task.record) ?? { tenant, task };
}

export function taskUnknown(taskId: string): Refusal {
  return refuse("task_unknown", "There is no such task.", { taskId });
}

/** Whoever created it, or somebody above. */
export function whyNotPrincipal(actor: Actor, { createdBy }: Task): Refusal | null {
  if (isAbove(actor)) return null;
  const mine = actor.keyId ?? actor.agentId;
  if (mine !== null && mine === createdBy) return null;
  return refuse("forbidden", "Only who created the task, or a supervisor, may do this.");
}
