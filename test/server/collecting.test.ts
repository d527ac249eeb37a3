import assert from "node:assert/strict";
import { test } from "node:test";
import { held, mutates, serve } from "./harness.ts";
import type { WireGranted, WireWaiting } from "./wire-types.ts";

/** A waiter, and a lease in its way. */
async function waiting(t: Parameters<typeof serve>[0], more: object = {}) {
  const server = await serve(t);
  await server.register("old");
  await server.register("young");
  const lease = await server.grant("young", "FILE:/a");
  const asked = { agent_id: "old", intents: mutates("FILE:/a"), ...more };
  const claimOf = (leaseId: string) =>
    server.service.engine.peek(({ tenants }) => tenants.get("default")?.leases.get(leaseId)?.record.claimBy);
  return { server, lease, asked, claimOf };
}

test("W8: a held answer that the caller asked not to collect leaves the grant to be claimed; a heartbeat collects it", async (t) => {
  const { server, lease, asked, claimOf } = await waiting(t, { hold_ms: 20_000, collect: false });
  const answered = server.post<WireGranted>("/v1/acquire", asked);
  await held(server, 1);
  await server.post(`/v1/leases/${lease.id}/release`);
  const { body } = await answered;
  const leaseId = body.leases[0]?.id ?? "";
  assert.equal(body.verdict, "GRANTED");
  assert.equal(typeof claimOf(leaseId), "number");
  const leftMs = body.claim_within_ms ?? 0;
  assert.ok(leftMs > 0 && leftMs <= 10_000, `how long is left to collect it: ${leftMs}`);
  await server.post("/v1/heartbeat", { agent_id: "old" });
  assert.equal(claimOf(leaseId), null);
  const again = await server.get<WireGranted>(`/v1/requests/${body.request_id}?collect=false`);
  assert.equal("claim_within_ms" in again.body, false, "a collected grant has no such time");
});

test("W8: an acquire sent again with collect false does not collect the grant that ended its wait", async (t) => {
  const { server, lease, asked, claimOf } = await waiting(t, { request_id: "k" });
  assert.equal((await server.post("/v1/acquire", { ...asked, collect: false })).status, 202);
  await server.post(`/v1/leases/${lease.id}/release`);
  const { body } = await server.post<WireGranted>("/v1/acquire", { ...asked, collect: false });
  assert.equal(typeof body.claim_within_ms, "number");
  assert.equal(typeof claimOf(body.leases[0]?.id ?? ""), "number");
  const collected = await server.post<WireGranted>("/v1/acquire", asked);
  assert.equal("claim_within_ms" in collected.body, false);
  assert.equal(claimOf(body.leases[0]?.id ?? ""), null);
});

test("W8: a grant that came at once needs no collecting, and says nothing of it", async (t) => {
  const server = await serve(t);
  await server.register("a");
  const asked = { agent_id: "a", intents: mutates("FILE:/a"), collect: false };
  const { body } = await server.post<WireGranted>("/v1/acquire", asked);
  assert.deepEqual(Object.keys(body), ["verdict", "request_id", "leases", "warnings"]);
});

test("W8: a held answer collects where the caller did not say otherwise", async (t) => {
  const { server, lease, asked, claimOf } = await waiting(t, { hold_ms: 20_000 });
  const answered = server.post<WireGranted>("/v1/acquire", asked);
  await held(server, 1);
  await server.post(`/v1/leases/${lease.id}/release`);
  assert.equal(claimOf((await answered).body.leases[0]?.id ?? ""), null);
});

test("W8: asking with collect=false collects nothing", async (t) => {
  const { server, lease, asked, claimOf } = await waiting(t);
  const { body } = await server.post<WireWaiting>("/v1/acquire", asked);
  await server.post(`/v1/leases/${lease.id}/release`);
  const look = await server.get<WireGranted>(`/v1/requests/${body.request_id}?collect=false`);
  assert.equal(look.body.verdict, "GRANTED");
  assert.equal(typeof claimOf(look.body.leases[0]?.id ?? ""), "number");
});

test("W10: a grant that is over is 410 with how it ended, on its id and on a replay of its request_id", async (t) => {
  const { server, lease, asked } = await waiting(t, { request_id: "k" });
  const { body } = await server.post<WireWaiting>("/v1/acquire", asked);
  await server.post(`/v1/leases/${lease.id}/release`);
  const granted = await server.get<WireGranted>(`/v1/requests/${body.request_id}`);
  await server.post(`/v1/leases/${granted.body.leases[0]?.id}/release`);
  for (const { status, body: over } of [
    await server.get(`/v1/requests/${body.request_id}`),
    await server.post("/v1/acquire", asked),
  ]) {
    assert.deepEqual([status, over.error], [410, "lease_released"]);
  }
});

test("G12: a heartbeat on a withdrawn resource is 423 resource_withdrawn, and one for all lists it as not extended", async (t) => {
  const { server, lease } = await waiting(t);
  await server.post("/v1/resources/withdraw", { resource: "FILE:/a" });
  const { status, body } = await server.post(`/v1/leases/${lease.id}/heartbeat`);
  assert.deepEqual([status, body.error], [423, "resource_withdrawn"]);
  const all = await server.post<{ not_extended: unknown }>("/v1/heartbeat", { agent_id: "young" });
  assert.deepEqual(all.body.not_extended, [{ id: lease.id, state: "ACTIVE", error: "resource_withdrawn" }]);
});
