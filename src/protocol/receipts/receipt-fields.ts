/**
 * A receipt as it may be sent (R2): the document's short ones and LegiVellum's full ones, version 1, both as they stand.
 * The full ones have every field, with a mark where there is nothing to say: "NA" or "TBD", null, {}, [], 0. Those are
 * nothing but ways to leave a field out, and are read as such here.
 */
import type { ReceiptInput } from "../../kernel/contract/task-commands.ts";
import type { Fault } from "../schema/explain.ts";
import { findJsonFault } from "../schema/free-json.ts";
import { limits } from "../schema/limits.ts";
import { anything, flag, integer, optional, record, type Static, text } from "../schema/schema.ts";

const id = (description: string) => optional(text({ minLength: 1, maxLength: limits.idLengthMax, description }));
const name = (description: string) => optional(text({ maxLength: limits.keyLengthMax, description }));
const line = (description: string) => optional(text({ maxLength: limits.receiptTextMax, description }));
const long = (description: string) => optional(text({ maxLength: limits.taskBodyBytesMax, description }));
const time = (description: string) => optional(text({ maxLength: 64, description: `${description} ISO 8601.` }));
const free = (description: string) => optional(anything({ description }));

export const receiptFields = {
  phase: text({ maxLength: limits.keyLengthMax, description: "accepted, complete, escalate or progress." }),
  task_id: id("The task; with `fence`, or found by `source_system`, unless `lease_id` is given."),
  lease_id: id("The lease of the offer that this is about."),
  fence: optional(integer({ description: "The offer's fence, beside `task_id`." })),
  schema_version: name("Of the receipt: 1.0."),
  tenant_id: name("Must be the credential's own."),
  receipt_id: id("Of the sender's choice; one is made if it is left out."),
  obligation_id: id("The obligation that this is about."),
  parent_task_id: id("The task that this one is a part of."),
  caused_by_receipt_id: id("The receipt that led to this one; the task's last one if it is left out."),
  dedupe_key: name("Sent again with the same content, the first receipt is the answer (R3)."),
  attempt: optional(integer({ description: "Which attempt this is, from 1." })),
  from_principal: name("Who sends it."),
  for_principal: name("For whom it is done."),
  source_system: name("The worker_id."),
  recipient_ai: name("Whom it is for."),
  trust_domain: name("As given."),
  status: name("Of a complete receipt: success, failure or canceled."),
  realtime: optional(flag({ description: "As given." })),
  task_type: name("From the task if left out."),
  task_summary: line("From the task if left out."),
  task_body: long("From the task if left out."),
  inputs: free("From the task if left out; up to 64 KiB."),
  expected_outcome_kind: name("From the task if left out."),
  expected_artifact_mime: name("From the task if left out."),
  outcome_kind: name("Of a complete receipt: none, response_text, artifact_pointer or mixed."),
  outcome_text: long("What came of it, in words."),
  artifact_location: line("Where the artifact lies."),
  artifact_pointer: line("From `artifact_location` if left out."),
  artifact_checksum: line("As given."),
  artifact_size_bytes: optional(integer()),
  artifact_mime: name("From what was expected if left out."),
  artifact_refs: free("Further artifacts."),
  escalation_class: name("owner, capability, trust, policy, scope or other."),
  escalation_reason: line("Why it is passed on."),
  escalation_to: name("To whom; the task's principal if left out."),
  retry_requested: optional(flag({ description: "Whether it should be tried again." })),
  body: free("Anything else."),
  created_at: time("When it was written."),
  stored_at: time("Taken and not used: the ledger's clock decides."),
  started_at: time("When the work began."),
  completed_at: time("When it ended."),
  read_at: time("As given."),
  archived_at: time("As given."),
  metadata: free("Up to 16 KiB."),
};

export const newReceipt = record(receiptFields, { title: "NewReceipt" });
export type NewReceipt = Static<typeof newReceipt>;

const times = ["created_at", "started_at", "completed_at", "read_at", "archived_at"] as const;
const frees = ["inputs", "artifact_refs", "body", "metadata"] as const;
const isoPattern = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)$/i;

/** What the schema cannot say. */
export function receiptFault(input: NewReceipt): Fault | null {
  for (const field of times) {
    const value = input[field];
    if (value !== undefined && value !== null && !isAbsent(value) && Number.isNaN(readTime(value)))
      return wrong(field, `${field} is no time in ISO 8601 with its zone; send one such as 2026-01-04T15:45:00Z.`);
  }
  for (const field of frees) {
    const value = input[field];
    const fault = typeof value === "object" && value !== null ? findJsonFault(value, field) : null;
    if (fault !== null) return fault;
  }
  const version = textOf(input.schema_version);
  if (version !== null && !/^v?1(\.\d+)*$/.test(version))
    return wrong("schema_version", "schema_version is not of version 1; send receipts of version 1.0.");
  return null;
}

function wrong(field: string, detail: string): Fault {
  return { code: "invalid_receipt", field, detail };
}

/** By hand, field for field: every step of every task comes this way. */
export function decodeReceipt(input: NewReceipt): ReceiptInput {
  return {
    phase: input.phase,
    taskId: textOf(input.task_id),
    leaseId: textOf(input.lease_id),
    fence: numberOf(input.fence),
    receiptId: textOf(input.receipt_id),
    tenantId: textOf(input.tenant_id),
    obligationId: textOf(input.obligation_id),
    parentTaskId: textOf(input.parent_task_id),
    causedByReceiptId: textOf(input.caused_by_receipt_id),
    dedupeKey: textOf(input.dedupe_key),
    attempt: numberOf(input.attempt),
    fromPrincipal: textOf(input.from_principal),
    forPrincipal: textOf(input.for_principal),
    sourceSystem: textOf(input.source_system),
    recipientAi: textOf(input.recipient_ai),
    trustDomain: textOf(input.trust_domain),
    status: textOf(input.status),
    realtime: input.realtime ?? null,
    taskType: textOf(input.task_type),
    taskSummary: textOf(input.task_summary),
    taskBody: textOf(input.task_body),
    inputs: freeOf(input.inputs),
    expectedOutcomeKind: textOf(input.expected_outcome_kind),
    expectedArtifactMime: textOf(input.expected_artifact_mime),
    outcomeKind: textOf(input.outcome_kind),
    outcomeText: textOf(input.outcome_text),
    artifactLocation: textOf(input.artifact_location),
    artifactPointer: textOf(input.artifact_pointer),
    artifactChecksum: textOf(input.artifact_checksum),
    artifactSizeBytes: numberOf(input.artifact_size_bytes),
    artifactMime: textOf(input.artifact_mime),
    artifactRefs: freeOf(input.artifact_refs),
    escalationClass: textOf(input.escalation_class),
    escalationReason: textOf(input.escalation_reason),
    escalationTo: textOf(input.escalation_to),
    retryRequested: input.retry_requested ?? null,
    body: freeOf(input.body),
    createdAt: timeOf(input.created_at),
    startedAt: timeOf(input.started_at),
    completedAt: timeOf(input.completed_at),
    readAt: timeOf(input.read_at),
    archivedAt: timeOf(input.archived_at),
    metadata: freeOf(input.metadata),
  };
}

type Maybe<T> = T | null | undefined;

function isAbsent(value: string): boolean {
  return value === "NA" || value === "TBD";
}

function textOf(value: Maybe<string>): string | null {
  return value === undefined || value === null || isAbsent(value) ? null : value;
}

function numberOf(value: Maybe<number>): number | null {
  return value === undefined || value === null || value === 0 ? null : value;
}

function timeOf(value: Maybe<string>): number | null {
  return value === undefined || value === null || isAbsent(value) ? null : readTime(value);
}

function readTime(value: string): number {
  return isoPattern.test(value) ? Date.parse(value.replace(" ", "T")) : Number.NaN;
}

function freeOf(value: unknown): unknown {
  if (value === undefined || value === null) return null;
  if (typeof value === "string") return isAbsent(value) ? null : value;
  if (typeof value !== "object") return value;
  for (const _ in value) return value;
  return null;
}
