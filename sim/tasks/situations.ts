/** Follows the life of tasks and counts which rules were exercised (see ../counters.ts). */
import type { TaskEvent } from "../../src/kernel/contract/events.ts";
import type { Task } from "../../src/kernel/contract/task-records.ts";
import { type Counters, count } from "../counters.ts";
import type { Step } from "../invariants/step.ts";
import type { Change } from "../record-store.ts";
import type { World } from "../world.ts";

export function noteTasks({ counters, store }: World, step: Step): void {
  const { command, reply, changes, events } = step;
  for (const event of events) if (event.type.startsWith("task.")) noteEvent(counters, event as TaskEvent, step);
  for (const change of changes) if (change.kind === "task") noteChange(counters, change, step);
  for (const change of changes) {
    if (change.kind !== "request" || change.before?.holder === change.before?.agentId) continue;
    if (change.after === null && step.now >= (change.before?.timeoutAt ?? 0)) count(counters, "T10 wait timed out");
  }
  for (const change of changes) {
    if (change.kind !== "request" || change.before !== null || change.after === null) continue;
    if (change.after.holder !== change.after.agentId) count(counters, "T10 queues for its resources");
  }
  if (command?.type === "poll_tasks" && events.some((event) => "reason" in event && event.reason === "wounded"))
    count(counters, "T10 wounds");
  if (command?.type === "poll_tasks" && reply?.type === "offers" && reply.offers.length > 0) {
    const offered = events.some(({ type }) => type === "task.offered");
    if (!offered && !command.reclaim) count(counters, "T1 poll repeated and answered");
    if (reply.offers.some(({ task }) => task.lastWorker === command.workerId)) {
      count(counters, "T7 offered to the worker that had it before");
    }
  }
  if (command?.type === "create_task" && reply !== null) {
    const isKnown = reply.type === "task" && !reply.created;
    if (isKnown) count(counters, "T12 creation repeated");
  }
  if (command?.type === "submit_receipt" && reply?.type === "refused" && reply.code === "stale_fence") {
    if (reply.detail.startsWith("What the task had")) count(counters, "T13 late complete is contested");
    if (reply.detail.startsWith("Another worker")) count(counters, "T13 late complete, another has it");
  }
  if (command?.type === "cancel_task" && step.receipts.length > 0)
    count(counters, "T13 canceled with an open obligation");
  const failed = events.filter((event) => event.type === "task.canceled" && event.reason === "dependency_failed");
  if (failed.length > 0) count(counters, "T12 canceled with a dependency");
  const isChain = failed.some((event) => event.type === "task.canceled" && dependsOnOther(event.task, failed));
  if (isChain) count(counters, "T12 canceled down the chain");
  for (const tenant of step.state.tenants.values()) {
    for (const task of tenant.tasks.values()) {
      if (task.place === "keyed") count(counters, "T12 key is full");
      if (task.place === "barred") count(counters, "T10 barred");
      const obstacle = task.place === "parked" ? task.parking?.obstacle : null;
      if (obstacle != null) count(counters, `T10 parked on a ${obstacle.kind}`);
    }
    if (store.task.size === 0) break;
  }
}

function dependsOnOther({ spec }: Task, failed: readonly unknown[]): boolean {
  return failed.some((event) => spec.dependsOn.includes((event as TaskEvent).task.id));
}

function noteEvent(counters: Counters, event: TaskEvent, { command }: Step): void {
  const { type, reason, task } = event;
  if (type === "task.requeued" && reason === "offer_expired") count(counters, "T2 offer expired");
  if (type === "task.requeued" && reason === "failed") count(counters, "T13 failed and retried");
  if (type === "task.requeued" && reason === "wounded") count(counters, "T10 wounded");
  if (type === "task.requeued" && reason === "preempted") count(counters, "T8 revoked after its grace time");
  if (type === "task.escalated" && reason === "lease_expired") count(counters, "T5 lease lost after acceptance");
  if (type === "task.escalated" && reason === "released") count(counters, "T13 given back after it was accepted");
  if (type === "task.escalated" && command?.type === "revoke") count(counters, "T13 revoked by an operator");
  if (type === "task.escalated" && task.status === "dead") {
    if (reason === "never_accepted") count(counters, "T2 dead, never accepted");
    if (reason === "max_retries_exceeded") count(counters, "T5 dead, out of attempts");
    if (reason === "escalated") count(counters, "T13 dead, escalated");
  }
}

function noteChange(counters: Counters, { before, after }: Extract<Change, { kind: "task" }>, step: Step): void {
  if (before === null) return;
  const now = after ?? step.ended.find(({ id, tenant }) => id === before.id && tenant === before.tenant);
  if (now === undefined) return;
  if (before.waitingOn.length > 0 && now.waitingOn.length === 0) count(counters, "T12 dependent released");
  const isOffered = before.live.length === 0 && now.live.length > 0;
  const waited = step.changes.some(
    (one) => one.kind === "request" && one.before?.holder === before.id && one.after === null,
  );
  if (isOffered && waited) count(counters, "T10 granted after it queued");
  if (isOffered && now.picked.length > 0) count(counters, "T10 offered with what was picked");
  const isOnCell = step.changes.some(
    (one) => one.kind === "lease" && one.after?.holder === before.id && one.before !== null && one.after.cell !== null,
  );
  if (isOffered && isOnCell) count(counters, "T10 offered when its cell had set it up");
  if (now.bindFailures > before.bindFailures) count(counters, "T10 its cell failed");
  if (before.live.length === 1 && now.live.length === 2) {
    count(
      counters,
      before.spec.speculative ? "T8 second worker tries" : "T8 second worker tries, past the usual duration",
    );
  }
  if (now.status !== "succeeded" || before.status === "succeeded") return;
  const winning = step.receipts.find(({ id }) => id === now.winningReceiptId);
  if (before.live.length === 0) count(counters, "T13 late complete counts");
  if (winning !== undefined && before.live[1]?.receiptId === winning.causedByReceiptId && before.live.length === 2) {
    count(counters, "T8 second worker wins");
  }
}
