/** The one place where an agent's record changes: its state, its unit of work, and when it is forgotten. */

import { limits } from "../contract/limits.ts";
import type { Agent, AgentState, Millis } from "../contract/records.ts";
import { schedule, unschedule } from "../index/heap.ts";
import { type AgentEntry, changed, emit, freshPriority, type State, type TenantEntry } from "../memory/state.ts";

export function visibleState(agent: Agent): AgentState | "DIE_RESTART" {
  return agent.restarting ? "DIE_RESTART" : agent.state;
}

export function updateAgent(state: State, entry: AgentEntry, record: Agent, now: Millis): void {
  const from = visibleState(entry.record);
  entry.record = record;
  entry.priority = entry.record.priority;
  changed(state, entry);
  const to = visibleState(entry.record);
  if (from !== to)
    emit(state, { type: "agent.transitioned", tenant: entry.tenantId, at: now, agentId: entry.record.id, from, to });
}

export function isUnitOver({ state }: Agent): boolean {
  return state === "COMPLETED" || state === "ABORTED";
}

/** The timestamp that decides for this agent now: of its unit of work, or of the one that it would begin (W1). */
export function decidingPriority(tenant: TenantEntry, { record }: AgentEntry, now: Millis): number {
  return isUnitOver(record) ? freshPriority(tenant, now) : record.priority;
}

/** The agent in its next unit of work if the last one is over, with the priority that `decidingPriority` foretold. */
export function inUnit(state: State, tenant: TenantEntry, { record }: AgentEntry, now: Millis): Agent {
  if (!isUnitOver(record)) return record;
  return { ...record, priority: takePriority(state, tenant, now), attempts: 0, pausedAt: null };
}

export function takePriority(state: State, tenant: TenantEntry, now: Millis): number {
  const priority = freshPriority(tenant, now);
  tenant.counters.record = { ...tenant.counters.record, priority };
  changed(state, tenant.counters);
  return priority;
}

/** A grant ends PAUSED and forgives the deaths before it (W5, A1). */
export function becomeExecuting(state: State, tenant: TenantEntry, entry: AgentEntry, now: Millis): void {
  const { record } = entry;
  if (record.state === "EXECUTING" && record.attempts === 0 && record.pausedAt === null) return;
  const agent = inUnit(state, tenant, entry, now);
  updateAgent(state, entry, { ...agent, state: "EXECUTING", attempts: 0, pausedAt: null }, now);
}

/** WAIT, DIE and PAUSED all pause the agent (A1); since when, is kept for the update of A4. */
export function becomePaused(state: State, tenant: TenantEntry, entry: AgentEntry, died: boolean, now: Millis): void {
  const agent = inUnit(state, tenant, entry, now);
  const attempts = agent.attempts + (died ? 1 : 0);
  updateAgent(state, entry, { ...agent, state: "PAUSED", attempts, pausedAt: agent.pausedAt ?? now }, now);
}

/** Called when a lease or request of the agent has ended. */
export function noteIdle(state: State, entry: AgentEntry, now: Millis): void {
  if (entry.leaseCount > 0 || entry.open.size > 0 || !entry.alive) return;
  if (entry.record.idleSince === now) return;
  entry.record = { ...entry.record, idleSince: now };
  changed(state, entry);
}

/**
 * The entry in the deadlines is left where it is while the agent works; when it comes up, the agent is forgotten, or
 * looked at again a week after it last had something (S4). So agents cost nothing as they come and go.
 */
export function scheduleForgetting(state: State, entry: AgentEntry): void {
  schedule(state.ends, entry, entry.record.idleSince + limits.agentIdleMs, entry.record.priority);
}

export function forgetIfIdle(state: State, tenant: TenantEntry, entry: AgentEntry, now: Millis): void {
  if (entry.leaseCount > 0 || entry.open.size > 0) {
    schedule(state.ends, entry, now + limits.agentIdleMs, entry.record.priority);
    return;
  }
  const { dueAt, dueOrder } = entry;
  scheduleForgetting(state, entry);
  // It was an older deadline that came up; the real one takes its turn among the others.
  if (entry.dueAt !== dueAt || entry.dueOrder !== dueOrder) return;
  unschedule(state.ends, entry);
  entry.alive = false;
  changed(state, entry);
  dropDigest(state, entry);
  const { counters } = tenant;
  if (counters.record.epochFloor < entry.record.epoch) {
    counters.record = { ...counters.record, epochFloor: entry.record.epoch };
    changed(state, counters);
  }
  for (const request of entry.remembered) {
    unschedule(state.ends, request);
    tenant.requests.delete(request.record.id);
    request.alive = false;
    changed(state, request);
  }
  entry.remembered.clear();
  entry.keys.clear();
  tenant.agents.delete(entry.record.id);
  emit(state, { type: "agent.forgotten", tenant: entry.tenantId, at: now, agent: entry.record });
}

export function dropDigest(state: State, entry: AgentEntry): void {
  if (entry.digest === null) return;
  entry.digest.alive = false;
  changed(state, entry.digest);
  entry.digest = null;
}
