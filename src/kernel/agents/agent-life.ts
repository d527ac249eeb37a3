/** An agent's states (A1), its unit of work (W1), its checkpoint, and when it is forgotten (S4). */
import { limits } from "../contract/limits.ts";
import type { Agent, AgentState, Intent, Millis } from "../contract/records.ts";
import type { Observe } from "../contract/replies.ts";
import { rankIn, removeFrom } from "../index/heap.ts";
import { createAgentEntry } from "../memory/entries.ts";
import type { Holder } from "../memory/state.ts";
import {
  type AgentEntry,
  after,
  changed,
  emit,
  freshPriority,
  leaveSeniors,
  type TenantEntry,
  type Transitions,
  type Turn,
  updateCounters,
} from "../memory/state.ts";

export function isUnitOver({ state }: Agent): boolean {
  return state === "COMPLETED" || state === "ABORTED";
}

/** PLANNING, COMPLETED and ABORTED hold nothing and wait for nothing (A1). */
export function isResting(state: AgentState): boolean {
  return state === "PLANNING" || state === "COMPLETED" || state === "ABORTED";
}

/** The timestamp that decides for this agent now: of its unit of work, or of the one that it would begin (W1). */
export function decidingPriority(tenant: TenantEntry, { record }: AgentEntry, now: Millis): number {
  return isUnitOver(record) ? freshPriority(tenant, now) : record.priority;
}

/** The agent in its next unit of work if the last one is over, with the priority that `decidingPriority` foretold. */
export function inUnit(turn: Turn, { record }: AgentEntry): Agent {
  if (!isUnitOver(record)) return record;
  return { ...record, priority: takePriority(turn), attempts: 0, pausedAt: null };
}

export function takePriority(turn: Turn): number {
  const { tenant, now } = turn;
  const priority = freshPriority(tenant, now);
  updateCounters(turn, { priority });
  return priority;
}

/** Called when a lease or request of the agent has ended. */
export function noteIdle(turn: Turn, entry: AgentEntry): void {
  const { now } = turn;
  if (entry.leaseCount > 0 || entry.open.size > 0 || !entry.alive) return;
  if (entry.record.idleSince === now) return;
  entry.record = { ...entry.record, idleSince: now };
  changed(turn, entry);
}

/** New, or restored. */
export function placeAgent(turn: Turn, record: Agent): AgentEntry {
  const agent = createAgentEntry(record);
  turn.tenant.agents.set(record.id, agent);
  scheduleForgetting(turn, agent);
  return agent;
}

/**
 * The entry in the deadlines is left where it is while the agent works; when it comes up, the agent is forgotten, or
 * looked at again a week after it last had something (S4). So agents cost nothing as they come and go.
 */
function scheduleForgetting({ state }: Turn, entry: AgentEntry): void {
  rankIn(state.ends, entry, entry.record.idleSince + limits.agentIdleMs, entry.record.priority);
}

export function forgetIfIdle(turn: Turn, entry: AgentEntry): void {
  const { state, tenant, now } = turn;
  if (entry.leaseCount > 0 || entry.open.size > 0) {
    rankIn(state.ends, entry, now + limits.agentIdleMs, entry.record.priority);
    return;
  }
  const { rank, tie } = entry;
  scheduleForgetting(turn, entry);
  // It was an older deadline that came up; the real one takes its turn among the others.
  if (entry.rank !== rank || entry.tie !== tie) return;
  removeFrom(state.ends, entry);
  entry.alive = false;
  changed(turn, entry);
  dropDigest(turn, entry);
  const { epoch } = entry.record;
  if (tenant.counters.record.epochFloor < epoch) updateCounters(turn, { epochFloor: epoch });
  for (const request of entry.remembered) {
    removeFrom(state.ends, request);
    tenant.requests.delete(request.record.id);
    request.alive = false;
    changed(turn, request);
  }
  entry.remembered.clear();
  entry.keys.clear();
  leaveSeniors(tenant, entry);
  tenant.agents.delete(entry.record.id);
  emit(turn, { type: "agent.forgotten", tenant: entry.tenantId, at: now, agent: entry.record });
}

export function dropDigest(turn: Turn, entry: AgentEntry): void {
  if (entry.digest === null) return;
  entry.digest.alive = false;
  changed(turn, entry.digest);
  entry.digest = null;
}

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

/** A4: a grant that ends PAUSED carries what happened since the checkpoint, or since the pause where that is earlier. */
export function observeFor(holder: Holder, pausedAt: Millis, intents: readonly Intent[]): Observe | null {
  if (holder.kind === "task") return null;
  const digest = holder.digest?.record ?? null;
  const resources = new Set<string>();
  for (const { resource, to } of [...intents, ...(digest?.intentBacklog ?? [])]) {
    resources.add(resource);
    if (to !== null) resources.add(to);
  }
  return { since: Math.min(pausedAt, digest?.savedAt ?? pausedAt), resources: [...resources] };
}
