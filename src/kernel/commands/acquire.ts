/**
 * Acquiring a manifest: admission, conflicts, verdict (W2, W6, W7, G2). Everything is decided before anything is
 * changed, so a refusal or a dry run leaves no trace.
 */

import { conclude, followUp } from "../aftermath.ts";
import { becomeExecuting, becomePaused, noteRetry } from "../agents/agent-life.ts";
import { blindSince, observe, resourcesOf } from "../agents/observing.ts";
import type { Acquire } from "../contract/commands.ts";
import { requestIdOf, suffixFrom } from "../contract/ids.ts";
import type { Lease } from "../contract/records.ts";
import { refuse } from "../contract/refusals.ts";
import type { Reply, Verdict } from "../contract/replies.ts";
import { findBar } from "../deciding/admission.ts";
import { decide } from "../deciding/decide.ts";
import { leavesChoice, type Manifest, needsCells, readManifest } from "../deciding/manifest.ts";
import type { Obstacles } from "../deciding/obstacles.ts";
import { permit } from "../deciding/permit.ts";
import { pickNames } from "../deciding/picking.ts";
import { diedVerdict, predict, retryAfter } from "../deciding/verdicts.ts";
import {
  type AgentEntry,
  emit,
  freeNameOf,
  type LeaseEntry,
  type RequestEntry,
  type Turn,
  withLinked,
} from "../memory/state.ts";
import { describeRequest } from "../requests/describe.ts";
import { addRequest, attachLeases, beginLeases, emitRequest, enqueue, woundLeases } from "../requests/request-life.ts";
import type { FirstRequestState } from "../requests/request-states.ts";
import { endStandby, mayStandBy } from "../requests/standby.ts";
import { enterStandby } from "../requests/standby-index.ts";
import { mayBeStored } from "../requests/stored-keys.ts";
import { answerAfter, endIfSwept, type Later } from "../requests/sweep.ts";
import { woundMany } from "../requests/wounding.ts";
import { keyReused } from "./ended.ts";
import { liveLease } from "./holding.ts";

export function acquire(turn: Turn, agent: AgentEntry, command: Acquire): Reply | Later<Reply> {
  const { tenant, now } = turn;
  const asked = readManifest(tenant, command);
  if (asked.type === "refused") return asked;

  if (command.requestKey !== null && !command.dryRun) {
    const repeated = findRepeated(turn, agent, command, command.requestKey, asked.fingerprint);
    if (repeated !== null) return repeated;
  }
  if (agent.record.restarting) {
    return refuse("verify_required", "The agent announced a restart; call verify-all before it acquires.");
  }
  const permitted = permit(turn, command.actor, agent, asked);
  if (permitted.type === "refused") return permitted;
  const picked = leavesChoice(permitted.intents) ? pickNames(tenant, agent, permitted, now) : permitted;
  const manifest = picked.type === "manifest" ? picked : permitted;
  const decision =
    picked.type === "manifest"
      ? decide(tenant, agent, picked, now, turn.state.sliceMax)
      : (findBar(tenant, agent, []) ?? picked);
  if (command.dryRun) return predict(turn, agent, decision, manifest, command, mayStandBy(turn, agent, command));
  switch (decision.type) {
    case "refused":
      return decision;
    case "paused":
      becomePaused(turn, agent, "paused", resourcesOf(manifest.intents));
      return decision;
    case "die":
      if (mayStandBy(turn, agent, command)) return describeRequest(turn, standBy(turn, agent, manifest, command));
      return die(turn, agent, manifest, decision.obstacles, command);
    case "grant":
      if (decision.wounds.length > 0) return wound(turn, agent, manifest, decision, command);
      return grant(turn, agent, manifest, command);
    case "wait":
      if (decision.wounds.length > 0) return wound(turn, agent, manifest, decision, command);
      return describeRequest(turn, startWaiting(turn, agent, manifest, command));
    case "wound_many":
      return woundInSlices(turn, agent, manifest, decision.wounds, command);
  }
}

/** W10: what was asked under the same key is answered from its present state; what memory has forgotten, by the store. */
function findRepeated(turn: Turn, agent: AgentEntry, command: Acquire, key: string, fingerprint: string): Reply | null {
  const known = agent.keys.get(key);
  if (known !== undefined && known.record.fingerprint !== fingerprint) return keyReused();
  if (known?.kind === "request") return describeRequest(turn, known, command.collect !== false);
  if (known?.kind === "lease") {
    const lease = liveLease(turn, known.record.id);
    if (lease !== undefined) return granted(requestIdOf(lease.record.id), [lease.record]);
  }
  if (command.keyLookedUp === true) return null;
  return mayBeStored(turn, agent.record.id, key) ? { type: "request_key_unknown", key, fingerprint } : null;
}

/** The wounded leases end first, with all that follows; the requester takes its place; then waiters are served. */
function wound(
  turn: Turn,
  agent: AgentEntry,
  manifest: Manifest,
  decision: { readonly type: "grant" | "wait"; readonly wounds: readonly LeaseEntry[] },
  command: Acquire,
): Reply | Later<Reply> {
  if (decision.wounds.length > turn.state.sliceMax)
    return woundInSlices(turn, agent, manifest, decision.wounds, command);
  const wounded = decision.wounds.flatMap((lease) => withLinked(turn.tenant, lease));
  for (const lease of decision.wounds) {
    if (!endIfSwept(turn, lease)) woundLeases(turn, [lease]);
  }
  followUp(turn);
  if (decision.type === "grant") return grant(turn, agent, manifest, command);
  const request = startWaiting(turn, agent, manifest, command);
  // An intent that a lease of its own covers may have made it wait: then it is granted here.
  for (const lease of wounded) freeNameOf(turn, lease);
  conclude(turn);
  return describeRequest(turn, request);
}

/**
 * L14: very many are wounded slice by slice. The requester waits ahead of all that are younger, so that nobody slips in, and
 * is granted with the last slice unless somebody older is in its way. It is answered then.
 */
function woundInSlices(
  turn: Turn,
  agent: AgentEntry,
  manifest: Manifest,
  wounds: readonly LeaseEntry[],
  command: Acquire,
): Reply | Later<Reply> {
  const waitTimeout = Math.max(manifest.waitTimeout, turn.tenant.record.settings.waitTimeoutMsDefault);
  const request = startWaiting(turn, agent, { ...manifest, waitTimeout }, command);
  const wounding = woundMany(turn, agent, manifest.claims, agent.priority, wounds);
  return answerAfter(turn, wounding, (later) => describeRequest(later, request));
}

function granted(requestId: string, leases: readonly Lease[]): Reply {
  return { type: "granted", requestId, leases, warnings: [], observation: null, claimBy: null };
}

/** A key is kept by its lease where one lease is all that there is to say; otherwise the request has a record (W10). */
function grant(turn: Turn, agent: AgentEntry, manifest: Manifest, command: Acquire): Reply {
  if (agent.standby !== null) endStandby(turn, agent.standby, agent);
  const suffix = suffixFrom(turn.now, command.entropy);
  const requestId = `req_${suffix}`;
  const { pausedAt, concerns } = agent.record;
  const since = pausedAt === null && concerns.length === 0 ? null : blindSince(agent, manifest.intents);
  const binds = turn.tenant.resources.size > 0 && needsCells(turn.tenant, manifest.claims);
  const { requestKey: key } = command;
  const isCarried =
    key !== null &&
    !binds &&
    since === null &&
    manifest.claims.length === 1 &&
    manifest.picked.length === 0 &&
    manifest.warnings.length === 0;
  const terms = {
    suffix,
    ttl: manifest.ttl,
    idleTimeout: command.idleTimeoutMs,
    purpose: command.purpose,
    tokens: command.tokens,
    claimBy: null,
    binds,
    agentId: agent.record.id,
    requestKey: isCarried ? key : null,
    fingerprint: isCarried ? manifest.fingerprint : null,
  };
  const leases = beginLeases(turn, agent, manifest.claims, terms);
  const [first] = leases;
  if (isCarried && first !== undefined) agent.keys.set(key, first);
  else if (key !== null || binds) {
    const request = requestOf(turn, agent, manifest, requestId, command);
    attachLeases(turn, request, leases);
    if (binds) {
      becomePaused(turn, agent, "wait", resourcesOf(manifest.intents));
      return describeRequest(turn, request);
    }
  }
  becomeExecuting(turn, agent);
  const observation = since === null ? null : observe(turn, agent, since, resourcesOf(manifest.intents));
  return {
    type: "granted",
    requestId,
    leases: first !== undefined && leases.length === 1 ? [first.record] : leases.map((lease) => lease.record),
    warnings: manifest.warnings,
    observation,
    claimBy: null,
  };
}

function startWaiting(turn: Turn, agent: AgentEntry, manifest: Manifest, command: Acquire): RequestEntry {
  if (agent.standby !== null) endStandby(turn, agent.standby, agent);
  becomePaused(turn, agent, "wait", resourcesOf(manifest.intents));
  const id = `req_${suffixFrom(turn.now, command.entropy)}`;
  const request = requestOf(turn, agent, manifest, id, command);
  enqueue(turn, request);
  emitRequest(turn, request, "request.waiting", null);
  return request;
}

/** W14. What it was picked for now does not matter: it is picked again when something is freed. */
function standBy(turn: Turn, agent: AgentEntry, manifest: Manifest, command: Acquire): RequestEntry {
  becomePaused(turn, agent, "wait", resourcesOf(manifest.intents));
  const id = `req_${suffixFrom(turn.now, command.entropy)}`;
  const terms = { ...manifest, picked: [], waitTimeout: command.standbyMs };
  const request = requestOf(turn, agent, terms, id, command, "STANDBY");
  enterStandby(turn, request, agent);
  emitRequest(turn, request, "request.standing_by", null);
  return request;
}

function requestOf(
  turn: Turn,
  agent: AgentEntry,
  manifest: Manifest,
  id: string,
  command: Acquire,
  state: FirstRequestState = "WAITING",
): RequestEntry {
  const terms = {
    id,
    agentId: agent.record.id,
    key: command.requestKey,
    fingerprint: manifest.fingerprint,
    intents: manifest.intents,
    picked: manifest.picked,
    ttl: manifest.ttl,
    idleTimeout: command.idleTimeoutMs,
    purpose: command.purpose,
    tokens: command.tokens,
    waitTimeout: manifest.waitTimeout,
    observeSince: blindSince(agent, manifest.intents),
    warnings: manifest.warnings,
  };
  const request = addRequest(turn, agent, terms, state);
  if (command.requestKey !== null) agent.keys.set(command.requestKey, request);
  return request;
}

/** W5: at once, with a hint when to come again; the timestamp stays. */
function die(turn: Turn, agent: AgentEntry, manifest: Manifest, obstacles: Obstacles, command: Acquire): Verdict {
  const { tenant, now } = turn;
  becomePaused(turn, agent, "die", resourcesOf(manifest.intents));
  const attempt = agent.record.attempts;
  const resources = manifest.claims.map(({ claim }) => claim.name.text);
  emit(turn, {
    type: "request.died",
    tenant: tenant.record.id,
    at: now,
    agentId: agent.record.id,
    attempt,
    resources,
    requestId: null,
  });
  const hint = retryAfter(tenant, attempt, obstacles, now, command.entropy[1]);
  noteRetry(turn, agent, hint);
  return diedVerdict(agent.record.priority, attempt, obstacles, hint);
}
