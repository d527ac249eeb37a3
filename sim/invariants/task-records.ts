/** Every task exists once (T4, T13): live with a status that fits its record, or ended in history. */

import { limits } from "../../src/kernel/contract/limits.ts";
import type { EndedTask, Task } from "../../src/kernel/contract/task-records.ts";
import { isFinal } from "./receipts.ts";
import { type Step, violated } from "./step.ts";

export interface TaskMemory {
  readonly created: Set<string>;
  readonly ended: Map<string, EndedTask>;
}

export function createTaskMemory(): TaskMemory {
  return { created: new Set(), ended: new Map() };
}

export function checkTaskChanges(memory: TaskMemory, step: Step): void {
  for (const event of step.events) {
    if (event.type !== "task.created") continue;
    const id = `${event.tenant} ${event.task.id}`;
    if (memory.created.has(id)) violated("T12", "a task was created twice", event.task);
    memory.created.add(id);
  }
  for (const task of step.ended) {
    const id = `${task.tenant} ${task.id}`;
    if (memory.ended.has(id)) violated("T4", "a task ended twice", task, memory.ended.get(id));
    if (!isFinal(task)) violated("T13", "a task left without a final status", task);
    if (task.endedAt === null) violated("T13", "an ended task has no end time", task);
    memory.ended.set(id, task);
  }
  for (const change of step.changes) {
    if (change.kind !== "task") continue;
    const { before, after } = change;
    if (before === null || after === null) continue;
    if (isFinal(before) && (before.status !== after.status || before.winningReceiptId !== after.winningReceiptId)) {
      violated("T4", "a final result was overwritten", before, after);
    }
    if (JSON.stringify(before.spec) !== JSON.stringify(after.spec))
      violated("T13", "a task became another", before, after);
  }
}

/** No task is lost: each is live, or in history with a final status. */
export function checkConservation({ created, ended }: TaskMemory, { store }: Step): void {
  if (created.size !== store.task.size + ended.size) {
    const lost = [...created].find((id) => !store.task.has(id) && !ended.has(id));
    violated("T4", `${created.size} tasks were created, ${store.task.size} live and ${ended.size} have ended`, lost);
  }
  for (const id of store.task.keys()) if (ended.has(id)) violated("T4", "a task is alive and in history", id);
}

/** `closing`: what cells are tearing down of it; until then it stays (G6). */
export function checkTask(task: Task, closing: number): void {
  const { status, live, spec, attempts, offers, past } = task;
  const accepted = live.filter(({ acceptedAt }) => acceptedAt !== null);
  const canceled = live.filter((one) => one.canceled);
  switch (status) {
    case "queued":
    case "retry_pending":
    case "dead":
      if (live.length > 0) violated("T13", `a ${status} task has a live attempt`, task);
      break;
    case "leased":
      if (live.length === 0 || accepted.length > 0) violated("T13", "a leased task's attempts are not offers", task);
      break;
    case "accepted":
      if (accepted.length === 0) violated("T13", "nobody has accepted an accepted task", task);
      break;
    case "succeeded":
    case "failed":
    case "canceled":
      if (live.length === 0 && closing === 0)
        violated("T13", "a final task without live attempts is still in memory", task);
      if (canceled.length < live.length) violated("T13", "a final task has an attempt that was not canceled", task);
      break;
  }
  if (!isFinal(task) && canceled.length > 0)
    violated("T13", "an attempt was canceled, but the task is not final", task);
  if (live.length > 2 || (live.length > 1 && spec.intents.length > 0))
    violated("T8", "too many workers have the task", task);
  if (new Set(live.map(({ workerId }) => workerId)).size < live.length)
    violated("T8", "one worker has the task twice", task);
  if (attempts > spec.maxAttempts) violated("T5", `${attempts} attempts of ${spec.maxAttempts}`, task);
  if (offers > spec.maxOffers || (offers === spec.maxOffers && status !== "dead" && !isFinal(task))) {
    violated("T2", `${offers} offers of ${spec.maxOffers}`, task);
  }
  if (past.length > limits.taskPastMax) violated("S4", "too many old attempts are kept", task);
  if (status === "retry_pending" && task.notBefore === null) violated("T5", "a retry has no time", task);
  if (status === "dead" && task.endReason === null) violated("T5", "a dead task does not say why", task);
  if (new Set(past.map(({ leaseId }) => leaseId)).size < past.length) violated("T13", "an attempt ended twice", task);
}
