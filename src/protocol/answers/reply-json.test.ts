import assert from "node:assert/strict";
import { test } from "node:test";
import { deny, refuse } from "../../kernel/contract/refusals.ts";
import { answerOf, type SampleBody } from "../testing/sample-answers.ts";
import {
  sampleAgent,
  sampleCell,
  sampleDigest,
  sampleKey,
  sampleLease,
  sampleNow,
  sampleResource,
  sampleTenant,
} from "../testing/sample-records.ts";
import { bodyObject, bodyText, errorAnswer, faultAnswer } from "./answer.ts";
import { replyAnswer } from "./reply-json.ts";

const now = sampleNow;
const resumed = {
  type: "resumed",
  agent: sampleAgent({ epoch: 2 }),
  digest: sampleDigest(),
  leases: [],
  observation: { since: now - 5_000, truncated: false, changes: [] },
  assumptions: [{ resource: "FILE:/b", expected: "v1", actual: null, outcome: "unverified" }],
} as const;

test("registering answers 201, taking up 200, both with the token, its end and API.md's fields (A3)", () => {
  const created = answerOf("register_agent", { type: "agent", agent: sampleAgent(), created: true });
  assert.equal(created.status, 201);
  assert.deepEqual(Object.keys(created.value), [
    "agent_id",
    "agent_token",
    "agent_token_expires_in_ms",
    "priority_timestamp",
    "epoch",
    "state",
  ]);
  assert.equal(
    answerOf("register_agent", { type: "agent", agent: sampleAgent({ epoch: 2 }), created: false }).status,
    200,
  );
});

test("an agent that restarts is in DIE_RESTART, and says where it goes back to (A1)", () => {
  const agent = sampleAgent({ state: "EXECUTING", restarting: true });
  const { value } = answerOf("restart_agent", { type: "agent", agent, created: false });
  assert.deepEqual([value.state, value.returns_to], ["DIE_RESTART", "EXECUTING"]);
});

test("VERIFY_ALL tells the truth about each, and nothing about another's (L8, L13)", () => {
  const ended = sampleLease({ id: "lse_2", state: "EXPIRED" });
  const others = sampleLease({ id: "lse_4" });
  const { value } = answerOf("verify_all", {
    type: "leases",
    notExtended: [],
    total: null,
    leases: [sampleLease()],
    lost: [
      { id: "lse_2", lease: ended, code: null },
      { id: "lse_3", lease: null, code: null },
      { id: "lse_4", lease: others, code: "not_lease_holder" },
    ],
  });
  const leases = value.leases as SampleBody[];
  assert.equal(value.now, "2026-11-15T20:59:51.123Z");
  assert.deepEqual(
    leases.map((one) => [one.id, one.state, one.expires_in_ms]),
    [
      ["lse_01jcs8qm5t6w8y0a", "ACTIVE", 60_000],
      ["lse_2", "EXPIRED", 0],
      ["lse_3", "UNKNOWN", undefined],
      ["lse_4", "UNKNOWN", undefined],
    ],
  );
});

test("a heartbeat of all names what was extended and what was lost (L4)", () => {
  const held = sampleLease({ id: "lse_2", state: "HELD" });
  const lost = [{ id: "lse_2", lease: held, code: "verify_required" }] as const;
  const { value } = answerOf("heartbeat_all", {
    type: "leases",
    leases: [sampleLease()],
    lost,
    notExtended: [],
    total: null,
  });
  assert.deepEqual(Object.keys(value), ["leases", "lost", "directives"]);
  assert.deepEqual(value.lost, [{ id: "lse_2", state: "HELD", error: "verify_required" }]);
  const kept = { id: "lse_3", state: "ACTIVE", code: "resource_withdrawn" } as const;
  const drained = answerOf("heartbeat_all", {
    type: "leases",
    leases: [],
    lost: [],
    notExtended: [kept],
    total: null,
  }).value;
  assert.deepEqual((drained as Record<string, unknown>)["not_extended"], [
    { id: "lse_3", state: "ACTIVE", error: "resource_withdrawn" },
  ]);
});

test("a release answers id and state, one or many (L5)", () => {
  const lease = sampleLease({ state: "RELEASED" });
  assert.deepEqual(answerOf("release_lease", { type: "lease", lease }).value, { id: lease.id, state: "RELEASED" });
  const lost = [{ id: "lse_9", lease: null, code: null }];
  const { value } = answerOf("release_all", { type: "leases", leases: [lease], lost, notExtended: [], total: null });
  assert.deepEqual(value, {
    leases: [
      { id: lease.id, state: "RELEASED" },
      { id: "lse_9", state: "UNKNOWN" },
    ],
  });
});

test("resuming answers digest, epoch, token and update; a failed assumption all but the digest (A4, A5)", () => {
  const { status, value } = answerOf("resume_agent", resumed);
  assert.equal(status, 200);
  assert.deepEqual(Object.keys(value), [
    "digest",
    "epoch",
    "agent_token",
    "agent_token_expires_in_ms",
    "observation_update",
    "assumptions",
  ]);
  const failed = { resource: "FILE:/a", expected: "v1", actual: null, outcome: "failed" } as const;
  const answer = answerOf("resume_agent", { ...resumed, assumptions: [...resumed.assumptions, failed] });
  assert.equal(answer.status, 409);
  const { outcome: _outcome, ...shown } = failed;
  assert.deepEqual(answer.value.failed, [shown]);
  const token = ["agent_token", "agent_token_expires_in_ms"];
  const shownParts = ["error", "detail", "failed", "epoch", ...token, "observation_update", "assumptions"];
  assert.deepEqual(Object.keys(answer.value), shownParts);
});

test("what lets an agent go on carries the update: a heartbeat, one of all, and a transition (A4)", () => {
  const { observation } = resumed;
  const beat = answerOf("heartbeat", { type: "lease", lease: sampleLease(), observation });
  const beats = answerOf("heartbeat_all", {
    type: "leases",
    leases: [sampleLease()],
    lost: [],
    notExtended: [],
    total: null,
    observation,
  });
  const moved = answerOf("transition_agent", { type: "agent", agent: sampleAgent(), created: false, observation });
  for (const { value } of [beat, beats, moved]) {
    assert.deepEqual(value.observation_update, { since: "2026-11-15T20:59:46.123Z", truncated: false, changes: [] });
  }
  assert.equal("observation_update" in answerOf("heartbeat", { type: "lease", lease: sampleLease() }).value, false);
});

test("a new key is shown with its secret once, and no answer ever shows a hash", () => {
  const key = sampleKey();
  const created = answerOf("create_key", { type: "key", key });
  assert.deepEqual([created.status, created.value.key], [201, "secret"]);
  const listed = answerOf("list_keys", { type: "key_page", keys: [key], nextCursor: null });
  const deleted = answerOf("delete_key", { type: "key", key });
  assert.equal(deleted.status, 200);
  for (const { body } of [listed, deleted]) assert.ok(!body.includes("secret"));
  for (const { body } of [created, listed, deleted]) assert.ok(!body.includes(key.hash));
});

test("the other replies have the shape that their operation declares", () => {
  const tenant = sampleTenant();
  const fenced = sampleResource({ fenced: true, fenceReason: "dirty", fencedAt: now, capacity: null });
  const bound = sampleResource({ cell: "lab-1", driver: "http", hardware: ["a100"], fault: "its port is taken" });
  const cell = sampleCell({ state: "GONE", goneReason: "no heartbeat came in time" });
  const cells = [{ cell, isConnected: false, resources: [{ resource: bound, leases: 3 }] }];
  answerOf("get_agent", { type: "agent", agent: sampleAgent({ pausedAt: now }), created: false });
  answerOf("list_agents", { type: "agent_page", agents: [sampleAgent()], nextCursor: "next" });
  answerOf("save_digest", { type: "digest", digest: sampleDigest({ context: null }) });
  answerOf("get_lease", { type: "lease", lease: sampleLease() });
  answerOf("list_leases", { type: "lease_page", leases: [sampleLease(), sampleLease()], nextCursor: null });
  answerOf("revoke", { type: "revoked", count: 3 });
  assert.equal(
    answerOf("declare_resource", { type: "resource", resource: sampleResource(), created: true }).status,
    201,
  );
  assert.equal(
    answerOf("fence_resource", { type: "resource", resource: fenced, created: false }).value.state,
    "FENCED",
  );
  answerOf("list_resources", { type: "resource_page", resources: [fenced], nextCursor: null });
  answerOf("list_resources", { type: "resource_page", resources: [bound], nextCursor: null });
  answerOf("withdraw_resource", { type: "resource", resource: sampleResource({ withdrawn: true }), created: false });
  answerOf("withdraw_resource", { type: "cell", cell: sampleCell({ withdrawn: true }) });
  answerOf("readmit_cell", { type: "cell", cell });
  const listed = answerOf("list_cells", { type: "cell_page", cells, nextCursor: null });
  assert.ok(!listed.body.includes(cell.session) && !listed.body.includes(cell.keyId ?? ""));
  const caveats = [
    { type: "expiry", expiresAt: now },
    { type: "operations", operations: ["read"] },
    { type: "bytes", bytesMax: 9 },
  ];
  answerOf("verify_token", { type: "token_verified", tenant: "acme", lease: sampleLease(), caveats });
  answerOf("list_token_keys", { type: "token_keys", keys: [{ id: "k", createdAt: now, retiresAt: now }] });
  assert.equal(answerOf("create_tenant", { type: "tenant", tenant, created: true }).status, 201);
  answerOf("set_tenant_settings", { type: "tenant", tenant, created: false });
  answerOf("list_tenants", { type: "tenant_page", tenants: [tenant], nextCursor: null });
  assert.deepEqual(answerOf("cancel_request", { type: "done" }).value, {});
});

test("an error names its field where there is one, and its wait where there is one", () => {
  const fault = faultAnswer({ code: "invalid_request", field: "intents.0.resource", detail: "Wrong." });
  assert.equal(bodyText(fault), '{"error":"invalid_request","detail":"Wrong.","field":"intents.0.resource"}');
  const limited = errorAnswer("rate_limited", "Slow down.", { retry_after_ms: 2_500 });
  assert.deepEqual([limited.status, limited.retryAfter], [429, 3]);
});

test("S3: a refusal shows what the contract describes, under the described names, and leaves out what it does not say", () => {
  const plain = replyAnswer(refuse("lease_unknown", "There is no such lease."), { now: 0 });
  assert.deepEqual(bodyObject(plain), { error: "lease_unknown", detail: "There is no such lease." });
  const context = {
    field: "units",
    leaseId: "lse_1",
    from: "A",
    to: "B",
    generation: 2,
    taskId: "T-1",
    used: 0,
    limit: 5,
  };
  const full = replyAnswer(refuse("invalid_task", "Wrong.", { ...context, problem: "too large" }), { now: 0 });
  assert.deepEqual(bodyObject(full), {
    error: "invalid_task",
    detail: "Wrong.",
    field: "units",
    lease_id: "lse_1",
    from: "A",
    to: "B",
    generation: 2,
    task_id: "T-1",
    used: 0,
    limit: 5,
    reason: "too large",
  });
  assert.equal((bodyObject(replyAnswer(deny("quota", "Full."), { now: 0 })) as { reason?: string }).reason, "quota");
});
