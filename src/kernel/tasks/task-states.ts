/**
 * A task's statuses (T2-T5, T8, T13). Nothing else writes `status` of a task.
 *
 *          offer           accept
 *   queued ──────► leased ────────► accepted ──succeed, fail──► succeeded | failed
 *    ▲  ▲ requeue  │   ▲               │  │
 *    │  └──────────┴───┼───────────────┤  │                     requeue: declined, given back or taken away
 *    │                 └── unaccept ───┤  │                     unaccept: of two attempts the accepted one is gone
 *    │ ready                           │  │
 *    └──── retry_pending ◄──── retry ──┘  │                     retry: lost, or failed with attempts left
 *    └──── dead ◄──── die (leased too) ───┘                     redrive leads from dead to queued
 *
 * Not drawn: `cancel` ends any task that has not ended; `succeed` also comes late, to a task that is queued, pending or
 * dead again (T13); a second attempt is offered and accepted without a change of status (T8).
 */

import type { Task, TaskStatus } from "../contract/task-records.ts";
import { changed, type Turn } from "../memory/state.ts";
import type { TaskEntry } from "../memory/task-state.ts";
import { after, type Transitions } from "../memory/transitions.ts";
export type TaskMove =
  | "offer"
  | "accept"
  | "unaccept"
  | "requeue"
  | "retry"
  | "ready"
  | "die"
  | "succeed"
  | "fail"
  | "cancel"
  | "redrive";

const no = "refused";

// biome-ignore format: a table, one row per state
export const taskTransitions: Transitions<TaskStatus, TaskMove> = {
  queued:        { offer: "leased",   accept: no,         unaccept: no,       requeue: no,       retry: no,              ready: "queued", die: no,     succeed: "succeeded", fail: no,       cancel: "canceled", redrive: no },
  leased:        { offer: "leased",   accept: "accepted", unaccept: "leased", requeue: "queued", retry: no,              ready: no,       die: "dead", succeed: no,          fail: no,       cancel: "canceled", redrive: no },
  accepted:      { offer: "accepted", accept: "accepted", unaccept: "leased", requeue: "queued", retry: "retry_pending", ready: no,       die: "dead", succeed: "succeeded", fail: "failed", cancel: "canceled", redrive: no },
  retry_pending: { offer: no,         accept: no,         unaccept: no,       requeue: no,       retry: no,              ready: "queued", die: no,     succeed: "succeeded", fail: no,       cancel: "canceled", redrive: no },
  succeeded:     { offer: no,         accept: no,         unaccept: no,       requeue: no,       retry: no,              ready: no,       die: no,     succeed: no,          fail: no,       cancel: no,         redrive: no },
  failed:        { offer: no,         accept: no,         unaccept: no,       requeue: no,       retry: no,              ready: no,       die: no,     succeed: no,          fail: no,       cancel: no,         redrive: no },
  canceled:      { offer: no,         accept: no,         unaccept: no,       requeue: no,       retry: no,              ready: no,       die: no,     succeed: no,          fail: no,       cancel: no,         redrive: no },
  dead:          { offer: no,         accept: no,         unaccept: no,       requeue: no,       retry: no,              ready: no,       die: no,     succeed: "succeeded", fail: no,       cancel: "canceled", redrive: "queued" },
};

export const firstTaskStatus: TaskStatus = "queued";

export function moveTask(
  turn: Turn,
  task: TaskEntry,
  move: TaskMove,
  change: Partial<Omit<Task, "status">> = {},
): void {
  task.record = { ...task.record, ...change, status: after(taskTransitions, task.record.status, move) };
  changed(turn, task);
}
