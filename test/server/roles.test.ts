import assert from "node:assert/strict";
import { type IncomingMessage, request } from "node:http";
import { test } from "node:test";
import { operations } from "../../src/protocol/operations.ts";
import { roles } from "../../src/protocol/schema/vocabulary.ts";
import { exampleRequest } from "./example-request.ts";
import { type CallOptions, type Client, mutates, serve } from "./harness.ts";
import type { WireKey, WireLease, WireRegisteredAgent, WireWaiting } from "./wire-types.ts";

async function makeKey({ post }: Client, role: string, tenantId?: string, options?: CallOptions): Promise<string> {
  const asked = { role, ...(tenantId !== undefined && { tenant_id: tenantId }) };
  const { status, body, text } = await post<WireKey & { key: string }>("/v1/keys", asked, options);
  assert.equal(status, 201, text);
  return body.key;
}

test("every operation is open to the roles that it names and to no other, by each of its routes", async (t) => {
  const server = await serve(t);
  const operator = await makeKey(server, "operator");
  for (const role of roles) {
    const key = role === "operator" ? operator : await makeKey(server, role, undefined, { key: operator });
    for (const operation of operations) {
      if (operation.name === "events" || operation.name === "stream" || operation.roles === "anyone") continue;
      for (const route of [operation, ...operation.also]) {
        const { path, body } = exampleRequest(operation, route);
        const { status, text } = await server.call(route.method, path, body, { key });
        // The credential was accepted; the example token in the body was not.
        if (operation.name === "verify_token" && text.includes(`"token_invalid"`)) continue;
        assert.notEqual(status, 401, `${role} ${route.method} ${path}`);
        if (!operation.roles.includes(role)) assert.equal(status, 403, `${role} ${route.method} ${path} ${text}`);
        else if (role === "operator" || role === "supervisor" || role === "reader")
          assert.notEqual(status, 403, `${role} ${path} ${text}`);
      }
    }
  }
});

test("once there is a key, only health and documents are open without a credential", async (t) => {
  const server = await serve(t);
  await makeKey(server, "operator");
  for (const operation of operations) {
    // A sign-in is open, and refuses the key of its example.
    if (operation.name === "stream" || operation.name === "create_session") continue;
    const { path, body } = exampleRequest(operation, operation);
    const { status } = await server.call(operation.method, path, body);
    assert.equal(status, operation.roles === "anyone" ? 200 : 401, `${operation.method} ${path}`);
  }
});

test("S5: a credential that is sent is checked, even if no key exists and none is needed", async (t) => {
  const { get, call, register } = await serve(t);
  assert.equal((await get("/v1/leases")).status, 200);
  for (const authorization of ["Bearer lhk_wrong", "Bearer ", "Basic dTpw", "Bearer lha1.default.1.eA.AAAA", "lhk_x"]) {
    const { status, body } = await call("GET", "/v1/leases", undefined, { headers: { authorization } });
    assert.deepEqual([status, body.error], [401, "unauthorized"], authorization);
  }
  const { agent_token: token } = await register("alice");
  assert.equal((await get("/v1/leases", { key: token })).status, 200);
  const forged = `${token.slice(0, -1)}${token.endsWith("A") ? "B" : "A"}`;
  assert.equal((await get("/v1/leases", { key: forged })).status, 401);
  // Another agent, tenant or epoch under the same sum is not a token either.
  const [prefix, , epoch, id, sum] = token.split(".");
  for (const other of [
    `${prefix}.acme.${epoch}.${id}.${sum}`,
    `${prefix}.default.2.${id}.${sum}`,
    `${prefix}.default.${epoch}.Ym9i.${sum}`,
  ]) {
    assert.equal((await get("/v1/leases", { key: other })).status, 401);
  }
});

test("L13: an agent acts only for itself; supervisors and operators act for all, a reader for none", async (t) => {
  const server = await serve(t);
  const { register, grant, post, get } = server;
  const operator = await makeKey(server, "operator");
  const key = (role: string) => makeKey(server, role, undefined, { key: operator });
  const [registrar, supervisor, reader] = [await key("agent"), await key("supervisor"), await key("reader")];
  const alice = (await register("alice", { key: registrar })).agent_token;
  const bob = (await register("bob", { key: registrar })).agent_token;
  const lease = await grant("alice", "FILE:/a", {}, { key: alice });

  const beat = (shown: string) => post(`/v1/leases/${lease.id}/heartbeat`, {}, { key: shown });
  assert.equal((await beat(alice)).status, 200);
  assert.equal((await beat(supervisor)).status, 200);
  assert.equal((await beat(operator)).status, 200);
  assert.equal((await beat(bob)).body.error, "not_lease_holder");
  assert.equal((await beat(registrar)).status, 403);
  assert.equal((await beat(reader)).body.error, "forbidden");
  const asBob = { agent_id: "bob", intents: mutates("FILE:/b") };
  assert.equal((await post("/v1/acquire", asBob, { key: alice })).body.error, "forbidden");
  assert.equal((await post("/v1/release", { agent_id: "bob" }, { key: alice })).body.error, "forbidden");
  assert.equal((await get("/v1/agents/alice/digest", { key: bob })).body.error, "forbidden");
  assert.equal((await post("/v1/agents/alice/pause", {}, { key: alice })).body.error, "forbidden");
  // Reading is open to every agent of the tenant, but not to a key that may only register.
  assert.equal((await get(`/v1/leases/${lease.id}`, { key: bob })).status, 200);
  assert.equal((await get("/v1/leases", { key: registrar })).body.error, "forbidden");
  // Registering an existing agent takes it up: a token may do that for its own agent only, a key for any.
  assert.equal((await post("/v1/agents", { agent_id: "bob" }, { key: alice })).body.error, "forbidden");
  assert.equal((await post("/v1/agents", { agent_id: "bob" }, { key: registrar })).status, 200);
  assert.equal((await beat(bob)).body.error, "not_lease_holder");
});

test("another tenant's records are answered exactly like unknown ones", async (t) => {
  const server = await serve(t);
  const { post, call, register, grant } = server;
  const operator = await makeKey(server, "operator");
  const own = { key: operator };
  for (const tenant of ["acme", "globex"]) await post("/v1/tenants", { tenant_id: tenant }, own);
  const acme = { key: await makeKey(server, "supervisor", "acme", own) };
  const globex = { key: await makeKey(server, "supervisor", "globex", own) };
  await register("alice", acme);
  await register("bob", acme);
  await register("carol", globex);
  const young = await grant("bob", "FILE:/a", {}, acme);
  const waits = await post<WireWaiting>("/v1/acquire", { agent_id: "alice", intents: mutates("FILE:/a") }, acme);
  assert.equal(waits.status, 202);
  const ended = await grant("bob", "FILE:/b", {}, acme);
  await post(`/v1/leases/${ended.id}/release`, {}, acme);
  await call("PUT", "/v1/resources", { resource: "GPU:/a", capacity: 2 }, acme);
  await call("PUT", "/v1/agents/bob/digest", { checkpoint_id: "c", resume_point: "p" }, acme);

  const token = {
    key: (await post<WireRegisteredAgent>("/v1/agents", { agent_id: "carol" }, globex)).body.agent_token,
  };
  const probes: readonly (readonly [
    method: string,
    path: (id: string) => string,
    there: string,
    never: string,
    body?: object,
  ])[] = [
    ...[young.id, ended.id].flatMap((id) => [
      ["GET", (one: string) => `/v1/leases/${one}`, id, "lse_never"] as const,
      ["POST", (one: string) => `/v1/leases/${one}/heartbeat`, id, "lse_never", {}] as const,
      ["POST", (one: string) => `/v1/leases/${one}/renew`, id, "lse_never", {}] as const,
      ["POST", (one: string) => `/v1/leases/${one}/release`, id, "lse_never", {}] as const,
      ["DELETE", (one: string) => `/v1/leases/${one}`, id, "lse_never"] as const,
    ]),
    ["GET", (id) => `/v1/requests/${id}`, waits.body.request_id ?? "", "req_never"],
    ["DELETE", (id) => `/v1/requests/${id}`, waits.body.request_id ?? "", "req_never"],
    ["GET", (id) => `/v1/agents/${id}`, "bob", "nobody"],
    ["GET", (id) => `/v1/agents/${id}/digest`, "bob", "nobody"],
    ["POST", (id) => `/v1/agents/${id}/verify-all`, "bob", "nobody", {}],
    ["POST", (id) => `/v1/agents/${id}/resume`, "bob", "nobody", {}],
  ];
  for (const credential of [globex, token]) {
    for (const [method, path, there, never, body] of probes) {
      const seen = await call(method, path(there), body, credential);
      const unseen = await call(method, path(never), body, credential);
      assert.equal(seen.status, unseen.status, path(there));
      assert.equal(seen.text.replaceAll(there, "X"), unseen.text.replaceAll(never, "X"), path(there));
    }
    const leases = await call<{ leases: readonly WireLease[] }>(
      "GET",
      "/v1/leases?resource=FILE:/**",
      undefined,
      credential,
    );
    assert.deepEqual(leases.body.leases, []);
  }
  const other = await call("GET", "/v1/leases", undefined, { ...globex, tenant: "acme" });
  const nowhere = await call("GET", "/v1/leases", undefined, { ...globex, tenant: "nowhere" });
  assert.deepEqual([other.status, other.text], [403, nowhere.text]);
  assert.equal((await call("GET", "/v1/leases", undefined, { ...globex, tenant: "globex" })).status, 200);
  // None of this changed anything of acme's.
  assert.equal((await call("GET", `/v1/leases/${young.id}`, undefined, acme)).body.state, "ACTIVE");
  assert.equal((await call("GET", `/v1/requests/${waits.body.request_id}`, undefined, acme)).status, 202);
});

test("two tenants lease the same name at once without a conflict", async (t) => {
  const { post, register, grant } = await serve(t);
  await post("/v1/tenants", { tenant_id: "acme" });
  await register("alice");
  await register("alice", { tenant: "acme" });
  const here = await grant("alice", "FILE:/same");
  const there = await grant("alice", "FILE:/same", {}, { tenant: "acme" });
  assert.notEqual(here.id, there.id);
  assert.equal((await post("/v1/revoke", { resource_prefix: "FILE:/same", reason: "r" })).status, 200);
  assert.equal((await post(`/v1/leases/${there.id}/heartbeat`, {}, { tenant: "acme" })).status, 200);
});

test("every 401 says how to authenticate, over HTTP and for a WebSocket", async (t) => {
  const { get, post, address } = await serve(t);
  await post("/v1/keys", { role: "operator" });
  const challenge = 'Bearer realm="leasehold"';
  assert.equal((await get("/v1/leases")).headers.get("www-authenticate"), challenge);
  assert.equal((await get("/v1/leases", { key: "lhk_no" })).headers.get("www-authenticate"), challenge);
  assert.equal((await get("/healthz")).headers.get("www-authenticate"), null);
  const upgrade = await new Promise<IncomingMessage>((resolve, reject) => {
    const headers = { connection: "Upgrade", upgrade: "websocket" };
    request(`${address.url}/v1/stream`, { headers }, resolve).on("error", reject).end();
  });
  assert.deepEqual([upgrade.statusCode, upgrade.headers["www-authenticate"]], [401, challenge]);
});
