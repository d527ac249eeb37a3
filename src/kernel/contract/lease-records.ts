/** The lease as a record, and how it is stored. */
import { choice, flag, hidden, integer, omitted, optional, optionalLike, text, time, type Values } from "./field.ts";
import { predicates } from "./predicates.ts";

const liveLeaseStates = ["BINDING", "ACTIVE", "HELD", "CLOSING"] as const;
export const endedLeaseStates = ["RELEASED", "EXPIRED", "REVOKED"] as const;
export const leaseStates = [...liveLeaseStates, ...endedLeaseStates] as const;
export type EndedLeaseState = (typeof endedLeaseStates)[number];
export type LeaseState = (typeof leaseStates)[number];

export const lease = {
  tenant: hidden(text()),
  id: text(),
  resource: text(),
  predicate: choice(predicates),
  agentId: text(),
  /** The agent's id, or a task's name for the leases of a task's manifest (C2, T10). */
  holder: hidden(optionalLike(text(), "agentId")),
  state: choice(leaseStates),
  fence: integer(),
  generation: integer({ min: 1 }),
  units: optional(integer({ min: 1 }), 1),
  purpose: optional(text()),
  acquiredAt: time(),
  expiresAt: time(),
  ttl: integer(),
  /** Whether a token was asked for, so that heartbeats and renewals return one too (G8). */
  tokens: hidden(optional(flag(), false)),
  /** Idle detection (L10): without reported activity for this long the lease is revoked. */
  idleTimeout: hidden(optional(integer())),
  activeAt: hidden(optionalLike(time(), "acquiredAt")),
  /** Until when its time is booked on the tenant's quota (L10). */
  bookedAt: hidden(optional(time())),
  /** A grant that ended a wait must be collected by then (W8); null once it is. */
  claimBy: hidden(optional(time())),
  /**
   * The key of the request that was granted at once with this lease alone, and the fingerprint of what was asked (W10):
   * such a request has no record of its own.
   */
  requestKey: hidden(optional(text())),
  fingerprint: hidden(optional(text())),
  /** HELD (L9) ends then; kept afterwards as the mark that the one resurrection window was used. */
  heldUntil: hidden(optional(time())),
  /** VERIFY_ALL was called since the lease became HELD (L9). */
  verified: hidden(optional(flag(), false)),
  /** The other half of a rename (C7). */
  linkedTo: hidden(optional(text())),
  /** On a bound resource: the cell that hosts it, and by when it must have bound or torn down (G6, G7). */
  cell: hidden(optional(text())),
  cellBy: hidden(optional(time())),
  coordinate: omitted(optional(text())),
  /** HELD, and its cell has torn the binding down: reviving it binds again (L9). */
  tornDown: hidden(optional(flag(), false)),
  /** While CLOSING: how it will end. Once ended: when, why, and what its holder reported (A6). */
  closingAs: hidden(optional(choice(endedLeaseStates))),
  endedAt: hidden(optional(time())),
  endReason: hidden(optional(text())),
  version: hidden(optional(text())),
};
export interface Lease extends Values<typeof lease> {}

/** Stored by position in this order, then an object of what is not usual. The order is fixed: databases have it. */
export const leaseRow = [
  "tenant",
  "id",
  "resource",
  "predicate",
  "agentId",
  "state",
  "fence",
  "generation",
  "acquiredAt",
  "expiresAt",
  "ttl",
] as const;
/** Those of which there are few values among many leases. */
export const leaseRepeating = ["tenant", "predicate", "agentId", "state"] as const;
