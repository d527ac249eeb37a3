/** One tenant's records in the form that the oracle's functions in sim/model take. */
import type { Agent, Intent, Lease, Request, Resource, Tenant } from "../../src/kernel/contract/records.ts";
import type { Task } from "../../src/kernel/contract/task-records.ts";
import type { Claim, Field, Waiting } from "../model/conflicts.ts";
import type { RecordStore } from "../record-store.ts";

export interface Waiter extends Waiting {
  readonly request: Request;
  readonly priority: number;
}

export interface TenantView {
  readonly tenant: Tenant;
  /**
   * The oracle reads a lease's holder from `agentId`, so the holder is put there: for a task's leases the task (C2).
   */
  readonly field: Field<Lease>;
  /** In the order in which they are served: of arrival, or of age under Wound-Wait. */
  readonly waiters: readonly Waiter[];
  /** W14. */
  readonly standbys: readonly Waiter[];
  readonly agents: ReadonlyMap<string, Agent>;
  readonly tasks: ReadonlyMap<string, Task>;
  /** The timestamp of a holder: of an agent's unit of work, or of a task (W1, T10). */
  readonly priorityOf: (holder: string) => number | undefined;
  readonly resources: ReadonlyMap<string, Resource>;
}

export function viewsOf(store: RecordStore): TenantView[] {
  const views = new Map<
    string,
    {
      tenant: Tenant;
      leases: Lease[];
      requests: Request[];
      agents: Map<string, Agent>;
      tasks: Map<string, Task>;
      resources: Map<string, Resource>;
    }
  >();
  for (const tenant of store.tenant.values()) {
    views.set(tenant.id, {
      tenant,
      leases: [],
      requests: [],
      agents: new Map(),
      tasks: new Map(),
      resources: new Map(),
    });
  }
  for (const lease of store.lease.values()) {
    views.get(lease.tenant)?.leases.push(lease.holder === lease.agentId ? lease : { ...lease, agentId: lease.holder });
  }
  for (const task of store.task.values()) views.get(task.tenant)?.tasks.set(task.id, task);
  for (const agent of store.agent.values()) views.get(agent.tenant)?.agents.set(agent.id, agent);
  for (const resource of store.resource.values()) views.get(resource.tenant)?.resources.set(resource.name, resource);
  for (const request of store.request.values()) {
    if (request.state === "WAITING" || request.state === "STANDBY") views.get(request.tenant)?.requests.push(request);
  }
  return [...views.values()].map(({ tenant, leases, requests, agents, tasks, resources }) => {
    const byAge = tenant.settings.strategy === "wound_wait";
    const priorityOf = (holder: string) => agents.get(holder)?.priority ?? tasks.get(holder)?.timestamp;
    const open = requests.map((request) => ({
      request,
      agentId: request.holder,
      claims: claimsOf(request.intents, request.picked),
      priority: priorityOf(request.holder) ?? Number.NaN,
    }));
    open.sort((a, b) => (byAge ? a.priority - b.priority : 0) || a.request.arrival - b.request.arrival);
    const capacityOf = (name: string) => resources.get(name)?.capacity ?? null;
    const spentOf = (name: string) => {
      const resource = resources.get(name);
      if (resource === undefined || resource.refillMs === null) return null;
      return resource.spent.reduce((sum, { units }) => sum + units, 0);
    };
    const waiters = open.filter(({ request }) => request.state === "WAITING");
    const standbys = open.filter(({ request }) => request.state === "STANDBY");
    return { tenant, field: { leases, capacityOf, spentOf }, waiters, standbys, agents, tasks, priorityOf, resources };
  });
}

/** A rename claims both names (C7); an intent with `pick` claims the picked resource. */
export function claimsOf(intents: readonly Intent[], picked: readonly string[] = []): Claim[] {
  return intents.flatMap(({ predicate, resource, units, to }, index) => {
    const claim = { predicate, resource: picked[index] ?? resource, units };
    return to === null ? [claim] : [claim, { ...claim, resource: to }];
  });
}
