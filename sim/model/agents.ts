/** The life of agents (A1 to A5, L8, L9), as the table of A1 has it. */
import { cancelStandby, endAllOf } from "./ending.ts";
import { observe } from "./observing.ts";
import { serve } from "./waiting.ts";
import {
  beginUnit,
  fenceAnew,
  leasesOf,
  type ModelAgent,
  type ModelTenant,
  type Prediction,
  refused,
} from "./world.ts";

/** The transitions of A1 that an agent may ask for itself, by its present state. */
const saidFrom: Readonly<Record<ModelAgent["state"], readonly string[]>> = {
  PLANNING: ["ACQUIRING", "ABORTED"],
  ACQUIRING: ["ABORTED"],
  EXECUTING: ["ACQUIRING", "VERIFYING", "COMPLETED", "ABORTED"],
  PAUSED: ["EXECUTING", "ACQUIRING", "PLANNING", "ABORTED"],
  VERIFYING: ["ACQUIRING", "COMPLETED", "ABORTED"],
  COMPLETED: ["PLANNING", "ACQUIRING", "ABORTED"],
  ABORTED: ["PLANNING", "ACQUIRING"],
};

export function register(tenant: ModelTenant, id: string, now: number, step: number): Prediction {
  const known = tenant.agents.find((agent) => agent.id === id);
  if (known !== undefined) {
    takeUp(tenant, known, now, step);
    return { type: "agent" };
  }
  const agent: ModelAgent = {
    id,
    state: "PLANNING",
    restarting: false,
    pausedByOperator: false,
    priority: 0,
    attempts: 0,
    epoch: tenant.epochFloor + 1,
    idleSince: now,
    digest: null,
    pausedAt: null,
    concerns: [],
  };
  beginUnit(tenant, agent, now);
  tenant.agents.push(agent);
  return { type: "agent" };
}

/** A3: another instance takes up the agent; its leases are re-issued. */
export function takeUp(tenant: ModelTenant, agent: ModelAgent, now: number, step: number): void {
  agent.epoch++;
  agent.idleSince = now;
  cancelStandby(tenant, agent.id, now);
  for (const lease of leasesOf(tenant, agent.id).sort((a, b) => a.fence - b.fence)) {
    lease.generation++;
    fenceAnew(tenant, lease, step);
  }
}

export function transition(
  tenant: ModelTenant,
  agent: ModelAgent,
  wish: string,
  now: number,
  step: number,
): Prediction {
  if (!isState(wish)) return refused("invalid_state");
  const to = wish;
  const restarted = agent.restarting;
  agent.restarting = false; // A transition that is accepted comes from an instance that is back (A1).
  if (to === agent.state) {
    if (restarted) agent.idleSince = now;
    return { type: "agent" };
  }
  if (!saidFrom[agent.state].includes(to) || (restarted && to !== "ABORTED")) return refused("invalid_transition");
  if (to === "EXECUTING" && leasesOf(tenant, agent.id).length === 0) return refused("invalid_transition");
  if (to === "ABORTED" || to === "COMPLETED" || to === "PLANNING") endAllOf(tenant, agent.id, now);
  if (agent.state === "COMPLETED" || agent.state === "ABORTED") {
    if (to === "PLANNING" || to === "ACQUIRING") beginUnit(tenant, agent, now);
  }
  if (agent.state === "PAUSED" && to === "PLANNING") agent.digest = null;
  const since = agent.pausedAt ?? now;
  agent.state = to;
  if (to !== "ACQUIRING") agent.pausedAt = null;
  if (to === "ABORTED" || to === "COMPLETED" || to === "PLANNING") agent.concerns = [];
  const observation = to === "EXECUTING" ? { observation: observe(tenant, agent, since, []) } : {};
  agent.idleSince = now;
  serve(tenant, now, step);
  return { type: "agent", ...observation };
}

/** L8, L9: the state of each lease; from now on a heartbeat may revive those that are HELD. */
export function verifyAll(
  tenant: ModelTenant,
  agent: ModelAgent,
  leaseIds: readonly string[] | null,
  now: number,
): Prediction {
  if (agent.restarting) agent.idleSince = now;
  agent.restarting = false;
  for (const lease of leasesOf(tenant, agent.id)) {
    if (leaseIds === null || leaseIds.includes(lease.id)) lease.verified = lease.state === "HELD";
  }
  return { type: "leases" };
}

function isState(text: string): text is ModelAgent["state"] {
  return Object.hasOwn(saidFrom, text);
}
