/**
 * What the server has acknowledged, from the journals of its clients alone: leases with their last confirmed fence and
 * expiry, and commands of unknown outcome because no reply came. The server is checked against it.
 */
import type { Entry, HeldLease } from "./journal.ts";
import type { Violations } from "./violations.ts";
import { type AcquireInput, type Answer, type LeaseState, millisOf, type WireLease } from "./wire.ts";

/** A lease that was acknowledged to its agent. */
export interface AckedLease {
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
  /** Commands without a reply: any of them may have been stored. */
  readonly doubts: Set<Doubt>;
}

export type Doubt = "heartbeat" | "renew_lease" | "release_lease";

export interface PendingAcquire {
  readonly input: AcquireInput;
  /** Set where a WAIT was acknowledged, which must be kept too (W2). */
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
  readonly leases: Map<string, AckedLease>;
  /** By request_id: acquires of unknown outcome. */
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

/** A reply that gives the command's outcome; null if none came, or one that leaves it unknown (S2). */
export function conclusive(answer: Answer | null): Answer | null {
  return answer?.status === 503 && answer.body.error === "database_unavailable" ? null : answer;
}

export function applyJournal(model: Model, entries: readonly Entry[], violations: Violations): void {
  for (const entry of entries) {
    const answer = conclusive(entry.answer);
    if (answer === null) model.tally.unknown++;
    else if (answer.status >= 500)
      violations.add("S2", "a command was answered with an unexpected server error", entry);
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
  if (status === 404) violations.add("W2", "an acknowledged wait is forgotten", entry);
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
  leases: Map<string, AckedLease>,
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
  if (known === undefined) return violations.add("L4", "an unknown lease was extended", entry);
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
  // A renewal of unknown outcome may have been stored; otherwise the fence must not have grown.
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

/** Server and clients use the clock of one machine; a later reading is only a little greater. */
export const clockSlackMs = 25;

const endCodes: Readonly<Record<string, LeaseState>> = {
  lease_expired: "EXPIRED",
  lease_released: "RELEASED",
  lease_revoked: "REVOKED",
};

function noteRefusal(known: AckedLease, entry: Entry, violations: Violations): void {
  const { answer, answeredAt } = entry;
  const end = endCodes[answer?.body.error ?? ""] ?? null;
  if (end === null) return violations.add("L4", "a live lease was refused without a reason", { known, entry });
  if (known.end !== null && known.end !== end) violations.add("L12", "an end has changed", { known, entry });
  if (end === "EXPIRED" && answeredAt + clockSlackMs < known.expiresAt) {
    violations.add("L7", "a lease was cut short", { known, entry });
  }
  if (end === "RELEASED" && known.end === null && !known.doubts.has("release_lease")) {
    violations.add("L4", "a lease is released that no client released", { known, entry });
  }
  if (end === "REVOKED") violations.add("L14", "a lease is revoked that nobody revoked", { known, entry });
  known.end = end;
}

function applyRelease({ leases, tally }: Model, entry: Entry, leaseId: string, violations: Violations): void {
  const { answeredAt } = entry;
  const answer = conclusive(entry.answer);
  const known = leases.get(leaseId);
  if (known === undefined) return violations.add("L5", "an unknown lease was released", entry);
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

/** The leases with which each agent continues: all that are not known to have ended. */
export function heldByAgent({ leases }: Model): Record<string, HeldLease[]> {
  const held: Record<string, HeldLease[]> = {};
  for (const { id, agentId, resource, ttl, end } of leases.values()) {
    if (end !== null) continue;
    const ofAgent = held[agentId] ?? [];
    ofAgent.push({ id, resource, ttl });
    held[agentId] = ofAgent;
  }
  return held;
}
