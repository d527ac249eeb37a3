/**
 * Every error code of the wire, in one closed list: the kernel's refusals, the two verdicts that are answered as
 * errors, and the codes of the edge itself. docs/errors.md has one row for each; a test holds that. It imports no
 * values, so that the SDK can use it as it is.
 */
import type { RefusalCode } from "../../kernel/contract/refusals.ts";

/** DIE and PAUSED are verdicts (W9); these are their error codes. */
export type VerdictCode = "die" | "paused";

export type EdgeCode =
  | "invalid_request"
  | "unauthorized"
  | "not_found"
  | "method_not_allowed"
  | "request_timeout"
  | "assumption_failed"
  | "tenant_mismatch"
  | "token_invalid"
  | "stale_token"
  | "caveat_failed"
  | "reset_failed"
  | "artifact_unknown"
  | "operation_unknown"
  | "artifact_too_large"
  | "artifact_mismatch"
  | "artifact_space_exhausted"
  | "history_pruned"
  | "payload_too_large"
  | "unsupported_media_type"
  | "headers_too_large"
  | "host_not_allowed"
  | "origin_not_allowed"
  | "csrf_failed"
  | "tls_required"
  | "certificate_required"
  | "rate_limited"
  | "too_many_connections"
  | "memory_exhausted"
  | "too_many_in_flight"
  | "slow_reader"
  | "shutting_down"
  | "database_unavailable"
  | "no_leader"
  | "internal_error";

export type ErrorCode = RefusalCode | VerdictCode | EdgeCode;

export interface ErrorKind {
  /** The HTTP statuses it comes with; the first is the usual one. */
  readonly statuses: readonly [number, ...number[]];
  /** Whether the same request can succeed later without being changed. */
  readonly retryable: boolean;
  readonly whatToDo: string;
}

export const errors: Readonly<Record<ErrorCode, ErrorKind>> = {
  // The request is malformed.
  invalid_request: refused(400, "Correct the field that `field` names, as `detail` says."),
  invalid_resource: refused(
    400,
    "Write the name as `TYPE:/path`, without `.`, `..`, empty segments or control characters.",
  ),
  reserved_resource: refused(400, "Choose another type; `TASK` is reserved for tasks."),
  invalid_predicate: refused(400, "Send one of the six predicates; `RENAMES` is for renames only."),
  invalid_units: refused(400, "Send a whole number of units from 1."),
  invalid_target: refused(400, "Give `to` with RENAMES, and only there: a plain name other than the first."),
  invalid_ttl: refused(400, "Send a `ttl_ms` of at least 100, or leave it out."),
  invalid_wait_timeout: refused(400, "Send a `wait_timeout_ms` of 0 (do not wait) or more, or leave it out."),
  invalid_idle_timeout: refused(400, "Send an `idle_timeout_ms` of at least 100, or leave it out."),
  invalid_purpose: refused(400, "Shorten the purpose to 1,024 characters."),
  invalid_request_id: refused(400, "Send a `request_id` of 1 to 256 characters, or leave it out."),
  invalid_version: refused(400, "Shorten the version to 1,024 characters; a hash will do."),
  invalid_reason: refused(400, "Give a reason of 1 to 1,024 characters."),
  empty_manifest: refused(400, "Send at least one intent."),
  manifest_too_large: refused(
    400,
    "Send at most 256 intents; a pattern such as `FILE:/shop/src/**` covers many names.",
  ),
  duplicate_intent: refused(400, "Send each intent once."),
  invalid_agent_id: refused(
    400,
    "Send an id of 1 to 128 letters, digits and `. _ : @ / -` that begins with a letter or digit, but not with `key_`; or leave it out to get one.",
  ),
  invalid_labels: refused(400, "Send at most 32 labels, names and values of at most 256 characters."),
  invalid_digest: refused(400, "Correct the part of the digest that `field` names; it takes up to 256 KiB."),
  invalid_state: refused(400, "Send one of the states that `detail` lists."),
  invalid_tenant_id: refused(400, "Send an id of 1 to 63 lower-case letters, digits, `_` and `-`."),
  invalid_settings: refused(400, "Correct the setting that `field` names."),
  invalid_quotas: refused(400, "Correct the quota that `field` names."),
  invalid_capacity: refused(400, "Send a whole number of units from 1; patterns have no capacity."),
  invalid_refill: refused(
    400,
    "Send refill_ms from 100 to 2678400000 (31 days), together with a capacity and without a cell.",
  ),
  invalid_key: refused(400, "Correct the part of the key that `field` names."),
  invalid_worker_id: refused(
    400,
    "Send a `worker_id` of the form `{type}.{instance}`, such as `worker.codegen-1`: letters, digits and `. _ : @ / -`.",
  ),
  invalid_cell: refused(400, "Correct the part of the cell's inventory that `detail` names."),
  invalid_policy: refused(400, "Correct the part of the policy that `field` names; `policy test` tries it first."),
  invalid_task: refused(400, "Correct the part of the task that `field` names; `reason` says what is wrong with it."),
  invalid_receipt: refused(
    422,
    "Correct the part of the receipt that `field` names; `reason` says what is wrong with it.",
  ),

  // The caller is not allowed to do this.
  unauthorized: refused(
    401,
    "It is missing, unknown, expired or deleted: send `Authorization: Bearer <key or agent token>` with one that is valid.",
  ),
  stale_epoch: refused(401, "Another instance has taken up the agent: stop, or resume it for a new token."),
  token_invalid: refused(401, "Show the whole token of a live lease of this tenant, for this resource."),
  stale_token: refused(401, "The lease was re-issued: use its present token."),
  caveat_failed: refused(401, "Use a wider token, or ask for less; `caveat` names the one that failed."),
  policy_denied: refused(
    403,
    "See `policy` and `rule`, what was `asked` and what is `allowed`: ask for less, or ask an operator to change the policy.",
  ),
  forbidden: refused(
    403,
    "Use a credential whose role, tenant or agent allows it; `reason` is `owned_by_another` for a name of another key.",
  ),
  not_lease_holder: refused(403, "Use the token of the agent that holds the lease, or a supervisor's key."),
  quota_exceeded: refused(403, "See `quota`, `used` and `limit`: use less, or ask the operator to raise it."),
  lease_denied: refused(
    403,
    "See `reason`: quota (release something, or raise it), capacity (ask for fewer units), self_blocked (release what you hold there), bind_failed (ask the cell's operator).",
  ),
  cell_taken: refused(403, "The name belongs to the key that enrolled it first: use that key, or another name."),
  tenant_mismatch: refused(403, "Leave `tenant_id` out, or use the credential of that tenant."),
  host_not_allowed: refused(403, "Use a host name that the server is configured for."),
  origin_not_allowed: refused(403, "Call from a page of an allowed origin, or from no page at all."),
  csrf_failed: refused(
    403,
    "Send the session's `csrf_token` as `Leasehold-Csrf`, from the server's own page; programs send a key instead.",
  ),
  tls_required: refused(403, "Use `https`, by way of the proxy that the server is configured for."),
  certificate_required: refused(403, "Show a client certificate of the CA that the server is configured with."),

  // What the request names does not exist.
  not_found: refused(404, "Check the path against `/openapi.json`."),
  agent_unknown: refused(404, "Register the agent first; one that was idle for a week is forgotten."),
  lease_unknown: refused(404, "Check the id; leases that ended long ago are forgotten."),
  request_unknown: refused(404, "Use the `request_id` of the reply; requests that ended long ago are forgotten."),
  resource_unknown: refused(404, "Declare the resource first, or check its spelling."),
  obligation_unknown: refused(404, "Check the id: `/v1/obligations` lists those that are not closed."),
  policy_unknown: refused(404, "Check the policy's id; the built-in one can be replaced, and not deleted."),
  cell_unknown: refused(404, "Start the cell, or check its name: none has enrolled under it."),
  worker_unknown: refused(404, "Check the id: no worker has polled under it for a week."),
  tenant_unknown: refused(404, "Create the tenant first, or check its id."),
  digest_unknown: refused(404, "Save a digest first; a dropped one is gone."),
  key_unknown: refused(404, "Check the key's id; it may have been deleted already."),
  task_unknown: refused(404, "Check the id; tasks that ended long ago are forgotten."),
  receipt_unknown: refused(404, "Check the id: no receipt of the tenant has it."),
  dependency_unknown: refused(404, "Create the tasks that `depends_on` names first, or leave out those that are gone."),
  operation_unknown: refused(
    404,
    "The server has restarted since, or the operation ended over an hour ago: what it had done is done; send it again for the rest.",
  ),
  artifact_unknown: refused(404, "Check the checksum; artifacts are kept per tenant, and backups do not hold them."),
  method_not_allowed: refused(405, "Use a method that the `Allow` header lists."),

  // It has ended (G9, L4).
  lease_expired: refused([410, 409], "Stop the work under this lease, and acquire again; 409 to a receipt."),
  lease_released: refused(
    [410, 409],
    "The lease was given back: acquire again if it is still needed; 409 to a receipt.",
  ),
  lease_revoked: refused(
    [410, 409],
    "Stop the work under this lease: it was taken away, `reason` says why; 409 to a receipt.",
  ),
  history_pruned: refused(410, "Read the present state, then follow the events from `earliest`."),
  wait_timeout: retry(409, "The wait is over and nothing is held: acquire again, with a longer wait if need be."),
  request_canceled: refused(409, "The request was cancelled: acquire again if it is still wanted."),

  // It exists, but its state does not allow this.
  die: retry(409, "Roll back, release what you hold, and ask again after `retry_after_ms`."),
  would_wait: retry(409, "`blocked_by` is in the way: wait (`wait_timeout_ms` over 0), or ask again later."),
  renew_required: refused(409, "The resource is bound: renew the lease instead of sending heartbeats."),
  verify_required: refused(409, "Call verify-all first: after a restart the agent must learn what it still holds."),
  stale_generation: refused(409, "The lease was re-issued: use its present `generation`."),
  invalid_transition: refused(409, "Go by way of the states that lead from `from` to `to`."),
  assumption_failed: refused(409, "The digest is dropped: plan again, from `observation_update`."),
  not_weaker: refused(409, "Downgrade to a weaker predicate only; for a stronger one acquire it."),
  transfer_refused: retry(409, "The lease would be in the way of another agent: release it, or try again later."),
  resource_in_use: retry(409, "Wait until nothing is leased or awaited on the resource, or revoke it."),
  strategy_in_use: retry(409, "Switch the strategy while nobody waits."),
  tenant_exists: refused(409, "Use the existing tenant, or another id."),
  last_operator_key: refused(409, "Create another operator's key first, or rotate this one."),
  key_exists: refused(409, "Ask for a key again: each has its own id."),
  lease_not_binding: refused(409, "Report a binding only while the lease is BINDING, with its present generation."),
  lease_not_closing: refused(409, "Report a teardown only while the lease is CLOSING, with its present generation."),
  stale_session: refused(409, "A newer process of the same cell has enrolled: stop this one."),
  probe_required: refused(409, "The resource has a cell: reset it through the cell, which probes it."),
  reset_failed: refused(409, "The cell could not reset it, or its probe did not find it clean; `detail` says why."),
  complete_without_accept: refused(
    409,
    "Send the `accepted` receipt of this lease, or of this task of another system, first.",
  ),
  already_completed: refused(
    409,
    "The task has ended: `winning_receipt_id` is the receipt that ended it; drop your result.",
  ),
  stale_fence: refused(
    409,
    "Another worker has the task now, or its resources were granted to others: drop your result.",
  ),
  dedupe_conflict: refused(
    409,
    "This `dedupe_key` was used for another receipt: use a new one, or send the same again.",
  ),
  task_not_dead: refused(409, "Only a dead task can be redriven."),
  obligation_not_overdue: refused(409, "Leave it with its custodian, who still answers for it."),
  idempotency_key_reused: refused(422, "Use a new `idempotency_key`, or send exactly what was sent under this one."),
  artifact_mismatch: refused(422, "The bytes do not have the announced checksum: send all of them again."),
  tenant_suspended: refused(423, "An operator has to resume the tenant first."),
  request_id_reused: refused(422, "Use a new `request_id`, or send exactly what was sent under this one."),
  paused: refused(423, "Neither waiting nor retrying helps until somebody acts; `reason` says why."),
  resource_withdrawn: refused(423, "The lease keeps its present end: finish before it, and release."),
  resource_fenced: refused(423, "An operator has to reset the resource first."),

  // Refused before the request was decoded.
  request_timeout: retry(408, "Send the whole request more quickly."),
  artifact_too_large: refused(413, "Send a smaller artifact, or keep it elsewhere and send its pointer."),
  payload_too_large: refused(413, "Send a smaller body; split what can be split."),
  unsupported_media_type: refused(415, "Send `Content-Type: application/json`, in UTF-8."),
  headers_too_large: refused(431, "Send fewer or shorter headers."),

  // Not now.
  rate_limited: retry(429, "Wait for `Retry-After`, and send less at once."),
  too_many_in_flight: retry(429, "Wait for replies before you send more on this connection."),
  slow_reader: retry(
    429,
    "The connection was closed because its reader fell behind: connect again and resume from the last event.",
  ),
  artifact_space_exhausted: retry(507, "Keep the artifact elsewhere; an operator can make room, or raise the limit."),
  too_many_connections: retry(503, "Use fewer connections, or try again later."),
  memory_exhausted: retry(
    503,
    "Try again later: the server's memory is nearly used up. Ends make room; an operator can give it more, or lower quotas.",
  ),
  shutting_down: retry(503, "Try again: the server is shutting down."),
  database_unavailable: retry(
    503,
    "Try again with the same `request_id`: whether it took effect is unknown until then.",
  ),
  no_leader: retry(503, "Wait for `Retry-After`: the servers elect a leader, which takes a few seconds."),
  internal_error: retry(500, "Try again with the same `request_id`, and report it with the server's log."),
};

export const errorCodes = Object.keys(errors) as readonly ErrorCode[];

export function statusOf(code: ErrorCode): number {
  return errors[code].statuses[0];
}

export function isErrorCode(text: string): text is ErrorCode {
  return Object.hasOwn(errors, text);
}

/** Whether it may come with this status. */
export function comesWith(code: ErrorCode, status: number): boolean {
  return errors[code].statuses.includes(status);
}

function refused(status: number | readonly [number, ...number[]], whatToDo: string): ErrorKind {
  return { statuses: typeof status === "number" ? [status] : status, retryable: false, whatToDo };
}

function retry(status: number, whatToDo: string): ErrorKind {
  return { statuses: [status], retryable: true, whatToDo };
}
