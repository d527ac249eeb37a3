/**
 * A cell's states (G11). Nothing else writes `state` of a cell.
 *
 *          ┌─ enrol, hear ─┐
 *          │               ▼
 *        GONE ◄──────── READY ◄─┐
 *          leave, fall_silent └─┘ enrol, hear
 *
 * Withdrawal (G12) stands beside the state. `leave` also ends the session, so that a late heartbeat is refused.
 */
import type { Cell } from "../contract/records.ts";
import { rankIn, removeFrom } from "../index/heap.ts";
import { type CellEntry, changed, type Turn } from "../memory/state.ts";
import { after, type Transitions } from "../memory/transitions.ts";
import { textHash } from "../names/resource-name.ts";

export type CellMove = "enrol" | "hear" | "leave" | "fall_silent";

export const cellTransitions: Transitions<Cell["state"], CellMove> = {
  READY: { enrol: "READY", hear: "READY", leave: "GONE", fall_silent: "GONE" },
  GONE: { enrol: "READY", hear: "READY", leave: "GONE", fall_silent: "refused" },
};

export const firstCellState: Cell["state"] = "READY";

export function moveCell(turn: Turn, entry: CellEntry, move: CellMove, change: Partial<Omit<Cell, "state">>): void {
  entry.record = { ...entry.record, ...change, state: after(cellTransitions, entry.record.state, move) };
  scheduleSilence(turn, entry);
  changed(turn, entry);
}

export function updateCell(turn: Turn, entry: CellEntry, change: Partial<Omit<Cell, "state">>): void {
  entry.record = { ...entry.record, ...change };
  scheduleSilence(turn, entry);
  changed(turn, entry);
}

export function scheduleSilence({ state }: Turn, entry: CellEntry): void {
  if (entry.record.state === "GONE") removeFrom(state.ends, entry);
  else rankIn(state.ends, entry, entry.record.aliveBy, textHash(entry.record.id));
}
