/**
 * Acquiring a manifest: admission, conflicts, verdict (W2, W6, W7, G2). Everything is decided before anything is
 * changed, so a refusal or a dry run leaves no trace.
 */

import { conclude, followUp } from "../aftermath.ts";
import { becomeExecuting, becomePaused } from "../agents/agent-states.ts";
import type { Acquire } from "../contract/commands.ts";
import { requestIdWith, suffixFrom } from "../contract/ids.ts";
import type { Request } from "../contract/records.ts";
import { refuse } from "../contract/refusals.ts";
import type { Reply, Verdict } from "../contract/replies.ts";
import { findStandingBar } from "../deciding/bars.ts";
import { leavesChoice, needsCells } from "../deciding/claims.ts";
import { decide } from "../deciding/decide.ts";
import { fingerprintOf, type Manifest, readManifest } from "../deciding/manifest.ts";
import type { Obstacles } from "../deciding/obstacles.ts";
import { pickNames } from "../deciding/picking.ts";
import { diedVerdict, predict } from "../deciding/verdicts.ts";
import { createRequestEntry } from "../memory/entries.ts";
import {
  type AgentEntry,
  changed,
  emit,
  freeNameOf,
  type LeaseEntry,
  type RequestEntry,
  type Turn,
  withLinked,
} from "../memory/state.ts";
import { describeRequest, observeFor } from "../requests/describe.ts";
import { endLeases } from "../requests/ending.ts";
import { attachLeases, beginLeases, emitRequest, enqueue } from "../requests/request-life.ts";
import { firstRequestState } from "../requests/request-states.ts";

export function acquire(turn: Turn, agent: AgentEntry, command: Acquire): Reply {
  const { tenant, now } = turn;
  const asked = readManifest(tenant, command);
  if (asked.type === "refused") return asked;

  const fingerprint = command.requestKey === null ? "" : fingerprintOf(command, asked.intents);
  const known = command.requestKey === null ? undefined : agent.keys.get(command.requestKey);
  if (known !== undefined && !command.dryRun) {
    if (known.record.fingerprint === fingerprint) return describeRequest(turn, known);
    return refuse("request_id_reused", "This request_id was used for another request; take a new one.", {
      field: "request_id",
    });
  }
  if (agent.record.restarting) {
    return refuse("verify_required", "The agent announced a restart; call verify-all before it acquires.");
  }
  const picked = leavesChoice(asked.intents) ? pickNames(tenant, agent, asked, now) : asked;
  const manifest = picked.type === "manifest" ? picked : asked;
  const decision =
    picked.type === "manifest" ? decide(tenant, agent, picked, now) : (findStandingBar(tenant, agent) ?? picked);
  if (command.dryRun) return predict(tenant, agent, decision, manifest, command, now);
  switch (decision.type) {
    case "refused":
      return decision;
    case "pause":
      becomePaused(turn, agent, false);
      return { type: "paused", reason: decision.reason, detail: decision.detail, resource: decision.resource };
    case "die":
      return die(turn, agent, manifest, decision.obstacles, command);
    case "grant":
      if (decision.wounds.length > 0) return wound(turn, agent, manifest, decision, fingerprint, command);
      return grant(turn, agent, manifest, fingerprint, command);
    case "wait":
      if (decision.wounds.length > 0) return wound(turn, agent, manifest, decision, fingerprint, command);
      return describeRequest(turn, startWaiting(turn, agent, manifest, fingerprint, command));
  }
}

/** The wounded leases end first, with all that follows; the requester takes its place; then waiters are served. */
function wound(
  turn: Turn,
  agent: AgentEntry,
  manifest: Manifest,
  decision: { readonly type: "grant" | "wait"; readonly wounds: readonly LeaseEntry[] },
  fingerprint: string,
  command: Acquire,
): Reply {
  const wounded = decision.wounds.flatMap((lease) => withLinked(turn.tenant, lease));
  endLeases(turn, decision.wounds, "REVOKED", "wounded");
  followUp(turn);
  if (decision.type === "grant") return grant(turn, agent, manifest, fingerprint, command);
  const request = startWaiting(turn, agent, manifest, fingerprint, command);
  // An intent that a lease of its own covers may have made it wait: then it is granted here.
  for (const lease of wounded) freeNameOf(turn, lease);
  conclude(turn);
  return describeRequest(turn, request);
}

function grant(turn: Turn, agent: AgentEntry, manifest: Manifest, fingerprint: string, command: Acquire): Reply {
  const suffix = suffixFrom(turn.now, command.entropy);
  const requestId = requestIdWith(suffix);
  const observe = observeFor(agent, agent.record.pausedAt, manifest.intents);
  const terms = {
    suffix,
    ttl: manifest.ttl,
    idleTimeout: command.idleTimeoutMs,
    purpose: command.purpose,
    tokens: command.tokens,
    claimBy: null,
    binds: needsCells(turn.tenant, manifest.claims),
    agentId: agent.record.id,
  };
  const leases = beginLeases(turn, agent, manifest.claims, terms);
  const { binds } = terms;
  if (command.requestKey !== null || binds) {
    const request = addRequest(turn, agent, manifest, requestId, fingerprint, command);
    attachLeases(turn, request, leases);
    if (binds) {
      becomePaused(turn, agent, false);
      return describeRequest(turn, request);
    }
  }
  becomeExecuting(turn, agent);
  return {
    type: "granted",
    requestId,
    leases: leases.map((lease) => lease.record),
    warnings: manifest.warnings,
    observe,
  };
}

function startWaiting(
  turn: Turn,
  agent: AgentEntry,
  manifest: Manifest,
  fingerprint: string,
  command: Acquire,
): RequestEntry {
  becomePaused(turn, agent, false);
  const request = addRequest(
    turn,
    agent,
    manifest,
    requestIdWith(suffixFrom(turn.now, command.entropy)),
    fingerprint,
    command,
  );
  enqueue(turn, request);
  emitRequest(turn, request, "request.waiting", null);
  return request;
}

function addRequest(
  turn: Turn,
  agent: AgentEntry,
  manifest: Manifest,
  id: string,
  fingerprint: string,
  command: Acquire,
) {
  const { tenant, now } = turn;
  const { counters } = tenant;
  counters.record = { ...counters.record, arrival: counters.record.arrival + 1 };
  changed(turn, counters);
  const record: Request = {
    tenant: tenant.record.id,
    id,
    agentId: agent.record.id,
    holder: agent.holderId,
    key: command.requestKey,
    fingerprint,
    state: firstRequestState,
    intents: manifest.intents,
    picked: manifest.picked,
    ttl: manifest.ttl,
    idleTimeout: command.idleTimeoutMs,
    purpose: command.purpose,
    tokens: command.tokens,
    arrival: counters.record.arrival,
    submittedAt: now,
    waitTimeout: manifest.waitTimeout,
    timeoutAt: now + manifest.waitTimeout,
    observeSince: agent.record.pausedAt,
    warnings: manifest.warnings,
    leaseIds: [],
    ended: [],
    fateReason: null,
    forgetAt: null,
  };
  const request = createRequestEntry(record, agent);
  tenant.requests.set(id, request);
  if (command.requestKey !== null) agent.keys.set(command.requestKey, request);
  changed(turn, request);
  return request;
}

/** W5: at once, with a hint when to come again; the timestamp stays. */
function die(turn: Turn, agent: AgentEntry, manifest: Manifest, obstacles: Obstacles, command: Acquire): Verdict {
  const { tenant, now } = turn;
  becomePaused(turn, agent, true);
  const attempt = agent.record.attempts;
  const resources = manifest.claims.map(({ claim }) => claim.name.text);
  emit(turn, {
    type: "request.died",
    tenant: tenant.record.id,
    at: now,
    agentId: agent.record.id,
    attempt,
    resources,
  });
  return diedVerdict(tenant, agent.record.priority, attempt, obstacles, command);
}
