/**
 * Every expected refusal, in one closed list. A refusal is a value: it names what is wrong, changes nothing, and each
 * code has one row in docs/errors.md.
 */
import type { Refusal } from "./replies.ts";

export type { Refusal };

export const refusalCodes = [
  // The input is not well-formed.
  "invalid_resource",
  "reserved_resource",
  "invalid_predicate",
  "invalid_units",
  "invalid_target",
  "invalid_ttl",
  "invalid_wait_timeout",
  "invalid_idle_timeout",
  "invalid_purpose",
  "invalid_request_id",
  "invalid_version",
  "invalid_reason",
  "empty_manifest",
  "manifest_too_large",
  "duplicate_intent",
  "invalid_agent_id",
  "invalid_labels",
  "invalid_digest",
  "invalid_state",
  "invalid_tenant_id",
  "invalid_settings",
  "invalid_quotas",
  "invalid_capacity",
  "invalid_refill",
  "invalid_key",
  "invalid_worker_id",
  "invalid_task",
  "invalid_receipt",
  "invalid_cell",
  "invalid_policy",
  // The caller may not.
  "forbidden",
  "policy_denied",
  "not_lease_holder",
  "stale_epoch",
  "cell_taken",
  "stale_session",
  // It does not exist.
  "agent_unknown",
  "lease_unknown",
  "request_unknown",
  "resource_unknown",
  "tenant_unknown",
  "digest_unknown",
  "key_unknown",
  "task_unknown",
  "receipt_unknown",
  "dependency_unknown",
  "cell_unknown",
  "worker_unknown",
  "obligation_unknown",
  "policy_unknown",
  // It existed, but has ended (G9, L4).
  "lease_expired",
  "lease_released",
  "lease_revoked",
  "wait_timeout",
  "request_canceled",
  // It exists, but its state does not allow this.
  "lease_denied",
  "would_wait",
  "renew_required",
  "verify_required",
  "stale_generation",
  "invalid_transition",
  "not_weaker",
  "transfer_refused",
  "request_id_reused",
  "resource_fenced",
  "resource_withdrawn",
  "resource_in_use",
  "strategy_in_use",
  "tenant_exists",
  "key_exists",
  "last_operator_key",
  "lease_not_binding",
  "lease_not_closing",
  "probe_required",
  "complete_without_accept",
  "already_completed",
  "stale_fence",
  "dedupe_conflict",
  "idempotency_key_reused",
  "task_not_dead",
  "obligation_not_overdue",
  "quota_exceeded",
  "tenant_suspended",
] as const;
export type RefusalCode = (typeof refusalCodes)[number];

export const denialReasons = ["quota", "capacity", "self_blocked", "bind_failed"] as const;
export type DenialReason = (typeof denialReasons)[number];

export function refuse(
  code: RefusalCode,
  detail: string,
  context: Omit<Refusal, "type" | "code" | "detail"> = {},
): Refusal {
  return { type: "refused", code, detail, ...context };
}

export function deny(reason: DenialReason, detail: string): Refusal {
  return refuse("lease_denied", detail, { reason });
}
