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
 * dead again (T13), and there its custodian may end it as succeeded or failed; a second attempt is offered and accepted without a change of status (T8).
 */
import type { Obligation, Task, TaskStatus } from "../contract/task-records.ts";
import { changed, type TenantEntry, type Turn } from "../memory/state.ts";
import { type Owed, type TaskEntry, updateTask } from "../memory/task-state.ts";
import { after, type Transitions } from "../memory/transitions.ts";
import { ownObligationPrefix } from "../receipts/principals.ts";

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
  queued:        { offer: "leased",   accept: no,         unaccept: no,       requeue: no,       retry: no,              ready: "queued", die: no,     succeed: "succeeded", fail: "failed", cancel: "canceled", redrive: no },
  leased:        { offer: "leased",   accept: "accepted", unaccept: "leased", requeue: "queued", retry: no,              ready: no,       die: "dead", succeed: no,          fail: no,       cancel: "canceled", redrive: no },
  accepted:      { offer: "accepted", accept: "accepted", unaccept: "leased", requeue: "queued", retry: "retry_pending", ready: no,       die: "dead", succeed: "succeeded", fail: "failed", cancel: "canceled", redrive: no },
  retry_pending: { offer: no,         accept: no,         unaccept: no,       requeue: no,       retry: no,              ready: "queued", die: no,     succeed: "succeeded", fail: "failed", cancel: "canceled", redrive: no },
  succeeded:     { offer: no,         accept: no,         unaccept: no,       requeue: no,       retry: no,              ready: no,       die: no,     succeed: no,          fail: no,       cancel: no,         redrive: no },
  failed:        { offer: no,         accept: no,         unaccept: no,       requeue: no,       retry: no,              ready: no,       die: no,     succeed: no,          fail: no,       cancel: no,         redrive: no },
  canceled:      { offer: no,         accept: no,         unaccept: no,       requeue: no,       retry: no,              ready: no,       die: no,     succeed: no,          fail: no,       cancel: no,         redrive: no },
  dead:          { offer: no,         accept: no,         unaccept: no,       requeue: no,       retry: no,              ready: no,       die: no,     succeed: "succeeded", fail: "failed", cancel: "canceled", redrive: "queued" },
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

/**
 * The obligation of an accepted task (R5): one custodian at a time, in whose inbox it is. Nothing else writes its
 * `state`, but for that of a task which this system does not own (foreign-obligations.ts).
 *
 *          hand_over      lapse
 *            ┌──┐      ┌──────────┐         hand_over: given back, escalated, or left to the other of two workers
 *            ▼  │      │          ▼         lapse: the custodian's lease expired
 *   accept ─► OPEN ────┘        OVERDUE
 *            │   ▲─ accept, recover ┤         recover: a supervisor gives it to a new custodian
 *      close ▼                    │ close
 *          CLOSED ◄───────────────┘         accepted once more, the task has a new obligation
 *
 * `reassign` changes the custodian only.
 */

export type ObligationMove = "accept" | "hand_over" | "lapse" | "recover" | "reassign" | "close";

export const obligationTransitions: Transitions<Obligation["state"], ObligationMove> = {
  OPEN: { accept: "OPEN", hand_over: "OPEN", lapse: "OVERDUE", recover: no, reassign: "OPEN", close: "CLOSED" },
  OVERDUE: { accept: "OPEN", hand_over: no, lapse: no, recover: "OPEN", reassign: "OVERDUE", close: "CLOSED" },
  CLOSED: { accept: no, hand_over: no, lapse: no, recover: no, reassign: no, close: no },
};

/** Under the id that its acceptance gave it, or one of its own. */
export function openObligation(turn: Turn, task: TaskEntry, custodian: string, givenId: string | null = null): void {
  const id = givenId ?? ownObligationId(turn, task.record);
  setObligation(turn, task, { id, state: "OPEN", custodian, openedAt: turn.now });
}

/** Counted up; after a given id from a number that no earlier one of the task can have. */
function ownObligationId({ tenant }: Turn, { id, obligation: last }: Task): string {
  const stem = `${ownObligationPrefix}${id.slice(2)}-`;
  const isOwn = last?.id.startsWith(stem) ?? true;
  const before = isOwn ? Number(last?.id.slice(stem.length) ?? 0) : tenant.counters.record.receipts;
  return `${stem}${before + 1}`;
}

export function moveObligation(turn: Turn, task: TaskEntry, move: ObligationMove, custodian: string): void {
  const { obligation } = task.record;
  if (obligation === null) return;
  const state = after(obligationTransitions, obligation.state, move);
  setObligation(turn, task, { ...obligation, state, custodian });
}

export function closeObligation(turn: Turn, task: TaskEntry): void {
  const { obligation } = task.record;
  if (obligation === null || obligation.state === "CLOSED") return;
  moveObligation(turn, task, "close", obligation.custodian);
}

function setObligation(turn: Turn, task: TaskEntry, obligation: Obligation): void {
  unlistObligation(turn.tenant, task);
  updateTask(turn, task, { obligation });
  listObligation(turn.tenant, task);
}

/** Enters it among its custodian's, new or restored. */
export function listObligation({ book }: TenantEntry, owed: Owed): void {
  const { obligation } = owed.record;
  if (obligation === null || obligation.state === "CLOSED") return;
  book.obligations.set(obligation.id, owed);
  const listed = book.custodians.get(obligation.custodian);
  if (listed === undefined) book.custodians.set(obligation.custodian, new Set([owed]));
  else listed.add(owed);
}

export function unlistObligation({ book }: TenantEntry, owed: Owed): void {
  const { obligation } = owed.record;
  if (obligation === null) return;
  if (book.obligations.get(obligation.id) === owed) book.obligations.delete(obligation.id);
  const listed = book.custodians.get(obligation.custodian);
  listed?.delete(owed);
  if (listed?.size === 0) book.custodians.delete(obligation.custodian);
}
