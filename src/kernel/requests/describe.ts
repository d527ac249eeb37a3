/** What a request is answered with: its present state, from the queue or from memory (W4, W8, W10). */
import { observe, resourcesOf } from "../agents/observing.ts";
import type { EndedLeaseState, Lease, Millis, Request } from "../contract/records.ts";
import { deny, refuse } from "../contract/refusals.ts";
import type { Observation, PauseReason, Reply } from "../contract/replies.ts";
import { endedRefusal } from "../deciding/extension.ts";
import { unitsClaimed } from "../deciding/manifest.ts";
import { addObstacles, createObstacles, isFree } from "../deciding/obstacles.ts";
import { diedVerdict, standbyVerdict, waitingVerdict } from "../deciding/verdicts.ts";
import { updateLease } from "../leases/lease-life.ts";
import type { RequestEntry, TenantEntry, Turn } from "../memory/state.ts";
import { liveLeasesOf } from "./request-life.ts";
import { obstaclesOf } from "./standby.ts";
import { endOfGrant } from "./stored-keys.ts";

/** Answers from the present state. Asking for a granted request collects it (W8), unless the caller only looks. */
export function describeRequest(turn: Turn, request: RequestEntry, collects = true): Reply {
  const { tenant } = turn;
  const { record } = request;
  switch (record.state) {
    case "WAITING":
      return describeWait(tenant, request);
    case "STANDBY":
    case "DIED":
      return describeStandby(turn, request);
    case "BINDING":
      return { ...waitingVerdict(tenant, record, createObstacles()), position: 0 };
    case "GRANTED":
      if (record.ended.length > 0 && record.ended.length === record.leaseIds.length) return describeEnd(record);
      if (collects) collect(turn, request);
      return {
        type: "granted",
        requestId: record.id,
        leases: leasesNow(tenant, request),
        warnings: record.warnings,
        observation: observationOf(turn, [request]),
        claimBy: claimByOf(tenant, request),
      };
    case "TIMED_OUT":
      return refuse("wait_timeout", "The wait is over: its timeout passed. Nothing is held; submit again.");
    case "CANCELED":
      return refuse(
        "request_canceled",
        "The request was canceled. Nothing is held; submit again if it is still wanted.",
      );
    case "PAUSED":
      return {
        type: "paused",
        reason: pauseReasonOf(record.fateReason),
        detail: "The wait ended because somebody must act first; submit again when they have.",
        resource: null,
      };
    case "BIND_FAILED":
      return deny("bind_failed", `A cell could not set the lease up: ${record.fateReason ?? "no reason given"}.`);
  }
}

function pauseReasonOf(fate: string | null): PauseReason {
  return fate === "tenant_suspended" || fate === "resource_withdrawn" || fate === "cell_not_ready"
    ? fate
    : "resource_fenced";
}

/** W10: nothing of the grant is left. */
function describeEnd({ ended }: Request): Reply {
  const lease = endOfGrant(ended);
  return endedRefusal(lease.id, lease.state as EndedLeaseState, lease.endReason);
}

/** It stands by, or did until it died (W14). */
function describeStandby(turn: Turn, request: RequestEntry): Reply {
  const { record, holder } = request;
  if (holder.kind !== "agent") throw new Error(`A task cannot stand by: ${record.id}`);
  const obstacles = obstaclesOf(turn, request, holder);
  if (record.state === "STANDBY") return standbyVerdict(turn.tenant, record, obstacles);
  return diedVerdict(holder.priority, record.attempt ?? 1, obstacles, record.retryAfterMs ?? 0);
}

function describeWait(tenant: TenantEntry, request: RequestEntry): Reply {
  const { record, holder } = request;
  const obstacles = createObstacles();
  const claims = request.claims.map((claim) => ({ claim }));
  for (const claim of request.claims) {
    const units = unitsClaimed(claims, claim);
    if (isFree(tenant, claim, holder, claim, units)) continue;
    addObstacles(obstacles, tenant, claim, holder, claim, units, Number.POSITIVE_INFINITY);
  }
  return waitingVerdict(tenant, record, obstacles);
}

/** A4: the update for the agent that collects these requests, or collects them again. */
export function observationOf(turn: Turn, requests: readonly RequestEntry[]): Observation | null {
  let since: Millis | null = null;
  const asked: string[] = [];
  for (const { record } of requests) {
    if (record.observeSince === null) continue;
    since = Math.min(since ?? record.observeSince, record.observeSince);
    for (const resource of resourcesOf(record.intents)) asked.push(resource);
  }
  const [{ holder } = { holder: null }] = requests;
  return since === null || holder?.kind !== "agent" ? null : observe(turn, holder, since, asked);
}

export function collect(turn: Turn, request: RequestEntry): void {
  for (const lease of liveLeasesOf(turn.tenant, request)) {
    if (lease.record.claimBy !== null) updateLease(turn, lease, { ...lease.record, claimBy: null });
  }
}

/** W8: by when the grant must be collected; null once it is. Its leases have one deadline. */
function claimByOf(tenant: TenantEntry, request: RequestEntry): Millis | null {
  return liveLeasesOf(tenant, request).find(({ record }) => record.claimBy !== null)?.record.claimBy ?? null;
}

/** The manifest's leases in its order, as they are or as they ended. */
function leasesNow(tenant: TenantEntry, { record }: RequestEntry): Lease[] {
  const leases: Lease[] = [];
  for (const id of record.leaseIds) {
    const lease = record.ended.find((ended) => ended.id === id) ?? tenant.leases.get(id)?.record;
    if (lease !== undefined) leases.push(lease);
  }
  return leases;
}
