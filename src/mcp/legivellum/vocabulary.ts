/**
 * What AsyncGate and ReceiptGate call things, beside what they are called here: refusal codes, and the members that
 * their programs read of tasks, receipts and obligations.
 */
import { obligation as obligationShape, receipt as receiptShape } from "../../protocol/receipts/receipt-shapes.ts";
import {
  anything,
  integer,
  list,
  nullable,
  record,
  type TProperties,
  text,
  time,
} from "../../protocol/schema/schema.ts";
import { taskShape } from "../../protocol/tasks/task-shapes.ts";
import type { Obligation, Receipt, Task, TaskWithReceipts } from "../../sdk/wire.ts";
import type { Body } from "../control-plane.ts";

/** Their codes, by ours. The circuit breaker of AsyncGate takes a code that it does not know for an outage. */
const codes: Readonly<Record<string, string>> = {
  task_unknown: "TASK_NOT_FOUND",
  lease_unknown: "LEASE_INVALID_OR_EXPIRED",
  lease_expired: "LEASE_INVALID_OR_EXPIRED",
  lease_released: "LEASE_INVALID_OR_EXPIRED",
  lease_revoked: "LEASE_INVALID_OR_EXPIRED",
  not_lease_holder: "LEASE_INVALID_OR_EXPIRED",
  stale_fence: "LEASE_INVALID_OR_EXPIRED",
  task_not_dead: "INVALID_STATE_TRANSITION",
  already_completed: "OBLIGATION_ALREADY_TERMINATED",
  complete_without_accept: "COMPLETE_WITHOUT_ACCEPT",
  obligation_not_overdue: "OBLIGATION_NOT_RECOVERABLE",
  dedupe_conflict: "RECEIPT_ID_COLLISION",
  tenant_mismatch: "TENANT_MISMATCH",
  unauthorized: "UNAUTHORIZED",
  forbidden: "UNAUTHORIZED",
  policy_denied: "UNAUTHORIZED",
  quota_exceeded: "QUOTA_EXCEEDED",
  rate_limited: "RATE_LIMIT_EXCEEDED",
  receipt_unknown: "not_found",
  artifact_unknown: "not_found",
  operation_unknown: "not_found",
  invalid_request: "validation_failed",
  invalid_receipt: "validation_failed",
  invalid_task: "validation_failed",
  invalid_worker_id: "validation_failed",
};

/** Of a receipt: what its sender lacks is custody, by their table of transitions, and not a lease. */
const receiptCodes: Readonly<Record<string, string>> = {
  lease_expired: "ACTOR_NOT_CUSTODIAN",
  lease_released: "ACTOR_NOT_CUSTODIAN",
  lease_revoked: "ACTOR_NOT_CUSTODIAN",
  not_lease_holder: "ACTOR_NOT_CUSTODIAN",
  stale_fence: "ACTOR_NOT_CUSTODIAN",
  forbidden: "ACTOR_NOT_PERMITTED",
  policy_denied: "ACTOR_NOT_PERMITTED",
};
/** There is no obligation that it could be about. */
const missingCodes: Readonly<Record<string, string>> = {
  accepted: "ACTOR_NOT_PERMITTED",
  complete: "COMPLETE_WITHOUT_ACCEPT",
  escalate: "ESCALATE_WITHOUT_ACCEPT",
};

/** The refusal with their code beside ours; `phase` of the receipt that was refused, if it was one. */
export function refusalIn(body: Body, phase: unknown = null): Body {
  const { error } = body;
  if (typeof error !== "string") return body;
  const isMissing = error === "lease_unknown" || error === "task_unknown";
  const ofReceipt = isMissing ? missingCodes[String(phase)] : receiptCodes[error];
  const code = (phase === null ? undefined : ofReceipt) ?? codes[error] ?? error;
  return { ...body, code };
}

const principalShape = record({ kind: text(), id: text() });

const receiptMembers = {
  receipt_type: text({ description: "As AsyncGate names it." }),
  from: principalShape,
  to: principalShape,
  parents: list(text()),
};

export const gateReceipt = record({ ...receiptShape.properties, ...receiptMembers });

/** What AsyncGate's programs read of a receipt. */
export function receiptIn(receipt: Receipt): Body {
  const { caused_by_receipt_id: cause, source_system: worker, recipient_ai: recipient } = receipt;
  return {
    ...receipt,
    receipt_type: receiptTypeOf(receipt),
    from: { kind: "worker", id: worker },
    to: { kind: "agent", id: recipient },
    parents: cause === "NA" ? [] : [cause],
  };
}

/** There are no others here: an offer is not in the ledger, and neither is a look at a receipt. */
export const receiptTypes = [
  "task.accepted",
  "task.progress",
  "task.completed",
  "task.failed",
  "task.retry_scheduled",
  "task.canceled",
  "task.escalated",
] as const;
export type ReceiptType = (typeof receiptTypes)[number];

export const phaseOf: Readonly<Record<ReceiptType, Receipt["phase"]>> = {
  "task.accepted": "accepted",
  "task.progress": "progress",
  "task.completed": "complete",
  "task.failed": "complete",
  "task.retry_scheduled": "complete",
  "task.canceled": "complete",
  "task.escalated": "escalate",
};

export function receiptTypeOf({ phase, status, retry_requested: isRetry }: Receipt): ReceiptType {
  if (phase === "accepted") return "task.accepted";
  if (phase === "progress") return "task.progress";
  if (phase === "escalate") return "task.escalated";
  if (status === "success") return "task.completed";
  if (status === "canceled") return "task.canceled";
  return isRetry ? "task.retry_scheduled" : "task.failed";
}

const taskMembers = {
  type: text(),
  requirements: record({ capabilities: list(text()) }),
  priority: integer({ minimum: -Number.MAX_SAFE_INTEGER }),
  attempt: integer(),
  next_eligible_at: nullable(time()),
  started_at: nullable(time()),
} satisfies TProperties;

export const gateTask = record({ ...taskShape, ...taskMembers });
export const gateTaskWithResult = record({
  ...taskShape,
  ...taskMembers,
  task_body: nullable(text()),
  inputs: anything(),
  payload: anything(),
  receipts: list(receiptShape),
  result: anything({ description: "The receipt that ended it, with `outcome`, `result`, `error` and `artifacts`." }),
});

export function taskIn(task: Task): Body {
  const { leases } = task;
  return {
    ...task,
    type: task.task_type,
    requirements: { capabilities: task.requires },
    priority: task.task_priority,
    attempt: task.attempts,
    next_eligible_at: task.not_before_at,
    started_at: leases[0]?.accepted_at ?? null,
  };
}

export function taskWithResultIn(task: TaskWithReceipts): Body {
  const { inputs: payload, result } = task;
  return { ...taskIn(task), payload, result: result === null ? null : resultIn(result) };
}

const outcomes: Readonly<Record<string, string>> = { success: "succeeded", failure: "failed", canceled: "canceled" };

function resultIn(receipt: Receipt): Body {
  const { status, outcome_text: said, artifact_refs: artifacts } = receipt;
  const value = said === "NA" ? null : jsonOr(said);
  const isGood = status === "success";
  return {
    ...receipt,
    outcome: outcomes[status] ?? status,
    result: isGood ? value : null,
    error: isGood ? null : value,
    artifacts,
  };
}

/** Results are JSON there, and text here. */
function jsonOr(said: string): unknown {
  try {
    return JSON.parse(said);
  } catch {
    return said;
  }
}

export const gateObligation = record({
  ...obligationShape.properties,
  receipt_id: nullable(text({ description: "The last receipt about it." })),
  phase: text(),
  stored_at: time(),
});

/** An inbox there is of accepted receipts that nothing has closed. */
export function obligationIn(obligation: Obligation): Body {
  const { last_receipt_id: receiptId, opened_at: since } = obligation;
  return { ...obligation, receipt_id: receiptId, phase: "accepted", stored_at: since };
}
