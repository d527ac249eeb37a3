import assert from "node:assert/strict";
import { test } from "node:test";
import type { Reply } from "../../kernel/contract/replies.ts";
import { inSeconds } from "../answers/answer.ts";
import { answerOf } from "../testing/sample-answers.ts";
import { sampleBlocker, sampleLease, sampleNow } from "../testing/sample-records.ts";

const now = sampleNow;
const blockers = [sampleBlocker()];

test("GRANTED is 200 with leases and warnings (W9)", () => {
  const reply: Reply = {
    type: "granted",
    requestId: "req_1",
    leases: [sampleLease()],
    warnings: ["capped"],
    observation: null,
    claimBy: null,
  };
  const { status, value } = answerOf("acquire", reply);
  assert.equal(status, 200);
  assert.deepEqual(Object.keys(value), ["verdict", "request_id", "leases", "warnings"]);
  assert.deepEqual([value.verdict, value.request_id, value.warnings], ["GRANTED", "req_1", ["capped"]]);
});

test("a grant that ends PAUSED carries the observation update (A4)", () => {
  const made = { tenant: "t1", holder: "agt_2", fence: 7, looked: true };
  const observation = {
    since: now - 5_000,
    truncated: true,
    changes: [
      { ...made, resource: "FILE:/a", predicate: "MUTATES", agentId: "agt_2", at: now - 1, version: "v2" },
      { ...made, resource: "FILE:/b", predicate: "DELETES", agentId: "agt_3", at: now - 2, version: null },
    ],
  } as const;
  const reply: Reply = {
    type: "granted",
    requestId: "req_1",
    leases: [],
    warnings: [],
    observation,
    claimBy: null,
  };
  const { value } = answerOf("acquire", reply, { now });
  assert.deepEqual(value.observation_update, {
    since: "2026-11-15T20:59:46.123Z",
    truncated: true,
    changes: [
      { resource: "FILE:/a", predicate: "MUTATES", agent_id: "agt_2", at: "2026-11-15T20:59:51.122Z", version: "v2" },
      { resource: "FILE:/b", predicate: "DELETES", agent_id: "agt_3", at: "2026-11-15T20:59:51.121Z" },
    ],
  });
});

test("WAIT is 202 with position, blockers and claim_within_ms (W4, W8)", () => {
  const { status, value } = answerOf("acquire", {
    type: "waiting",
    requestId: "req_1",
    position: 2,
    blockers,
    blockersTotal: 40,
    unitsBackAt: null,
    waitTimeoutMs: 30_000,
    claimWithinMs: 10_000,
    warnings: [],
  });
  assert.equal(status, 202);
  assert.deepEqual(Object.keys(value), [
    "verdict",
    "request_id",
    "position",
    "blocked_by",
    "blocked_by_total",
    "wait_timeout_ms",
    "claim_within_ms",
  ]);
  assert.equal(value.blocked_by_total, 40);
});

test("DIE is 409 with an exact hint, and Retry-After in seconds rounded up (W5)", () => {
  const died = { type: "died", retryAfterMs: 1_001, attempt: 3, priority: 99, blockers, blockersTotal: 1 } as const;
  const { status, retryAfter, value } = answerOf("acquire", died);
  assert.deepEqual([status, retryAfter], [409, 2]);
  assert.deepEqual(
    [value.verdict, value.error, value.retry_after_ms, value.attempt, value.priority_timestamp],
    ["DIE", "die", 1_001, 3, 99],
  );
  assert.deepEqual([1, 999, 1_000, 1_001].map(inSeconds), [1, 1, 1, 2]);
});

test("PAUSED is 423 and says which (W9)", () => {
  const paused = { type: "paused", reason: "resource_fenced", detail: "Fenced.", resource: "FILE:/a" } as const;
  const { status, value } = answerOf("get_request", paused);
  assert.equal(status, 423);
  assert.deepEqual(value, {
    verdict: "PAUSED",
    error: "paused",
    reason: "resource_fenced",
    detail: "Fenced.",
    resource: "FILE:/a",
  });
});

test("refusals carry code, detail and context (W11, A1)", () => {
  const denied = answerOf("acquire", { type: "refused", code: "lease_denied", detail: "No.", reason: "quota" });
  assert.deepEqual([denied.status, denied.value], [403, { error: "lease_denied", detail: "No.", reason: "quota" }]);
  const taken = answerOf("acquire", {
    type: "refused",
    code: "would_wait",
    detail: "Taken.",
    blockers,
    blockersTotal: 1,
  });
  assert.equal(taken.status, 409);
  assert.equal((taken.value.blocked_by as unknown[]).length, 1);
  const moved = answerOf("transition_agent", {
    type: "refused",
    code: "invalid_transition",
    detail: "No.",
    from: "PLANNING",
    to: "VERIFYING",
  });
  assert.deepEqual([moved.value.from, moved.value.to], ["PLANNING", "VERIFYING"]);
  const gone = answerOf("heartbeat", { type: "refused", code: "lease_expired", detail: "Gone.", leaseId: "lse_1" });
  assert.deepEqual([gone.status, gone.value.lease_id], [410, "lse_1"]);
});
