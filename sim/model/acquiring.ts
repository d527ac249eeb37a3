/** One submitted manifest and its verdict, in the order of decision 0004, "Acquiring". */
import type { Acquire } from "../../src/kernel/contract/commands.ts";
import { type Predicate, predicates } from "../../src/kernel/contract/predicates.ts";
import { type Claim, type InTheWay, inTheWay, isFree, unitsIn } from "./conflicts.ts";
import { dieStandby } from "./ending.ts";
import { toldWith } from "./leases.ts";
import { ttlMsMin } from "./numbers.ts";
import { blindSince, pause } from "./observing.ts";
import { aheadOf, grant, mayWait, queue, serve, wound } from "./waiting.ts";
import {
  beginUnit,
  capacityOf,
  closedFor,
  fieldOf,
  leasesOf,
  type ModelAgent,
  type ModelLease,
  type ModelRequest,
  type ModelTenant,
  type Prediction,
  refilledOf,
  refused,
  standbyOf,
  waitingOf,
} from "./world.ts";

export function acquire(
  tenant: ModelTenant,
  agent: ModelAgent,
  command: Acquire,
  now: number,
  step: number,
): Prediction {
  const wrong = faultOf(command);
  if (wrong !== null) return refused(wrong);

  const { intents, ttlMs, waitTimeoutMs, standbyMs, idleTimeoutMs } = command;
  const body = JSON.stringify([intents, ttlMs, waitTimeoutMs, standbyMs, idleTimeoutMs]);
  const known = tenant.requests.find(
    (one) =>
      one.key !== null &&
      one.key === command.requestKey &&
      one.agentId === agent.id &&
      !(one.carried && one.forgetAt !== null && one.forgetAt <= now) &&
      (one.state === "WAITING" || one.state === "STANDBY" || one.state === "GRANTED"), // Refusals are not remembered.
  );
  if (known !== undefined && !command.dryRun)
    return known.body === body ? present(tenant, known) : refused("request_id_reused");

  if (agent.restarting) return refused("verify_required");
  const { claims, renames } = claimsOf(command);
  const resources = claims.map((claim) => claim.resource);
  const closed = tenant.suspended
    ? "tenant_suspended"
    : agent.pausedByOperator
      ? "agent_paused"
      : closedFor(tenant, claims);
  if (closed !== null) {
    if (agent.state === "COMPLETED" || agent.state === "ABORTED") beginUnit(tenant, agent, now);
    pause(agent, resources, now);
    return { type: "paused", code: closed };
  }

  const denied = denialOf(tenant, agent, claims);
  if (denied !== null) return { ...refused("lease_denied"), reason: denied };

  if (agent.state === "COMPLETED" || agent.state === "ABORTED") beginUnit(tenant, agent, now);
  const waitTimeout = Math.min(
    command.waitTimeoutMs ?? tenant.settings.waitTimeoutMsDefault,
    tenant.settings.waitTimeoutMsMax,
  );
  const request: ModelRequest = {
    id: `R${tenant.lastArrival + 1}`,
    agentId: agent.id,
    key: command.requestKey,
    passing: false,
    carried: false,
    body,
    claims,
    renames,
    ttl: Math.min(command.ttlMs ?? tenant.settings.ttlMsDefault, tenant.settings.ttlMsMax),
    idleTimeout: command.idleTimeoutMs,
    arrival: ++tenant.lastArrival,
    timeoutAt: now + waitTimeout,
    observeSince: blindSince(agent, resources) ?? now,
    state: "WAITING",
    pausedBecause: "",
    live: 0,
    endedInOrder: 0,
    ends: [],
    forgetAt: null,
  };
  tenant.requests.push(request);
  const respected =
    tenant.settings.strategy === "wait_die" ? queue(tenant).filter((one) => one !== request) : aheadOf(tenant, request);
  const atFirst = inTheWay(fieldOf(tenant), agent.id, claims, respected, "covered");
  if (tenant.settings.strategy === "wound_wait") wound(tenant, request, now);
  const blocking = inTheWay(fieldOf(tenant), agent.id, claims, respected);
  if (isFree(blocking)) {
    dieStandby(tenant, agent.id, now);
    request.observeSince = blindSince(agent, resources);
    const leases = grant(tenant, request, now, step, null);
    request.passing = request.key === null;
    const { ttlMsMax, waitTimeoutMsMax } = tenant.settings;
    const isCapped = (ttlMs ?? 0) > ttlMsMax || (waitTimeoutMs ?? 0) > waitTimeoutMsMax;
    request.carried = !request.passing && claims.length === 1 && request.observeSince === null && !isCapped;
    const told = toldWith(tenant, [request]);
    serve(tenant, now, step);
    return { type: "granted", requestId: request.id, leaseIds: leases.map((lease) => lease.id), ...told };
  }
  const blockers = idsOf(atFirst);
  if (tenant.settings.strategy === "wait_die" && !mayWait(tenant, atFirst, agent.id)) {
    pause(agent, resources, now);
    // W14: it has neither a lease nor another request, this one apart.
    const isAlone = leasesOf(tenant, agent.id).length === 0 && waitingOf(tenant, agent.id).length === 1;
    if (standbyMs > 0 && isAlone && standbyOf(tenant, agent.id) === undefined) {
      request.state = "STANDBY";
      request.timeoutAt = now + standbyMs;
      return present(tenant, request);
    }
    tenant.requests = tenant.requests.filter((one) => one !== request);
    agent.attempts++;
    return { type: "died", blockers };
  }
  if (waitTimeout === 0) return { ...refused("would_wait"), blockers };
  dieStandby(tenant, agent.id, now);
  pause(agent, resources, now);
  serve(tenant, now, step);
  return present(tenant, request);
}

/** W10: a known key is answered from the request's present state, which also collects a grant (W8). */
export function present(tenant: ModelTenant, request: ModelRequest, collects = true): Prediction {
  if (request.state === "GRANTED") {
    if (request.live === 0) return refused(`lease_${worstEnd(request)}`);
    for (const lease of tenant.leases) if (collects && lease.request === request) lease.claimBy = null;
    const leaseIds = request.claims.map((_, index) => `${request.id}.${index}`);
    return { type: "granted", requestId: request.id, leaseIds, ...toldWith(tenant, [request]) };
  }
  if (request.state === "TIMED_OUT") return refused("wait_timeout");
  if (request.state === "CANCELED") return refused("request_canceled");
  if (request.state === "PAUSED") return { type: "paused", code: request.pausedBecause };
  if (request.state === "STANDBY" || request.state === "DIED") {
    const blockers = idsOf(inTheWay(fieldOf(tenant), request.agentId, request.claims, queue(tenant), "covered"));
    return request.state === "DIED" ? { type: "died", blockers } : { type: "standby", requestId: request.id, blockers };
  }
  const ahead = aheadOf(tenant, request);
  const blocking = inTheWay(fieldOf(tenant), request.agentId, request.claims, ahead);
  return { type: "waiting", requestId: request.id, position: 1 + blocking.requests.length, blockers: idsOf(blocking) };
}

function worstEnd({ ends }: ModelRequest): ModelRequest["ends"][number] {
  return ends.find((end) => end === "revoked") ?? ends.find((end) => end === "expired") ?? "released";
}

function idsOf({ leases, requests }: InTheWay<ModelLease, ModelRequest>): string[] {
  return [...leases, ...requests].map((one) => one.id);
}

/** C6: more units than the resource has, or more than the agent's own leases and waits leave. */
function denialOf(
  tenant: ModelTenant,
  agent: ModelAgent,
  claims: readonly Claim[],
): "capacity" | "self_blocked" | null {
  const own = [...leasesOf(tenant, agent.id), ...waitingOf(tenant, agent.id).flatMap((request) => request.claims)];
  for (const claim of claims) {
    const capacity = capacityOf(tenant, claim.resource);
    if (capacity !== null && unitsIn(claims, claim.resource) > capacity) return "capacity";
  }
  for (const claim of claims) {
    const capacity = capacityOf(tenant, claim.resource);
    if (refilledOf(tenant, claim.resource) !== undefined) continue; // G15: one's own units come back too.
    if (capacity !== null && unitsIn(claims, claim.resource) + unitsIn(own, claim.resource) > capacity)
      return "self_blocked";
  }
  return null;
}

function claimsOf(command: Acquire): { readonly claims: Claim[]; readonly renames: number[] } {
  const claims: Claim[] = [];
  const renames: number[] = [];
  for (const intent of command.intents) {
    const predicate = predicates.find((one) => one === intent.predicate) ?? "RENAMES";
    const claim = { predicate, resource: intent.resource, units: intent.units ?? 1 };
    if (predicate === "RENAMES") renames.push(claims.length);
    claims.push(claim);
    if (predicate === "RENAMES") claims.push({ ...claim, resource: intent.to ?? "" });
  }
  return { claims, renames };
}

function faultOf(command: Acquire): string | null {
  if (command.intents.length === 0) return "empty_manifest";
  for (const intent of command.intents) {
    if (!isPredicate(intent.predicate)) return "invalid_predicate";
    if (!/^[A-Z][A-Z0-9_]*:\/([^/\\]+(\/[^/\\]+)*)?$/.test(intent.resource)) return "invalid_resource";
    if (intent.resource.startsWith("TASK:")) return "reserved_resource";
    if ((intent.predicate === "RENAMES") !== (typeof intent.to === "string")) return "invalid_target";
    if (intent.to === intent.resource) return "invalid_target";
    if (intent.units !== undefined && intent.units !== null && !(intent.units >= 1)) return "invalid_units";
  }
  const written = command.intents.map((one) => `${one.predicate} ${one.resource} ${one.to ?? ""}`);
  if (new Set(written).size < written.length) return "duplicate_intent";
  if (command.ttlMs !== null && command.ttlMs < ttlMsMin) return "invalid_ttl";
  if (command.waitTimeoutMs !== null && command.waitTimeoutMs < 0) return "invalid_wait_timeout";
  return null;
}

function isPredicate(text: string): text is Predicate {
  return predicates.some((one) => one === text);
}
