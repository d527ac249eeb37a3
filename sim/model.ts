/**
 * The oracle: the rules a second time, written as plainly as possible and without regard to speed. It takes the
 * kernel's commands and predicts the reply and the live records. Where the two differ, one of them is wrong or a rule
 * is unclear. It has no cells, quotas or history: other tests cover those.
 *
 * Leases and requests have its own ids ("R3", "R3.1"); the comparison matches the kernel's ids to them by order.
 */
import type { Actor, Command } from "../src/kernel/contract/commands.ts";
import { acquire, present } from "./model/acquiring.ts";
import { register, takeUp, transition, verifyAll } from "./model/agents.ts";
import { endAllOf, endLease, endRequest } from "./model/ending.ts";
import { downgrade, heartbeat, release, renew, toldWith, transfer } from "./model/leases.ts";
import { tenantDefaults } from "./model/numbers.ts";
import { judge, observe, pauseIfBare } from "./model/observing.ts";
import { declare, fence, isUnderPrefix, reset, revoke, withdraw } from "./model/resources.ts";
import { nextDue, settleTenant } from "./model/time.ts";
import { queue, serve, standbys } from "./model/waiting.ts";
import {
  agentOf,
  beginUnit,
  leasesOf,
  type Model,
  type ModelAgent,
  type ModelRequest,
  type ModelTenant,
  type Prediction,
  refused,
} from "./model/world.ts";

export { queue, standbys } from "./model/waiting.ts";
export type { Model, ModelLease, ModelRequest, ModelTenant, Prediction } from "./model/world.ts";

export function createModel(): Model {
  return { tenants: [], step: 0 };
}

/** Settles, decides on a copy, and keeps the copy unless the reply must change nothing (W12, S3). */
export function predict(model: Model, command: Command, now: number): Prediction {
  model.step++;
  settleModel(model, now);
  const trial = structuredClone(model);
  const prediction = decide(trial, command, now);
  const dry = command.type === "acquire" && command.dryRun;
  if (!dry && (prediction.type !== "refused" || prediction.changes)) model.tenants = trial.tenants;
  return prediction;
}

export function settleModel(model: Model, now: number): void {
  for (const tenant of model.tenants) settleTenant(tenant, now, model.step);
}

export function nextDeadlineOf(model: Model): number {
  return Math.min(...model.tenants.map(nextDue));
}

function decide(model: Model, command: Command, now: number): Prediction {
  const { step } = model;
  if (command.type === "create_tenant") return createTenant(model, command.tenantId);
  const tenant = model.tenants.find((one) => one.id === command.tenant);
  if (tenant === undefined) return refused("tenant_unknown");
  switch (command.type) {
    // Only the one that opens everything.
    case "set_policy":
      return { type: "policy" };
    case "register_agent":
      return register(tenant, command.agentId ?? "", now, step);
    case "transition_agent":
      return forAgent(tenant, command, (agent) => transition(tenant, agent, command.to, now, step));
    case "restart_agent":
      return forAgent(tenant, command, (agent) => {
        if (!agent.restarting) agent.idleSince = now;
        agent.restarting = true;
        return { type: "agent" };
      });
    case "pause_agent":
    case "unpause_agent":
      return forAgent(tenant, command, (agent) => {
        const isPaused = command.type === "pause_agent";
        if (agent.pausedByOperator !== isPaused) agent.idleSince = now;
        agent.pausedByOperator = isPaused;
        serve(tenant, now, step);
        return { type: "agent" };
      });
    case "save_digest":
      return forAgent(tenant, command, (agent) => {
        const backlog = command.digest.intentBacklog.flatMap(({ resource, to }) => [
          resource,
          ...(to == null ? [] : [to]),
        ]);
        const { assumptions } = command.digest;
        agent.digest = { savedAt: now, backlog, assumptions };
        agent.idleSince = now;
        return { type: "digest" };
      });
    case "resume_agent":
      return forAgent(tenant, command, (agent) => {
        if (agent.digest === null) return refused("digest_unknown");
        const { savedAt } = agent.digest;
        const all = command.assumptions.length > 0 ? command.assumptions : agent.digest.assumptions;
        const assumptions = all.map((one) => judge(tenant, agent, one));
        takeUp(tenant, agent, now, step);
        const since = Math.min(agent.pausedAt ?? savedAt, savedAt);
        const assumed = all.map((one) => one.resource);
        const observation = observe(tenant, agent, since, assumed);
        if (assumptions.includes("failed")) replan(tenant, agent, now, step);
        return { type: "resumed", observation, assumptions };
      });
    case "verify_all":
      return forAgent(tenant, command, (agent) => verifyAll(tenant, agent, command.leaseIds, now));
    case "acquire":
      return forAgent(tenant, command, (agent) => acquire(tenant, agent, command, now, step));
    case "collect_request":
    case "cancel_request": {
      const request = tenant.requests.find((one) => one.id === command.requestId && !(one.passing || one.carried));
      if (request === undefined) return passingRequest(tenant, command.requestId, command);
      const not = whyNot(tenant, command.actor, request.agentId);
      if (not !== null) return refused(not);
      if (command.type === "collect_request") return present(tenant, request, command.collect ?? true);
      const isOpen = request.state === "WAITING" || request.state === "STANDBY";
      if (isOpen) endRequest(tenant, request, "CANCELED", now);
      // Granted while the cancellation was in flight: nobody will collect it.
      for (const lease of tenant.leases.filter((one) => one.request === request && one.claimBy !== null)) {
        endLease(tenant, lease, now, { version: null });
      }
      pauseIfBare(tenant, agentOf(tenant, request.agentId), now);
      serve(tenant, now, step);
      return { type: "done" };
    }
    case "heartbeat":
    case "renew_lease":
    case "release_lease":
    case "transfer_lease":
    case "downgrade_lease": {
      const lease = tenant.leases.find((one) => one.id === command.leaseId);
      if (lease === undefined) return refused("lease_unknown");
      const not = whyNot(tenant, command.actor, lease.agentId);
      if (not !== null) return refused(not === "forbidden" ? "not_lease_holder" : not);
      if (command.type === "heartbeat") return heartbeat(tenant, lease, command.activity, now);
      if (command.type === "renew_lease") return renew(tenant, lease, command, now, step);
      if (command.type === "downgrade_lease") return downgrade(tenant, lease, command, now, step);
      if (command.type === "release_lease") {
        release(tenant, [lease], () => command.version, now, step);
        return { type: "lease", leaseIds: [lease.id] };
      }
      return transfer(tenant, lease, command, now, step);
    }
    case "heartbeat_all":
      return forAgent(tenant, command, (agent) => {
        const collected: (ModelRequest | null)[] = [];
        for (const lease of named(tenant, agent, command.leaseIds)) {
          const isKept = lease.state === "ACTIVE" || lease.verified;
          if (isKept && lease.claimBy !== null) collected.push(lease.request);
        }
        for (const lease of named(tenant, agent, command.leaseIds)) heartbeat(tenant, lease, command.activity, now);
        return { type: "leases", ...toldWith(tenant, collected) };
      });
    case "release_all":
      return forAgent(tenant, command, (agent) => {
        const versions = command.versions ?? {};
        const leases = named(tenant, agent, command.leaseIds);
        release(tenant, leases, (lease) => versions[lease.id] ?? versions[lease.resource] ?? null, now, step);
        return { type: "leases" };
      });
    case "revoke": {
      const { target } = command;
      if (typeof target.resourcePrefix === "string")
        return revoke(tenant, isUnderPrefix(target.resourcePrefix), now, step);
      if ("agentId" in target && !tenant.agents.some((agent) => agent.id === target.agentId)) {
        return refused("agent_unknown");
      }
      if ("agentId" in target) return revoke(tenant, (lease) => lease.agentId === target.agentId, now, step);
      if (!tenant.leases.some((lease) => lease.id === target.leaseId)) return refused("lease_unknown");
      return revoke(tenant, (lease) => lease.id === target.leaseId, now, step);
    }
    case "declare_resource":
      return declare(tenant, command.resource, command, now, step);
    case "fence_resource":
      return fence(tenant, command.resource, now, step);
    case "reset_resource":
      return reset(tenant, command.resource);
    case "withdraw_resource":
      return withdraw(tenant, command.resource, command.revoke, now, step);
    case "suspend_tenant":
    case "resume_tenant":
      if (tenant.suspended === (command.type === "suspend_tenant")) return { type: "tenant" };
      tenant.suspended = !tenant.suspended;
      if (!tenant.suspended) return { type: "tenant" };
      for (const request of [...queue(tenant), ...standbys(tenant)]) {
        request.pausedBecause = "tenant_suspended";
        endRequest(tenant, request, "PAUSED", now);
      }
      for (const lease of tenant.leases) endLease(tenant, lease, now, "revoked");
      return { type: "tenant" };
    case "set_tenant_settings": {
      const settings = { ...tenant.settings, ...command.settings };
      const waits = tenant.requests.some(({ state }) => state === "WAITING" || state === "STANDBY");
      if (settings.strategy !== tenant.settings.strategy && waits) return refused("strategy_in_use");
      tenant.settings = settings;
      return { type: "tenant" };
    }
    case "bind_confirmed":
    case "bind_failed":
    case "teardown_confirmed":
    case "teardown_failed":
    case "enrol_cell":
    case "cell_heartbeat":
    case "cell_left":
    case "cell_ended":
    case "withdraw_cell":
    case "readmit_cell":
    case "report_violation":
    case "forget_ends":
    case "set_tenant_quotas":
    case "create_key":
    case "delete_key":
    case "delete_policy":
    case "rotate_key":
    case "assign_name":
    case "note_key_uses":
    case "adopt_directory":
    case "renew_agent_token":
    case "create_task":
    case "cancel_task":
    case "redrive_task":
    case "poll_tasks":
    case "heartbeat_task":
    case "release_task":
    case "set_task_type":
    case "submit_receipt":
    case "recover_obligation":
      throw new Error(`the oracle does not know the command ${command.type}`);
  }
}

/** A5: what the agent relied on has changed. */
function replan(tenant: ModelTenant, agent: ModelAgent, now: number, step: number): void {
  endAllOf(tenant, agent.id, now);
  if (agent.state === "COMPLETED" || agent.state === "ABORTED") beginUnit(tenant, agent, now);
  Object.assign(agent, { digest: null, restarting: false, state: "PLANNING", pausedAt: null, concerns: [] });
  serve(tenant, now, step);
}

function createTenant(model: Model, id: string): Prediction {
  if (model.tenants.some((one) => one.id === id)) return refused("tenant_exists");
  model.tenants.push(blankTenant(id));
  return { type: "tenant" };
}

export function blankTenant(id: string): ModelTenant {
  return {
    id,
    suspended: false,
    settings: tenantDefaults,
    agents: [],
    requests: [],
    leases: [],
    resources: [],
    ends: [],
    lastPriority: 0,
    epochFloor: 0,
    lastArrival: 0,
    lastFence: 0,
    lastEnded: 0,
  };
}

function forAgent(
  tenant: ModelTenant,
  command: { readonly actor: Actor; readonly agentId: string },
  then: (agent: ModelAgent) => Prediction,
): Prediction {
  const not = whyNot(tenant, command.actor, command.agentId);
  if (not !== null) return refused(not);
  const agent = tenant.agents.find((one) => one.id === command.agentId);
  return agent === undefined ? refused("agent_unknown") : then(agent);
}

/** A request without a record is found through its leases, and belongs to the holder of the first. */
function passingRequest(
  tenant: ModelTenant,
  requestId: string,
  { type, actor }: { readonly type: "collect_request" | "cancel_request"; readonly actor: Actor },
): Prediction {
  const leases = tenant.leases.filter((lease) => lease.id.startsWith(`${requestId}.`));
  const [first] = leases.sort((a, b) => (a.id < b.id ? -1 : 1));
  if (first === undefined) return refused("request_unknown");
  const not = whyNot(tenant, actor, first.agentId);
  if (not !== null) return refused(not);
  return type === "cancel_request"
    ? { type: "done" }
    : { type: "granted", requestId, leaseIds: leases.map(({ id }) => id) };
}

/** L13, A3: the agent itself in its present instance, or a principal above it. */
function whyNot(tenant: ModelTenant, actor: Actor, agentId: string): "forbidden" | "stale_epoch" | null {
  if (actor.role === "operator" || actor.role === "supervisor") return null;
  if (actor.role !== "agent" || actor.agentId !== agentId) return "forbidden";
  const agent = tenant.agents.find((one) => one.id === agentId);
  return agent !== undefined && agent.epoch !== actor.epoch ? "stale_epoch" : null;
}

function named(tenant: ModelTenant, agent: ModelAgent, leaseIds: readonly string[] | null) {
  return leasesOf(tenant, agent.id).filter((lease) => leaseIds === null || leaseIds.includes(lease.id));
}
