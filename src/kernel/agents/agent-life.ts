/** An agent's unit of work (W1), its checkpoint, and when it is forgotten (S4). */

import { limits } from "../contract/limits.ts";
import type { Agent, Millis } from "../contract/records.ts";
import { rankIn, removeFrom } from "../index/heap.ts";
import { createAgentEntry } from "../memory/entries.ts";
import {
  type AgentEntry,
  changed,
  emit,
  freshPriority,
  type TenantEntry,
  type Turn,
  updateCounters,
} from "../memory/state.ts";

export function isUnitOver({ state }: Agent): boolean {
  return state === "COMPLETED" || state === "ABORTED";
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
  tenant.agents.delete(entry.record.id);
  emit(turn, { type: "agent.forgotten", tenant: entry.tenantId, at: now, agent: entry.record });
}

export function dropDigest(turn: Turn, entry: AgentEntry): void {
  if (entry.digest === null) return;
  entry.digest.alive = false;
  changed(turn, entry.digest);
  entry.digest = null;
}
