/** Asks a server without other clients for every acknowledged lease, and compares the replies. */
import type { Connection } from "./connections.ts";
import { type AckedLease, clockSlackMs, type Model } from "./model.ts";
import type { Violations } from "./violations.ts";
import { type LeaseState, millisOf, type WireLease } from "./wire.ts";

/** A lease as VERIFY_ALL shows it (L8). */
type Verified = Pick<WireLease, "id" | "state" | "fence" | "expires_in_ms">;

export interface Verification {
  leases: number;
  alive: number;
  /** Commands without a reply that turned out to be stored, and those that were not. */
  stored: number;
  notStored: number;
}

export async function verifyLeases(
  { leases }: Model,
  connection: Connection,
  violations: Violations,
): Promise<Verification> {
  const result: Verification = { leases: leases.size, alive: 0, stored: 0, notStored: 0 };
  for (const [agentId, known] of groupByAgent(leases.values())) {
    const { body } = await connection.call("verify_all", { agent_id: agentId, lease_ids: known.map(({ id }) => id) });
    const now = millisOf(body.now);
    const shown = new Map(((body.leases ?? []) as readonly Verified[]).map((lease) => [lease.id, lease]));
    for (const one of known) compare(one, shown.get(one.id), now, result, violations);
  }
  await inParallel([...leases.values()], (known) => compareWithGet(known, connection, violations));
  return result;
}

function compare(
  known: AckedLease,
  shown: Verified | undefined,
  now: number,
  result: Verification,
  violations: Violations,
): void {
  const evidence = { known, doubts: [...known.doubts], shown, now };
  if (shown === undefined || shown.state === "UNKNOWN") {
    return violations.add("S1", "an acknowledged lease is gone", evidence);
  }
  const { state } = shown;
  const wasRenewed = compareFence(known, shown, evidence, violations);
  if (known.end !== null) {
    if (state !== known.end) violations.add("S1", `an acknowledged end is undone: ${state}`, evidence);
    return;
  }
  switch (state) {
    case "ACTIVE":
      result.alive++;
      compareAlive(known, now + shown.expires_in_ms, wasRenewed, evidence, result, violations);
      break;
    case "EXPIRED":
      if (now < known.expiresAt) violations.add("L7", "a lease ended early", evidence);
      known.end = state;
      break;
    case "RELEASED":
      if (!known.doubts.has("release_lease"))
        violations.add("S1", "a lease is released that no client released", evidence);
      result.stored++;
      known.end = state;
      break;
    default:
      violations.add("L12", `a lease is ${state}`, evidence);
  }
  known.doubts.clear();
}

/** L11: the acknowledged fence, or a greater one if a renewal was in flight. True: it was stored. */
function compareFence(known: AckedLease, { fence }: Verified, evidence: object, violations: Violations): boolean {
  if (fence === known.fence) return false;
  if (fence < known.fence || !known.doubts.has("renew_lease")) {
    violations.add("L11", `the fence is ${fence}`, evidence);
    return false;
  }
  known.fence = fence;
  known.generation++;
  return true;
}

/** L7: exactly the acknowledged expiry or, if an extension was in flight, that one's; never less. */
function compareAlive(
  known: AckedLease,
  expiresAt: number,
  wasRenewed: boolean,
  evidence: object,
  result: Verification,
  violations: Violations,
): void {
  const { doubts } = known;
  const mayBeLater = doubts.has("heartbeat") || doubts.has("renew_lease");
  if (expiresAt < known.expiresAt) violations.add("L7", "an acknowledged expiry is lost", evidence);
  if (expiresAt > known.expiresAt && !mayBeLater) violations.add("L7", "a restart extended a lease", evidence);
  if (doubts.size > 0) result[wasRenewed || expiresAt > known.expiresAt ? "stored" : "notStored"]++;
  known.expiresAt = expiresAt;
}

/** The same by GET, with the fields that VERIFY_ALL leaves out. */
async function compareWithGet(known: AckedLease, connection: Connection, violations: Violations): Promise<void> {
  const { status, body } = await connection.call("get_lease", { lease_id: known.id });
  const evidence = { known, status, body };
  if (status !== 200) return violations.add("L16", "an acknowledged lease cannot be read", evidence);
  const state: LeaseState = body.state ?? "UNKNOWN";
  const hasExpiredSince = state === "EXPIRED" && known.end === null && Date.now() + clockSlackMs >= known.expiresAt;
  if (state !== (known.end ?? "ACTIVE") && !hasExpiredSince) {
    return violations.add("L8", `GET shows ${state}, VERIFY_ALL ${known.end ?? "ACTIVE"}`, evidence);
  }
  if (hasExpiredSince) known.end = "EXPIRED";
  const isSame =
    body.fence === known.fence &&
    body.generation === known.generation &&
    body.resource === known.resource &&
    body.predicate === known.predicate &&
    body.agent_id === known.agentId &&
    millisOf(body.acquired_at) === known.acquiredAt;
  if (!isSame) violations.add("S1", "a lease is not as it was acknowledged", evidence);
  if (known.end === null && millisOf(body.expires_at) !== known.expiresAt) {
    violations.add("L7", "GET and VERIFY_ALL differ about the expiry", evidence);
  }
}

/** After all unknown outcomes are settled: an agent holds what was acknowledged to it, and nothing else. */
export async function verifyHoldings(
  { leases }: Model,
  agentIds: readonly string[],
  connection: Connection,
  violations: Violations,
): Promise<void> {
  for (const agentId of agentIds) {
    const { body } = await connection.call("verify_all", { agent_id: agentId });
    const now = millisOf(body.now);
    const shown = new Set<string>();
    for (const { id, state } of (body.leases ?? []) as readonly Verified[]) {
      shown.add(id);
      if (leases.get(id)?.end === null) continue;
      violations.add("S1", "an agent holds a lease that was never acknowledged to it", {
        agentId,
        id,
        state,
        known: leases.get(id),
      });
    }
    for (const known of leases.values()) {
      if (known.agentId !== agentId || known.end !== null || shown.has(known.id)) continue;
      if (now < known.expiresAt) violations.add("S1", "an agent no longer holds an acknowledged lease", { known, now });
      else known.end = "EXPIRED";
    }
  }
}

function groupByAgent(leases: Iterable<AckedLease>): Map<string, AckedLease[]> {
  return Map.groupBy(leases, ({ agentId }) => agentId);
}

const parallelMax = 16;

export async function inParallel<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const left = [...items];
  const run = async (): Promise<void> => {
    for (let item = left.pop(); item !== undefined; item = left.pop()) await work(item);
  };
  await Promise.all(Array.from({ length: parallelMax }, run));
}
