/**
 * A lease on the wire, as text and as an object. Nearly every answer and event holds one, so the text is put together
 * directly: 0.4 µs, and 0.6 to 0.9 with writing it out, against 0.9 to 1.3 for the object and its JSON.stringify.
 */
import type { Lease, Millis } from "../../kernel/contract/records.ts";
import type { Blocker } from "../../kernel/contract/replies.ts";
import { isoTime } from "../answers/iso-time.ts";
import { escaped } from "../answers/json-text.ts";

export function leaseText(lease: Lease, now: Millis, token: string | null = null): string {
  const { purpose, coordinate } = lease;
  const text =
    `{"id":"${escaped(lease.id)}","resource":"${escaped(lease.resource)}","predicate":"${lease.predicate}"` +
    `,"agent_id":"${escaped(lease.agentId)}","state":"${lease.state}","fence":${lease.fence}` +
    `,"generation":${lease.generation},"units":${lease.units},"purpose":${purpose === null ? "null" : `"${escaped(purpose)}"`}` +
    `,"acquired_at":"${isoTime(lease.acquiredAt)}","expires_at":"${isoTime(lease.expiresAt)}"` +
    `,"expires_in_ms":${expiresInMs(lease, now)},"ttl":${lease.ttl}`;
  if (token === null && coordinate === null) return `${text}}`;
  const withToken = token === null ? "" : `,"token":"${escaped(token)}"`;
  const withCoordinate = coordinate === null ? "" : `,"coordinate":"${escaped(coordinate)}"`;
  return `${text}${withToken}${withCoordinate}}`;
}

export function leaseObject(lease: Lease, now: Millis, token: string | null = null) {
  return {
    id: lease.id,
    resource: lease.resource,
    predicate: lease.predicate,
    agent_id: lease.agentId,
    state: lease.state,
    fence: lease.fence,
    generation: lease.generation,
    units: lease.units,
    purpose: lease.purpose,
    acquired_at: isoTime(lease.acquiredAt),
    expires_at: isoTime(lease.expiresAt),
    expires_in_ms: expiresInMs(lease, now),
    ttl: lease.ttl,
    ...(token !== null && { token }),
    ...(lease.coordinate !== null && { coordinate: lease.coordinate }),
  };
}

/** How long it can still be used: not at all once it is held, closing or ended, whenever it would have expired. */
export function expiresInMs({ state, expiresAt }: Lease, now: Millis): number {
  return state === "ACTIVE" || state === "BINDING" ? Math.max(0, expiresAt - now) : 0;
}

export function leasesText(leases: readonly Lease[], now: Millis, tokenOf?: (lease: Lease) => string | null): string {
  let text = "";
  for (const lease of leases) {
    if (text !== "") text += ",";
    text += leaseText(lease, now, tokenOf?.(lease) ?? null);
  }
  return `[${text}]`;
}

export function blockersText(blockers: readonly Blocker[], now: Millis): string {
  return JSON.stringify(blockers.map((blocker) => blockerObject(blocker, now)));
}

export function blockerObject(blocker: Blocker, now: Millis) {
  switch (blocker.type) {
    case "lease": {
      const { id, agentId, resource, predicate, purpose } = blocker.lease;
      return {
        lease_id: id,
        agent_id: agentId,
        resource,
        predicate,
        purpose,
        expires_in_ms: standsForMs(blocker.lease, now),
      };
    }
    case "request": {
      const { request, resource, predicate } = blocker;
      return { request_id: request.id, agent_id: request.agentId, resource, predicate, purpose: request.purpose };
    }
  }
}

/** How long it can still be in the way: HELD outlasts the expiry (L9). JSON leaves out what nobody can know. */
function standsForMs({ state, expiresAt, heldUntil }: Lease, now: Millis): number | undefined {
  if (state === "CLOSING") return undefined;
  return Math.max(0, (state === "HELD" ? (heldUntil ?? expiresAt) : expiresAt) - now);
}
