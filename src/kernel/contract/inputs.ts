/** Fields as callers give them: those that several commands share, tasks and receipts. */
import {
  choice,
  type Field,
  flag,
  given,
  type InputValues,
  integer,
  json,
  list,
  map,
  named,
  number,
  optional,
  refusedWith,
  text,
  time,
} from "./field.ts";
import { limits } from "./limits.ts";
import { predicates } from "./predicates.ts";

export const agentId = text({
  min: 1,
  max: limits.idLengthMax,
  matching: {
    pattern: /^[A-Za-z0-9][A-Za-z0-9._:@/-]*$/,
    words: "letters, digits and . _ : @ / -, a letter or digit first",
  },
  error: "invalid_agent_id",
});
export const leaseId = text({ min: 1, max: limits.idLengthMax });
export const leaseIds = optional(list(leaseId, { max: limits.leaseIdsMax }));
export const requestId = text({ min: 1, max: limits.idLengthMax });
export const tenantId = text({
  min: 1,
  max: limits.idLengthMax,
  matching: { pattern: /^[a-z0-9][a-z0-9_-]{0,62}$/, words: "at most 63 lower-case letters, digits, _ and -" },
  error: "invalid_tenant_id",
});
export const cellName = text({
  min: 1,
  max: limits.idLengthMax,
  matching: { pattern: /^[\w.:@-]+$/, words: "letters, digits, . : @ _ and -" },
});
export const workerId = text({ min: 1, max: limits.idLengthMax, error: "invalid_worker_id" });
export const keyId = text({ min: 1, max: limits.idLengthMax });
export const resourceName = text({ min: 1, max: limits.resourceLengthMax, error: "invalid_resource" });
/** The kernel checks it with the rest of the manifest. */
export const predicate: Field<string> = choice(predicates, { error: "invalid_predicate" });
export const purpose = text({ max: limits.purposeLengthMax, error: "invalid_purpose" });
export const reason = text({ min: 1, max: limits.reasonLengthMax, error: "invalid_reason" });
export const version = text({ max: limits.versionLengthMax, error: "invalid_version" });
export const labels = map(text({ max: limits.labelLengthMax, error: "invalid_labels" }), {
  max: limits.labelsMax,
  keyMax: limits.labelLengthMax,
  error: "invalid_labels",
});

/** The caller's idempotency key (W10, T1). */
export const requestKey = named(
  "request_id",
  optional(text({ min: 1, max: limits.keyLengthMax, error: "invalid_request_id" })),
);

export const intentInput = {
  predicate,
  resource: resourceName,
  units: optional(integer({ min: 1, max: limits.unitsMax, error: "invalid_units" })),
  to: optional(text({ min: 1, max: limits.resourceLengthMax, error: "invalid_target" })),
  /** "any": any declared resource of the pattern that is ready and has room. */
  pick: optional(choice(["any"])),
};

/** What may be left out of an intent may be missing. */
export type IntentInput = Pick<InputValues<typeof intentInput>, "predicate" | "resource"> &
  Partial<InputValues<typeof intentInput>>;
export const intentGiven: Field<IntentInput> = given(intentInput);

export const obligationId = text({ min: 1, max: limits.idLengthMax });
export const taskId = text({ min: 1, max: limits.idLengthMax });
export const taskType = text({ min: 1, max: limits.idLengthMax, oneLine: true, error: "invalid_task" });
export const capability = text({ min: 1, max: limits.idLengthMax, oneLine: true, error: "invalid_task" });
const none: readonly never[] = [];

/** Who answers for something: a principal's name, as receipts carry it. */
export const principal = text({ min: 1, max: limits.keyLengthMax });

const attemptsMax = integer({ min: 1, max: limits.taskAttemptsMax, error: "invalid_task" });
const offersMax = integer({ min: 1, max: limits.taskOffersMax, error: "invalid_task" });
const leaseDurationMs = integer({ min: limits.ttlMsMin, cap: limits.taskLeaseMsMax, error: "invalid_task" });
const requeueDelayMs = integer({ max: limits.taskDelayMsMax, error: "invalid_task" });

/**
 * A task as a caller describes it. What is usual is what a task has where its creator says nothing. The order is
 * part of the fingerprint under which a creation is remembered (T12): add new fields at the end.
 */
const traceparentText = {
  pattern: /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/,
  words: "00-<trace id>-<parent id>-<flags> in lower-case hexadecimal, as W3C Trace Context has it",
};

export const taskInput = refusedWith("invalid_task", {
  taskType,
  principalAi: text({ min: 1, max: limits.idLengthMax }),
  taskSummary: optional(text({ max: limits.receiptTextMax })),
  taskBody: optional(text({ bytesMax: limits.taskBodyBytesMax })),
  payloadPointer: optional(text({ min: 1, max: limits.receiptTextMax })),
  inputs: optional(json({ bytesMax: limits.inputsBytesMax })),
  expectedOutcomeKind: optional(text({ min: 1, max: limits.keyLengthMax })),
  expectedArtifactMime: optional(text({ min: 1, max: limits.keyLengthMax })),
  /** Larger is more urgent. */
  taskPriority: optional(integer({ min: -limits.taskPriorityMax, max: limits.taskPriorityMax }), 0),
  requires: optional(list(capability, { max: limits.taskRequiresMax }), none),
  intents: optional(
    list(intentGiven, {
      max: limits.intentsMax,
      error: { min: "empty_manifest", max: "manifest_too_large" },
    }),
    none,
  ),
  delayMs: optional(integer({ max: limits.taskDelayMsMax })),
  maxAttempts: optional(attemptsMax, limits.taskAttemptsDefault),
  maxOffers: optional(offersMax, limits.taskOffersDefault),
  leaseDurationMs: optional(leaseDurationMs, limits.taskLeaseMsDefault),
  requeueDelayMs: optional(requeueDelayMs, limits.taskRequeueMsDefault),
  dependsOn: optional(list(taskId, { max: limits.taskDependsOnMax }), none),
  concurrencyKey: optional(text({ min: 1, max: limits.keyLengthMax })),
  concurrencyLimit: optional(integer({ min: 1, max: limits.taskConcurrencyMax }), 1),
  speculative: optional(flag(), false),
  preemptible: optional(flag(), false),
  parentTaskId: optional(taskId),
  idempotencyKey: optional(text({ min: 1, max: limits.keyLengthMax })),
  /** Who gets its policy escalations (T5); else its type's, the tenant's, or its principal. */
  supervisor: optional(principal),
  /** The trace that it belongs to (W3C Trace Context, version 00): carried, and no rule reads it. */
  traceparent: optional(text({ max: limits.traceparentLength, matching: traceparentText })),
});

/** T6: what a tenant sets for a type of task; null is the service's default. */
export const taskTypeSettings = refusedWith("invalid_task", {
  leaseDurationMs: optional(leaseDurationMs),
  maxAttempts: optional(attemptsMax),
  maxOffers: optional(offersMax),
  requeueDelayMs: optional(requeueDelayMs),
  speculateShare: optional(number({ min: limits.speculateShareMin, max: limits.speculateShareMax })),
  supervisor: optional(principal),
});

const id = optional(text({ min: 1, max: limits.idLengthMax }));
const name = optional(text({ min: 1, max: limits.keyLengthMax }));
const line = optional(text({ min: 1, max: limits.receiptTextMax }));
const long = optional(text({ min: 1, bytesMax: limits.taskBodyBytesMax }));
const metadata = optional(json({ bytesMax: limits.metadataBytesMax }));
const when = optional(time());

/**
 * A receipt as it was sent (R2): null is left out (NA, TBD and the other marks of absence are turned into it at the
 * edge). The order is part of the fingerprint by which a repetition is known (R3): add new fields at the end.
 */
export const receiptInput = refusedWith("invalid_receipt", {
  phase: text({ min: 1, max: limits.keyLengthMax }),
  taskId: id,
  /** Names the attempt: the lease, or the task together with a fence or with the worker in `sourceSystem` (R2). */
  leaseId: id,
  fence: optional(integer()),
  receiptId: id,
  tenantId: name,
  obligationId: id,
  parentTaskId: id,
  causedByReceiptId: id,
  dedupeKey: name,
  attempt: optional(integer({ min: 1 })),
  fromPrincipal: name,
  forPrincipal: name,
  sourceSystem: name,
  recipientAi: name,
  trustDomain: name,
  status: name,
  realtime: optional(flag()),
  taskType: name,
  taskSummary: line,
  taskBody: long,
  inputs: optional(json({ bytesMax: limits.inputsBytesMax })),
  expectedOutcomeKind: name,
  expectedArtifactMime: name,
  outcomeKind: name,
  outcomeText: long,
  artifactLocation: line,
  artifactPointer: line,
  artifactChecksum: name,
  artifactSizeBytes: optional(integer()),
  artifactMime: name,
  artifactRefs: metadata,
  escalationClass: name,
  escalationReason: line,
  escalationTo: name,
  retryRequested: optional(flag()),
  body: optional(json({ bytesMax: limits.receiptBodyBytesMax })),
  createdAt: when,
  startedAt: when,
  completedAt: when,
  readAt: when,
  archivedAt: when,
  metadata,
});
