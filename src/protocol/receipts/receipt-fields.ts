/**
 * A receipt as it may be sent (R2): the document's short ones and LegiVellum's full ones, version 1, both as they stand.
 * The full ones have every field, with a mark where there is nothing to say: "NA" or "TBD", null, {}, [], 0. A mark
 * means that the field is left out.
 */
import { receiptInput } from "../../kernel/contract/inputs.ts";
import type { ReceiptInput } from "../../kernel/contract/task-commands.ts";
import type { receipt } from "../../kernel/contract/task-records.ts";
import { partDecoderOf } from "../schema/convert.ts";
import type { Fault } from "../schema/explain.ts";
import { findJsonFault } from "../schema/free-json.ts";
import { inputs, type Words } from "../schema/from-fields.ts";
import { limits } from "../schema/limits.ts";
import { integer, optional, record, type Static, text } from "../schema/schema.ts";
import { readIsoTime } from "../schema/text.ts";

export const receiptWords: Words<typeof receiptInput> & Words<typeof receipt> = {
  phase: "accepted, complete, escalate or progress.",
  task_id: "The task; with `fence`, or found by `source_system`, unless `lease_id` is given.",
  lease_id: "The lease of the offer that this is about.",
  fence: "The offer's fence, beside `task_id`.",
  tenant_id: "Must be the credential's own.",
  receipt_id: "Of the sender's choice; one is made if it is left out.",
  obligation_id: "The obligation that this is about; an `accepted` receipt that opens one may give it its id (R5).",
  parent_task_id: "The task that this one is a part of.",
  caused_by_receipt_id: "The receipt that led to this one; the task's last one if it is left out.",
  dedupe_key:
    "Sent again with the same content, the first receipt is the answer (R3). One that begins with the receipt's `lease_id` " +
    "and a colon (`lse_…:done`) is for that lease alone, and is the cheapest.",
  attempt: "Which attempt this is, from 1.",
  from_principal: "The requester; the task's principal if left out.",
  for_principal: "The executor, who answers for it (R5); the worker if left out.",
  source_system: "The worker_id.",
  recipient_ai: "The recipient.",
  trust_domain: "As given.",
  status: "Of a complete receipt: success, failure or canceled.",
  realtime: "As given.",
  task_type: "From the task if left out.",
  task_summary: "From the task if left out.",
  task_body: "From the task if left out, but not into a progress receipt.",
  inputs: "From the task if left out, but not into a progress receipt; up to 64 KiB.",
  expected_outcome_kind: "From the task if left out.",
  expected_artifact_mime: "From the task if left out.",
  outcome_kind: "Of a complete receipt: none, response_text, artifact_pointer or mixed.",
  outcome_text: "The result, in words.",
  artifact_location: "Where the artifact is stored.",
  artifact_pointer: "From `artifact_location` if left out.",
  artifact_checksum: "As given.",
  artifact_size_bytes: "As given.",
  artifact_mime: "From what was expected if left out.",
  artifact_refs: "Further artifacts.",
  escalation_class: "owner, capability, trust, policy, scope or other.",
  escalation_reason: "Why it is escalated.",
  escalation_to: "The principal it is escalated to; the task's supervisor or principal if left out (T5).",
  retry_requested: "Whether it should be tried again.",
  body: "Anything else.",
  created_at: "When it was written. ISO 8601.",
  started_at: "When the work began. ISO 8601.",
  completed_at: "When it ended. ISO 8601.",
  read_at: "As given. ISO 8601.",
  archived_at: "As given. ISO 8601.",
  metadata: "Up to 16 KiB.",
  sequence: "1 for the tenant's first; no number is left out.",
  stored_at: "When it was stored, by the ledger's clock.",
  submitted_by:
    "The key that submitted it, or the agent whose token was shown; null where nothing was. Written by the server only (R7).",
};

const times = ["created_at", "started_at", "completed_at", "read_at", "archived_at"] as const;
const when = (name: (typeof times)[number]) =>
  optional(text({ maxLength: limits.timeLengthMax, description: receiptWords[name] ?? "" }));

export const receiptFields = {
  ...inputs(receiptInput, receiptWords),
  // 0 is a mark of absence.
  attempt: optional(integer({ description: receiptWords.attempt })),
  created_at: when("created_at"),
  started_at: when("started_at"),
  completed_at: when("completed_at"),
  read_at: when("read_at"),
  archived_at: when("archived_at"),
  schema_version: optional(text({ maxLength: limits.keyLengthMax, description: "Of the receipt: 1.0." })),
  stored_at: optional(
    text({ maxLength: limits.timeLengthMax, description: "Accepted and not used: the ledger's clock decides." }),
  ),
  submitted_by: optional(
    text({ maxLength: limits.keyLengthMax, description: "Accepted and not used: the server writes it (R7)." }),
  ),
};

export const newReceipt = record(receiptFields, { title: "NewReceipt" });
export type NewReceipt = Static<typeof newReceipt>;

const frees = ["inputs", "artifact_refs", "body", "metadata"] as const;

/** What the schema cannot say. */
export function receiptFault(input: NewReceipt): Fault | null {
  for (const field of times) {
    const value = input[field];
    if (value !== undefined && value !== null && !isAbsent(value) && Number.isNaN(readIsoTime(value)))
      return wrong(field, `${field} is not a time in ISO 8601 with a zone; send one such as 2026-01-04T15:45:00Z.`);
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

/** Marks of absence are null; what must be there is taken as it is. */
export const decodeReceipt = partDecoderOf<ReceiptInput>(receiptInput, {
  text: textOf,
  integer: numberOf,
  time: timeOf,
  json: freeOf,
});

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
  return value === undefined || value === null || isAbsent(value) ? null : readIsoTime(value);
}

function freeOf(value: unknown): unknown {
  if (value === undefined || value === null) return null;
  if (typeof value === "string") return isAbsent(value) ? null : value;
  if (typeof value !== "object") return value;
  for (const _ in value) return value;
  return null;
}
