/** Agents: registration, the state machine of A1, restarts (L9), checkpoints and taking up again (A2–A5). */

import {
  agentTransitions,
  digestSize,
  dropDigest,
  firstAgentState,
  holdsLive,
  inUnit,
  isResting,
  moveAgent,
  moveTo,
  noteIdle,
  placeAgent,
  putDigest,
  unconcerned,
  unpaused,
  updateAgent,
} from "../agents/agent-life.ts";
import { judge, observe } from "../agents/observing.ts";
import { checkValue, checkValues } from "../contract/bounds.ts";
import {
  type Assumption,
  commands,
  type DigestInput,
  type PauseAgent,
  type RegisterAgent,
  type ResumeAgent,
  type SaveDigest,
  type TransitionAgent,
  type VerifyAll,
} from "../contract/commands.ts";
import { agentIdFrom, keyIdPrefix } from "../contract/ids.ts";
import { checkDigest } from "../contract/inputs.gen.ts";
import { readPredicate } from "../contract/predicates.ts";
import { type Agent, agentStates, type Digest, type Intent, resolutionStrategies } from "../contract/records.ts";
import { deny, type Refusal, refuse } from "../contract/refusals.ts";
import type { Reply } from "../contract/replies.ts";
import { quotaExceeded, whyNoMemory } from "../deciding/admission.ts";
import { readName } from "../deciding/manifest.ts";
import { emitLease, reissue, updateLease } from "../leases/lease-life.ts";
import { listedLeasesOf, walkLeases } from "../leases/lease-walk.ts";
import { agentOf, isAbove, ownerOf, requireAbove, whyNotTakeUp } from "../memory/actors.ts";
import { away } from "../memory/entries.ts";
import { isSwept, type Job, type Sweep } from "../memory/jobs.ts";
import {
  type AgentEntry,
  changed,
  emit,
  freeName,
  type LeaseEntry,
  leasesOf,
  type RequestEntry,
  type Turn,
  takePriority,
} from "../memory/state.ts";
import { question } from "../policies/matching.ts";
import { credentialOf, noteScopes, whyNotPermitted } from "../policies/permissions.ts";
import { endRequest } from "../requests/request-life.ts";
import { answerAfter, type Later, sweep } from "../requests/sweep.ts";
import { LeaseReport, ownLeases } from "./holding.ts";

export function registerAgent(turn: Turn, command: RegisterAgent): Reply | Later<Reply> {
  const { tenant, now } = turn;
  const { actor, labels } = command;
  if (!isAbove(actor) && actor.role !== "agent") return refuse("forbidden", "This key may not register agents.");
  if (!isAbove(actor) && actor.agentId !== null && actor.agentId !== command.agentId) {
    return refuse("forbidden", "An agent's own token registers that agent again, and no other; use a key.");
  }
  const id = command.agentId ?? agentIdFrom(now, command.entropy);
  const asked = { ...question, action: "register_agent", id } as const;
  const refusal = checkValues(commands.register_agent, command) ?? whyNotPermitted(turn, actor, asked, "agent_id");
  if (refusal !== null) return refusal;
  // What a key or an agent has done stands under its id: one must not be taken for the other (R7).
  if (id.startsWith(keyIdPrefix)) {
    return refuse("invalid_agent_id", `An agent's id must not begin with ${keyIdPrefix}, as those of keys do.`, {
      field: "agent_id",
    });
  }
  const known = tenant.agents.get(id);
  const another = known === undefined ? null : whyNotTakeUp(actor, known);
  if (another !== null) return another;
  const noMemory = hasMoreLabels(labels, known) ? whyNoMemory(tenant) : null;
  if (noMemory !== null) return noMemory;
  // What the key is narrowed to, all its agents are; an agent's own token stays what it is.
  const { keyId, scopes } = credentialOf(tenant, actor);
  if (scopes !== null) noteScopes(turn.state);
  if (known !== undefined) {
    if (known.record.keyId !== keyId) updateAgent(turn, known, { ...known.record, keyId, scopes });
    const issuing = takeUp(turn, known, labels);
    const { record } = known;
    return answerAfter(turn, issuing, () => ({ type: "agent", agent: record, created: false }));
  }
  if (tenant.agents.size >= tenant.record.quotas.agentsMax) {
    return deny("quota", `The tenant may have ${tenant.record.quotas.agentsMax} agents.`);
  }
  const record: Agent = {
    tenant: tenant.record.id,
    id,
    labels: labels ?? {},
    state: firstAgentState,
    restarting: false,
    pausedByOperator: false,
    priority: takePriority(turn),
    attempts: 0,
    epoch: tenant.counters.record.epochFloor + 1,
    registeredAt: now,
    registeredBy: ownerOf(actor),
    ...unconcerned,
    idleSince: now,
    digestBytes: 0,
    keyId,
    scopes,
  };
  changed(turn, placeAgent(turn, record));
  emit(turn, { type: "agent.registered", tenant: tenant.record.id, at: now, agent: record });
  return { type: "agent", agent: record, created: true };
}

/** A new agent, or one that takes up more memory than before (S4). */
function hasMoreLabels(labels: RegisterAgent["labels"], known: AgentEntry | undefined): boolean {
  if (known === undefined) return true;
  return Object.keys(labels ?? {}).length > Object.keys(known.record.labels).length;
}

/**
 * A3: another instance. The older one is refused from now on, and its tokens and fences are stale at the resource when the
 * newer one is answered: very many leases are re-issued slice by slice (L14).
 */
function takeUp(turn: Turn, agent: AgentEntry, labels: Readonly<Record<string, string>> | null): Job | null {
  const { epoch, labels: before } = agent.record;
  updateAgent(turn, agent, { ...agent.record, epoch: epoch + 1, labels: labels ?? before });
  // The older instance stood by; the newer one may acquire something else at once (W14).
  if (agent.standby !== null) endRequest(turn, agent.standby, "CANCELED", "taken_up");
  const isMany = agent.leaseCount > turn.state.sliceMax;
  if (!isMany) for (const lease of leasesOf(agent)) if (!isSwept(turn.tenant, lease)) issueAgain(turn, lease);
  emit(turn, { type: "agent.taken_up", tenant: turn.tenant.record.id, at: turn.now, agent: agent.record });
  return isMany ? walkLeases(turn, agent, issueAgain) : null;
}

function issueAgain(turn: Turn, lease: LeaseEntry): void {
  if (lease.record.state === "CLOSING") return;
  reissue(turn, lease, lease.record);
  emitLease(turn, lease, "lease.reissued", null);
}

export function transitionAgent(turn: Turn, agent: AgentEntry, command: TransitionAgent): Reply | Later<Reply> {
  const to = agentStates.find((one) => one === command.to);
  if (command.to === "DIE_RESTART") return restartAgent(turn, agent);
  if (to === undefined) {
    return refuse("invalid_state", `The states are ${agentStates.join(", ")}.`, { field: "to" });
  }
  const { state: from, restarting } = agent.record;
  // Back to where it was, out of a restart; what is held still needs VERIFY_ALL (L9).
  if (from === to) {
    if (restarting) updateAgent(turn, agent, { ...agent.record, restarting: false });
    return { type: "agent", agent: agent.record, created: false };
  }
  const move = to === "PAUSED" ? null : moveTo[to];
  if (move === null || agentTransitions[from][move] === "refused" || (restarting && move !== "abort")) {
    const state = restarting ? "DIE_RESTART" : from;
    return refuse("invalid_transition", `An agent cannot move from ${state} to ${to}.`, { from: state, to });
  }
  if (to === "EXECUTING" && !holdsLive(turn, agent)) {
    return refuse(
      "invalid_transition",
      `An agent in ${from} without a lease cannot move to EXECUTING; acquire first.`,
      {
        from,
        to,
      },
    );
  }
  const holdsNothing = isResting(to);
  const letting = holdsNothing ? letGo(turn, agent, to.toLowerCase()) : null;
  if (from === "PAUSED" && to === "PLANNING") dropDigest(turn, agent);
  const next = to === "ABORTED" ? agent.record : inUnit(turn, agent);
  const since = next.pausedAt;
  const pausedAt = to === "EXECUTING" ? null : since;
  const moved = { ...next, ...unpaused, pausedAt, ...(holdsNothing && unconcerned), restarting: false };
  moveAgent(turn, agent, move, moved);
  const observation = to === "EXECUTING" ? observe(turn, agent, since ?? turn.now, []) : null;
  if (observation !== null) return { type: "agent", agent: agent.record, created: false, observation };
  return afterLettingGo(turn, agent, letting);
}

/** Ends what the agent holds and waits for, which very many leases may take a while to (L14). */
function letGo(turn: Turn, agent: AgentEntry, reason: string): Sweep {
  return sweep(turn, {
    find: (most) =>
      agent.leaseCount + agent.open.size > most ? null : { requests: requestsOf(agent), leases: leasesOf(agent) },
    leaseEnd: ({ holder }) => (holder === agent ? { as: "RELEASED", reason } : null),
    requestEnd: ({ holder }) => (holder === agent ? { fate: "CANCELED", reason } : null),
  });
}

function afterLettingGo(turn: Turn, agent: AgentEntry, letting: Sweep | null): Reply | Later<Reply> {
  const { record } = agent;
  return answerAfter(turn, letting, () => ({ type: "agent", agent: record, created: false }));
}

function requestsOf({ open, standby }: AgentEntry): readonly RequestEntry[] {
  return standby === null ? [...open] : [standby, ...open];
}

export function restartAgent(turn: Turn, agent: AgentEntry): Reply {
  if (!agent.record.restarting) updateAgent(turn, agent, { ...agent.record, restarting: true });
  return { type: "agent", agent: agent.record, created: false };
}

export function pauseAgent(turn: Turn, command: PauseAgent): Reply {
  const { tenant, now } = turn;
  const asked = { ...question, action: "register_agent", id: command.agentId } as const;
  const refusal: Refusal | null =
    requireAbove(command.actor) ?? whyNotPermitted(turn, command.actor, asked, "agent_id");
  if (refusal !== null) return refusal;
  const agent = agentOf(turn, command);
  if ("code" in agent) return agent;
  const pausedByOperator = command.type === "pause_agent";
  if (agent.record.pausedByOperator !== pausedByOperator) {
    updateAgent(turn, agent, { ...agent.record, pausedByOperator });
    const type = pausedByOperator ? "agent.paused" : "agent.unpaused";
    emit(turn, { type, tenant: tenant.record.id, at: now, agent: agent.record });
    // While it was paused it could not be granted what it stands by for.
    if (!pausedByOperator) for (const { name } of agent.standby?.claims ?? []) freeName(turn, name);
  }
  return { type: "agent", agent: agent.record, created: false };
}

/** L8: the truth about all, or the named, leases. It ends DIE_RESTART, and lets held leases be revived (L9). */
export function verifyAll(turn: Turn, agent: AgentEntry, command: VerifyAll): Reply | Later<Reply> {
  if (agent.record.restarting) updateAgent(turn, agent, { ...agent.record, restarting: false });
  if (command.leaseIds === null && agent.leaseCount > turn.state.sliceMax) {
    const report = new LeaseReport();
    const verifying = walkLeases(turn, agent, (later, lease) => {
      verify(later, lease);
      report.add(lease);
    });
    return answerAfter(turn, verifying, () => report.reply([]));
  }
  const { found, lost } = ownLeases(turn, agent, command.leaseIds);
  for (const lease of found) verify(turn, lease);
  return { type: "leases", leases: found.map((lease) => lease.record), lost, notExtended: [], total: null };
}

function verify(turn: Turn, lease: LeaseEntry): void {
  if (lease.record.state === "HELD" && !lease.record.verified)
    updateLease(turn, lease, { ...lease.record, verified: true });
}

export function saveDigest(turn: Turn, agent: AgentEntry, command: SaveDigest): Reply {
  const { tenant, now } = turn;
  const read = readDigest(command.digest);
  if ("code" in read) return read;
  const digest: Digest = {
    ...read,
    tenant: tenant.record.id,
    agentId: agent.record.id,
    priority: agent.record.priority,
    savedAt: now,
  };
  const bytes = digestSize(digest);
  const { digestBytesMax } = tenant.record.quotas;
  const used = tenant.digestBytes - agent.record.digestBytes;
  if (used + bytes > digestBytesMax) return quotaExceeded("digest_bytes_max", used, digestBytesMax);
  putDigest(turn, agent, digest, bytes);
  noteIdle(turn, agent);
  return { type: "digest", digest };
}

function readDigest(input: DigestInput): Omit<Digest, "tenant" | "agentId" | "priority" | "savedAt"> | Refusal {
  const refusal = checkDigest(input);
  if (refusal !== null) return refusal;
  const intentBacklog: Intent[] = [];
  for (const { predicate: text, resource, units, to, pick } of input.intentBacklog) {
    const field = `intent_backlog.${intentBacklog.length}`;
    const predicate = readPredicate(text);
    if (predicate === undefined)
      return refuse("invalid_predicate", "There is no such predicate.", { field: `${field}.predicate` });
    const name = readName(resource, `${field}.resource`);
    if ("code" in name) return name;
    const target = to === null || to === undefined ? null : readName(to, `${field}.to`);
    if (target !== null && "code" in target) return target;
    intentBacklog.push({
      predicate,
      resource: name.text,
      units: units ?? 1,
      to: target?.text ?? null,
      pick: pick ?? null,
    });
  }
  const assumptions = readAssumptions(input.assumptions);
  if ("code" in assumptions) return assumptions;
  const { checkpointId, resumePoint, context } = input;
  const resolutionStrategy = resolutionStrategies.find((one) => one === input.resolutionStrategy) ?? "RETRY";
  return { checkpointId, resumePoint, context, intentBacklog, resolutionStrategy, assumptions };
}

function readAssumptions(given: readonly Assumption[]): readonly Assumption[] | Refusal {
  const assumed: Assumption[] = [];
  for (const [index, { resource, version }] of given.entries()) {
    const name = readName(resource, `assumptions.${index}.resource`);
    if ("code" in name) return name;
    assumed.push({ resource: name.text, version });
  }
  return assumed;
}

/** The edge mints the token: for the present instance, and nothing changes for it. */
export function renewAgentToken(_turn: Turn, agent: AgentEntry): Reply {
  return { type: "agent", agent: agent.record, created: false };
}

/** A3 to A5, in one step: nothing can come between the judgement, the new epoch and the end of a digest that failed. */
export function resumeAgent(turn: Turn, agent: AgentEntry, command: ResumeAgent): Reply | Later<Reply> {
  if (agent.digest === null) return refuse("digest_unknown", "The agent has no checkpoint; start from planning.");
  const refusal = checkValue("assumptions", commands.resume_agent.assumptions, command.assumptions);
  if (refusal !== null) return refusal;
  const digest = agent.digest.record;
  if (digest.context === away) return { type: "payload_away", taskId: null, agentId: agent.record.id };
  const named = readAssumptions(command.assumptions);
  if ("code" in named) return named;
  const assumed = named.length > 0 ? named : digest.assumptions;
  const assumptions = assumed.map((one) => judge(turn, agent, one, digest.savedAt));
  const issuing = takeUp(turn, agent, null);
  const held = listedLeasesOf(agent);
  const leases = issuing === null ? held.map((lease) => lease.record) : null;
  const since = Math.min(agent.record.pausedAt ?? digest.savedAt, digest.savedAt);
  const resources = assumed.map(({ resource }) => resource);
  const observation = observe(turn, agent, since, resources);
  const isFailed = assumptions.some(({ outcome }) => outcome === "failed");
  const letting = isFailed ? replan(turn, agent) : null;
  const { record } = agent;
  const answer = (): Reply => {
    const issued = leases ?? held.map((lease) => lease.record);
    return { type: "resumed", agent: record, digest, leases: issued, observation, assumptions };
  };
  // The leases that are let go need not be re-issued first.
  return answerAfter(turn, letting ?? issuing, answer);
}

/** What the agent assumed no longer holds. */
function replan(turn: Turn, agent: AgentEntry): Sweep {
  const letting = letGo(turn, agent, "assumption_failed");
  dropDigest(turn, agent);
  moveAgent(turn, agent, "replan", { ...inUnit(turn, agent), ...unconcerned, restarting: false });
  return letting;
}
