/**
 * What the server has acknowledged, from the journals of its clients alone: leases with the fence and the expiry that
 * were last confirmed, and what is in doubt because an answer never came. The server is held to it.
 */
import type { Entry, Held } from "./journal.ts";
import type { Violations } from "./violations.ts";
import { type AcquireInput, type Answer, type LeaseState, millisOf, type WireLease } from "./wire.ts";

/** A lease that was acknowledged to its agent. */
export interface Known {
  readonly id: string;
  readonly agentId: string;
  readonly resource: string;
  readonly predicate: string;
  readonly acquiredAt: number;
  readonly ttl: number;
  readonly input: AcquireInput;
  fence: number;
  generation: number;
  expiresAt: number;
  /** How it ended, as acknowledged. */
  end: LeaseState | null;
  /** It had ended before the round began. */
  isOld: boolean;
  /** Commands without an answer: any of them may have been stored. */
  readonly doubts: Set<Doubt>;
}

export type Doubt = "heartbeat" | "renew_lease" | "release_lease";

export interface PendingAcquire {
  readonly input: AcquireInput;
  /** Known where a WAIT was acknowledged, which is a promise of its own (W2). */
  readonly requestId: string | null;
}

export interface Tally {
  grants: number;
  heartbeats: number;
  renewals: number;
  releases: number;
  waits: number;
  refusals: number;
  unknown: number;
}

export interface Model {
  /** By id: those not known to have ended, and those that have since the last verification. */
  readonly leases: Map<string, Known>;
  /** By request_id: acquires whose outcome is not known. */
  readonly pending: Map<string, PendingAcquire>;
  readonly tally: Tally;
}

export function createModel(): Model {
  return {
    leases: new Map(),
    pending: new Map(),
    tally: { grants: 0, heartbeats: 0, renewals: 0, releases: 0, waits: 0, refusals: 0, unknown: 0 },
  };
}

/** An answer that says what became of the command; null where none came, or one that leaves it open (S2). */
export function conclusive(answer: Answer | null): Answer | null {
  return answer?.status === 503 && answer.body.error === "database_unavailable" ? null : answer;
}

export function applyJournal(model: Model, entries: readonly Entry[], violations: Violations): void {
  for (const entry of entries) {
    const answer = conclusive(entry.answer);
    if (answer === null) model.tally.unknown++;
    else if (answer.status >= 500) violations.add("S2", "a command was answered with a fault of another kind", entry);
    switch (entry.op) {
      case "acquire":
      case "get_request":
        applyVerdict(model, entry, violations);
        break;
      case "heartbeat":
      case "renew_lease":
        applyExtension(model, entry, entry.op, entry.leaseId, violations);
        break;
      case "release_lease":
        applyRelease(model, entry, entry.leaseId, violations);
        break;
    }
  }
}

function applyVerdict(
  { leases, pending, tally }: Model,
  entry: Extract<Entry, { op: "acquire" | "get_request" }>,
  violations: Violations,
): void {
  const { input } = entry;
  const answer = conclusive(entry.answer);
  const key = input.request_id;
  if (answer === null) {
    const requestId = entry.op === "get_request" ? entry.requestId : (pending.get(key)?.requestId ?? null);
    pending.set(key, { input, requestId });
    return;
  }
  const { status, body } = answer;
  if (status === 202) {
    if (entry.op === "acquire") tally.waits++;
    pending.set(key, { input, requestId: body.request_id ?? null });
    return;
  }
  pending.delete(key);
  if (status === 404) violations.add("W2", "a wait that was promised is forgotten", entry);
  if (status !== 200) {
    tally.refusals++;
    return;
  }
  const granted = body.leases ?? [];
  if (granted.length !== input.intents.length) violations.add("W6", "a manifest was granted in part", entry);
  for (const lease of granted) learnLease(leases, lease, input, tally, violations);
}

/** A grant, acknowledged for the first time or again; then it must be the same one (W10). */
export function learnLease(
  leases: Map<string, Known>,
  lease: WireLease,
  input: AcquireInput,
  tally: Tally,
  violations: Violations,
): void {
  const known = leases.get(lease.id);
  if (known !== undefined) {
    if (known.input.request_id !== input.request_id || lease.fence < known.fence) {
      violations.add("W10", "a repeated request shows another grant", { known, lease });
    }
    return;
  }
  tally.grants++;
  leases.set(lease.id, {
    id: lease.id,
    agentId: lease.agent_id,
    resource: lease.resource,
    predicate: lease.predicate,
    acquiredAt: millisOf(lease.acquired_at),
    ttl: lease.ttl,
    input,
    fence: lease.fence,
    generation: lease.generation,
    expiresAt: millisOf(lease.expires_at),
    end: lease.state === "ACTIVE" ? null : lease.state,
    isOld: false,
    doubts: new Set(),
  });
}

function applyExtension(
  { leases, tally }: Model,
  entry: Entry,
  op: "heartbeat" | "renew_lease",
  leaseId: string,
  violations: Violations,
): void {
  const answer = conclusive(entry.answer);
  const known = leases.get(leaseId);
  if (known === undefined) return violations.add("L4", "a lease was extended that nobody was given", entry);
  if (answer === null) {
    known.doubts.add(op);
    return;
  }
  const { status, body } = answer;
  if (status !== 200) {
    noteRefusal(known, entry, violations);
    tally.refusals++;
    return;
  }
  if (known.end !== null) violations.add("L12", "a lease was extended after its end", { known, entry });
  const isRenewed = op === "renew_lease";
  const { fence = 0, generation = 0 } = body;
  const expiresAt = millisOf(body.expires_at);
  // A renewal in doubt may have been stored; a fence that has grown without one may not.
  const mayHaveGrown = isRenewed || known.doubts.has("renew_lease");
  const hasGrown = fence > known.fence && generation > known.generation;
  if (!(hasGrown ? mayHaveGrown : !isRenewed && fence === known.fence && generation === known.generation)) {
    violations.add("L11", `a ${op} was answered with fence ${fence}, generation ${generation}`, { known, entry });
  }
  if (expiresAt < known.expiresAt) violations.add("L7", "an extension made a lease shorter", { known, entry });
  Object.assign(known, { fence, generation, expiresAt });
  known.doubts.clear();
  tally[isRenewed ? "renewals" : "heartbeats"]++;
}

/** The clocks of the server and of the clients are that of one machine; what is read a little later is a little more. */
export const clockSlackMs = 25;

const endCodes: Readonly<Record<string, LeaseState>> = {
  lease_expired: "EXPIRED",
  lease_released: "RELEASED",
  lease_revoked: "REVOKED",
};

function noteRefusal(known: Known, entry: Entry, violations: Violations): void {
  const { answer, answeredAt } = entry;
  const end = endCodes[answer?.body.error ?? ""] ?? null;
  if (end === null) return violations.add("L4", "a live lease was refused without a reason to", { known, entry });
  if (known.end !== null && known.end !== end) violations.add("L12", "an end has changed", { known, entry });
  if (end === "EXPIRED" && answeredAt + clockSlackMs < known.expiresAt) {
    violations.add("L7", "a lease was cut short", { known, entry });
  }
  if (end === "RELEASED" && known.end === null && !known.doubts.has("release_lease")) {
    violations.add("L4", "a lease is released that nobody let go of", { known, entry });
  }
  if (end === "REVOKED") violations.add("L14", "a lease is revoked that nobody took away", { known, entry });
  known.end = end;
}

function applyRelease({ leases, tally }: Model, entry: Entry, leaseId: string, violations: Violations): void {
  const { answeredAt } = entry;
  const answer = conclusive(entry.answer);
  const known = leases.get(leaseId);
  if (known === undefined) return violations.add("L5", "a lease was released that nobody was given", entry);
  if (answer === null) {
    known.doubts.add("release_lease");
    return;
  }
  const { status, body } = answer;
  const state = body.state ?? null;
  if (status !== 200 || (state !== "RELEASED" && state !== "EXPIRED")) {
    return violations.add("L5", "a release was refused", { known, entry });
  }
  if (state === "EXPIRED" && answeredAt + clockSlackMs < known.expiresAt) {
    violations.add("L7", "a lease was cut short", { known, entry });
  }
  known.end = state;
  known.doubts.clear();
  tally.releases++;
}

/** What each agent can go on with: all that is not known to have ended. */
export function heldByAgent({ leases }: Model): Record<string, Held[]> {
  const held: Record<string, Held[]> = {};
  for (const { id, agentId, resource, ttl, end } of leases.values()) {
    if (end !== null) continue;
    const ofAgent = held[agentId] ?? [];
    ofAgent.push({ id, resource, ttl });
    held[agentId] = ofAgent;
  }
  return held;
}
