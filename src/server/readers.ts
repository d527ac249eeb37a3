/** Who may look at a tenant. What they may change is decided by the kernel; looking is decided here. */
import { findTenant, mayActFor } from "../kernel/actors.ts";
import type { Actor } from "../kernel/commands.ts";
import type { State } from "../kernel/kernel.ts";
import { type Refusal, refuse } from "../kernel/refusals.ts";
import type { TenantEntry } from "../kernel/state.ts";

export interface Looking {
  readonly tenant: string;
  readonly actor: Actor;
}

/** An agent looks with its token, and only its newest instance does (A3); a key that registers agents is no agent. */
export function findTenantFor(state: State, { tenant: id, actor }: Looking): TenantEntry | Refusal {
  const tenant = findTenant(state, id);
  if ("code" in tenant || actor.role !== "agent") return tenant;
  if (actor.agentId === null) {
    return refuse("forbidden", "This key registers agents; use the agent_token of one of them for this.");
  }
  const agent = tenant.agents.get(actor.agentId);
  if (agent === undefined) return refuse("agent_unknown", "There is no such agent; register it first.");
  return mayActFor(actor, agent) ?? tenant;
}
