import assert from "node:assert/strict";
import { test } from "node:test";
import { operations } from "../../src/protocol/operations.ts";
import { mutates, serve, until } from "./harness.ts";

test("health, readiness, the OpenAPI document and a start page are open to everyone", async (t) => {
  const { get, post } = await serve(t);
  await post("/v1/keys", { role: "operator" });
  assert.deepEqual((await get("/healthz")).body, { status: "ok" });
  assert.deepEqual((await get("/readyz")).body, { status: "ready" });
  const { body } = await get<{ openapi: string; paths: Record<string, object> }>("/openapi.json");
  assert.equal(body.openapi, "3.1.0");
  for (const { path } of operations) assert.ok(Object.hasOwn(body.paths, path), path);
  const page = await get("/");
  assert.equal(page.status, 200);
  assert.match(page.headers.get("content-type") ?? "", /^text\/html/);
  assert.match(page.text, /<title>Leasehold<\/title>/);
});

test("the metrics have grants, verdicts, refusals, waits, commits, lateness, delays and live records", async (t) => {
  const { register, grant, post, get } = await serve(t);
  await register("old");
  await register("young");
  await grant("young", "FILE:/a");
  await grant("young", "FILE:/short", { ttl_ms: 100 });
  await post("/v1/acquire", { agent_id: "old", intents: mutates("FILE:/a") });
  await post("/v1/leases/lse_never/heartbeat");
  await post("/v1/acquire", { nonsense: true });
  const { text, headers } = await until(async () => {
    const metrics = await get("/metrics");
    return metrics.text.includes('leasehold_events_total{type="lease.expired"} 1\n') ? metrics : null;
  }, "the short one has ended");
  assert.match(headers.get("content-type") ?? "", /^text\/plain; version=0\.0\.4/);
  const value = (line: string): number => {
    const found = text.split("\n").find((one) => one.startsWith(`${line} `));
    assert.ok(found !== undefined, line);
    return Number(found.slice(line.length + 1));
  };
  assert.equal(value('leasehold_verdicts_total{verdict="granted"}'), 2);
  assert.equal(value('leasehold_verdicts_total{verdict="waiting"}'), 1);
  assert.equal(value('leasehold_refusals_total{code="lease_unknown"}'), 1);
  assert.equal(value('leasehold_refusals_total{code="invalid_request"}'), 1);
  assert.equal(value('leasehold_events_total{type="lease.granted"}'), 2);
  assert.equal(value('leasehold_events_total{type="lease.expired"}'), 1);
  assert.equal(value('leasehold_events_total{type="request.waiting"}'), 1);
  assert.equal(value("leasehold_waiters"), 1);
  assert.equal(value("leasehold_leases"), 1);
  assert.equal(value("leasehold_agents"), 2);
  assert.ok(value("leasehold_commit_seconds_count") >= 5);
  assert.ok(value("leasehold_commit_rows_sum") >= 5);
  assert.ok(value("leasehold_expiry_lateness_seconds_count") >= 1);
  assert.ok(value("leasehold_connections") >= 1);
  assert.equal(value("leasehold_held_polls"), 0);
  assert.equal(value("leasehold_event_streams"), 0);
  assert.ok(value('leasehold_loop_delay_seconds_bucket{le="+Inf"}') >= 0);
  assert.ok(value('leasehold_request_duration_seconds_count{operation="acquire",outcome="ok"}') >= 3);
  assert.equal(value('leasehold_request_duration_seconds_count{operation="heartbeat",outcome="refused"}'), 1);
  assert.ok(value('leasehold_memory_bytes{kind="rss"}') > 1_000_000);
});

test("an unknown path is 404, a wrong method 405 with Allow, and both say what to do", async (t) => {
  const { call } = await serve(t);
  for (const path of ["/nowhere", "/v1", "/v1/", "/V1/leases", "/v1/leases/x/y/z", "//v1/leases"]) {
    const { status, body } = await call("GET", path);
    assert.deepEqual([status, body.error], [404, "not_found"], path);
  }
  const cases: readonly (readonly [method: string, path: string, allow: string])[] = [
    ["GET", "/v1/acquire", "POST, OPTIONS"],
    ["DELETE", "/v1/agents", "POST, GET, HEAD, OPTIONS"],
    ["PATCH", "/v1/leases/x", "DELETE, GET, HEAD, OPTIONS"],
    ["POST", "/healthz", "GET, HEAD, OPTIONS"],
    ["HEAD", "/v1/requests/x", "GET, DELETE, OPTIONS"],
    ["HEAD", "/v1/events", "GET, OPTIONS"],
    ["PROPFIND", "/v1/keys", "POST, GET, HEAD, DELETE, OPTIONS"],
  ];
  for (const [method, path, allow] of cases) {
    const { status, headers, text } = await call(method, path);
    assert.deepEqual([status, headers.get("allow")], [405, allow], `${method} ${path}`);
    if (method !== "HEAD") assert.equal(JSON.parse(text).error, "method_not_allowed");
  }
});

test("HEAD is a GET without a body, and OPTIONS lists the methods", async (t) => {
  const { call } = await serve(t);
  for (const path of ["/healthz", "/v1/leases", "/openapi.json", "/metrics", "/"]) {
    const { status, text } = await call("HEAD", path);
    assert.deepEqual([status, text], [200, ""], path);
  }
  const { status, headers } = await call("OPTIONS", "/v1/leases/x");
  assert.deepEqual([status, headers.get("allow")], [204, "DELETE, GET, HEAD, OPTIONS"]);
});

test("a POST without a body is an empty object, and a GET with one is refused", async (t) => {
  const { call, register, address } = await serve(t);
  await register("alice");
  assert.equal((await call("POST", "/v1/agents/alice/restart")).status, 200);
  assert.equal(
    (await call("POST", "/v1/agents/alice/verify-all", undefined, { headers: { "content-type": "application/json" } }))
      .status,
    200,
  );
  const withBody = await fetch(`${address.url}/v1/leases/x`, {
    method: "DELETE",
    headers: { "content-type": "application/json" },
    body: `{"version":"v1"}`,
  });
  assert.equal(withBody.status, 400);
});
