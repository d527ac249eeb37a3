import assert from "node:assert/strict";
import { test } from "node:test";
import { mutates, serve } from "./harness.ts";
import type { WireKey, WireResource, WireTenant, WireWaiting } from "./wire-types.ts";

test("C6, G7, G12: resources are declared, fenced, reset, withdrawn and listed", async (t) => {
  const { call, post, get, register, grant } = await serve(t);
  const put = (resource: string, more: object = {}) =>
    call<WireResource>("PUT", "/v1/resources", { resource, ...more });
  assert.equal((await put("GPU:/r1/a", { capacity: 4 })).status, 201);
  assert.equal((await put("GPU:/r1/a", { capacity: 8 })).status, 200);
  await put("GPU:/r1/b", { cell: "cell-1" });
  await put("PORT:/80");
  await register("alice");
  const lease = await grant("alice", "GPU:/r1/a");
  assert.equal((await post("/v1/resources/fence", { resource: "GPU:/r1/a", reason: "ECC" })).body.state, "FENCED");
  assert.equal((await post(`/v1/leases/${lease.id}/heartbeat`)).body.error, "lease_revoked");
  interface Page {
    readonly resources: readonly WireResource[];
  }
  const fenced = await get<Page>("/v1/resources?prefix=GPU:/&state=FENCED");
  assert.deepEqual(
    fenced.body.resources.map(({ resource, reason }) => [resource, reason]),
    [["GPU:/r1/a", "ECC"]],
  );
  assert.equal((await post("/v1/resources/reset", { resource: "GPU:/r1/a" })).body.state, "READY");
  const { sequence, ...cells } = (await get<{ readonly sequence: number }>("/v1/cells")).body;
  assert.ok(sequence > 0);
  assert.deepEqual(cells, { cells: [], next_cursor: null });
  assert.equal((await post("/v1/resources/withdraw", { resource: "PORT:/80" })).body.state, "WITHDRAWN");
  assert.equal((await get<Page>("/v1/resources?state=WITHDRAWN")).body.resources.length, 1);
  // A cell that was only named and never enrolled does not exist.
  assert.equal((await post("/v1/resources/withdraw", { cell: "cell-1" })).body.error, "cell_unknown");
});

test("tenants are isolated, and the operator selects one with a header", async (t) => {
  const { post, get, register, grant } = await serve(t);
  assert.equal((await post("/v1/tenants", { tenant_id: "acme" })).status, 201);
  assert.equal((await post("/v1/tenants", { tenant_id: "acme" })).body.error, "tenant_exists");
  await register("alice");
  await register("alice", { tenant: "acme" });
  await grant("alice", "FILE:/a");
  await grant("alice", "FILE:/a", {}, { tenant: "acme" });
  const listed = await get<{ tenants: readonly WireTenant[] }>("/v1/tenants");
  assert.deepEqual(
    listed.body.tenants.map((one) => one.tenant_id),
    ["acme", "default"],
  );
  const unknown = await get("/v1/leases", { tenant: "nope" });
  assert.deepEqual([unknown.status, unknown.body.error], [404, "tenant_unknown"]);
});

test("W7: a tenant's settings and quotas can be changed, its strategy only while nobody waits", async (t) => {
  const { call, register, grant, post } = await serve(t);
  const settings = (change: object) => call<WireTenant>("PUT", "/v1/tenants/default/settings", change);
  assert.equal((await settings({ ttl_ms_default: 5_000 })).body.settings.ttl_ms_default, 5_000);
  await register("old");
  await register("young");
  await grant("young", "FILE:/a");
  const waiting = await post<WireWaiting>("/v1/acquire", { agent_id: "old", intents: mutates("FILE:/a") });
  assert.equal(waiting.status, 202);
  const refused = await call("PUT", "/v1/tenants/default/settings", { strategy: "wound_wait" });
  assert.deepEqual([refused.status, refused.body.error], [409, "strategy_in_use"]);
  await call("DELETE", `/v1/requests/${waiting.body.request_id}`);
  assert.equal((await settings({ strategy: "wound_wait" })).body.settings.strategy, "wound_wait");
  // The older agent takes it now, and the younger gets the event.
  assert.equal((await post("/v1/acquire", { agent_id: "old", intents: mutates("FILE:/a") })).status, 200);
  const quotas = await call<WireTenant>("PUT", "/v1/tenants/default/quotas", {
    leases_max: 1,
    lease_time_ms_max: null,
  });
  assert.equal(quotas.body.quotas.leases_max, 1);
});

test("a key is shown once, listed without its secret, and refused once it is deleted", async (t) => {
  const { post, get, call } = await serve(t);
  const made = await post<WireKey & { key: string }>("/v1/keys", { role: "operator", label: "mine" });
  assert.equal(made.status, 201);
  assert.match(made.body.key, /^lhk_[\w-]{43}$/);
  const { key, key_id: id } = made.body;
  // With the first key, requests without one are refused.
  assert.equal((await get("/v1/keys")).status, 401);
  const listed = await get<{ keys: readonly WireKey[] }>("/v1/keys", { key });
  assert.deepEqual(
    listed.body.keys.map((one) => [one.key_id, one.role, one.label]),
    [[id, "operator", "mine"]],
  );
  assert.ok(!listed.text.includes(key.slice(4)) && !listed.text.includes("hash"));
  const second = await post<WireKey & { key: string }>("/v1/keys", { role: "reader" }, { key });
  assert.equal((await get("/v1/leases", { key: second.body.key })).status, 200);
  assert.equal((await call("DELETE", `/v1/keys/${second.body.key_id}`, undefined, { key })).status, 200);
  assert.equal((await get("/v1/leases", { key: second.body.key })).status, 401);
  assert.equal(
    (await call("DELETE", `/v1/keys?key_id=${second.body.key_id}`, undefined, { key })).body.error,
    "key_unknown",
  );
});
