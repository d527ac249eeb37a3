/**
 * An agent's states (A1). Nothing else writes `state` of an agent.
 *
 *   PLANNING ──begin──► ACQUIRING ──grant──► EXECUTING ──verify──► VERIFYING
 *      ▲                   ▲  │                │  ▲   │               │
 *      │ plan        begin │  │ pause    pause │  │   │ complete      │ complete
 *      │                   │  ▼                ▼  │   ▼               ▼
 *      └───────────────── PAUSED ───execute───────┘  COMPLETED ──plan, begin──► PLANNING, ACQUIRING
 *
 * Not drawn: `grant` and `pause` are the service's verdicts and come in any state, because an agent may acquire in any;
 * `begin` and `abort` may be said in any; `replan` follows a failed assumption (A5). ABORTED goes on as COMPLETED does.
 * To say a state that is the present one changes nothing. DIE_RESTART stands beside the state (`restarting`, L9).
 */

import type { Agent, AgentState } from "../contract/records.ts";
import { type AgentEntry, changed, emit, type Turn } from "../memory/state.ts";
import { after, type Transitions } from "../memory/transitions.ts";
import { inUnit } from "./agent-life.ts";
export type AgentMove = "plan" | "begin" | "execute" | "verify" | "complete" | "abort" | "grant" | "pause" | "replan";

const no = "refused";

// biome-ignore format: a table, one row per state
export const agentTransitions: Transitions<AgentState, AgentMove> = {
  PLANNING:  { plan: "PLANNING", begin: "ACQUIRING", execute: no,          verify: no,          complete: no,          abort: "ABORTED", grant: "EXECUTING", pause: "PAUSED", replan: "PLANNING" },
  ACQUIRING: { plan: no,         begin: "ACQUIRING", execute: no,          verify: no,          complete: no,          abort: "ABORTED", grant: "EXECUTING", pause: "PAUSED", replan: "PLANNING" },
  EXECUTING: { plan: no,         begin: "ACQUIRING", execute: "EXECUTING", verify: "VERIFYING", complete: "COMPLETED", abort: "ABORTED", grant: "EXECUTING", pause: "PAUSED", replan: "PLANNING" },
  PAUSED:    { plan: "PLANNING", begin: "ACQUIRING", execute: "EXECUTING", verify: no,          complete: no,          abort: "ABORTED", grant: "EXECUTING", pause: "PAUSED", replan: "PLANNING" },
  VERIFYING: { plan: no,         begin: "ACQUIRING", execute: no,          verify: "VERIFYING", complete: "COMPLETED", abort: "ABORTED", grant: "EXECUTING", pause: "PAUSED", replan: "PLANNING" },
  COMPLETED: { plan: "PLANNING", begin: "ACQUIRING", execute: no,          verify: no,          complete: "COMPLETED", abort: "ABORTED", grant: "EXECUTING", pause: "PAUSED", replan: "PLANNING" },
  ABORTED:   { plan: "PLANNING", begin: "ACQUIRING", execute: no,          verify: no,          complete: no,          abort: "ABORTED", grant: "EXECUTING", pause: "PAUSED", replan: "PLANNING" },
};

/** The move that an agent makes by naming a state. PAUSED is a verdict, which nobody can give itself. */
export const moveTo: Readonly<Record<Exclude<AgentState, "PAUSED">, AgentMove>> = {
  PLANNING: "plan",
  ACQUIRING: "begin",
  EXECUTING: "execute",
  VERIFYING: "verify",
  COMPLETED: "complete",
  ABORTED: "abort",
};

export const firstAgentState: AgentState = "PLANNING";

export function moveAgent(turn: Turn, entry: AgentEntry, move: AgentMove, record: Agent): void {
  updateAgent(turn, entry, { ...record, state: after(agentTransitions, record.state, move) });
}

/** A grant ends PAUSED and forgives the deaths before it (W5, A1). */
export function becomeExecuting(turn: Turn, entry: AgentEntry): void {
  const { record } = entry;
  if (record.state === "EXECUTING" && record.attempts === 0 && record.pausedAt === null) return;
  const agent = inUnit(turn, entry);
  updateAgent(turn, entry, {
    ...agent,
    state: after(agentTransitions, agent.state, "grant"),
    attempts: 0,
    pausedAt: null,
  });
}

/** WAIT, DIE and PAUSED all pause the agent (A1); since when, is kept for the update of A4. */
export function becomePaused(turn: Turn, entry: AgentEntry, died: boolean): void {
  const agent = inUnit(turn, entry);
  const attempts = agent.attempts + (died ? 1 : 0);
  updateAgent(turn, entry, {
    ...agent,
    state: after(agentTransitions, agent.state, "pause"),
    attempts,
    pausedAt: agent.pausedAt ?? turn.now,
  });
}

export function updateAgent(turn: Turn, entry: AgentEntry, record: Agent): void {
  const from = visibleState(entry.record);
  entry.record = record;
  entry.priority = entry.record.priority;
  changed(turn, entry);
  const to = visibleState(entry.record);
  if (from !== to)
    emit(turn, {
      type: "agent.transitioned",
      tenant: entry.tenantId,
      at: turn.now,
      agentId: entry.record.id,
      from,
      to,
    });
}

export function visibleState(agent: Agent): AgentState | "DIE_RESTART" {
  return agent.restarting ? "DIE_RESTART" : agent.state;
}
