/**
 * Acquiring a manifest: admission, conflicts, verdict (W2, W6, W7, G2). Everything is decided before anything is
 * changed, so a refusal or a dry run leaves no trace.
 */
import { findAgent, findTenant } from "./actors.ts";
import { becomeExecuting, becomePaused, decidingPriority, isUnitOver } from "./agent-life.ts";
import type { Acquire } from "./commands.ts";
import {
  addObstacles,
  createObstacles,
  findResource,
  isCovered,
  isObstructed,
  lastPlace,
  type Obstacles,
  obstaclesTotal,
  ownUnits,
} from "./conflicts.ts";
import { endLeases } from "./holding.ts";
import { requestIdWith, suffixFrom } from "./ids.ts";
import { nameOf, withLinked } from "./lease-life.ts";
import { limits } from "./limits.ts";
import { fingerprintOf, type Manifest, readManifest } from "./manifest.ts";
import { serve } from "./queue.ts";
import type { Millis, Request } from "./records.ts";
import { type Refusal, refuse } from "./refusals.ts";
import type { Blocker, PauseReason, Reply, Verdict } from "./replies.ts";
import { attachLeases, beginLeases, emitRequest, enqueue, needsCells, placeOf, unitsWished } from "./request-life.ts";
import { describeRequest, observeFor } from "./requests.ts";
import {
  type AgentEntry,
  changed,
  createRequestEntry,
  emit,
  type LeaseEntry,
  type RequestEntry,
  type State,
  type TenantEntry,
} from "./state.ts";
import { planWounds } from "./wound.ts";

export function acquire(state: State, command: Acquire, now: Millis): Reply {
  const tenant = findTenant(state, command.tenant);
  if ("code" in tenant) return tenant;
  const agent = findAgent(tenant, command.actor, command.agentId);
  if ("code" in agent) return agent;
  const manifest = readManifest(tenant, command);
  if (manifest.type === "refused") return manifest;

  const fingerprint = command.requestKey === null ? "" : fingerprintOf(command, manifest.intents);
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
  const decision = decide(tenant, agent, manifest, now);
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

type Decision =
  | Refusal
  | { readonly type: "pause"; readonly reason: PauseReason; readonly detail: string; readonly resource: string | null }
  | { readonly type: "die"; readonly obstacles: Obstacles }
  | { readonly type: "wait"; readonly obstacles: Obstacles; readonly wounds: readonly LeaseEntry[] }
  | { readonly type: "grant"; readonly wounds: readonly LeaseEntry[] };

const noWounds: readonly LeaseEntry[] = [];
const plainGrant: Decision = { type: "grant", wounds: noWounds };

function decide(tenant: TenantEntry, agent: AgentEntry, manifest: Manifest, now: Millis): Decision {
  const barred = findBar(tenant, agent, manifest) ?? findDenial(tenant, agent, manifest, now);
  if (barred !== null) return barred;
  const { strategy } = tenant.record.settings;
  const priority = decidingPriority(tenant, agent, now);
  const place = strategy === "wait_die" ? lastPlace : placeOf(tenant, priority, Number.POSITIVE_INFINITY);
  const obstructed = manifest.wishes.filter(({ wish }) => {
    return isObstructed(tenant, wish, agent, place, unitsWished(manifest.wishes, wish));
  });
  const isClear = obstructed.every(({ wish }) => isCovered(wish, agent));
  if (isClear && !(strategy === "wound_wait" && displacesUnits(manifest))) return plainGrant;
  // What is covered now may not be when the wait ends, so whoever has to wait looks at all that stands in its way.
  const obstacles = createObstacles();
  for (const { wish } of obstructed) {
    const enough = strategy === "wait_die" ? priority : Number.NEGATIVE_INFINITY;
    addObstacles(obstacles, tenant, wish, agent, place, unitsWished(manifest.wishes, wish), enough);
  }
  if (strategy === "wait_die") {
    if (obstacles.oldest < priority) return { type: "die", obstacles };
    return waitOrRefuse(tenant, manifest, obstacles, noWounds);
  }
  const { wounds, mustWait } = planWounds(tenant, manifest, agent, priority, place);
  return mustWait ? waitOrRefuse(tenant, manifest, obstacles, wounds) : { type: "grant", wounds };
}

/** Under Wound-Wait a requester may go ahead of others who wait for units, even where there is room for itself (C6). */
function displacesUnits({ wishes }: Manifest): boolean {
  return wishes.some(({ wish }) => wish.counted !== null && wish.counted.waitingUnits > 0);
}

/** W9: somebody must act first. */
function findBar(tenant: TenantEntry, agent: AgentEntry, { wishes }: Manifest): Decision | null {
  if (tenant.record.suspended) {
    return {
      type: "pause",
      reason: "tenant_suspended",
      detail: "The tenant is suspended; its operator can resume it.",
      resource: null,
    };
  }
  if (agent.record.pausedByOperator) {
    return {
      type: "pause",
      reason: "agent_paused",
      detail: "The agent was paused; a supervisor can unpause it.",
      resource: null,
    };
  }
  for (const { wish } of wishes) {
    const fencedOne = findResource(tenant, wish.name, ({ record }) => record.fenced);
    const resource = fencedOne ?? findResource(tenant, wish.name, ({ record }) => record.withdrawn);
    if (resource === undefined) continue;
    const { name } = resource.record;
    if (fencedOne !== undefined) {
      return {
        type: "pause",
        reason: "resource_fenced",
        detail: `${name} is fenced; an operator must reset it.`,
        resource: name,
      };
    }
    return {
      type: "pause",
      reason: "resource_withdrawn",
      detail: `${name} was withdrawn; declare it again.`,
      resource: name,
    };
  }
  return null;
}

/** G2: first the tenant's quota, then the resource's capacity. */
function findDenial(tenant: TenantEntry, agent: AgentEntry, { wishes }: Manifest, now: Millis): Refusal | null {
  const { quotas } = tenant.record;
  if (tenant.leases.size + wishes.length > quotas.leasesMax)
    return denied("quota", `The tenant may hold ${quotas.leasesMax} leases.`);
  let patterns = tenant.patternCount;
  for (const { wish } of wishes) if (wish.name.wild) patterns++;
  if (patterns > quotas.patternsMax && patterns > tenant.patternCount) {
    return denied("quota", `The tenant may hold ${quotas.patternsMax} patterns.`);
  }
  if (quotas.tenantLeaseTimeMsMax !== null) {
    const { windowStart, leaseTimeMs } = tenant.counters.record;
    const isPresent = windowStart === now - (now % limits.leaseTimeWindowMs);
    if (isPresent && leaseTimeMs >= quotas.tenantLeaseTimeMsMax)
      return denied("quota", "The tenant's lease time for today is used up.");
  }
  for (const { wish } of wishes) {
    if (wish.counted === null) continue;
    const capacity = wish.counted.record.capacity ?? 0;
    const units = unitsWished(wishes, wish);
    if (units > capacity) return denied("capacity", `${wish.name.text} has ${capacity} units in all.`);
    if (units + ownUnits(wish.counted, agent) > capacity && !isCovered(wish, agent)) {
      return denied(
        "self_blocked",
        `The agent's own leases and requests leave no room on ${wish.name.text}; release some first.`,
      );
    }
  }
  return null;
}

function denied(reason: "quota" | "capacity" | "self_blocked", detail: string): Refusal {
  return refuse("lease_denied", detail, { reason });
}

function waitOrRefuse(
  tenant: TenantEntry,
  manifest: Manifest,
  obstacles: Obstacles,
  wounds: readonly LeaseEntry[],
): Decision {
  if (manifest.waitTimeout === 0) {
    return refuse("would_wait", "The resources are taken and wait_timeout_ms is 0; ask again later or allow a wait.", {
      blockers: blockersOf(obstacles),
      blockersTotal: obstaclesTotal(obstacles),
    });
  }
  if (tenant.waitingCount >= tenant.record.quotas.waitersMax) {
    return denied("quota", `The tenant may have ${tenant.record.quotas.waitersMax} requests waiting.`);
  }
  return { type: "wait", obstacles, wounds };
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

function diedVerdict(
  tenant: TenantEntry,
  priority: number,
  attempt: number,
  obstacles: Obstacles,
  command: Acquire,
): Verdict {
  const { retryMsBase, retryMsCap } = tenant.record.settings;
  const delay = Math.min(retryMsCap, retryMsBase * 2 ** Math.min(attempt - 1, 40));
  const jitter = command.entropy[1] % (Math.floor(delay / 2) + 1);
  return {
    type: "died",
    retryAfterMs: delay + jitter,
    attempt,
    priority,
    blockers: blockersOf(obstacles),
    blockersTotal: obstaclesTotal(obstacles),
  };
}

/** W12: the verdict as it would be, from the same decision. */
function foretell(
  tenant: TenantEntry,
  agent: AgentEntry,
  decision: Decision,
  manifest: Manifest,
  command: Acquire,
  now: Millis,
): Reply {
  switch (decision.type) {
    case "refused":
      return decision;
    case "pause":
      return { type: "paused", reason: decision.reason, detail: decision.detail, resource: decision.resource };
    case "die":
      return diedVerdict(
        tenant,
        decidingPriority(tenant, agent, now),
        isUnitOver(agent.record) ? 1 : agent.record.attempts + 1,
        decision.obstacles,
        command,
      );
    case "grant":
      return { type: "granted", requestId: "", leases: [], warnings: manifest.warnings, observe: null };
    case "wait":
      return {
        type: "waiting",
        requestId: "",
        position: 1 + decision.obstacles.claims.size,
        blockers: blockersOf(decision.obstacles),
        blockersTotal: obstaclesTotal(decision.obstacles),
        waitTimeoutMs: manifest.waitTimeout,
        claimWithinMs: tenant.record.settings.claimWithinMs,
        warnings: manifest.warnings,
      };
  }
}

/** W11: up to 16, holders first, each by its number, so that the list does not depend on how the search went. */
export function blockersOf(obstacles: Obstacles): Blocker[] {
  const leases = [...obstacles.leases].sort((a, b) => a.order - b.order);
  const blockers: Blocker[] = leases
    .slice(0, limits.blockersListedMax)
    .map(({ record }) => ({ type: "lease", lease: record }));
  const claims = [...obstacles.claims].sort(([a], [b]) => a.record.arrival - b.record.arrival);
  for (const [request, claim] of claims.slice(0, limits.blockersListedMax - blockers.length)) {
    blockers.push({
      type: "request",
      request: request.record,
      resource: claim.name.text,
      predicate: claim.intent.predicate,
    });
  }
  return blockers;
}
