/**
 * The oracle's state: plain lists, changed in place and searched from end to end. There is no index, no heap and no
 * maintained order; everything is computed from these lists each time.
 */
import type { Predicate } from "../../src/kernel/contract/predicates.ts";
import type { AgentState, TenantSettings } from "../../src/kernel/contract/records.ts";
import type { Claim, Field } from "./conflicts.ts";
import { overlap } from "./names.ts";
import type { PredictedObservation } from "./observing.ts";

export interface ModelLease extends Claim {
  predicate: Predicate;
  /** "R3.1": the second lease of the third request; the kernel's ids are matched to these by that order. */
  readonly id: string;
  agentId: string;
  /** The request that it was granted to; null once it was transferred to another agent. */
  request: ModelRequest | null;
  /** The other half of a rename (C7). */
  pair: ModelLease | null;
  state: "ACTIVE" | "HELD";
  generation: number;
  /** Only its order is compared: the kernel's fences may have gaps (L11). */
  fence: number;
  /** The step in which it got that fence. */
  fencedInStep: number;
  readonly acquiredAt: number;
  expiresAt: number;
  readonly ttl: number;
  readonly idleTimeout: number | null;
  activeAt: number;
  claimBy: number | null;
  heldUntil: number | null;
  verified: boolean;
}

/** How a request ended that was not granted; kept so that its agent can still ask. */
export type Fate = "TIMED_OUT" | "CANCELED" | "PAUSED" | "DIED";

export interface ModelRequest {
  readonly id: string;
  readonly agentId: string;
  readonly key: string | null;
  /** Granted at once and without a key: nobody can ask for it, so it is forgotten with its last lease. */
  passing: boolean;
  /** Granted at once, and its one lease says all: only its key is remembered, and nobody can ask for it by its id (W10). */
  carried: boolean;
  readonly body: string;
  readonly claims: readonly Claim[];
  /** The index in `claims` of a rename's old name; its new name is the next. */
  readonly renames: readonly number[];
  readonly ttl: number;
  readonly idleTimeout: number | null;
  readonly arrival: number;
  timeoutAt: number;
  /** Since when its agent could not see what it asks for (A4). */
  observeSince: number | null;
  state: "WAITING" | "STANDBY" | "GRANTED" | Fate;
  /** Why it was PAUSED. */
  pausedBecause: string;
  /** The number of its live leases; once it is 0, the request is remembered until `forgetAt`. */
  live: number;
  /** How its leases ended (W10); one that was transferred was released. */
  ends: ("released" | "expired" | "revoked")[];
  /** The order in which the agent's granted requests ended, so that the oldest are forgotten first. */
  endedInOrder: number;
  forgetAt: number | null;
}

/** A lease that ended, was downgraded or was transferred (A4). */
export interface ModelEnd {
  readonly resource: string;
  readonly predicate: Predicate;
  readonly agentId: string;
  readonly fence: number;
  readonly at: number;
  readonly version: string | null;
  /** It was collected, so that its holder could see the resource. */
  readonly looked: boolean;
}

export interface ModelAgent {
  readonly id: string;
  state: AgentState;
  restarting: boolean;
  pausedByOperator: boolean;
  priority: number;
  attempts: number;
  epoch: number;
  idleSince: number;
  digest: {
    readonly savedAt: number;
    readonly backlog: readonly string[];
    readonly assumptions: readonly { readonly resource: string; readonly version: string }[];
  } | null;
  pausedAt: number | null;
  /** What it waited for, died for or lost, until an update had it while the agent held it. */
  concerns: { readonly resource: string; readonly since: number }[];
}

export interface ModelResource {
  readonly name: string;
  capacity: number | null;
  /** How long after a grant units come back (G15), and those that are not. */
  refillMs: number | null;
  spent: { readonly at: number; readonly units: number }[];
  fenced: boolean;
  withdrawn: boolean;
}

export interface ModelTenant {
  readonly id: string;
  suspended: boolean;
  settings: TenantSettings;
  agents: ModelAgent[];
  requests: ModelRequest[];
  leases: ModelLease[];
  resources: ModelResource[];
  /** Everything that ever ended. */
  ends: ModelEnd[];
  lastPriority: number;
  /** The greatest epoch of a forgotten agent: a new agent begins above it (A3). */
  epochFloor: number;
  lastArrival: number;
  lastFence: number;
  lastEnded: number;
}

export interface Model {
  tenants: ModelTenant[];
  /** The number of decided commands, to know which fences were given by the present one. */
  step: number;
}

/** The expected reply. `code` is the refusal's code, or the reason of PAUSED. */
export interface Prediction {
  readonly type: string;
  readonly code?: string;
  /** Why a lease was denied. */
  readonly reason?: string;
  readonly requestId?: string;
  readonly leaseIds?: readonly string[];
  readonly position?: number;
  /** Ids of the leases and requests in the way. */
  readonly blockers?: readonly string[];
  readonly count?: number;
  readonly observation?: PredictedObservation;
  readonly assumptions?: readonly string[];
  /** A refusal that counts as a sign of life (W8). */
  readonly changes?: boolean;
}

export function refused(code: string): Prediction {
  return { type: "refused", code };
}

export function capacityOf(tenant: ModelTenant, name: string): number | null {
  return tenant.resources.find((resource) => resource.name === name)?.capacity ?? null;
}

/** The present leases, among which conflicts are searched. */
export function fieldOf(tenant: ModelTenant): Field<ModelLease> {
  return {
    leases: tenant.leases,
    capacityOf: (name) => capacityOf(tenant, name),
    spentOf: (name) => {
      const resource = refilledOf(tenant, name);
      return resource === undefined ? null : resource.spent.reduce((sum, { units }) => sum + units, 0);
    },
  };
}

/** The resource of this name, if its units come back with time (G15). */
export function refilledOf(tenant: ModelTenant, name: string): ModelResource | undefined {
  return tenant.resources.find((resource) => resource.name === name && resource.refillMs !== null);
}

/** Whether `agentId` is older than the agent of the obstacle (W1). */
export function isOlder(tenant: ModelTenant, agentId: string, other: { readonly agentId: string }): boolean {
  return agentOf(tenant, agentId).priority < agentOf(tenant, other.agentId).priority;
}

export function agentOf(tenant: ModelTenant, id: string): ModelAgent {
  const agent = tenant.agents.find((one) => one.id === id);
  if (agent === undefined) throw new Error(`the oracle does not know agent ${id}`);
  return agent;
}

export function leasesOf(tenant: ModelTenant, agentId: string): ModelLease[] {
  return tenant.leases.filter((lease) => lease.agentId === agentId);
}

export function waitingOf(tenant: ModelTenant, agentId: string): ModelRequest[] {
  return tenant.requests.filter((request) => request.state === "WAITING" && request.agentId === agentId);
}

/** W14: what the agent stands by for. */
export function standbyOf(tenant: ModelTenant, agentId: string): ModelRequest | undefined {
  return tenant.requests.find((request) => request.state === "STANDBY" && request.agentId === agentId);
}

/** A lease, or a request that waits or stands by. */
export function hasSomething(tenant: ModelTenant, agentId: string): boolean {
  if (leasesOf(tenant, agentId).length > 0 || waitingOf(tenant, agentId).length > 0) return true;
  return standbyOf(tenant, agentId) !== undefined;
}

/** L11: greater than every earlier fence. */
export function fenceAnew(tenant: ModelTenant, lease: ModelLease, step: number): void {
  lease.fence = ++tenant.lastFence;
  lease.fencedInStep = step;
}

/** A unit of work begins (W1): the time, or one more than the last if that is taken. */
export function beginUnit(tenant: ModelTenant, agent: ModelAgent, now: number): void {
  tenant.lastPriority = Math.max(now, tenant.lastPriority + 1);
  agent.priority = tenant.lastPriority;
  agent.attempts = 0;
  agent.pausedAt = null;
  agent.concerns = [];
}

/** G7, G12: a claim on a fenced or withdrawn resource cannot be granted until an operator acts. */
export function closedFor(tenant: ModelTenant, claims: readonly Claim[]): string | null {
  const touched = tenant.resources.filter((resource) => claims.some((claim) => overlap(claim.resource, resource.name)));
  const fenced = touched.some((resource) => resource.fenced) ? ["resource_fenced"] : [];
  const withdrawn = touched.some((resource) => resource.withdrawn) ? ["resource_withdrawn"] : [];
  // If both apply, either may be named.
  return [...fenced, ...withdrawn].join(" or ") || null;
}
