/**
 * What agents do: they acquire, hold, transfer, release, crash, return as another instance while the old one still
 * sends, lose replies, and send commands twice or too late.
 */
import type { Actor, Assumption, Command } from "../src/kernel/contract/commands.ts";
import { agentStates } from "../src/kernel/contract/records.ts";
import type { Refusal } from "../src/kernel/contract/refusals.ts";
import type { Reply } from "../src/kernel/contract/replies.ts";
import { badCommand } from "./bad-input.ts";
import { count } from "./counters.ts";
import { manifestFor } from "./manifests.ts";
import { anyPredicate } from "./populate.ts";
import { send } from "./send.ts";
import { actorOf, entropyOf, type SimAgent, type SimTenant, supervisor, type World } from "./world.ts";

const habits = {
  acquire: 300,
  heartbeat: 80,
  heartbeatAll: 50,
  release: 110,
  releaseAll: 30,
  renew: 40,
  transfer: 50,
  downgrade: 40,
  cancel: 25,
  collect: 45,
  verify: 25,
  restart: 20,
  transition: 50,
  saveDigest: 20,
  resume: 10,
  repeat: 35,
  reuse: 8,
  bad: 30,
  crash: 20,
  zombie: 25,
};

/** An agent without leases seldom names one; an agent that waits asks for its request. */
function habitsOf({ leases, requests }: SimAgent): typeof habits {
  const handsEmpty = leases.length > 0 ? {} : { heartbeat: 5, release: 5, renew: 2, transfer: 2, downgrade: 2 };
  return { ...habits, ...handsEmpty, collect: requests.length > 0 ? 160 : 5, cancel: requests.length > 0 ? 40 : 5 };
}

export function agentTurn(world: World, tenant: SimTenant, agent: SimAgent): void {
  if (agent.crashed) return comeBack(world, tenant, agent);
  const habit = world.random.weighted(habitsOf(agent));
  if (habit === "crash") {
    agent.crashed = true;
    return;
  }
  if (habit === "repeat") return repeat(world, agent);
  const actor =
    habit === "zombie" ? world.random.pick([...agent.zombies, actorOf(agent)]) : actorFor(world, tenant, agent);
  const command = commandFor(world, tenant, agent, actor, habit);
  deliver(world, agent, command);
}

/** Restarts it: as a new instance, or announced, so that its leases are held (L9, A3). */
function comeBack(world: World, tenant: SimTenant, agent: SimAgent): void {
  const { random } = world;
  const asked = { tenant: tenant.id, actor: supervisor, entropy: entropyOf(world) };
  switch (random.weighted({ stay: 30, announce: 25, returns: 15, register: 25, resume: 5 })) {
    case "stay":
      return;
    case "announce":
      send(world, { ...asked, type: "restart_agent", agentId: agent.id });
      return;
    case "returns":
      agent.crashed = false;
      return verifyAndRevive(world, agent);
    case "register":
      agent.crashed = false;
      takeUp(agent, send(world, { ...asked, type: "register_agent", agentId: agent.id, labels: null }));
      return;
    case "resume":
      takeUp(
        agent,
        send(world, { ...asked, type: "resume_agent", agentId: agent.id, assumptions: assumptionsFor(world, tenant) }),
      );
      return;
  }
}

/** After a pause or a restart it verifies its leases before it continues (L8, L9). */
function verifyAndRevive(world: World, agent: SimAgent): void {
  const asked = { tenant: agent.tenant, actor: actorOf(agent), entropy: entropyOf(world), agentId: agent.id };
  learn(agent, send(world, { ...asked, type: "verify_all", leaseIds: null }));
  if (world.random.chance(0.3)) return;
  learn(agent, send(world, { ...asked, type: "heartbeat_all", leaseIds: null, activity: true }));
}

/** The new instance knows the epoch; the old one goes on as a zombie for a while. */
function takeUp(agent: SimAgent, reply: Reply): void {
  if (reply.type !== "agent" && reply.type !== "resumed") return;
  agent.zombies = [...agent.zombies, actorOf(agent)].slice(-2);
  agent.epoch = reply.agent.epoch;
  agent.crashed = false;
}

/** It was forgotten after an idle week (S4), and registers again. */
function registerAnew(world: World, agent: SimAgent): void {
  const actor = { role: "agent", agentId: null, epoch: null } as const;
  const asked = { tenant: agent.tenant, actor, entropy: entropyOf(world), agentId: agent.id, labels: null };
  takeUp(agent, send(world, { ...asked, type: "register_agent" }));
}

/** A reply was lost: sends the same request under the same key, also after a restart (W10). */
function repeat(world: World, agent: SimAgent): void {
  const last = agent.sent.at(-1);
  if (last === undefined) return;
  const reply = send(world, { ...last, actor: actorOf(agent), entropy: entropyOf(world) });
  if (reply.type === "granted" || reply.type === "waiting" || reply.type === "standby")
    count(world.counters, "W10 repeated and answered");
  learn(agent, reply);
}

function commandFor(
  world: World,
  tenant: SimTenant,
  agent: SimAgent,
  actor: Actor,
  habit: Exclude<keyof typeof habits, "crash" | "repeat">,
): Command {
  const { random } = world;
  const asked = { tenant: tenant.id, actor, entropy: entropyOf(world) };
  const agentId = agent.id;
  const leaseId = agent.leases.length > 0 ? random.pick(agent.leases) : "lse_none";
  const requestId = agent.requests.length > 0 ? random.pick(agent.requests) : "req_none";
  const leaseIds = random.chance(0.7) ? null : [leaseId, random.pick(["lse_none", ...agent.leases])];
  switch (habit) {
    case "acquire":
    case "zombie":
      return manifestFor(world, tenant, agent, actor);
    case "reuse": {
      const manifest = manifestFor(world, tenant, agent, actor);
      return { ...manifest, requestKey: agent.sent.at(-1)?.requestKey ?? manifest.requestKey };
    }
    case "heartbeat":
      return { ...asked, type: "heartbeat", leaseId, activity: random.chance(0.5) };
    case "heartbeatAll":
      return { ...asked, type: "heartbeat_all", agentId, leaseIds, activity: random.chance(0.5) };
    case "release":
      return { ...asked, type: "release_lease", leaseId, version: random.chance(0.5) ? "sha-1" : null };
    case "releaseAll":
      return {
        ...asked,
        type: "release_all",
        agentId,
        leaseIds,
        versions: random.chance(0.3) ? { [leaseId]: "v2" } : null,
      };
    case "renew":
      return { ...asked, type: "renew_lease", activity: false, leaseId, generation: random.pick([null, null, 1, 2]) };
    case "transfer":
      return {
        ...asked,
        type: "transfer_lease",
        leaseId,
        version: random.pick([null, "v2", "v3"]),
        toAgentId: random.pick(tenant.agents).id,
      };
    case "downgrade":
      return {
        ...asked,
        type: "downgrade_lease",
        leaseId,
        version: random.pick([null, "v2", "v3"]),
        predicate: anyPredicate(world),
      };
    case "cancel":
      return { ...asked, type: "cancel_request", requestId };
    case "collect":
      return { ...asked, type: "collect_request", collect: null, requestId };
    case "verify":
      return { ...asked, type: "verify_all", agentId, leaseIds };
    case "restart":
      return { ...asked, type: "restart_agent", agentId };
    case "transition":
      return { ...asked, type: "transition_agent", agentId, to: random.pick([...agentStates, "DIE_RESTART"]) };
    case "saveDigest": {
      const intentBacklog = manifestFor(world, tenant, agent, actor).intents;
      const context = { files: random.below(9), notes: ["half done"] };
      const assumptions = assumptionsFor(world, tenant);
      const words = { checkpointId: "c-1", resumePoint: "tests", context, resolutionStrategy: "RETRY" };
      return { ...asked, type: "save_digest", agentId, digest: { ...words, intentBacklog, assumptions } };
    }
    case "resume":
      return { ...asked, type: "resume_agent", agentId, assumptions: assumptionsFor(world, tenant) };
    case "bad":
      return badCommand(world, tenant, agent);
  }
}

function assumptionsFor({ random }: World, { names }: SimTenant): Assumption[] {
  return random.chance(0.5) ? [] : names.slice(0, 2).map((resource) => ({ resource, version: "v2" }));
}

/** Sent at once, late, or twice. */
function deliver(world: World, agent: SimAgent, command: Command): void {
  const { random, mail, step } = world;
  const isLate = random.chance(0.04);
  if (isLate || random.chance(0.04)) {
    mail.push({ atStep: step + random.between(1, 80), command });
    count(world.counters, isLate ? "late command" : "repeated command");
    if (isLate) return;
  }
  const reply = send(world, command);
  if (command.type === "acquire" && command.requestKey !== null) agent.sent = [...agent.sent, command].slice(-3);
  if (!random.chance(0.08)) learn(agent, reply);
  if (reply.type === "refused") react(world, agent, command, reply);
  if (command.type === "resume_agent") takeUp(agent, reply);
  // A heartbeat that was in flight during the release.
  if (command.type === "release_lease" && reply.type === "lease" && reply.lease.state === "CLOSING") {
    const { tenant, actor, leaseId } = command;
    send(world, { tenant, actor, entropy: entropyOf(world), type: "heartbeat", leaseId, activity: false });
  }
  if (command.type === "transfer_lease" && reply.type === "lease") hear(world, reply.lease.agentId, command);
}

/** Mostly does what the refusal says. */
function react(world: World, agent: SimAgent, command: Command, { code }: Refusal): void {
  if (world.random.chance(0.2)) return;
  if (code === "agent_unknown") registerAnew(world, agent);
  if (code === "lease_unknown" && "leaseId" in command)
    agent.leases = agent.leases.filter((id) => id !== command.leaseId);
  const isOver = code === "request_unknown" || code === "wait_timeout" || code === "request_canceled";
  if (isOver && "requestId" in command) {
    agent.requests = agent.requests.filter((id) => id !== command.requestId);
  }
  if (code === "verify_required") verifyAndRevive(world, agent);
}

function hear(
  world: World,
  agentId: string,
  { tenant, leaseId }: { readonly tenant: string; readonly leaseId: string },
): void {
  const receiver = world.tenants.find(({ id }) => id === tenant)?.agents.find(({ id }) => id === agentId);
  if (receiver !== undefined) receiver.leases = [...receiver.leases, leaseId].slice(-8);
}

export function learn(agent: SimAgent, reply: Reply): void {
  switch (reply.type) {
    case "granted":
      agent.leases = [...agent.leases, ...reply.leases.map((lease) => lease.id)].slice(-8);
      break;
    case "waiting":
    case "standby":
      agent.requests = [...agent.requests, reply.requestId].filter((id) => id !== "").slice(-6);
      break;
    case "leases":
      agent.leases = [...agent.leases.slice(-2), ...reply.leases.map((lease) => lease.id)].slice(-8);
      break;
    default:
      break;
  }
}

/** Mostly the agent itself; sometimes a supervisor, or another agent, which is refused. */
function actorFor({ random }: World, tenant: SimTenant, agent: SimAgent): Actor {
  if (random.chance(0.05)) return supervisor;
  if (random.chance(0.03)) return actorOf(random.pick(tenant.agents));
  return actorOf(agent);
}
