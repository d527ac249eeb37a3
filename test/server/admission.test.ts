import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import { limits } from "../../src/protocol/schema/limits.ts";
import { FailedLogins, Meters, RateLimiter } from "../../src/server/auth/rate-limit.ts";
import { followEvents } from "../../src/server/events/follow-events.ts";
import { createGate } from "../../src/server/http/edge.ts";
import { pause, serve, until } from "./harness.ts";
import { sendRaw } from "./raw-client.ts";

function gateAt(host: string, allowedHosts: readonly string[] = [], allowedOrigins: readonly string[] = []) {
  const gate = createGate({ host, allowedHosts, allowedOrigins, behindProxy: [] });
  return (headers: Readonly<Record<string, string>>, method = "GET") => {
    const answer = gate.check({
      headers,
      method,
      url: "/",
      httpVersionMajor: 1,
      httpVersionMinor: 1,
    } as unknown as Parameters<typeof gate.check>[0]);
    return answer === null ? "in" : answer.code;
  };
}

test("on loopback only loopback names and addresses are accepted as Host, with any port", () => {
  const at = gateAt("127.0.0.1");
  for (const host of [
    "localhost",
    "localhost:7117",
    "LOCALHOST:80",
    "127.0.0.1:1",
    "127.8.8.8",
    "[::1]:7117",
    "localhost.",
  ]) {
    assert.equal(at({ host }), "in", host);
  }
  for (const host of [
    "evil.example",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "192.168.1.7",
    "[::2]",
    "",
    "localhost, evil.example",
    "localhost@evil.example",
    "127.0.0.1:x",
  ]) {
    assert.equal(at({ host }), "host_not_allowed", host);
  }
  assert.equal(at({}), "invalid_request");
});

test("elsewhere literal addresses and the configured names are accepted as Host", () => {
  const at = gateAt("0.0.0.0", ["leases.example.com", "other.example:8443"]);
  for (const host of [
    "10.0.0.5:7117",
    "[fe80::1]:7117",
    "leases.example.com",
    "Leases.Example.com:7117",
    "localhost",
  ]) {
    assert.equal(at({ host }), "in", host);
  }
  assert.equal(at({ host: "other.example:8443" }), "in");
  assert.equal(at({ host: "other.example" }), "host_not_allowed");
  assert.equal(at({ host: "evil.example" }), "host_not_allowed");
  assert.equal(gateAt("0.0.0.0", ["*"])({ host: "any.example" }), "in");
});

test("a page of the server itself or of an allowed origin may call it, and no other page", () => {
  const at = gateAt("127.0.0.1", [], ["https://ops.example.com"]);
  const host = "localhost:7117";
  assert.equal(at({ host, origin: "http://localhost:7117" }), "in");
  assert.equal(at({ host, origin: "https://OPS.example.com" }), "in");
  for (const origin of [
    "http://localhost:3000",
    "https://evil.example",
    "null",
    "http://localhost:7117.evil.example",
    "",
  ]) {
    assert.equal(at({ host, origin }, "POST"), "origin_not_allowed", origin);
  }
  // Without an Origin the browser says in another way where a call comes from.
  assert.equal(at({ host, "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" }), "origin_not_allowed");
  assert.equal(at({ host, "sec-fetch-site": "same-site", "sec-fetch-mode": "cors" }), "origin_not_allowed");
  assert.equal(at({ host, "sec-fetch-site": "same-origin" }), "in");
  assert.equal(at({ host, "sec-fetch-site": "none", "sec-fetch-mode": "navigate" }), "in");
  assert.equal(at({ host, "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" }), "in");
  assert.equal(
    at({ host, "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" }, "POST"),
    "origin_not_allowed",
  );
});

test("W8: a link from another site opens pages, and never an operation", async (t) => {
  const { address } = await serve(t);
  const follow = (path: string) => {
    const headers = "Host: localhost\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n";
    return sendRaw(address.port, `GET ${path} HTTP/1.1\r\n${headers}\r\n`);
  };
  assert.equal((await follow("/openapi.json")).status, 200);
  const { status, body } = await follow("/v1/requests/req_1");
  assert.deepEqual([status, JSON.parse(body).error], [403, "origin_not_allowed"]);
});

test("Host and Origin are checked for every path, over the wire, before any credential", async (t) => {
  const { address, get } = await serve(t);
  const head = "User-Agent: x\r\n\r\n";
  for (const path of ["/v1/leases", "/healthz", "/", "/openapi.json", "/nowhere", "/v1/stream"]) {
    const rebound = await sendRaw(
      address.port,
      `GET ${path} HTTP/1.1\r\nHost: evil.example:${address.port}\r\n${head}`,
    );
    assert.deepEqual([rebound.status, JSON.parse(rebound.body).error], [403, "host_not_allowed"], path);
    const page = await get(path, { headers: { origin: "https://evil.example" } });
    assert.deepEqual([page.status, page.body.error], [403, "origin_not_allowed"], path);
  }
  const twice = await sendRaw(
    address.port,
    `GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n${head}`,
  );
  assert.equal(twice.status, 403);
  const none = await sendRaw(address.port, `GET /healthz HTTP/1.1\r\n${head}`);
  assert.deepEqual([none.status, JSON.parse(none.body).error], [400, "invalid_request"]);
  assert.equal((await sendRaw(address.port, `GET /healthz HTTP/1.0\r\n${head}`)).status, 200);
});

test("a WebSocket passes the same Host and Origin checks", async (t) => {
  const { address, post } = await serve(t);
  const upgrade = (path: string, more = "", host = "localhost") =>
    sendRaw(
      address.port,
      `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
        `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n${more}\r\n`,
    );
  assert.equal((await upgrade("/v1/stream")).status, 101);
  assert.equal((await upgrade("/v1/stream", "", "evil.example")).status, 403);
  assert.equal((await upgrade("/v1/stream", "Origin: https://evil.example\r\n")).status, 403);
  assert.equal((await upgrade("/v1/elsewhere")).status, 404);
  await post("/v1/keys", { role: "operator" });
  assert.equal((await upgrade("/v1/stream")).status, 401);
  assert.equal((await upgrade("/v1/stream", "Authorization: Bearer lhk_wrong\r\n")).status, 401);
});

test("a WebSocket ends when its key is deleted, and when another instance takes its agent up", async (t) => {
  const { address, post, call, register } = await serve(t, { signOfLifeMs: 100 });
  const operator = { key: (await post<{ key: string }>("/v1/keys", { role: "operator" })).body.key };
  const made = (await post<{ key: string; key_id: string }>("/v1/keys", { role: "agent" }, operator)).body;
  const { agent_token: token } = await register("alice", operator);
  const open = async (key: string) => {
    const socket = connect(address.port, "127.0.0.1");
    socket.write(
      `GET /v1/stream HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nAuthorization: Bearer ${key}\r\n` +
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    );
    const [head] = (await once(socket, "data")) as [Buffer];
    assert.match(head.toString(), /^HTTP\/1\.1 101 /);
    return { closed: once(socket, "close") };
  };
  const [byKey, byToken] = [await open(made.key), await open(token)];
  await call("DELETE", `/v1/keys/${made.key_id}`, undefined, operator);
  await byKey.closed;
  await register("alice", operator);
  await byToken.closed;
});

test("an allowed origin gets CORS headers, also for a preflight", async (t) => {
  const origin = "https://ops.example.com";
  const { call } = await serve(t, { allowedOrigins: [origin] });
  const asked = { origin, "access-control-request-method": "POST" };
  const preflight = await call("OPTIONS", "/v1/acquire", undefined, { headers: asked });
  assert.equal(preflight.status, 204);
  assert.equal(preflight.headers.get("access-control-allow-origin"), origin);
  assert.match(preflight.headers.get("access-control-allow-methods") ?? "", /POST/);
  assert.match(preflight.headers.get("access-control-allow-headers") ?? "", /authorization/);
  const { headers } = await call("GET", "/v1/leases", undefined, { headers: { origin } });
  assert.equal(headers.get("access-control-allow-origin"), origin);
  assert.equal((await call("GET", "/v1/leases")).headers.get("access-control-allow-origin"), null);
});

test("a credential over its rate limit gets 429 with a retry time; others, and the operator without a key, do not", async (t) => {
  const { get, post, register } = await serve(t, { rateLimit: 2, rateBurst: 5 });
  for (let time = 0; time < 20; time++) assert.equal((await get("/v1/leases")).status, 200);
  const { agent_token: alice } = await register("alice");
  const { agent_token: bob } = await register("bob");
  /** How many pass before the first that does not, and what that one gets. */
  const askUntilRefused = async (key: string) => {
    for (let passed = 0; ; passed++) {
      const { status, body, headers } = await get("/v1/leases", { key });
      if (status !== 200) return { passed, status, body, headers };
      assert.ok(passed < 50);
    }
  };
  const { passed, status, body, headers } = await askUntilRefused(alice);
  assert.ok(passed >= 5, `${passed} passed`);
  assert.deepEqual([status, body.error, headers.get("retry-after")], [429, "rate_limited", "1"]);
  const waitMs = body.retry_after_ms ?? 0;
  assert.ok(waitMs > 0 && waitMs <= 500, `${waitMs} ms`);
  assert.equal((await get("/v1/leases", { key: bob })).status, 200);
  await pause(waitMs);
  assert.equal((await get("/v1/leases", { key: alice })).status, 200);
  const made = await post<{ key: string }>("/v1/keys", { role: "operator" });
  assert.equal((await askUntilRefused(made.body.key)).status, 429);
});

test("a token bucket allows a burst, then its rate, and never accumulates more than the burst", () => {
  let now = 1_000;
  const limiter = new RateLimiter({ perSecond: 10, burst: 3 });
  const meter = new Meters().ofKey("acme");
  const passed = () => {
    let count = 0;
    while (limiter.take(meter, 1, now) === null) count++;
    return count;
  };
  assert.equal(passed(), 3);
  now += 250;
  assert.equal(passed(), 2);
  now += 3_600_000;
  assert.equal(passed(), 3);
  assert.equal(limiter.take(null, 1, now), null);
});

test("M7, S4: new tokens and new agents have no more than their tenant's bucket, and items of a batch count one by one", () => {
  const now = 1_000;
  const limiter = new RateLimiter({ perSecond: 10, burst: 5 });
  const meters = new Meters({ perSecond: 20, burst: 12 });
  const passes = (meter: ReturnType<Meters["ofKey"]>, cost = 1) => {
    let count = 0;
    while (count < 100 && limiter.take(meter, cost, now) === null) count++;
    return count;
  };
  assert.equal(passes(meters.ofAgent("acme", "alice")), 5);
  assert.equal(passes(meters.ofAgent("acme", "alice")), 0, "another token of the same agent");
  assert.equal(passes(meters.ofAgent("acme", "bob")), 5);
  assert.equal(passes(meters.ofAgent("acme", "carol")), 2, "the tenant has no more");
  assert.equal(passes(meters.ofKey("acme")), 0);
  assert.equal(passes(meters.ofAgent("other", "alice"), 4), 1, "four of five, then one is left");
  assert.equal(passes(meters.ofAgent("third", "bob"), 100), 1, "more than the burst passes once, from a full bucket");
  assert.equal(passes(meters.ofAgent("third", "bob")), 0, "and is owed");
});

test("S4: a tenant's quota of requests a second takes the place of the server's limit, and a change counts at once", () => {
  let now = 1_000;
  let quota: number | null = 5;
  const limiter = new RateLimiter(null);
  const meters = new Meters({ perSecond: 20, burst: 40 }, (tenant) => (tenant === "acme" ? quota : null));
  const passes = (tenant: string) => {
    let count = 0;
    while (limiter.take(meters.ofKey(tenant), 1, now) === null) count++;
    return count;
  };
  assert.deepEqual([passes("acme"), passes("other")], [10, 40]);
  quota = null;
  meters.noteQuotas("acme");
  now += 1_000;
  assert.deepEqual([passes("acme"), passes("other")], [20, 20]);
});

test("S4: what a body or an answer costs afterwards is owed, by the credential and by its tenant", () => {
  const limiter = new RateLimiter({ perSecond: 10, burst: 10 });
  const meters = new Meters({ perSecond: 10, burst: 10 });
  const meter = meters.ofKey("acme");
  assert.equal(limiter.take(meter, 1, 1_000), null);
  limiter.charge(meter, limits.bytesPerRequest - 1);
  assert.equal(limiter.waitMs(meter, 1, 1_000), 0, "less than one request");
  limiter.charge(meter, 20 * limits.bytesPerRequest);
  assert.equal(limiter.waitMs(meter, 1, 1_000), 1_200);
  assert.equal(limiter.take(meters.ofKey("acme"), 1, 1_000)?.code, "rate_limited", "of another key too");
  assert.equal(limiter.take(meter, 1, 2_200), null);
});

test("S4: portions of stored events count as requests of their reader's tenant, and wait for its rate", async (t) => {
  const server = await serve(t);
  const { service } = server;
  await server.register("alice");
  const meter = new Meters({ perSecond: 1_000_000, burst: 2 }).ofKey("default");
  const read = async (): Promise<number> => {
    const query = { tenant: "default", types: null, resource: null, agentId: null, seesAudit: true, since: 0, meter };
    let events = 0;
    await new Promise<void>((resolve) => {
      const count = (): void => void events++;
      const caughtUp = (isSo: boolean): void => (isSo ? resolve() : undefined);
      const stop = followEvents(service, query, count, () => resolve(), { caughtUp });
      t.after(stop);
    });
    return events;
  };
  service.limiter.take(meter, 0);
  const before = meter.shared.left;
  meter.shared.limit = { perSecond: 0.000_001, burst: 2 };
  assert.ok((await read()) > 0);
  assert.ok(meter.shared.left <= before - 1, "a portion was paid for");
  service.limiter.charge(meter, 10 * limits.bytesPerRequest);
  assert.ok((await read()) > 0, "over the rate it waits, and comes to its end");
  assert.ok(meter.shared.left < -9.5, "and it paid again");
});

test("S4: a tenant over its quota of requests a second gets 429, by number and by bytes, and another is served", async (t) => {
  const { call, post, get } = await serve(t);
  const { key: operator } = (await post<{ key: string }>("/v1/keys", { role: "operator" })).body;
  const keyOf = async (tenant_id: string) => {
    assert.equal((await post("/v1/tenants", { tenant_id }, { key: operator })).status, 201);
    return (await post<{ key: string }>("/v1/keys", { role: "supervisor", tenant_id }, { key: operator })).body.key;
  };
  const [small, other] = [await keyOf("small"), await keyOf("other")];
  const quotas = { requests_per_second_max: 1 };
  assert.equal((await call("PUT", "/v1/tenants/small/quotas", quotas, { key: operator })).status, 200);
  const task = { task_type: "a", principal_ai: "p", task_body: "x".repeat(5 * limits.bytesPerRequest) };
  assert.equal((await post("/v1/tasks", task, { key: small })).status, 201, "from a full bucket");
  const refused = await post("/v1/tasks", task, { key: small });
  assert.deepEqual([refused.status, refused.body.error], [429, "rate_limited"]);
  assert.ok((refused.body.retry_after_ms ?? 0) > 2_000, "the first one's bytes are owed");
  assert.equal((await get("/v1/leases", { key: small })).status, 429);
  for (let count = 0; count < 5; count++) assert.equal((await post("/v1/tasks", task, { key: other })).status, 201);
});

test("S4: a connection with too many pipelined requests is refused and closed, and few are answered in order", async (t) => {
  const server = await serve(t);
  const ask = (count: number) =>
    new Promise<string[]>((resolve) => {
      const socket = connect(server.address.port, "127.0.0.1");
      let text = "";
      socket.on("data", (part: Buffer) => {
        text += part.toString();
        if (text.match(/HTTP\/1\.1 /g)?.length === count) socket.end();
      });
      socket.on("close", () => resolve(text.match(/(?<=HTTP\/1\.1 )\d+/g) ?? []));
      socket.write("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(count));
    });
  assert.deepEqual(new Set(await ask(20)), new Set(["200"]));
  const many = await ask(200);
  assert.equal(many.at(-1), "429");
  assert.ok(many.length < 200, `${many.length} answers`);
});

test("M7, S4: failed logins are counted by address, of IPv6 by network, and others are not touched", () => {
  const logins = new FailedLogins({ perSecond: 1, burst: 2 });
  const passes = (address: string) => [0, 0, 0].filter(() => logins.note(address, 1, 1_000) === null).length;
  assert.equal(passes("10.0.0.1"), 2);
  assert.equal(passes("10.0.0.2"), 2);
  assert.equal(passes("2001:db8:1:2::1"), 2);
  assert.equal(passes("2001:db8:1:2::2"), 0);
  assert.equal(logins.note("10.0.0.1", 0, 1_000)?.code, "rate_limited");
});

test("S4: a connection over the limit is refused, and accepted again when others end", async (t) => {
  const { address, service: _service } = await serve(t, { connectionsMax: 3 });
  const open: Socket[] = [];
  for (let count = 0; count < 3; count++) {
    const socket = connect(address.port, "127.0.0.1");
    socket.write("GET /v1/leases HTTP/1.1\r\nHost: localhost\r\n\r\n");
    await once(socket, "data");
    open.push(socket);
  }
  const request = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
  const turnedAway = await sendRaw(address.port, request);
  assert.deepEqual([turnedAway.status, JSON.parse(turnedAway.body).error], [503, "too_many_connections"]);
  assert.match(turnedAway.head, /Retry-After: 1/);
  for (const socket of open) socket.destroy();
  await until(async () => ((await sendRaw(address.port, request)).status === 200 ? true : null), "there is room again");
});

test("S4: a request that does not arrive in time is 408, head or body", async (t) => {
  const { address } = await serve(t, { requestTimeoutMs: 500 });
  const head =
    "POST /v1/agents HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 50\r\n";
  for (const part of [head, `${head}\r\n{"agent_id":`]) {
    const { status, body } = await sendRaw(address.port, part, 20_000);
    assert.deepEqual([status, JSON.parse(body).error], [408, "request_timeout"]);
  }
});
