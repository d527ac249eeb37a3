/** The oracle's lists and the kernel's records in one form, so that they can be compared. */

import type { RecordKind, RecordOf } from "../src/kernel/contract/records.ts";
import { type State, snapshot } from "../src/kernel/kernel.ts";
import { blankTenant, type Model, type ModelTenant, queue, standbys } from "./model.ts";

export type Records = { readonly [K in RecordKind]: RecordOf[K][] };

export function recordsOf(state: State): Records {
  const records: Records = {
    tenant: [],
    counters: [],
    agent: [],
    digest: [],
    resource: [],
    cell: [],
    request: [],
    lease: [],
    key: [],
    task: [],
    payload: [],
    task_type: [],
    worker: [],
    foreign_obligation: [],
    write: [],
    policy: [],
  };
  for (const { kind, record } of snapshot(state)) (records[kind] as (typeof record)[]).push(record);
  return records;
}

export function modelView(model: Model): unknown {
  const tenant = onlyTenant(model);
  return {
    suspended: tenant.suspended,
    leases: tenant.leases
      .map((lease) => {
        const until = `${lease.acquiredAt}..${lease.expiresAt} claim ${lease.claimBy} held ${lease.heldUntil} active ${lease.activeAt}`;
        const fence = lease.fencedInStep === model.step ? "new fence" : "";
        const what = `${lease.predicate} ${lease.resource} ${lease.state} generation ${lease.generation}`;
        return `${lease.id} ${lease.agentId} ${what} ${until} ${lease.pair?.id ?? ""} ${fence}`;
      })
      .sort(),
    byFence: [...tenant.leases].sort((a, b) => a.fence - b.fence).map((lease) => lease.id),
    waiting: queue(tenant).map((request) => `${request.id} ${request.agentId} until ${request.timeoutAt}`),
    standby: standbys(tenant).map((request) => `${request.id} ${request.agentId} until ${request.timeoutAt}`),
    remembered: tenant.requests
      .filter(({ state, passing, carried }) => state !== "WAITING" && state !== "STANDBY" && !passing && !carried)
      .map((request) => `${request.id} ${request.state} until ${request.forgetAt}`)
      .sort(),
    agents: tenant.agents
      .map((one) => {
        const flags = `${one.restarting ? "restarting" : ""} ${one.pausedByOperator ? "paused" : ""}`;
        return `${one.id} ${one.state} ${one.priority} attempts ${one.attempts} epoch ${one.epoch} ${flags}`;
      })
      .sort(),
    closed: tenant.resources
      .map((one) => `${one.name} ${one.capacity} ${one.fenced} ${one.withdrawn} ${spentText(one)}`)
      .sort(),
  };
}

export function kernelView(records: Records, modelIdOf: ReadonlyMap<string, string>, fenceMax: number): unknown {
  const id = (kernelId: string | null) => (kernelId === null ? "" : (modelIdOf.get(kernelId) ?? kernelId));
  const [tenant] = records.tenant;
  const priorityOf = new Map(records.agent.map((agent) => [agent.id, agent.priority]));
  const age = (agentId: string) => (tenant?.settings.strategy === "wait_die" ? 0 : (priorityOf.get(agentId) ?? 0));
  return {
    suspended: tenant?.suspended,
    leases: records.lease
      .map((lease) => {
        const until = `${lease.acquiredAt}..${lease.expiresAt} claim ${lease.claimBy} held ${lease.heldUntil} active ${lease.activeAt}`;
        const fence = lease.fence > fenceMax ? "new fence" : "";
        const what = `${lease.predicate} ${lease.resource} ${lease.state} generation ${lease.generation}`;
        return `${id(lease.id)} ${lease.agentId} ${what} ${until} ${id(lease.linkedTo)} ${fence}`;
      })
      .sort(),
    byFence: [...records.lease].sort((a, b) => a.fence - b.fence).map((lease) => id(lease.id)),
    waiting: records.request
      .filter((request) => request.state === "WAITING")
      .sort((a, b) => age(a.agentId) - age(b.agentId) || a.arrival - b.arrival)
      .map((request) => `${id(request.id)} ${request.agentId} until ${request.timeoutAt}`),
    standby: records.request
      .filter((request) => request.state === "STANDBY")
      .sort((a, b) => (priorityOf.get(a.agentId) ?? 0) - (priorityOf.get(b.agentId) ?? 0))
      .map((request) => `${id(request.id)} ${request.agentId} until ${request.timeoutAt}`),
    remembered: records.request
      .filter((request) => request.state !== "WAITING" && request.state !== "STANDBY")
      .map((request) => `${id(request.id)} ${request.state} until ${request.forgetAt}`)
      .sort(),
    agents: records.agent
      .map((one) => {
        const flags = `${one.restarting ? "restarting" : ""} ${one.pausedByOperator ? "paused" : ""}`;
        return `${one.id} ${one.state} ${one.priority} attempts ${one.attempts} epoch ${one.epoch} ${flags}`;
      })
      .sort(),
    closed: records.resource
      .map((one) => `${one.name} ${one.capacity} ${one.fenced} ${one.withdrawn} ${spentText(one)}`)
      .sort(),
  };
}

/** G15: which units come back when. */
function spentText({ spent }: { readonly spent: readonly { readonly at: number; readonly units: number }[] }): string {
  const unitsAt = new Map<number, number>();
  for (const { at, units } of spent) unitsAt.set(at, (unitsAt.get(at) ?? 0) + units);
  return [...unitsAt]
    .sort(([a], [b]) => a - b)
    .map(([at, units]) => `${units} at ${at}`)
    .join(", ");
}

/** A board has one tenant, which the first command creates. */
export function onlyTenant(model: Model): ModelTenant {
  return model.tenants[0] ?? blankTenant("");
}
