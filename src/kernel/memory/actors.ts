/** Who may do what (L13, A3). Keys and tokens are checked at the edge; here it is decided what they allow. */
import type { Actor } from "../contract/commands.ts";
import type { PolicyAction } from "../contract/policy-records.ts";
import { refuse } from "../contract/refusals.ts";
import type { Refusal } from "../contract/replies.ts";
import type { AgentEntry, CellEntry, Holder, LeaseEntry, State, TenantEntry, Turn } from "./state.ts";
import type { WorkerEntry } from "./task-state.ts";

/** No policy says anything about this action of the role, whichever key it has: the usual case (S4). */
export function isOpenTo({ permissions }: TenantEntry, { role }: Actor, action: PolicyAction): boolean {
  return permissions !== null && !permissions.isByKey && permissions.byRole[role].plain.parts[action].length === 0;
}

export function isAbove({ role }: Actor): boolean {
  return role === "operator" || role === "supervisor";
}

export function findTenant(state: State, id: string): TenantEntry | Refusal {
  return state.tenants.get(id) ?? refuse("tenant_unknown", "There is no such tenant; an operator can create it.");
}

/** The agent itself, by its newest instance, or a principal above it. */
export function mayActFor(actor: Actor, agent: AgentEntry): Refusal | null {
  if (isAbove(actor)) return null;
  if (actor.role !== "agent" || actor.agentId !== agent.record.id) {
    return refuse("forbidden", "Only the agent itself, with its agent_token, or a supervisor may do this.");
  }
  if (actor.epoch !== agent.record.epoch) {
    return refuse(
      "stale_epoch",
      "Another instance has taken this agent up; its key can register it again to take it back.",
    );
  }
  return null;
}

/** What a task asks for and holds is its tenant's; its worker acts through the task's lease. */
export function mayActForHolder(actor: Actor, holder: Holder): Refusal | null {
  return holder.kind === "agent" ? mayActFor(actor, holder) : requireAbove(actor);
}

/** The agent that a command or query names, if the caller may act for it. */
export function agentOf(
  { tenant }: Pick<Turn, "tenant">,
  { actor, agentId }: { readonly actor: Actor; readonly agentId: string },
): AgentEntry | Refusal {
  const agent = tenant.agents.get(agentId);
  if (agent === undefined) {
    // A caller that may not act for it does not learn whether it exists.
    if (!isAbove(actor) && actor.agentId !== agentId) {
      return refuse("forbidden", "Only the agent itself, with its agent_token, or a supervisor may do this.");
    }
    return refuse("agent_unknown", "There is no such agent; register it first.", { field: "agent_id" });
  }
  return mayActFor(actor, agent) ?? agent;
}

/** L13: what this caller registers is its key's; null: no key was shown, and what it registers is for those above. */
export function ownerOf({ keyId, drawnWith }: Actor): string | null {
  return keyId ?? drawnWith ?? null;
}

/** R7: the credential that was shown, by the id of its key or of its agent, which never are the same; null: none was. */
export function submitterOf({ keyId, agentId }: Actor): string | null {
  return keyId ?? agentId;
}

/** Whether a name belongs to the key that the caller shows. Without an owner it is nobody's below a supervisor (L13). */
function isOwn(actor: Actor, owner: string | null): boolean {
  return owner !== null && owner === actor.keyId;
}

/** A3, L13: another instance of the agent is its present token's, its key's, or somebody's above. */
export function whyNotTakeUp(actor: Actor, agent: AgentEntry): Refusal | null {
  if (isAbove(actor)) return null;
  if (actor.agentId !== null) return mayActFor(actor, agent);
  if (isOwn(actor, agent.record.registeredBy)) return null;
  return ofAnother("The agent belongs to the credential that registered it", "agent_id");
}

function ofAnother(whose: string, field: string): Refusal {
  const detail = `${whose}; choose another id, show that key, or let an operator assign this one to yours.`;
  return refuse("forbidden", detail, { field, problem: "owned_by_another" });
}

/** L13: a cell's id belongs to the key that enrolled it first. */
export function mayActAsCell(cell: CellEntry | undefined, actor: Actor): Refusal | null {
  if (isAbove(actor)) return null;
  if (actor.role !== "cell") return refuse("forbidden", "This takes a cell's key, or a supervisor's.");
  if (cell === undefined || isOwn(actor, cell.record.keyId)) return null;
  return refuse("cell_taken", "The cell of this id is another key's; choose another id, or show that key.", {
    field: "cell",
  });
}

export function requireAbove(actor: Actor): Refusal | null {
  return isAbove(actor) ? null : refuse("forbidden", "This takes a supervisor's or the operator's key.");
}

export function requireOperator({ role }: Actor): Refusal | null {
  return role === "operator" ? null : refuse("forbidden", "This takes the operator's key.");
}

/** L13 for the leases of tasks: the worker's own key, or somebody above. */
export function whyNotItsWorker(tenant: TenantEntry, actor: Actor, { record }: LeaseEntry): Refusal | null {
  const refusal = whyNotWorkerNamed(tenant, actor, record.agentId);
  if (refusal === null) return null;
  return refuse("not_lease_holder", "The lease belongs to another worker.", { leaseId: record.id });
}

export function whyNotWorkerNamed(tenant: TenantEntry, actor: Actor, workerId: string): Refusal | null {
  if (isAbove(actor)) return null;
  const worker = tenant.book.workers.get(workerId);
  if (worker === undefined) return refuse("forbidden", "This takes the key of the task's worker, or a supervisor's.");
  return whyNotWorker(actor, worker);
}

export function whyNotAnyWorker(actor: Actor): Refusal | null {
  if (isAbove(actor) || actor.role === "worker") return null;
  return refuse("forbidden", "This takes a worker's key, or a supervisor's.");
}

export function whyNotWorker(actor: Actor, { record }: WorkerEntry): Refusal | null {
  if (isAbove(actor)) return null;
  const refusal = whyNotAnyWorker(actor);
  if (refusal !== null) return refusal;
  if (isOwn(actor, record.keyId)) return null;
  return ofAnother("The worker_id belongs to the key that used it first", "worker_id");
}
