/** Agents: registration, the state machine of A1, restarts (L9), checkpoints and taking up again (A2–A5). */

import type {
  DropDigest,
  PauseAgent,
  RegisterAgent,
  RestartAgent,
  TransitionAgent,
  VerifyAll,
} from "../contract/commands.ts";
import { agentIdFrom } from "../contract/ids.ts";
import { limits } from "../contract/limits.ts";
import { type Agent, type AgentState, agentStates, type Millis } from "../contract/records.ts";
import { type Refusal, refuse } from "../contract/refusals.ts";
import type { Reply } from "../contract/replies.ts";
import { endBinding, endLeases, ownLeases } from "../leases/holding.ts";
import { emitLease, reissue, updateLease } from "../leases/lease-life.ts";
import { findAgent, findTenant, isAbove, requireAbove } from "../memory/actors.ts";
import {
  type AgentEntry,
  changed,
  createAgentEntry,
  emit,
  leasesOf,
  type State,
  type TenantEntry,
} from "../memory/state.ts";
import type { ResourceName } from "../names/resource-name.ts";
import { serve } from "../requests/queue.ts";
import { endWait } from "../requests/request-life.ts";
import { dropDigest, inUnit, scheduleForgetting, takePriority, updateAgent } from "./agent-life.ts";

const idPattern = /^[A-Za-z0-9][A-Za-z0-9._:@/-]*$/;

export function registerAgent(state: State, command: RegisterAgent, now: Millis): Reply {
  const tenant = findTenant(state, command.tenant);
  if ("code" in tenant) return tenant;
  const { actor, labels } = command;
  if (!isAbove(actor) && actor.role !== "agent") return refuse("forbidden", "This key may not register agents.");
  if (!isAbove(actor) && actor.agentId !== null && actor.agentId !== command.agentId) {
    return refuse("forbidden", "An agent's own token registers that agent again, and no other; use a key.");
  }
  const id = command.agentId ?? agentIdFrom(now, command.entropy);
  if (id.length > limits.idLengthMax || !idPattern.test(id)) {
    return refuse(
      "invalid_agent_id",
      `agent_id has 1 to ${limits.idLengthMax} letters, digits and . _ : @ / -, a letter or digit first.`,
      {
        field: "agent_id",
      },
    );
  }
  if (labels !== null && !areLabels(labels)) {
    return refuse(
      "invalid_labels",
      `labels are at most ${limits.labelsMax} texts of ${limits.labelLengthMax} characters.`,
      {
        field: "labels",
      },
    );
  }
  const known = tenant.agents.get(id);
  if (known !== undefined) {
    takeUp(state, tenant, known, labels, now);
    return { type: "agent", agent: known.record, created: false };
  }
  if (tenant.agents.size >= tenant.record.quotas.agentsMax) {
    return refuse("lease_denied", `The tenant may have ${tenant.record.quotas.agentsMax} agents.`, { reason: "quota" });
  }
  const record: Agent = {
    tenant: tenant.record.id,
    id,
    labels: labels ?? {},
    state: "PLANNING",
    restarting: false,
    pausedByOperator: false,
    priority: takePriority(state, tenant, now),
    attempts: 0,
    epoch: tenant.counters.record.epochFloor + 1,
    registeredAt: now,
    pausedAt: null,
    idleSince: now,
  };
  const agent = createAgentEntry(record);
  tenant.agents.set(id, agent);
  changed(state, agent);
  scheduleForgetting(state, agent);
  emit(state, { type: "agent.registered", tenant: tenant.record.id, at: now, agent: record });
  return { type: "agent", agent: record, created: true };
}

function areLabels(labels: Readonly<Record<string, string>>): boolean {
  const pairs = Object.entries(labels);
  if (pairs.length > limits.labelsMax) return false;
  return pairs.every(([key, value]) => key.length <= limits.labelLengthMax && value.length <= limits.labelLengthMax);
}

/** A3: another instance. The older one is refused from now on, and its tokens and fences are stale at the resource. */
export function takeUp(
  state: State,
  tenant: TenantEntry,
  agent: AgentEntry,
  labels: Readonly<Record<string, string>> | null,
  now: Millis,
): void {
  const { epoch, labels: before } = agent.record;
  updateAgent(state, agent, { ...agent.record, epoch: epoch + 1, labels: labels ?? before }, now);
  for (const lease of leasesOf(agent)) {
    if (lease.record.state === "CLOSING") continue;
    reissue(state, tenant, lease, lease.record);
    emitLease(state, lease, "lease.reissued", null, now);
  }
  emit(state, { type: "agent.taken_up", tenant: tenant.record.id, at: now, agent: agent.record });
}

/** A1's table, as far as it can be said: a grant alone leads from ACQUIRING to EXECUTING. */
const sayable: Readonly<Record<AgentState, readonly AgentState[]>> = {
  PLANNING: ["ACQUIRING"],
  ACQUIRING: [],
  PAUSED: ["EXECUTING", "ACQUIRING", "PLANNING"],
  EXECUTING: ["ACQUIRING", "VERIFYING", "COMPLETED"],
  VERIFYING: ["ACQUIRING", "COMPLETED"],
  COMPLETED: ["PLANNING", "ACQUIRING"],
  ABORTED: ["PLANNING", "ACQUIRING"],
};

export function transitionAgent(state: State, command: TransitionAgent, now: Millis): Reply {
  const tenant = findTenant(state, command.tenant);
  if ("code" in tenant) return tenant;
  const agent = findAgent(tenant, command.actor, command.agentId);
  if ("code" in agent) return agent;
  const to = agentStates.find((one) => one === command.to);
  if (command.to === "DIE_RESTART") return announceRestart(state, agent, now);
  if (to === undefined) {
    return refuse("invalid_state", `The states are ${agentStates.join(", ")}.`, { field: "to" });
  }
  const { state: from, restarting } = agent.record;
  // Back to where it was, out of a restart; what is held still needs VERIFY_ALL (L9).
  if (from === to) {
    if (restarting) updateAgent(state, agent, { ...agent.record, restarting: false }, now);
    return { type: "agent", agent: agent.record, created: false };
  }
  if (to !== "ABORTED" && (restarting || !sayable[from].includes(to))) {
    return refuse(
      "invalid_transition",
      `An agent does not go from ${restarting ? "DIE_RESTART" : from} to ${to} by saying so.`,
      {
        from: restarting ? "DIE_RESTART" : from,
        to,
      },
    );
  }
  const holdsNothing = to === "PLANNING" || to === "COMPLETED" || to === "ABORTED";
  const freed = holdsNothing ? letGo(state, tenant, agent, to.toLowerCase(), now) : [];
  if (from === "PAUSED" && to === "PLANNING") dropDigest(state, agent);
  const next = to === "ABORTED" ? agent.record : inUnit(state, tenant, agent, now);
  const pausedAt = holdsNothing || to === "EXECUTING" ? null : next.pausedAt;
  updateAgent(state, agent, { ...next, state: to, pausedAt, restarting: false }, now);
  serve(state, tenant, freed, now);
  return { type: "agent", agent: agent.record, created: false };
}

/** PLANNING, COMPLETED and ABORTED hold nothing and wait for nothing (A1). */
function letGo(state: State, tenant: TenantEntry, agent: AgentEntry, reason: string, now: Millis): ResourceName[] {
  const freed: ResourceName[] = [];
  for (const request of [...agent.open]) {
    if (request.record.state === "WAITING") freed.push(...endWait(state, tenant, request, "CANCELED", reason, now));
    else freed.push(...endBinding(state, tenant, request, "CANCELED", reason, now));
  }
  freed.push(...endLeases(state, tenant, leasesOf(agent), "RELEASED", reason, now));
  return freed;
}

export function restartAgent(state: State, command: RestartAgent, now: Millis): Reply {
  const tenant = findTenant(state, command.tenant);
  if ("code" in tenant) return tenant;
  const agent = findAgent(tenant, command.actor, command.agentId);
  return "code" in agent ? agent : announceRestart(state, agent, now);
}

function announceRestart(state: State, agent: AgentEntry, now: Millis): Reply {
  if (!agent.record.restarting) updateAgent(state, agent, { ...agent.record, restarting: true }, now);
  return { type: "agent", agent: agent.record, created: false };
}

export function pauseAgent(state: State, command: PauseAgent, now: Millis): Reply {
  const tenant = findTenant(state, command.tenant);
  if ("code" in tenant) return tenant;
  const refusal: Refusal | null = requireAbove(command.actor);
  if (refusal !== null) return refusal;
  const agent = findAgent(tenant, command.actor, command.agentId);
  if ("code" in agent) return agent;
  const pausedByOperator = command.type === "pause_agent";
  if (agent.record.pausedByOperator !== pausedByOperator) {
    updateAgent(state, agent, { ...agent.record, pausedByOperator }, now);
    const type = pausedByOperator ? "agent.paused" : "agent.unpaused";
    emit(state, { type, tenant: tenant.record.id, at: now, agent: agent.record });
  }
  return { type: "agent", agent: agent.record, created: false };
}

/** L8: the truth about all, or the named, leases. It ends DIE_RESTART, and lets held leases be revived (L9). */
export function verifyAll(state: State, command: VerifyAll, now: Millis): Reply {
  const tenant = findTenant(state, command.tenant);
  if ("code" in tenant) return tenant;
  const agent = findAgent(tenant, command.actor, command.agentId);
  if ("code" in agent) return agent;
  if (agent.record.restarting) updateAgent(state, agent, { ...agent.record, restarting: false }, now);
  const { found, lost } = ownLeases(tenant, agent, command.leaseIds);
  for (const lease of found) {
    if (lease.record.state === "HELD" && !lease.record.verified)
      updateLease(state, lease, { ...lease.record, verified: true });
  }
  return { type: "leases", leases: found.map((lease) => lease.record), lost };
}

/** A5: what the agent assumed is no longer so; it plans anew. */
export function dropFailedDigest(state: State, command: DropDigest, now: Millis): Reply {
  const tenant = findTenant(state, command.tenant);
  if ("code" in tenant) return tenant;
  const agent = findAgent(tenant, command.actor, command.agentId);
  if ("code" in agent) return agent;
  const freed = letGo(state, tenant, agent, "assumption_failed", now);
  dropDigest(state, agent);
  const next = inUnit(state, tenant, agent, now);
  updateAgent(state, agent, { ...next, state: "PLANNING", pausedAt: null, restarting: false }, now);
  serve(state, tenant, freed, now);
  return { type: "agent", agent: agent.record, created: false };
}
