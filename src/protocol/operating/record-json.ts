/** The other records as the wire shows them. They are asked for seldom, so objects will do. */
import type {
  Agent,
  AgentState,
  Cell,
  Digest,
  Intent,
  Key,
  Millis,
  Request,
  Resource,
  Tenant,
} from "../../kernel/contract/records.ts";
import { isoTime } from "../answers/iso-time.ts";
import type { CellView, OpenRequest } from "../answers/queries.ts";
import { blockerObject } from "../leases/lease-json.ts";
import type { ResourceState } from "../schema/vocabulary.ts";

export function agentObject(agent: Agent) {
  return {
    agent_id: agent.id,
    state: agentState(agent),
    priority_timestamp: agent.priority,
    epoch: agent.epoch,
    labels: agent.labels,
    attempts: agent.attempts,
    paused_by_operator: agent.pausedByOperator,
    registered_at: isoTime(agent.registeredAt),
    paused_at: agent.pausedAt === null ? null : isoTime(agent.pausedAt),
    /** Where an agent in DIE_RESTART goes back to (A1). */
    ...(agent.restarting && { returns_to: agent.state }),
  };
}

export function agentState({ state, restarting }: Agent): AgentState | "DIE_RESTART" {
  return restarting ? "DIE_RESTART" : state;
}

export function digestObject(digest: Digest) {
  return {
    agent_id: digest.agentId,
    checkpoint_id: digest.checkpointId,
    resume_point: digest.resumePoint,
    context: digest.context,
    intent_backlog: digest.intentBacklog.map(intentObject),
    resolution_strategy: digest.resolutionStrategy,
    priority_timestamp: digest.priority,
    saved_at: isoTime(digest.savedAt),
  };
}

export function intentObject({ predicate, resource, units, to, pick }: Intent) {
  return { predicate, resource, units, to, ...(pick !== null && { pick }) };
}

export function requestObject(request: Request) {
  return {
    request_id: request.id,
    agent_id: request.agentId,
    state: request.state,
    intents: request.intents.map(intentObject),
    purpose: request.purpose,
    submitted_at: isoTime(request.submittedAt),
    wait_timeout_ms: request.waitTimeout,
    lease_ids: request.leaseIds,
  };
}

export function openRequestObject({ request, wait }: OpenRequest, now: Millis) {
  return {
    request_id: request.id,
    agent_id: request.agentId,
    state: request.state,
    intents: request.intents.map(intentObject),
    purpose: request.purpose,
    submitted_at: isoTime(request.submittedAt),
    wait_timeout_ms: request.waitTimeout,
    times_out_in_ms: Math.max(0, request.timeoutAt - now),
    position: wait.position,
    blocked_by: wait.blockers.map((blocker) => blockerObject(blocker, now)),
    blocked_by_total: wait.blockersTotal,
  };
}

export function resourceObject(resource: Resource) {
  return {
    resource: resource.name,
    state: resourceState(resource),
    capacity: resource.capacity,
    cell: resource.cell,
    ...(resource.cell !== null && { driver: resource.driver, hardware: resource.hardware, fault: resource.fault }),
    reason: resource.fenceReason,
    fenced_at: resource.fencedAt === null ? null : isoTime(resource.fencedAt),
    declared_at: isoTime(resource.declaredAt),
  };
}

export function resourceState({ fenced, withdrawn }: Resource): ResourceState {
  return fenced ? "FENCED" : withdrawn ? "WITHDRAWN" : "READY";
}

/** Never its session or key: with them another could speak for it. */
export function cellObject({ id, state, goneReason, withdrawn, version, enrolledAt, changedAt }: Cell) {
  return {
    cell: id,
    state,
    reason: goneReason,
    withdrawn,
    version,
    since: isoTime(changedAt),
    enrolled_at: isoTime(enrolledAt),
  };
}

export function cellViewObject({ cell, isConnected, resources }: CellView) {
  return {
    ...cellObject(cell),
    connected: isConnected,
    resources: resources.map(({ resource, leases }) => ({
      resource: resource.name,
      driver: resource.driver,
      capacity: resource.capacity,
      hardware: resource.hardware,
      ready: resource.fault === null && !resource.fenced && !resource.withdrawn,
      fault: resource.fault,
      fenced: resource.fenceReason,
      withdrawn: resource.withdrawn,
      leases,
    })),
  };
}

export function tenantObject({ id, suspended, suspendReason, settings, quotas, createdAt }: Tenant) {
  return {
    tenant_id: id,
    suspended,
    reason: suspendReason,
    settings: {
      strategy: settings.strategy,
      ttl_ms_default: settings.ttlMsDefault,
      ttl_ms_max: settings.ttlMsMax,
      wait_timeout_ms_default: settings.waitTimeoutMsDefault,
      wait_timeout_ms_max: settings.waitTimeoutMsMax,
      claim_within_ms: settings.claimWithinMs,
      retry_ms_base: settings.retryMsBase,
      retry_ms_cap: settings.retryMsCap,
    },
    quotas: {
      leases_max: quotas.leasesMax,
      waiters_max: quotas.waitersMax,
      agents_max: quotas.agentsMax,
      resources_max: quotas.resourcesMax,
      patterns_max: quotas.patternsMax,
      tasks_max: quotas.tasksMax,
      lease_time_ms_max: quotas.leaseTimeMsMax,
      tenant_lease_time_ms_max: quotas.tenantLeaseTimeMsMax,
      kinds: quotas.kinds,
    },
    created_at: isoTime(createdAt),
  };
}

/** Never the hash: whoever lists keys has no use for it. */
export function keyObject({ id, role, tenant, label, createdAt }: Key) {
  return { key_id: id, role, tenant_id: tenant, label, created_at: isoTime(createdAt) };
}
