/**
 * A request's states (W3, W4, W8, W14, G6). Nothing else writes `state` of a request.
 *
 *                  grant
 *   WAITING ───────────────────► GRANTED       one that is granted at once passes through WAITING within its turn
 *    │    │ bind          grant  ▲ ▲
 *    │    └────────► BINDING ────┘ │           BINDING: cells set up some of its leases
 *    │                ▲ └──────────┼─ cancel, pause, fail ─► CANCELED | PAUSED | BIND_FAILED
 *    │           bind │            │ grant
 *    │               STANDBY ──────┘           STANDBY: it began so, because it would have died
 *    │                  └─ die, cancel, pause ─────────────► DIED | CANCELED | PAUSED
 *    └─ time_out, cancel, pause ───────────────────────────► TIMED_OUT | CANCELED | PAUSED
 */
import type { Request, RequestState } from "../contract/records.ts";
import { changed, type RequestEntry, type Turn } from "../memory/state.ts";
import { after, type Transitions } from "../memory/transitions.ts";

export type RequestMove = "bind" | "grant" | "die" | "time_out" | "cancel" | "pause" | "fail";

const no = "refused";

// biome-ignore format: a table, one row per state
export const requestTransitions: Transitions<RequestState, RequestMove> = {
  WAITING:     { bind: "BINDING", grant: "GRANTED", die: no,     time_out: "TIMED_OUT", cancel: "CANCELED", pause: "PAUSED", fail: no },
  STANDBY:     { bind: "BINDING", grant: "GRANTED", die: "DIED", time_out: no,          cancel: "CANCELED", pause: "PAUSED", fail: no },
  BINDING:     { bind: no,        grant: "GRANTED", die: no,     time_out: no,          cancel: "CANCELED", pause: "PAUSED", fail: "BIND_FAILED" },
  GRANTED:     { bind: no,        grant: no,        die: no,     time_out: no,          cancel: no,         pause: no,       fail: no },
  DIED:        { bind: no,        grant: no,        die: no,     time_out: no,          cancel: no,         pause: no,       fail: no },
  TIMED_OUT:   { bind: no,        grant: no,        die: no,     time_out: no,          cancel: no,         pause: no,       fail: no },
  CANCELED:    { bind: no,        grant: no,        die: no,     time_out: no,          cancel: no,         pause: no,       fail: no },
  PAUSED:      { bind: no,        grant: no,        die: no,     time_out: no,          cancel: no,         pause: no,       fail: no },
  BIND_FAILED: { bind: no,        grant: no,        die: no,     time_out: no,          cancel: no,         pause: no,       fail: no },
};

/** Not decided yet. */
export function isOpen({ state }: Request): boolean {
  return state === "WAITING" || state === "STANDBY" || state === "BINDING";
}

export type FirstRequestState = Extract<RequestState, "WAITING" | "STANDBY">;

export function moveRequest(
  turn: Turn,
  request: RequestEntry,
  move: RequestMove,
  change: Partial<Omit<Request, "state">> = {},
): void {
  const state = after(requestTransitions, request.record.state, move);
  request.record = { ...request.record, ...change, state };
  changed(turn, request);
}
