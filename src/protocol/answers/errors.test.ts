import assert from "node:assert/strict";
import { test } from "node:test";
import { refusalCodes } from "../../kernel/contract/refusals.ts";
import { errorCodes, errors } from "./errors.ts";

test("every refusal of the kernel has a row in the list of errors (S3)", () => {
  assert.deepEqual(
    refusalCodes.filter((code) => !errorCodes.includes(code)),
    [],
  );
});

test("a code's status is the one its name promises (API.md)", () => {
  for (const code of errorCodes) {
    const [status] = errors[code].statuses;
    if (code.endsWith("_unknown")) assert.equal(status, 404, code);
    if (code.startsWith("invalid_") && code !== "invalid_transition" && code !== "invalid_receipt")
      assert.equal(status, 400, code);
  }
  const fixed = {
    lease_expired: 410,
    lease_released: 410,
    lease_revoked: 410,
    history_pruned: 410,
    forbidden: 403,
    not_lease_holder: 403,
    lease_denied: 403,
    invalid_transition: 409,
    renew_required: 409,
    verify_required: 409,
    stale_generation: 409,
    would_wait: 409,
    wait_timeout: 409,
    request_canceled: 409,
    assumption_failed: 409,
    die: 409,
    request_id_reused: 422,
    invalid_receipt: 422,
    idempotency_key_reused: 422,
    dedupe_conflict: 409,
    complete_without_accept: 409,
    already_completed: 409,
    stale_fence: 409,
    tenant_mismatch: 403,
    artifact_too_large: 413,
    unauthorized: 401,
    stale_epoch: 401,
    paused: 423,
    resource_fenced: 423,
    database_unavailable: 503,
    internal_error: 500,
  } as const;
  for (const [code, status] of Object.entries(fixed))
    assert.equal(errors[code as keyof typeof fixed].statuses[0], status, code);
});

test("no code but a fault of ours answers 5xx (S3)", () => {
  const faults = errorCodes.filter((code) => errors[code].statuses.some((status) => status >= 500));
  assert.deepEqual(faults.toSorted(), [
    "artifact_space_exhausted",
    "database_unavailable",
    "internal_error",
    "memory_exhausted",
    "no_leader",
    "shutting_down",
    "too_many_connections",
  ]);
});
