/**
 * What is alive, as plain readonly data. A change replaces the record, so whoever was handed one (a reply, an event,
 * a batch under way) keeps what was true then. From these records alone a kernel is restored and goes on.
 */
import type { Predicate } from "./predicates.ts";
import type { Payload, Task, TaskKey, TaskType, Worker } from "./task-records.ts";

/** Milliseconds since 1970 by the control plane's clock (L7). */
export type Millis = number;

export type LiveLeaseState = "BINDING" | "ACTIVE" | "HELD" | "CLOSING";
export type EndedLeaseState = "RELEASED" | "EXPIRED" | "REVOKED";
export type LeaseState = LiveLeaseState | EndedLeaseState;

export interface Lease {
  readonly tenant: string;
  readonly id: string;
  readonly resource: string;
  readonly predicate: Predicate;
  readonly agentId: string;
  /** Whom it belongs to: the agent's id, or a task's name for the leases of a task's manifest (C2, T10). */
  readonly holder: string;
  readonly state: LeaseState;
  readonly fence: number;
  readonly generation: number;
  readonly units: number;
  readonly purpose: string | null;
  readonly acquiredAt: Millis;
  readonly expiresAt: Millis;
  readonly ttl: number;
  /** Whether a token was asked for, so that heartbeats and renewals return one too (G8). */
  readonly tokens: boolean;
  /** Idle detection (L10): without reported activity for this long the lease is revoked. */
  readonly idleTimeout: number | null;
  readonly activeAt: Millis;
  /** A grant that ended a wait must be collected by then (W8); null once it is. */
  readonly claimBy: Millis | null;
  /** HELD (L9) ends then; kept afterwards as the mark that the one resurrection window was used. */
  readonly heldUntil: Millis | null;
  /** VERIFY_ALL has been asked since the lease became HELD (L9). */
  readonly verified: boolean;
  /** The other half of a rename (C7). */
  readonly linkedTo: string | null;
  /** On a bound resource: the cell that hosts it, and by when it must have bound or torn down (G6, G7). */
  readonly cell: string | null;
  readonly cellBy: Millis | null;
  readonly coordinate: string | null;
  /** While CLOSING: how it will end. Once ended: when, why, and what its holder reported (A6). */
  readonly closingAs: EndedLeaseState | null;
  readonly endedAt: Millis | null;
  readonly endReason: string | null;
  readonly version: string | null;
}

export interface Intent {
  readonly predicate: Predicate;
  readonly resource: string;
  readonly units: number;
  /** Where a rename goes (C7). */
  readonly to: string | null;
  /** "any": the resource is a pattern, and one declared resource that it matches is chosen. */
  readonly pick: "any" | null;
}

/**
 * WAITING holds nothing. BINDING has leases that cells are setting up. The others are fates: they are remembered for a
 * while, so that who comes late to ask is told.
 */
export type RequestState = "WAITING" | "BINDING" | "GRANTED" | "TIMED_OUT" | "CANCELED" | "PAUSED" | "BIND_FAILED";

export interface Request {
  readonly tenant: string;
  readonly id: string;
  readonly agentId: string;
  readonly holder: string;
  /** The client's idempotency key, and the fingerprint of what was asked under it (W10). */
  readonly key: string | null;
  readonly fingerprint: string;
  readonly state: RequestState;
  readonly intents: readonly Intent[];
  /** Where an intent has `pick`: for each intent the name that it stands for now. Empty where none has. */
  readonly picked: readonly string[];
  readonly ttl: number;
  readonly idleTimeout: number | null;
  readonly purpose: string | null;
  readonly tokens: boolean;
  /** Place in the queue among the tenant's requests; never given twice. */
  readonly arrival: number;
  readonly submittedAt: Millis;
  readonly waitTimeout: number;
  readonly timeoutAt: Millis;
  /** Since when the agent had been PAUSED, for the update that the grant carries (A4). */
  readonly observeSince: Millis | null;
  readonly warnings: readonly string[];
  /** Of a granted request: its leases, in the manifest's order, and those of them that have ended. */
  readonly leaseIds: readonly string[];
  readonly ended: readonly Lease[];
  /** Why it was PAUSED, or could not be bound. */
  readonly fateReason: string | null;
  /** Once nothing of it is alive, it is remembered until then. */
  readonly forgetAt: Millis | null;
}

export const agentStates = [
  "PLANNING",
  "ACQUIRING",
  "EXECUTING",
  "PAUSED",
  "VERIFYING",
  "COMPLETED",
  "ABORTED",
] as const;
export type AgentState = (typeof agentStates)[number];

export interface Agent {
  readonly tenant: string;
  readonly id: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly state: AgentState;
  /** DIE_RESTART stands beside the state, which is where the agent goes back to (A1, L9). */
  readonly restarting: boolean;
  /** Paused by its operator (W9). */
  readonly pausedByOperator: boolean;
  readonly priority: number;
  /** How often this unit of work has died since its last grant (W5). */
  readonly attempts: number;
  readonly epoch: number;
  readonly registeredAt: Millis;
  /** Since when it is PAUSED; the update of A4 reaches back to here. */
  readonly pausedAt: Millis | null;
  /** Since when it has neither lease nor request; after a week it is forgotten (S4). */
  readonly idleSince: Millis;
}

export const resolutionStrategies = ["RETRY", "ABORT", "MERGE"] as const;
export type ResolutionStrategy = (typeof resolutionStrategies)[number];

/** A2: an agent's checkpoint. */
export interface Digest {
  readonly tenant: string;
  readonly agentId: string;
  readonly checkpointId: string;
  readonly resumePoint: string;
  readonly context: unknown;
  readonly intentBacklog: readonly Intent[];
  readonly resolutionStrategy: ResolutionStrategy;
  readonly priority: number;
  readonly savedAt: Millis;
}

export type Strategy = "wait_die" | "wound_wait";

export interface TenantSettings {
  readonly strategy: Strategy;
  readonly ttlMsDefault: number;
  readonly ttlMsMax: number;
  readonly waitTimeoutMsDefault: number;
  readonly waitTimeoutMsMax: number;
  readonly claimWithinMs: number;
  readonly retryMsBase: number;
  readonly retryMsCap: number;
}

export interface TenantQuotas {
  readonly leasesMax: number;
  readonly waitersMax: number;
  readonly agentsMax: number;
  readonly resourcesMax: number;
  /** Leases on patterns, alive at once: they are what other searches must step around (S4). */
  readonly patternsMax: number;
  readonly tasksMax: number;
  /** The longest that one lease may live, however often it is extended (L10); null: no limit. */
  readonly leaseTimeMsMax: number | null;
  /** Lease time of all of the tenant's leases together, per day (L10); null: no limit. */
  readonly tenantLeaseTimeMsMax: number | null;
  /** Units of live leases by the resources' type ({"GPU": 4}); a type that is not named has no limit (G2). */
  readonly kinds: Readonly<Record<string, number>>;
}

export interface Tenant {
  readonly id: string;
  readonly suspended: boolean;
  readonly suspendReason: string | null;
  readonly settings: TenantSettings;
  readonly quotas: TenantQuotas;
  readonly createdAt: Millis;
}

/** What only ever grows, apart from the tenant's settings because it changes with every grant. */
export interface Counters {
  readonly tenant: string;
  readonly fence: number;
  readonly priority: number;
  readonly arrival: number;
  /** The greatest epoch of an agent that was forgotten; who registers anew begins above it (A3). */
  readonly epochFloor: number;
  /** Lease time used by ended leases in the present window (L10). */
  readonly leaseTimeMs: number;
  readonly windowStart: Millis;
  /** Receipts in the tenant's ledger: the last one's sequence number (R6). */
  readonly receipts: number;
}

export interface Resource {
  readonly tenant: string;
  readonly name: string;
  /** Units, for a counted resource (C6). */
  readonly capacity: number | null;
  /** The cell that hosts it, where it is bound (G6), and what that cell says of it. */
  readonly cell: string | null;
  readonly driver: string | null;
  /** Labels of what it runs on, for tokens that are narrowed to them (G4). */
  readonly hardware: readonly string[];
  /** Why its cell cannot serve it now. */
  readonly fault: string | null;
  readonly fenced: boolean;
  readonly fenceReason: string | null;
  readonly fencedAt: Millis | null;
  readonly withdrawn: boolean;
  readonly declaredAt: Millis;
}

/** What a cell says of one resource that it hosts. */
export interface CellResource {
  readonly resource: string;
  readonly driver: string;
  readonly capacity: number | null;
  readonly hardware: readonly string[];
  readonly ready: boolean;
  readonly fault: string | null;
  /** Why the cell has fenced it by itself (G7). */
  readonly fenced: string | null;
}

/** What a cell believes to be bound, or to have ended by itself. */
export interface CellBinding {
  readonly leaseId: string;
  readonly generation: number;
  readonly fence: number;
  readonly endedAs: string | null;
}

/** A process that hosts resources and enforces the leases on them. */
export interface Cell {
  readonly tenant: string;
  readonly id: string;
  /** Of the process that enrolled last; empty once it has left. */
  readonly session: string;
  /** Whose key enrolled it first; null where a supervisor did. */
  readonly keyId: string | null;
  readonly state: "READY" | "GONE";
  readonly goneReason: string | null;
  /** G12: nothing new is leased on its resources. */
  readonly withdrawn: boolean;
  readonly version: string | null;
  readonly enrolledAt: Millis;
  /** When it last became READY or GONE, or was withdrawn or readmitted. */
  readonly changedAt: Millis;
  /** Unless it is heard of by then, it is GONE. */
  readonly aliveBy: Millis;
}

export const roles = ["operator", "supervisor", "agent", "worker", "reader", "cell"] as const;
export type Role = (typeof roles)[number];

/** A credential, known by its hash only. */
export interface Key {
  readonly id: string;
  readonly hash: string;
  readonly role: Role;
  readonly tenant: string;
  readonly label: string | null;
  readonly createdAt: Millis;
}

/** Every kind of record, by the name under which it is stored. */
export interface RecordOf {
  readonly tenant: Tenant;
  readonly counters: Counters;
  readonly agent: Agent;
  readonly digest: Digest;
  readonly resource: Resource;
  readonly cell: Cell;
  readonly request: Request;
  readonly lease: Lease;
  readonly key: Key;
  readonly task: Task;
  readonly payload: Payload;
  readonly task_key: TaskKey;
  readonly task_type: TaskType;
  readonly worker: Worker;
}
export type RecordKind = keyof RecordOf;

/** A record with its kind: what a snapshot holds and a restore takes. */
export type StoredRecord = { [K in RecordKind]: { readonly kind: K; readonly record: RecordOf[K] } }[RecordKind];
