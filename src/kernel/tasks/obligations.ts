/**
 * The obligation of an accepted task (R5): one custodian at a time, in whose inbox it is. Nothing else writes its
 * `state`.
 *
 *          hand_over      lapse
 *            ┌──┐      ┌──────────┐         hand_over: given back, escalated, or left to the other of two workers
 *            ▼  │      │          ▼         lapse: the custodian's lease expired
 *   accept ─► OPEN ────┘        OVERDUE
 *            │   ▲──── accept ────┤
 *      close ▼                    │ close
 *          CLOSED ◄───────────────┘         accepted once more, the task has a new obligation
 *
 * `reassign` changes the custodian only.
 */
import type { Obligation } from "../contract/task-records.ts";
import type { TenantEntry, Turn } from "../memory/state.ts";
import { type TaskEntry, updateTask } from "../memory/task-state.ts";
import { after, type Transitions } from "../memory/transitions.ts";

export type ObligationMove = "accept" | "hand_over" | "lapse" | "reassign" | "close";

export const obligationTransitions: Transitions<Obligation["state"], ObligationMove> = {
  OPEN: { accept: "OPEN", hand_over: "OPEN", lapse: "OVERDUE", reassign: "OPEN", close: "CLOSED" },
  OVERDUE: { accept: "OPEN", hand_over: "refused", lapse: "refused", reassign: "OVERDUE", close: "CLOSED" },
  CLOSED: { accept: "refused", hand_over: "refused", lapse: "refused", reassign: "CLOSED", close: "refused" },
};

export function openObligation(turn: Turn, task: TaskEntry, custodian: string): void {
  const { obligation: last, id } = task.record;
  const number = last === null ? 1 : Number(last.id.slice(last.id.lastIndexOf("-") + 1)) + 1;
  setObligation(turn, task, { id: `obl_${id.slice(2)}-${number}`, state: "OPEN", custodian, openedAt: turn.now });
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

/** Enters the task among its custodian's, new or restored. */
export function listObligation({ book }: TenantEntry, task: TaskEntry): void {
  const { obligation } = task.record;
  if (obligation === null || obligation.state === "CLOSED") return;
  const listed = book.custodians.get(obligation.custodian);
  if (listed === undefined) book.custodians.set(obligation.custodian, new Set([task]));
  else listed.add(task);
}

function unlistObligation({ book }: TenantEntry, task: TaskEntry): void {
  const { obligation } = task.record;
  if (obligation === null) return;
  const listed = book.custodians.get(obligation.custodian);
  listed?.delete(task);
  if (listed?.size === 0) book.custodians.delete(obligation.custodian);
}
