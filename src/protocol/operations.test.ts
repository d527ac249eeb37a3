import assert from "node:assert/strict";
import { test } from "node:test";
import { errors } from "./answers/errors.ts";
import { readHttp } from "./http/http-input.ts";
import type { Input, Operation, Route, Sender } from "./operation.ts";
import { findOperation, operations } from "./operations.ts";
import type { Node } from "./schema/schema.ts";

const asked: Sender = {
  tenant: "default",
  actor: { role: "operator", agentId: null, epoch: null },
  entropy: [1, 2],
};

/** All parts of API.md. */
const inApi = `
POST /v1/agents | GET /v1/agents | GET /v1/agents/{agent_id} | POST /v1/agents/{agent_id}/transition
POST /v1/agents/{agent_id}/restart | POST /v1/agents/{agent_id}/pause | POST /v1/agents/{agent_id}/unpause
PUT /v1/agents/{agent_id}/digest | GET /v1/agents/{agent_id}/digest | POST /v1/agents/{agent_id}/resume
POST /v1/agents/{agent_id}/verify-all
POST /v1/acquire | GET /v1/requests/{request_id} | DELETE /v1/requests/{request_id}
POST /v1/leases/{lease_id}/heartbeat | POST /v1/heartbeat | POST /v1/leases/{lease_id}/renew
POST /v1/leases/{lease_id}/release | DELETE /v1/leases/{lease_id} | POST /v1/release
POST /v1/leases/{lease_id}/transfer | POST /v1/leases/{lease_id}/downgrade | POST /v1/leases/{lease_id}/violations
GET /v1/leases | GET /v1/leases/{lease_id} | POST /v1/revoke
PUT /v1/resources | GET /v1/resources | POST /v1/resources/fence | POST /v1/resources/reset
POST /v1/resources/withdraw | GET /v1/cells | POST /v1/tokens/verify
POST /v1/tasks | POST /v1/tasks/batch | GET /v1/tasks | GET /v1/tasks/{task_id} | POST /v1/tasks/{task_id}/cancel
GET /v1/tasks/{task_id}/explain | POST /v1/tasks/{task_id}/redrive
POST /lease | POST /lease/{lease_id}/heartbeat | POST /lease/{lease_id}/release
POST /v1/lease | POST /v1/lease/{lease_id}/heartbeat | POST /v1/lease/heartbeats | POST /v1/lease/{lease_id}/release
PUT /v1/artifacts | GET /v1/artifacts/{sha256}
POST /v1/receipts | POST /v1/receipts/batch | GET /v1/receipts | GET /v1/receipts/{receipt_id}
GET /v1/receipts/{receipt_id}/chain | GET /v1/inbox/{recipient_ai} | GET /v1/obligations | GET /v1/ledger/head
GET /v1/events | GET /v1/stream | GET /healthz | GET /readyz | GET /metrics | GET /openapi.json
POST /v1/tenants | GET /v1/tenants | POST /v1/tenants/{tenant_id}/suspend | POST /v1/tenants/{tenant_id}/resume
PUT /v1/tenants/{tenant_id}/settings | PUT /v1/tenants/{tenant_id}/quotas
POST /v1/keys | GET /v1/keys | DELETE /v1/keys | DELETE /v1/keys/{key_id}
GET /v1/policies | GET /v1/policies/{policy_id} | PUT /v1/policies/{policy_id} | DELETE /v1/policies/{policy_id}
POST /v1/policies/test | GET /v1/audit | GET /v1/cluster`;

/** What API.md does not name, and a running server needs. */
const beyondApi = [
  "POST /v1/agents/{agent_id}/token",
  "POST /v1/backup",
  "POST /v1/cluster/resign",
  "POST /v1/keys/{key_id}/assign",
  "POST /v1/keys/{key_id}/rotate",
  "DELETE /v1/artifacts/{sha256}",
  "GET /v1/artifacts",
  "GET /v1/usage",
  "GET /v1/overview",
  "POST /v1/tasks/cancel",
  "POST /v1/tasks/redrive",
  "GET /v1/operations/{operation_id}",
  "GET /v1/activity",
  "GET /v1/waits",
  "GET /v1/history",
  "GET /v1/agents/{agent_id}/observation",
  "GET /v1/cells/connect",
  "POST /v1/cells/{cell}/readmit",
  "GET /v1/token-keys",
  "POST /v1/token-keys/rotate",
  "GET /v1/requests",
  "GET /v1/session",
  "POST /v1/session",
  "DELETE /v1/session",
  "POST /v1/session/link",
  "PUT /v1/task-types/{task_type}",
  "GET /v1/task-types",
  "GET /v1/workers",
  "POST /v1/obligations/{obligation_id}/recover",
];

test("every route of API.md's parts is there, and no route twice", () => {
  const routes = operations
    .flatMap((operation) => [operation, ...operation.also])
    .map(({ method, path }) => `${method} ${path}`);
  const wanted = inApi.split(/[|\n]/).map((one) => one.trim());
  assert.deepEqual(routes.toSorted(), [...wanted.filter(Boolean), ...beyondApi].toSorted());
  assert.equal(new Set(operations.map(({ name }) => name)).size, operations.length);
  for (const operation of operations) assert.equal(findOperation(operation.name), operation);
  assert.equal(findOperation("constructor"), undefined);
});

test("every operation's example passes its check, as one object and over HTTP by each of its routes", () => {
  for (const operation of operations) {
    const { name, example } = operation;
    assert.deepEqual(operation.check(example), { ok: true, value: example }, name);
    for (const route of [operation, ...operation.also]) {
      const read = readHttp(operation, route, split(route, example));
      assert.ok(read.ok, `${name}: ${JSON.stringify(read)}`);
      assert.deepEqual({ ...read.value }, withoutNulls(route, example), name);
    }
  }
});

test("every example decodes to a command or query of the asker's tenant", () => {
  for (const operation of operations) {
    if (operation.kind === "edge") continue;
    const decoded = operation.decode(operation.example, asked);
    assert.equal(decoded.tenant, "default");
    assert.equal(decoded.actor, asked.actor);
    if (operation.kind === "command") assert.ok(!("entropy" in decoded) || decoded.entropy === asked.entropy);
    assert.ok(!Object.values(decoded).includes(undefined), `${operation.name}: absent is null, never undefined`);
  }
});

test("an optional field may be null, which says the same as leaving it out", () => {
  for (const operation of operations) {
    if (operation.kind === "edge") continue;
    const { properties = {}, required = [] }: Node = operation.input;
    const optional = Object.keys(properties).filter((field) => !required.includes(field));
    const kept = Object.fromEntries(Object.entries(operation.example).filter(([field]) => required.includes(field)));
    const one = operation.exactlyOne.filter((field) => field in operation.example);
    for (const field of one) kept[field] = operation.example[field];
    const nulls = Object.fromEntries(optional.filter((field) => !one.includes(field)).map((field) => [field, null]));
    const withNulls = { ...nulls, ...kept };
    assert.ok(operation.check(withNulls).ok, operation.name);
    // There null is "no limit", or "nobody", for some of them.
    if (operation.name === "set_tenant_quotas" || operation.name === "set_tenant_settings") continue;
    assert.deepEqual(operation.decode(withNulls, asked), operation.decode(kept, asked), operation.name);
  }
});

test("a quota on time can be lifted with null, and stays as it is when left out", () => {
  const quotas = findOperation("set_tenant_quotas");
  assert.ok(quotas?.kind === "command");
  const lifted = quotas.decode({ tenant_id: "acme", lease_time_ms_max: null, leases_max: null }, asked);
  assert.deepEqual("quotas" in lifted && lifted.quotas, { leaseTimeMsMax: null });
});

test("every field refuses the wrong type by name, in every operation (S3)", () => {
  for (const operation of operations) {
    for (const [field, schema] of Object.entries((operation.input as Node).properties ?? {})) {
      if (schema.type === undefined) continue; // Any JSON: there is no wrong one.
      const wrong = [schema.type].flat().includes("object") ? "text" : { un: "fit" };
      const checked = operation.check({ ...operation.example, [field]: wrong });
      assert.ok(!checked.ok, `${operation.name}.${field}`);
      assert.deepEqual([checked.code, checked.field], [operation.faultCode ?? "invalid_request", field]);
    }
  }
});

test("every operation refuses an unknown field by name", () => {
  for (const operation of operations) {
    const checked = operation.check({ ...operation.example, surprise: 1 });
    assert.ok(!checked.ok);
    assert.equal(checked.field, "surprise", operation.name);
  }
});

test("where exactly one of several fields is wanted, none and two are refused", () => {
  const revoke = findOperation("revoke");
  assert.ok(revoke?.kind === "command");
  const none = revoke.check({ reason: "x" });
  const two = revoke.check({ reason: "x", lease_id: "lse_1", agent_id: "agt_1" });
  assert.ok(!none.ok && !two.ok);
  assert.equal(none.detail, "Give one of lease_id, agent_id, resource_prefix.");
  assert.deepEqual([two.field, two.detail.includes("lease_id and agent_id are given")], ["agent_id", true]);
  const targets = [{ lease_id: "lse_1" }, { agent_id: "agt_1" }, { resource_prefix: "FILE:/a" }].map((target) => {
    const decoded = revoke.decode({ ...target, reason: "x" }, asked);
    return "target" in decoded ? decoded.target : null;
  });
  const blank = { leaseId: null, agentId: null, resourcePrefix: null };
  assert.deepEqual(targets, [
    { ...blank, leaseId: "lse_1" },
    { ...blank, agentId: "agt_1" },
    { ...blank, resourcePrefix: "FILE:/a" },
  ]);
});

test("an acquire becomes the kernel's command, with null for what was left out", () => {
  const acquire = findOperation("acquire");
  assert.ok(acquire?.kind === "command");
  const input = {
    agent_id: "agt_1",
    intents: [{ predicate: "RENAMES", resource: "FILE:/a", to: "FILE:/b", pick: null }],
    hold_ms: 9,
  };
  assert.deepEqual(acquire.decode(input, asked), {
    type: "acquire",
    tenant: "default",
    actor: asked.actor,
    entropy: [1, 2],
    agentId: "agt_1",
    intents: [{ predicate: "RENAMES", resource: "FILE:/a", units: null, to: "FILE:/b", pick: null }],
    ttlMs: null,
    waitTimeoutMs: null,
    standbyMs: 0,
    idleTimeoutMs: null,
    purpose: null,
    tokens: false,
    dryRun: false,
    requestKey: null,
    collect: null,
    keyLookedUp: false,
  });
});

test("withdrawing a cell and withdrawing a resource are different commands (G12)", () => {
  const withdraw = findOperation("withdraw_resource");
  assert.ok(withdraw?.kind === "command");
  assert.equal(withdraw.decode({ cell: "cell-1" }, asked).type, "withdraw_cell");
  assert.equal(withdraw.decode({ resource: "GPU:/a" }, asked).type, "withdraw_resource");
});

test("every operation says who may ask, what it answers, and only errors that exist", () => {
  for (const { name, roles, replies, errors: own, summary, description } of operations) {
    assert.ok(roles === "anyone" || roles.includes("operator"), `${name}: the operator may do everything`);
    assert.ok(replies.length > 0 && summary.length > 0 && description.endsWith("."), name);
    for (const code of own) assert.ok(code in errors, `${name}: ${code}`);
  }
});

/** The parts of an HTTP request that carry the input by this route. */
function split(route: Route, input: Input) {
  const chosen = ({ properties = {} }: Node) =>
    Object.entries(input).filter(([name]) => Object.hasOwn(properties, name));
  const query = chosen(route.query).map(([name, value]) => [name, value === null ? "" : String(value)]);
  return {
    params: Object.fromEntries(chosen(route.params)),
    query: Object.fromEntries(query) as Record<string, string>,
    body: route.body === null ? undefined : Object.fromEntries(chosen(route.body)),
  };
}

/** A query string cannot say null. */
function withoutNulls(route: Operation | Route, input: Input): Input {
  if (route.body !== null) return input;
  return Object.fromEntries(Object.entries(input).filter(([, value]) => value !== null));
}
