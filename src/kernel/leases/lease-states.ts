/**
 * A lease's states (L3, L9, G6, G7). Nothing else writes `state` of a lease.
 *
 *              bind            hold
 *   BINDING ────────► ACTIVE ────────► HELD        on a bound resource it begins as BINDING, otherwise as ACTIVE
 *      │              │    ▲             │
 *      │              │    └── extend ───┤         HELD: its agent restarts, and nobody else gets it for a while
 *      │ close        │ close            │ close
 *      ├──────────────┴──────────────────┴───► CLOSING    while a cell tears it down
 *      │ revoke       │ release, expire, revoke   │ as it was to end
 *      ▼              ▼                           ▼
 *   REVOKED        RELEASED | EXPIRED | REVOKED
 */

import type { EndedLeaseState, Lease, LeaseState, Millis } from "../contract/records.ts";
import { after, type Transitions } from "../memory/transitions.ts";
export type LeaseMove = "bind" | "extend" | "hold" | "close" | "release" | "expire" | "revoke";

const no = "refused";

// biome-ignore format: a table, one row per state
export const leaseTransitions: Transitions<LeaseState, LeaseMove> = {
  BINDING:  { bind: "ACTIVE", extend: no,       hold: no,     close: "CLOSING", release: no,         expire: no,        revoke: "REVOKED" },
  ACTIVE:   { bind: no,       extend: "ACTIVE", hold: "HELD", close: "CLOSING", release: "RELEASED", expire: "EXPIRED", revoke: "REVOKED" },
  HELD:     { bind: no,       extend: "ACTIVE", hold: no,     close: "CLOSING", release: "RELEASED", expire: "EXPIRED", revoke: "REVOKED" },
  CLOSING:  { bind: no,       extend: no,       hold: no,     close: no,        release: "RELEASED", expire: "EXPIRED", revoke: "REVOKED" },
  RELEASED: { bind: no,       extend: no,       hold: no,     close: no,        release: no,         expire: no,        revoke: no },
  EXPIRED:  { bind: no,       extend: no,       hold: no,     close: no,        release: no,         expire: no,        revoke: no },
  REVOKED:  { bind: no,       extend: no,       hold: no,     close: no,        release: no,         expire: no,        revoke: no },
};

const endMoves = { RELEASED: "release", EXPIRED: "expire", REVOKED: "revoke" } as const;

export function firstLeaseState(binds: boolean): LeaseState {
  return binds ? "BINDING" : "ACTIVE";
}

/** All cells of its manifest have set it up; its time begins. */
export function boundLease(
  lease: Lease,
  times: Pick<Lease, "acquiredAt" | "expiresAt" | "activeAt" | "claimBy">,
): Lease {
  return { ...lease, ...times, state: after(leaseTransitions, lease.state, "bind") };
}

/** A heartbeat or a renewal: its holder is there, and has collected it. */
export function extendedLease(lease: Lease, expiresAt: Millis, activeAt: Millis): Lease {
  const state = after(leaseTransitions, lease.state, "extend");
  return { ...lease, state, expiresAt, activeAt, claimBy: null, verified: false };
}

export function heldLease(lease: Lease, heldUntil: Millis): Lease {
  return { ...lease, state: after(leaseTransitions, lease.state, "hold"), heldUntil, claimBy: null };
}

export function closingLease(
  lease: Lease,
  closingAs: EndedLeaseState,
  endReason: string | null,
  version: string | null,
  cellBy: Millis,
): Lease {
  const state = after(leaseTransitions, lease.state, "close");
  return { ...lease, state, closingAs, cellBy, claimBy: null, endReason, version };
}

export function endedLease(
  lease: Lease,
  as: EndedLeaseState,
  endedAt: Millis,
  endReason: string | null,
  version: string | null,
): Lease {
  return { ...lease, state: after(leaseTransitions, lease.state, endMoves[as]), endedAt, endReason, version };
}
