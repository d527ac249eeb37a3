import assert from "node:assert/strict";
import { test } from "node:test";
import { held, mutates, pause, serve } from "./harness.ts";
import type { WireDied, WireGranted, WireLease, WirePaused, WireWaiting } from "./wire-types.ts";

test("W6: a manifest is granted whole over HTTP, with growing fences and the remaining time", async (t) => {
  const { register, post } = await serve(t);
  await register("alice");
  const asked = {
    agent_id: "alice",
    intents: [...mutates("FILE:/src/auth.ts"), { predicate: "CONSUMES", resource: "FILE:/src/types/**" }],
    ttl_ms: 60_000,
    purpose: "rename login()",
  };
  const { status, body, headers } = await post<WireGranted>("/v1/acquire", asked);
  assert.equal(status, 200);
  assert.equal(body.verdict, "GRANTED");
  assert.deepEqual(
    body.leases.map(({ resource, predicate, state, ttl }) => [resource, predicate, state, ttl]),
    [
      ["FILE:/src/auth.ts", "MUTATES", "ACTIVE", 60_000],
      ["FILE:/src/types/**", "CONSUMES", "ACTIVE", 60_000],
    ],
  );
  assert.ok((body.leases[0]?.fence ?? 0) < (body.leases[1]?.fence ?? 0));
  assert.ok(body.leases.every(({ expires_in_ms: left }) => left > 59_000 && left <= 60_000));
  assert.equal(headers.get("content-type"), "application/json; charset=utf-8");
  assert.equal(headers.get("cache-control"), "no-store");
});

test("L2: a TTL over the limit is capped, and the reply has a warning", async (t) => {
  const { register, post } = await serve(t);
  await register("alice");
  const { body } = await post<WireGranted>("/v1/acquire", {
    agent_id: "alice",
    intents: mutates("FILE:/a"),
    ttl_ms: 86_400_000,
  });
  assert.equal(body.leases[0]?.ttl, 300_000);
  assert.equal(body.warnings.length, 1);
});

test("L2: a task's lease over the limit is capped with a warning, alone, in a batch and as a type's default", async (t) => {
  const server = await serve(t);
  const lease_duration_ms = 90_000_000;
  const task = { task_type: "build", principal_ai: "planner", lease_duration_ms };
  const warnings = ["lease_duration_ms was capped at 86400000."];
  const { status, body } = await server.post<{ warnings: string[] }>("/v1/tasks", task);
  assert.deepEqual([status, body.warnings], [201, warnings]);
  const batch = await server.post<{ results: { body: { warnings: string[] } }[] }>("/v1/tasks/batch", {
    tasks: [task],
  });
  assert.deepEqual(
    batch.body.results.map(({ body: { warnings } }) => warnings),
    [warnings],
  );
  const type = await server.call<{ warnings: string[] }>("PUT", "/v1/task-types/build", { lease_duration_ms });
  assert.deepEqual([type.status, type.body.warnings], [200, warnings]);
});

test("W2: a younger agent gets DIE with the obstacles and a retry time", async (t) => {
  const { register, grant, post } = await serve(t);
  await register("old");
  await register("young");
  const lease = await grant("old", "FILE:/src/a.ts", { purpose: "fixing it" });
  const asked = { agent_id: "young", intents: mutates("FILE:/src/**") };
  const { status, body, headers } = await post<WireDied>("/v1/acquire", asked);
  assert.equal(status, 409);
  assert.deepEqual([body.verdict, body.error, body.attempt, body.blocked_by_total], ["DIE", "die", 1, 1]);
  assert.deepEqual(
    body.blocked_by.map((one) => [one.lease_id, one.agent_id, one.resource, one.purpose]),
    [[lease.id, "old", "FILE:/src/a.ts", "fixing it"]],
  );
  assert.equal(headers.get("retry-after"), String(Math.ceil(body.retry_after_ms / 1_000)));
  const again = await post<WireDied>("/v1/acquire", asked);
  assert.equal(again.body.attempt, 2);
  assert.equal(again.body.priority_timestamp, body.priority_timestamp);
});

test("W2, W3: an older agent waits, and is granted when the holder releases", async (t) => {
  const { register, grant, post, get } = await serve(t);
  await register("old");
  await register("young");
  const lease = await grant("young", "FILE:/a");
  const asked = { agent_id: "old", intents: mutates("FILE:/a"), wait_timeout_ms: 5_000 };
  const waiting = await post<WireWaiting>("/v1/acquire", asked);
  assert.equal(waiting.status, 202);
  assert.deepEqual([waiting.body.verdict, waiting.body.position], ["WAIT", 1]);
  assert.deepEqual([waiting.body.wait_timeout_ms, waiting.body.claim_within_ms], [5_000, 10_000]);
  assert.equal((await get(`/v1/requests/${waiting.body.request_id}`)).status, 202);
  await post(`/v1/leases/${lease.id}/release`);
  const granted = await get<WireGranted>(`/v1/requests/${waiting.body.request_id}`);
  assert.equal(granted.status, 200);
  assert.equal(granted.body.leases[0]?.agent_id, "old");
  assert.ok((granted.body.leases[0]?.fence ?? 0) > lease.fence);
});

test("a held reply is sent when the wait is granted, not at the end of the hold", async (t) => {
  const server = await serve(t);
  const { register, grant, post } = server;
  await register("old");
  await register("young");
  const lease = await grant("young", "FILE:/a");
  const asked = { agent_id: "old", intents: mutates("FILE:/a"), hold_ms: 50_000 };
  const began = performance.now();
  const answered = post<WireGranted>("/v1/acquire", asked);
  await held(server, 1);
  await post(`/v1/leases/${lease.id}/release`);
  const { status, body } = await answered;
  assert.equal(status, 200);
  assert.equal(body.leases[0]?.resource, "FILE:/a");
  assert.ok(performance.now() - began < 25_000);
});

test("a hold without a decision ends with WAIT, and can be repeated", async (t) => {
  const server = await serve(t);
  const { register, grant, post, get } = server;
  await register("old");
  await register("young");
  const lease = await grant("young", "FILE:/a");
  const began = performance.now();
  const first = await post<WireWaiting>("/v1/acquire", { agent_id: "old", intents: mutates("FILE:/a"), hold_ms: 150 });
  assert.equal(first.status, 202);
  assert.ok(performance.now() - began >= 145);
  const answered = get<WireGranted>(`/v1/requests/${first.body.request_id}?hold_ms=20000`);
  await held(server, 1);
  await post(`/v1/leases/${lease.id}/release`);
  assert.equal((await answered).body.verdict, "GRANTED");
});

test("W8: the grant of a disconnected client goes to the next waiter", async (t) => {
  const server = await serve(t);
  const { register, grant, post, get, call } = server;
  await call("PUT", "/v1/tenants/default/settings", { claim_within_ms: 1_500 });
  await register("oldest");
  await register("older");
  await register("young");
  const lease = await grant("young", "FILE:/a");
  const gone = new AbortController();
  // The older agent queues behind the younger waiter: "oldest" comes second.
  const first = post(
    "/v1/acquire",
    { agent_id: "older", intents: mutates("FILE:/a"), hold_ms: 20_000 },
    { signal: gone.signal },
  );
  await held(server, 1);
  const next = await post<WireWaiting>("/v1/acquire", { agent_id: "oldest", intents: mutates("FILE:/a") });
  assert.equal(next.status, 202);
  gone.abort();
  await assert.rejects(first);
  await held(server, 0);
  await post(`/v1/leases/${lease.id}/release`);
  const granted = await get<WireGranted>(`/v1/requests/${next.body.request_id}?hold_ms=20000`);
  assert.equal(granted.status, 200);
  const ended = await get<{ leases: readonly WireLease[] }>("/v1/leases?state=EXPIRED");
  assert.deepEqual(
    ended.body.leases.map(({ agent_id: agent }) => agent),
    ["older"],
  );
});

test("W4: a wait ends with wait_timeout, for a held reply and for a later request", async (t) => {
  const { register, grant, post, get } = await serve(t);
  await register("old");
  await register("young");
  await grant("young", "FILE:/a");
  const asked = {
    agent_id: "old",
    intents: mutates("FILE:/a"),
    wait_timeout_ms: 100,
    hold_ms: 5_000,
    request_id: "mine",
  };
  const { status, body } = await post("/v1/acquire", asked);
  assert.deepEqual([status, body.error], [409, "wait_timeout"]);
  const waiting = await post<WireWaiting>("/v1/acquire", { ...asked, hold_ms: 0 });
  await pause(150);
  assert.equal((await get(`/v1/requests/${waiting.body.request_id}`)).body.error, "wait_timeout");
});

test("a request that is canceled ends its hold, and cancelling it again changes nothing", async (t) => {
  const server = await serve(t);
  const { register, grant, post, call, get } = server;
  await register("old");
  await register("young");
  await grant("young", "FILE:/a");
  const { body } = await post<WireWaiting>("/v1/acquire", { agent_id: "old", intents: mutates("FILE:/a") });
  const answered = get(`/v1/requests/${body.request_id}?hold_ms=20000`);
  await held(server, 1);
  assert.equal((await call("DELETE", `/v1/requests/${body.request_id}`)).status, 200);
  assert.equal((await answered).body.error, "request_canceled");
  assert.equal((await call("DELETE", `/v1/requests/${body.request_id}`)).status, 200);
});

test("wait_timeout_ms 0 does not wait: would_wait names the obstacles, and nothing is stored", async (t) => {
  const { register, grant, post, service } = await serve(t);
  await register("old");
  await register("young");
  await grant("young", "FILE:/a");
  const { status, body } = await post("/v1/acquire", {
    agent_id: "old",
    intents: mutates("FILE:/a"),
    wait_timeout_ms: 0,
  });
  assert.deepEqual([status, body.error], [409, "would_wait"]);
  assert.equal((body.blocked_by as readonly unknown[]).length, 1);
  assert.equal(
    service.engine.peek(({ tenants }) => tenants.get("default")?.waitingCount),
    0,
  );
});

test("W12: a dry run gives the verdict and changes nothing", async (t) => {
  const { register, post, get } = await serve(t);
  await register("alice");
  const { status, body } = await post<WireGranted>("/v1/acquire", {
    agent_id: "alice",
    intents: mutates("FILE:/a"),
    dry_run: true,
  });
  assert.deepEqual([status, body.verdict, body.request_id], [200, "GRANTED", null]);
  assert.deepEqual((await get<{ leases: unknown[] }>("/v1/leases")).body.leases, []);
});

test("W9: PAUSED names the reason: resource, agent or tenant", async (t) => {
  const { register, post } = await serve(t);
  await register("alice");
  const acquire = () => post<WirePaused>("/v1/acquire", { agent_id: "alice", intents: mutates("GPU:/a") });
  await post("/v1/resources/fence", { resource: "GPU:/a", reason: "ECC errors" });
  const fenced = await acquire();
  assert.deepEqual([fenced.status, fenced.body.verdict, fenced.body.reason], [423, "PAUSED", "resource_fenced"]);
  await post("/v1/resources/reset", { resource: "GPU:/a" });
  await post("/v1/agents/alice/pause");
  assert.equal((await acquire()).body.reason, "agent_paused");
  await post("/v1/agents/alice/unpause");
  await post("/v1/tenants/default/suspend", { reason: "unpaid" });
  assert.equal((await acquire()).body.reason, "tenant_suspended");
  await post("/v1/tenants/default/resume");
  assert.equal((await acquire()).status, 200);
});

test("W9: a fence ends a held wait with PAUSED", async (t) => {
  const server = await serve(t);
  const { register, grant, post } = server;
  await register("old");
  await register("young");
  await grant("young", "GPU:/a");
  const answered = post<WirePaused>("/v1/acquire", { agent_id: "old", intents: mutates("GPU:/a"), hold_ms: 20_000 });
  await held(server, 1);
  await post("/v1/resources/fence", { resource: "GPU:/a", reason: "smoke" });
  const { status, body } = await answered;
  assert.deepEqual([status, body.verdict, body.reason], [423, "PAUSED", "resource_fenced"]);
});

test("G2: a request that can never be granted is lease_denied with its reason", async (t) => {
  const { register, post, call, grant } = await serve(t);
  await register("alice");
  await call("PUT", "/v1/resources", { resource: "GPU:/rack", capacity: 4 });
  const units = (count: number) => [{ predicate: "MUTATES", resource: "GPU:/rack", units: count }];
  const tooMany = await post("/v1/acquire", { agent_id: "alice", intents: units(5) });
  assert.deepEqual([tooMany.status, tooMany.body.error, tooMany.body.reason], [403, "lease_denied", "capacity"]);
  assert.equal((await post("/v1/acquire", { agent_id: "alice", intents: units(3) })).status, 200);
  const own = await post("/v1/acquire", { agent_id: "alice", intents: units(2) });
  assert.equal(own.body.reason, "self_blocked");
  await call("PUT", "/v1/tenants/default/quotas", { leases_max: 2 });
  await grant("alice", "FILE:/a");
  const overQuota = await post("/v1/acquire", { agent_id: "alice", intents: mutates("FILE:/b") });
  assert.equal(overQuota.body.reason, "quota");
});

test("W10: a repeated request_id gets the same grant, and another body under it is refused", async (t) => {
  const { register, post, get } = await serve(t);
  await register("alice");
  const asked = { agent_id: "alice", intents: mutates("FILE:/a"), request_id: "once" };
  const first = await post<WireGranted>("/v1/acquire", asked);
  const second = await post<WireGranted>("/v1/acquire", asked);
  assert.deepEqual(
    [second.body.request_id, second.body.leases[0]?.id],
    [first.body.request_id, first.body.leases[0]?.id],
  );
  assert.equal((await get<{ leases: unknown[] }>("/v1/leases")).body.leases.length, 1);
  const other = await post("/v1/acquire", { ...asked, intents: mutates("FILE:/b") });
  assert.deepEqual([other.status, other.body.error], [422, "request_id_reused"]);
});

test("an unknown request is request_unknown, an unregistered agent agent_unknown", async (t) => {
  const { post, get } = await serve(t);
  const request = await get("/v1/requests/req_nope");
  assert.deepEqual([request.status, request.body.error], [404, "request_unknown"]);
  const agent = await post("/v1/acquire", { agent_id: "nobody", intents: mutates("FILE:/a") });
  assert.deepEqual([agent.status, agent.body.error], [404, "agent_unknown"]);
});
