/** The obligation of an accepted task (R5): one custodian at a time, who is in its inbox. */

import type { Obligation } from "../contract/task-records.ts";
import type { TenantEntry, Turn } from "../memory/state.ts";
import { type TaskEntry, updateTask } from "../memory/task-state.ts";
/** R5: one custodian at a time; the index by custodian is what inboxes are read from. */
export function setObligation(turn: Turn, task: TaskEntry, change: Pick<Obligation, "state" | "custodian">): void {
  const { tenant } = turn;
  const before = task.record.obligation;
  if (before === null) return;
  const obligation: Obligation = { ...before, ...change };
  unlistObligation(tenant, task);
  updateTask(turn, task, { obligation });
  listObligation(tenant, task);
}

/** Enters the task among its custodian's, new or restored. */
export function listObligation({ book }: TenantEntry, task: TaskEntry): void {
  const { obligation } = task.record;
  if (obligation === null || obligation.state === "CLOSED") return;
  const listed = book.custodians.get(obligation.custodian);
  if (listed === undefined) book.custodians.set(obligation.custodian, new Set([task]));
  else listed.add(task);
}

export function unlistObligation({ book }: TenantEntry, task: TaskEntry): void {
  const { obligation } = task.record;
  if (obligation === null) return;
  const listed = book.custodians.get(obligation.custodian);
  listed?.delete(task);
  if (listed?.size === 0) book.custodians.delete(obligation.custodian);
}

export function closeObligation(turn: Turn, task: TaskEntry): void {
  const { tenant } = turn;
  const { obligation } = task.record;
  if (obligation === null || obligation.state === "CLOSED") return;
  unlistObligation(tenant, task);
  updateTask(turn, task, { obligation: { ...obligation, state: "CLOSED" } });
}
