/** What replies about receipts, obligations and the ledger look like. */
import { anything, choice, flag, integer, list, nullable, record, text, time } from "../schema/schema.ts";
import { obligationStates, receiptPhases, taskStatuses } from "../schema/vocabulary.ts";

const identity = {
  receipt_id: text(),
  task_id: text(),
  phase: choice(receiptPhases),
  sequence: integer({ minimum: 1, description: "1 for the tenant's first; no number is left out." }),
  stored_at: time(),
  hash: text({ description: "SHA-256 over the receipt and the hash before (R6)." }),
  previous_hash: text(),
};

/** The answer to one of many: the sender knows the rest. */
export const receiptMark = record(identity, { title: "ReceiptMark" });

/** LegiVellum's receipt, version 1, in full: "NA", "TBD", null, {}, [], 0 and false stand for what is absent. */
export const receipt = record(
  {
    ...identity,
    schema_version: text(),
    tenant_id: text(),
    obligation_id: text(),
    parent_task_id: text(),
    caused_by_receipt_id: text(),
    dedupe_key: text(),
    attempt: integer(),
    from_principal: text(),
    for_principal: text(),
    source_system: text(),
    recipient_ai: text(),
    trust_domain: text(),
    status: text(),
    realtime: flag(),
    task_type: text(),
    task_summary: text(),
    task_body: text(),
    inputs: anything(),
    expected_outcome_kind: text(),
    expected_artifact_mime: text(),
    outcome_kind: text(),
    outcome_text: text(),
    artifact_location: text(),
    artifact_pointer: text(),
    artifact_checksum: text(),
    artifact_size_bytes: integer(),
    artifact_mime: text(),
    artifact_refs: anything(),
    escalation_class: text(),
    escalation_reason: text(),
    escalation_to: text(),
    retry_requested: flag(),
    body: anything(),
    created_at: time(),
    started_at: nullable(time()),
    completed_at: nullable(time()),
    read_at: nullable(time()),
    archived_at: nullable(time()),
    metadata: anything(),
  },
  { title: "Receipt" },
);

export const chain = record(
  {
    receipt_id: text(),
    causes: list(receipt, { description: "What led to it, the first cause first." }),
    receipt,
    effects: list(receipt, { description: "What it led to, in order." }),
    truncated: flag({ description: "The chain goes on; only so much of it is followed." }),
  },
  { title: "ReceiptChain" },
);

export const obligation = record(
  {
    obligation_id: text(),
    state: choice(obligationStates),
    custodian: text({ description: "Who answers for it now." }),
    opened_at: time(),
    closed_at: nullable(time()),
    task_id: text(),
    task_type: text(),
    task_summary: nullable(text()),
    principal_ai: text(),
    status: choice(taskStatuses, { description: "The task's." }),
    last_receipt_id: nullable(text()),
  },
  { title: "Obligation" },
);

export const ledgerHead = record(
  {
    tenant_id: text(),
    sequence: integer({ description: "Of the last receipt; 0 while there is none." }),
    hash: text(),
    signature: text({ description: "Ed25519, over what `ledger verify` describes." }),
    key_id: text(),
    public_key: text(),
    at: time(),
  },
  { title: "LedgerHead" },
);
