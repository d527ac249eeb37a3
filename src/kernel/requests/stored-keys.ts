/**
 * Keys of requests that have ended, beyond those that memory keeps (W10):
 *
 *   a grant is over ──► tenant.remembered ──── ten minutes later ───────────────► forgotten
 *     │                    └─ 20,000 newer ones ─► a row of the store ─ pruned ──┘
 *     └─ its lease stood for it ────────────────────┘
 *
 * The filter knows which keys became rows, so that the store is asked for those only.
 */
import { limits } from "../contract/limits.ts";
import type { EndedLeaseState, EndedRequest, Lease, Millis, Request } from "../contract/records.ts";
import { addKey, mayHaveKey } from "../index/key-filter.ts";
import { type LeaseEntry, type TenantEntry, type Turn, updateCounters } from "../memory/state.ts";

/** Memory has enough of them. The store keeps the key for the rest of its time; what has none is forgotten. */
export function leaveKeyToStore(turn: Turn, request: Request): void {
  const { tenant, now } = turn;
  if (endedRequestOf(request, now) === null || request.key === null) return;
  const until = request.forgetAt ?? now;
  addKey(tenant.storedKeys, nameOf(request.agentId, request.key), until, now);
  if (tenant.counters.record.keysStoredUntil < until) updateCounters(turn, { keysStoredUntil: until });
}

/** The lease that stood for its request has ended: the store has the key, in the same commit (see endedRequestOfLease). */
export function leaveKeyOfLease({ tenant }: Turn, { holder, record }: LeaseEntry): void {
  if (record.requestKey === null || holder.kind !== "agent") return;
  holder.keys.delete(record.requestKey);
  noteKeyOfEnded(tenant, record);
}

/** Such a key is in the store: of one that ends now, and at a restart of those that ended before. */
export function noteKeyOfEnded({ storedKeys }: TenantEntry, { requestKey, agentId, endedAt }: Lease): void {
  if (requestKey === null || endedAt === null) return;
  addKey(storedKeys, nameOf(agentId, requestKey), endedAt + limits.requestMemoryMs, endedAt);
}

/** At a restart: all leases that ended since `from` are known with their keys; of those before it nothing is. */
export function noteKeysUnknownBefore({ storedKeys }: TenantEntry, from: Millis): void {
  if (from > 0) storedKeys.olderUntil = Math.max(storedKeys.olderUntil, from + limits.requestMemoryMs);
}

/** Whether the store has to be asked before a request with this key is decided, because memory does not know it. */
export function mayBeStored({ tenant, now }: Turn, agentId: string, key: string): boolean {
  const { storedKeys } = tenant;
  return (
    (storedKeys.blocks.length > 0 || storedKeys.olderUntil > now) && mayHaveKey(storedKeys, nameOf(agentId, key), now)
  );
}

function nameOf(agentId: string, key: string): string {
  return `${agentId}\n${key}`;
}

/** What the store is to keep of a request that memory has forgotten; null: nothing. */
export function endedRequestOf(request: Request, now: Millis): EndedRequest | null {
  const { tenant, agentId, key, fingerprint, state, ended, forgetAt } = request;
  if (key === null || state !== "GRANTED" || forgetAt === null || forgetAt <= now) return null;
  const lease = endOfGrant(ended);
  const endedAs = lease.state as EndedLeaseState;
  return { tenant, agentId, key, fingerprint, leaseId: lease.id, endedAs, endReason: lease.endReason };
}

/** What the store is to keep of a request whose lease stood for it; null: it has no key. */
export function endedRequestOfLease(lease: Lease): EndedRequest | null {
  const { tenant, agentId, requestKey: key, fingerprint, id: leaseId, endReason } = lease;
  if (key === null || fingerprint === null) return null;
  return { tenant, agentId, key, fingerprint, leaseId, endedAs: lease.state as EndedLeaseState, endReason };
}

/** W10: what a grant that is over is answered with. Of several ends it is one that the holder did not want. */
export function endOfGrant(ended: readonly Lease[]): Lease {
  const byForce = ended.find(({ state }) => state === "REVOKED") ?? ended.find(({ state }) => state === "EXPIRED");
  const lease = byForce ?? ended[0];
  if (lease === undefined) throw new Error("A grant without leases cannot have ended.");
  return lease;
}
