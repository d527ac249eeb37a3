/** What is alive of tasks and workers (T1–T13), and what a receipt is (R1–R6). Plain readonly data, like all records. */
import type { Intent, Millis } from "./records.ts";

export const taskStatuses = [
  "queued",
  "leased",
  "accepted",
  "retry_pending",
  "succeeded",
  "failed",
  "canceled",
  "dead",
] as const;
export type TaskStatus = (typeof taskStatuses)[number];
/** Final: the task goes to history. A dead one can be sent again, so it stays. */
export type FinalTaskStatus = "succeeded" | "failed" | "canceled";

/** What was asked for. It never changes; what the type or the service decides where nothing was said is filled in. */
export interface TaskSpec {
  readonly taskType: string;
  readonly principalAi: string;
  readonly taskSummary: string | null;
  readonly payloadPointer: string | null;
  readonly expectedOutcomeKind: string | null;
  readonly expectedArtifactMime: string | null;
  /** Larger is more urgent. */
  readonly taskPriority: number;
  readonly requires: readonly string[];
  readonly intents: readonly Intent[];
  readonly maxAttempts: number;
  readonly maxOffers: number;
  readonly leaseDuration: number;
  readonly requeueDelay: number;
  readonly dependsOn: readonly string[];
  readonly concurrencyKey: string | null;
  readonly concurrencyLimit: number;
  readonly speculative: boolean;
  readonly preemptible: boolean;
  readonly parentTaskId: string | null;
  readonly idempotencyKey: string | null;
}

/** An attempt's live lease, as far as the task must know of it: one, or two where it runs speculatively (T8). */
export interface TaskAttempt {
  readonly leaseId: string;
  readonly fence: number;
  readonly workerId: string;
  readonly offeredAt: Millis;
  /** Null while it is only an offer. */
  readonly acceptedAt: Millis | null;
  /** Its accepted receipt; while it is an offer, that of an attempt beside it that was lost (T8). */
  readonly receiptId: string | null;
  /** The task has ended without it; its worker is told at the next heartbeat and has this long to let go. */
  readonly canceled: boolean;
}

/** A lease that ended before the task did: its worker may still come with a late complete (T13). */
export interface PastAttempt {
  readonly leaseId: string;
  readonly fence: number;
  readonly workerId: string;
  readonly acceptedAt: Millis | null;
  readonly receiptId: string | null;
  /** Somebody else has been granted what it held since. */
  readonly contested: boolean;
}

/** R5: opened by an accepted receipt, closed by a complete one. */
export interface Obligation {
  readonly id: string;
  readonly state: "OPEN" | "OVERDUE" | "CLOSED";
  readonly custodian: string;
  readonly openedAt: Millis;
}

/** A receipt that was given a key, so that a repetition is known (R3). */
export interface DedupeMark {
  readonly key: string;
  readonly fingerprint: string;
  readonly receiptId: string;
}

export interface Task {
  readonly tenant: string;
  readonly id: string;
  readonly spec: TaskSpec;
  readonly status: TaskStatus;
  /** T10: its age, as agents have one (W1). */
  readonly timestamp: number;
  readonly createdAt: Millis;
  /** The key that created it, which may cancel it. */
  readonly createdBy: string | null;
  /** Not offered before: a delay, or the pause before a retry. */
  readonly notBefore: Millis | null;
  /** Attempts that were accepted and count (T5). */
  readonly attempts: number;
  /** Offers that came to nothing since the last acceptance (T2). */
  readonly offers: number;
  readonly live: readonly TaskAttempt[];
  readonly past: readonly PastAttempt[];
  /** Of what it depends on, what has not yet succeeded. */
  readonly waitingOn: readonly string[];
  readonly obligation: Obligation | null;
  readonly lastWorker: string | null;
  /** The last receipt about it: the cause of the next (R5). */
  readonly lastReceiptId: string | null;
  readonly dedupes: readonly DedupeMark[];
  /** What its worker last said with a heartbeat; never in the ledger (R4). */
  readonly progress: unknown;
  /** Of a task that has ended: the complete receipt that ended it, when, and why. */
  readonly winningReceiptId: string | null;
  readonly endedAt: Millis | null;
  readonly endReason: string | null;
}

/** What a task carries besides, apart from it because it is large and never changes. */
export interface Payload {
  readonly tenant: string;
  readonly taskId: string;
  readonly taskBody: string | null;
  readonly inputs: unknown;
}

/** A task of history: with its payload, as nothing else keeps that. */
export interface EndedTask extends Task {
  readonly payload: Payload | null;
}

/** T12: a creation's idempotency key, remembered for a day, also when the task is over. */
export interface TaskKey {
  readonly tenant: string;
  readonly key: string;
  readonly taskId: string;
  readonly fingerprint: string;
  readonly forgetAt: Millis;
}

/** A poll that had a request_id: asked again, it is answered with the same offers (T1). */
export interface RememberedPoll {
  readonly requestKey: string;
  readonly leaseIds: readonly string[];
}

export interface Worker {
  readonly tenant: string;
  /** `{type}.{instance}` */
  readonly id: string;
  /** The key that used it first; no other worker key may use it. */
  readonly keyId: string | null;
  readonly capabilities: readonly string[];
  readonly firstSeenAt: Millis;
  /** Kept to half a minute, because it is stored. */
  readonly seenAt: Millis;
  readonly completed: number;
  readonly failed: number;
  /** Accepted attempts of which the lease was lost. */
  readonly lost: number;
  /** T8: 1 is perfect; an average that forgets slowly. */
  readonly health: number;
  readonly polls: readonly RememberedPoll[];
}

/** T6: what a tenant has set for a type of task (null: the service's default), and how long such tasks usually take. */
export interface TaskType {
  readonly tenant: string;
  readonly taskType: string;
  readonly leaseDuration: number | null;
  readonly maxAttempts: number | null;
  readonly maxOffers: number | null;
  readonly requeueDelay: number | null;
  /** Past this share of the usual duration a task without a manifest is offered to a second worker (T8); null: never. */
  readonly speculateShare: number | null;
  readonly usualDuration: number | null;
  readonly samples: number;
}

export const receiptPhases = ["accepted", "complete", "escalate", "progress"] as const;
export type ReceiptPhase = (typeof receiptPhases)[number];
export const completeStatuses = ["success", "failure", "canceled"] as const;
export type CompleteStatus = (typeof completeStatuses)[number];
export const outcomeKinds = ["none", "response_text", "artifact_pointer", "mixed"] as const;
export type OutcomeKind = (typeof outcomeKinds)[number];
export const escalationClasses = ["owner", "capability", "trust", "policy", "scope", "other"] as const;
export type EscalationClass = (typeof escalationClasses)[number];

/** R1: written once, never changed. Its hash, and that of the one before, are added by whoever stores it (R6). */
export interface Receipt {
  // What it says, whoever writes it. Null is what the wire calls NA or TBD.
  readonly phase: ReceiptPhase;
  readonly taskId: string;
  readonly parentTaskId: string | null;
  readonly causedByReceiptId: string | null;
  readonly dedupeKey: string | null;
  readonly attempt: number;
  readonly fromPrincipal: string | null;
  readonly forPrincipal: string | null;
  readonly sourceSystem: string;
  readonly recipientAi: string;
  readonly trustDomain: string | null;
  readonly status: CompleteStatus | null;
  readonly realtime: boolean;
  readonly taskType: string;
  readonly taskSummary: string | null;
  readonly taskBody: string | null;
  readonly inputs: unknown;
  readonly expectedOutcomeKind: string | null;
  readonly expectedArtifactMime: string | null;
  readonly outcomeKind: OutcomeKind | null;
  readonly outcomeText: string | null;
  readonly artifactLocation: string | null;
  readonly artifactPointer: string | null;
  readonly artifactChecksum: string | null;
  readonly artifactSizeBytes: number;
  readonly artifactMime: string | null;
  readonly artifactRefs: unknown;
  readonly escalationClass: EscalationClass | null;
  readonly escalationReason: string | null;
  readonly escalationTo: string | null;
  readonly retryRequested: boolean;
  readonly body: unknown;
  readonly createdAt: Millis;
  readonly startedAt: Millis | null;
  readonly completedAt: Millis | null;
  readonly readAt: Millis | null;
  readonly archivedAt: Millis | null;
  readonly metadata: unknown;
  // Its place in the ledger.
  readonly tenant: string;
  /** 1 for the tenant's first; no number is left out. */
  readonly sequence: number;
  readonly id: string;
  readonly obligationId: string | null;
  readonly storedAt: Millis;
}

/** A receipt on its way: one object from the first field to the last, because each step of each task makes one. */
export type ReceiptDraft = { -readonly [K in keyof Receipt]: Receipt[K] };
