/**
 * Acquiring a manifest: admission, conflicts, verdict (W2, W6, W7, G2). Everything is decided before anything is
 * changed, so a refusal or a dry run leaves no trace.
 */

import { becomeExecuting, becomePaused } from "../agents/agent-life.ts";
import type { Acquire } from "../contract/commands.ts";
import { requestIdWith, suffixFrom } from "../contract/ids.ts";
import type { Millis, Request } from "../contract/records.ts";
import { refuse } from "../contract/refusals.ts";
import type { Reply, Verdict } from "../contract/replies.ts";
import type { Obstacles } from "../deciding/conflicts.ts";
import { decide, findStandingBar } from "../deciding/decide.ts";
import { fingerprintOf, type Manifest, readManifest } from "../deciding/manifest.ts";
import { leavesChoice, pickNames } from "../deciding/picking.ts";
import { diedVerdict, foretell } from "../deciding/verdicts.ts";
import { endLeases } from "../leases/holding.ts";
import { nameOf, withLinked } from "../leases/lease-life.ts";
import { findAgent, findTenant } from "../memory/actors.ts";
import {
  type AgentEntry,
  changed,
  createRequestEntry,
  emit,
  type LeaseEntry,
  type RequestEntry,
  type State,
  type TenantEntry,
} from "../memory/state.ts";
import { serve } from "./queue.ts";
import { attachLeases, beginLeases, emitRequest, enqueue, needsCells } from "./request-life.ts";
import { describeRequest, observeFor } from "./requests.ts";

export function acquire(state: State, command: Acquire, now: Millis): Reply {
  const tenant = findTenant(state, command.tenant);
  if ("code" in tenant) return tenant;
  const agent = findAgent(tenant, command.actor, command.agentId);
  if ("code" in agent) return agent;
  const asked = readManifest(tenant, command);
  if (asked.type === "refused") return asked;

  const fingerprint = command.requestKey === null ? "" : fingerprintOf(command, asked.intents);
  const known = command.requestKey === null ? undefined : agent.keys.get(command.requestKey);
  if (known !== undefined && !command.dryRun) {
    if (known.record.fingerprint === fingerprint) return describeRequest(state, tenant, known);
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
  if (command.dryRun) return foretell(tenant, agent, decision, manifest, command, now);
  switch (decision.type) {
    case "refused":
      return decision;
    case "pause":
      becomePaused(state, tenant, agent, false, now);
      return { type: "paused", reason: decision.reason, detail: decision.detail, resource: decision.resource };
    case "die":
      return die(state, tenant, agent, manifest, decision.obstacles, command, now);
    case "grant":
      if (decision.wounds.length > 0) return wound(state, tenant, agent, manifest, decision, fingerprint, command, now);
      return grant(state, tenant, agent, manifest, fingerprint, command, now);
    case "wait":
      if (decision.wounds.length > 0) return wound(state, tenant, agent, manifest, decision, fingerprint, command, now);
      return describeRequest(state, tenant, startWaiting(state, tenant, agent, manifest, fingerprint, command, now));
  }
}

/** The wounded are ended first, the requester takes its place, and only then are others served: it goes ahead of them. */
function wound(
  state: State,
  tenant: TenantEntry,
  agent: AgentEntry,
  manifest: Manifest,
  decision: { readonly type: "grant" | "wait"; readonly wounds: readonly LeaseEntry[] },
  fingerprint: string,
  command: Acquire,
  now: Millis,
): Reply {
  const freed = decision.wounds.flatMap((lease) => withLinked(tenant, lease)).map(nameOf);
  freed.push(...endLeases(state, tenant, decision.wounds, "REVOKED", "wounded", now));
  if (decision.type === "grant") {
    const reply = grant(state, tenant, agent, manifest, fingerprint, command, now);
    serve(state, tenant, freed, now);
    return reply;
  }
  const request = startWaiting(state, tenant, agent, manifest, fingerprint, command, now);
  serve(state, tenant, freed, now);
  return describeRequest(state, tenant, request);
}

function grant(
  state: State,
  tenant: TenantEntry,
  agent: AgentEntry,
  manifest: Manifest,
  fingerprint: string,
  command: Acquire,
  now: Millis,
): Reply {
  const suffix = suffixFrom(now, command.entropy);
  const requestId = requestIdWith(suffix);
  const observe = observeFor(agent, agent.record.pausedAt, manifest.intents);
  const terms = {
    suffix,
    ttl: manifest.ttl,
    idleTimeout: command.idleTimeoutMs,
    purpose: command.purpose,
    tokens: command.tokens,
    claimBy: null,
    binds: needsCells(tenant, manifest.wishes),
    agentId: agent.record.id,
  };
  const leases = beginLeases(state, tenant, agent, manifest.wishes, terms, now);
  const { binds } = terms;
  if (command.requestKey !== null || binds) {
    const request = addRequest(state, tenant, agent, manifest, requestId, fingerprint, command, now);
    attachLeases(state, request, leases);
    if (binds) {
      becomePaused(state, tenant, agent, false, now);
      return describeRequest(state, tenant, request);
    }
  }
  becomeExecuting(state, tenant, agent, now);
  return {
    type: "granted",
    requestId,
    leases: leases.map((lease) => lease.record),
    warnings: manifest.warnings,
    observe,
  };
}

function startWaiting(
  state: State,
  tenant: TenantEntry,
  agent: AgentEntry,
  manifest: Manifest,
  fingerprint: string,
  command: Acquire,
  now: Millis,
): RequestEntry {
  becomePaused(state, tenant, agent, false, now);
  const request = addRequest(
    state,
    tenant,
    agent,
    manifest,
    requestIdWith(suffixFrom(now, command.entropy)),
    fingerprint,
    command,
    now,
  );
  enqueue(state, tenant, request);
  emitRequest(state, request, "request.waiting", null, now);
  return request;
}

function addRequest(
  state: State,
  tenant: TenantEntry,
  agent: AgentEntry,
  manifest: Manifest,
  id: string,
  fingerprint: string,
  command: Acquire,
  now: Millis,
) {
  const { counters } = tenant;
  counters.record = { ...counters.record, arrival: counters.record.arrival + 1 };
  changed(state, counters);
  const record: Request = {
    tenant: tenant.record.id,
    id,
    agentId: agent.record.id,
    holder: agent.holder,
    key: command.requestKey,
    fingerprint,
    state: "WAITING",
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
  changed(state, request);
  return request;
}

/** W5: at once, with a hint when to come again; the timestamp stays. */
function die(
  state: State,
  tenant: TenantEntry,
  agent: AgentEntry,
  manifest: Manifest,
  obstacles: Obstacles,
  command: Acquire,
  now: Millis,
): Verdict {
  becomePaused(state, tenant, agent, true, now);
  const attempt = agent.record.attempts;
  const resources = manifest.wishes.map(({ wish }) => wish.name.text);
  emit(state, {
    type: "request.died",
    tenant: tenant.record.id,
    at: now,
    agentId: agent.record.id,
    attempt,
    resources,
  });
  return diedVerdict(tenant, agent.record.priority, attempt, obstacles, command);
}
