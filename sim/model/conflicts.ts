/**
 * Conflicts (C1, C2, C6), found by comparing everything with everything. The oracle uses it on its own lists, the
 * simulation's invariants on the kernel's records.
 */
import type { Predicate } from "../../src/kernel/contract/predicates.ts";
import { covers, overlap } from "./names.ts";

/** One name of a manifest or of a lease. A rename has two. */
export interface Claim {
  readonly resource: string;
  readonly predicate: Predicate;
  readonly units: number;
}

export interface Holding extends Claim {
  readonly agentId: string;
  readonly state: string;
}

export interface Waiting {
  readonly agentId: string;
  readonly claims: readonly Claim[];
}

/** All live leases, and the counted resources. */
export interface Field<L extends Holding> {
  readonly leases: readonly L[];
  readonly capacityOf: (name: string) => number | null;
  /** G15: units that are spent and not back yet; null: units are held by leases. */
  readonly spentOf: (name: string) => number | null;
}

export interface InTheWay<L, R> {
  readonly leases: readonly L[];
  readonly requests: readonly R[];
  /** Too few units are free, even if only the agent's own leases and waits take them. */
  readonly lacksUnits: boolean;
}

export function isFree({ leases, requests, lacksUnits }: InTheWay<unknown, unknown>): boolean {
  return leases.length === 0 && requests.length === 0 && !lacksUnits;
}

/** C1 as the rules print it, a row per line. The kernel derives it from strengths instead. */
const getAlong: Readonly<Record<Predicate, readonly Predicate[]>> = {
  PROVIDES: ["CONSUMES", "DEPENDS_ON"],
  CONSUMES: ["PROVIDES", "CONSUMES", "DEPENDS_ON"],
  MUTATES: [],
  DELETES: [],
  DEPENDS_ON: ["PROVIDES", "CONSUMES", "DEPENDS_ON"],
  RENAMES: [],
};

/** Two claims of different holders. Units of one counted resource are added up elsewhere and never conflict here. */
export function claimsConflict(field: Field<Holding>, a: Claim, b: Claim): boolean {
  if (!overlap(a.resource, b.resource)) return false;
  const countedA = field.capacityOf(a.resource) !== null;
  const countedB = field.capacityOf(b.resource) !== null;
  if (countedA && countedB) return false;
  if (countedA || countedB) return true; // The other is a pattern over it, and takes all units (C6).
  return !getAlong[a.predicate].includes(b.predicate);
}

/**
 * All obstacles to granting these claims now, `ahead` being the waiters before it. Claims that the agent's own leases
 * cover are skipped (W6), unless `also` is set: a waiter may lose those leases while it waits.
 */
export function inTheWay<L extends Holding, R extends Waiting>(
  field: Field<L>,
  agentId: string,
  claims: readonly Claim[],
  ahead: readonly R[],
  also: "covered" | null = null,
): InTheWay<L, R> {
  const leases = new Set<L>();
  const requests = new Set<R>();
  let lacksUnits = false;
  for (const claim of claims) {
    if (also === null && isCovered(field, agentId, claim)) continue;
    for (const lease of field.leases) {
      if (lease.agentId !== agentId && claimsConflict(field, claim, lease)) leases.add(lease);
    }
    for (const request of ahead) {
      if (request.agentId === agentId) continue;
      if (request.claims.some((other) => claimsConflict(field, claim, other))) requests.add(request);
    }
    if (unitsLeft(field, claim.resource, ahead) >= unitsIn(claims, claim.resource)) continue;
    lacksUnits = true;
    for (const lease of field.leases) {
      if (field.spentOf(claim.resource) === null && lease.agentId !== agentId && lease.resource === claim.resource)
        leases.add(lease);
    }
    for (const request of ahead) {
      if (request.agentId !== agentId && unitsIn(request.claims, claim.resource) > 0) requests.add(request);
    }
  }
  return { leases: [...leases], requests: [...requests], lacksUnits };
}

/** W6: a claim that one of the agent's own leases covers is skipped; units are always counted (C6). */
export function isCovered(field: Field<Holding>, agentId: string, claim: Claim): boolean {
  if (field.capacityOf(claim.resource) !== null) return false;
  return field.leases.some(
    (lease) =>
      lease.agentId === agentId &&
      lease.state === "ACTIVE" &&
      covers(lease.resource, claim.resource) &&
      getAlong[lease.predicate].every((predicate) => getAlong[claim.predicate].includes(predicate)),
  );
}

/** Units that are neither held nor reserved for a waiter ahead; infinite where nothing is counted. */
export function unitsLeft(field: Field<Holding>, name: string, ahead: readonly Waiting[]): number {
  const capacity = field.capacityOf(name);
  if (capacity === null) return Number.POSITIVE_INFINITY;
  const reserved = ahead.reduce((sum, request) => sum + unitsIn(request.claims, name), 0);
  return capacity - (field.spentOf(name) ?? unitsIn(field.leases, name)) - reserved;
}

/** G15: as it was before these claims were granted, in the same step. */
export function withoutSpent<L extends Holding>(field: Field<L>, claims: readonly Claim[]): Field<L> {
  const spentOf = (name: string): number | null => {
    const spent = field.spentOf(name);
    return spent === null ? null : spent - unitsIn(claims, name);
  };
  return { ...field, spentOf };
}

export function unitsIn(claims: readonly Claim[], name: string): number {
  return claims.filter((claim) => claim.resource === name).reduce((sum, claim) => sum + claim.units, 0);
}
