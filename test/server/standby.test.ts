import assert from "node:assert/strict";
import { test } from "node:test";
import { held, mutates, serve } from "./harness.ts";
import type { WireDied, WireGranted, WireWaiting } from "./wire-types.ts";

const standsBy = (agentId: string, more: object = {}) => ({
  agent_id: agentId,
  intents: mutates("FILE:/a"),
  standby_ms: 20_000,
  ...more,
});

test("W14: STANDBY is 202 with the body of WAIT without position, and is listed", async (t) => {
  const { register, grant, post, get } = await serve(t);
  await register("old");
  await register("young");
  await grant("old", "FILE:/a");
  const { status, body } = await post<WireWaiting>("/v1/acquire", standsBy("young"));
  assert.equal(status, 202);
  const { request_id: requestId, blocked_by: blockers, ...rest } = body;
  assert.deepEqual(rest, { verdict: "STANDBY", blocked_by_total: 1, wait_timeout_ms: 20_000, claim_within_ms: 10_000 });
  assert.equal(blockers[0]?.agent_id, "old");
  const { requests } = (await get<{ requests: Record<string, unknown>[] }>("/v1/requests")).body;
  assert.deepEqual(
    requests.map((request) => [request["request_id"], request["state"], "position" in request]),
    [[requestId, "STANDBY", false]],
  );
  const shown = await get<WireWaiting>(`/v1/requests/${requestId}`);
  assert.deepEqual([shown.status, shown.body.verdict], [202, "STANDBY"]);
});

test("W14: a held answer leaves with the grant", async (t) => {
  const server = await serve(t);
  const { register, grant, post } = server;
  await register("old");
  await register("young");
  const lease = await grant("old", "FILE:/a");
  const answered = post<WireGranted>("/v1/acquire", standsBy("young", { hold_ms: 20_000 }));
  await held(server, 1);
  await post(`/v1/leases/${lease.id}/release`);
  const { status, body } = await answered;
  assert.deepEqual([status, body.verdict, body.leases[0]?.agent_id], [200, "GRANTED", "young"]);
});

test("W14: a held answer leaves with DIE and its hint at the end of the standby", async (t) => {
  const { register, grant, post } = await serve(t);
  await register("old");
  await register("young");
  await grant("old", "FILE:/a");
  const { status, body, headers } = await post<WireDied>(
    "/v1/acquire",
    standsBy("young", { standby_ms: 50, hold_ms: 20_000 }),
  );
  assert.deepEqual([status, body.verdict, body.error, body.attempt], [409, "DIE", "die", 1]);
  assert.ok(body.retry_after_ms > 0);
  assert.notEqual(headers.get("retry-after"), null);
});

test("W14: standby_ms over 55,000 is refused and names the field", async (t) => {
  const { register, post } = await serve(t);
  await register("young");
  const { status, body } = await post("/v1/acquire", standsBy("young", { standby_ms: 55_001 }));
  assert.deepEqual([status, body.error, body["field"]], [400, "invalid_wait_timeout", "standby_ms"]);
});
