import assert from "node:assert/strict";
import { request } from "node:http";
import { test } from "node:test";
import { held, serve, until } from "../server/harness.ts";
import { firstLease, mutates, overHttp, overStdio, revisions } from "./harness.ts";

const json = { "content-type": "application/json", accept: "application/json, text/event-stream" };

/** A call as a sessionless 2025 client makes it, without an SDK. */
function bodyOf(name: string, args: object): string {
  return JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args } });
}

interface Raw {
  readonly status: number;
  readonly text: string;
  /** Names and values as they came, in turn. */
  readonly headers: readonly string[];
}

/** Unlike fetch, it can send any Host and Origin. */
function send(url: string, headers: Readonly<Record<string, string>>, body: string, method = "POST"): Promise<Raw> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers: { ...json, ...headers } }, (response) => {
      let text = "";
      response.on("data", (chunk: Buffer) => (text += chunk.toString()));
      response.on("end", () => resolve({ status: response.statusCode ?? 0, text, headers: response.rawHeaders }));
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

for (const revision of revisions) {
  test(`bad input is answered with a code, the field and what to do, in revision ${revision}`, async (t) => {
    const { address } = await serve(t);
    const caller = await overHttp(t, address.url, { revision });
    await caller.do("register_agent", { agent_id: "a" });
    const cases: readonly (readonly [tool: string, args: object, error: string, field: string | undefined])[] = [
      ["acquire_leases", { agent_id: "a", intents: [] }, "empty_manifest", "intents"],
      ["acquire_leases", { agent_id: "a", intents: mutates("no-type") }, "invalid_resource", "intents.0.resource"],
      [
        "acquire_leases",
        { agent_id: "a", intents: [{ predicate: "EATS", resource: "FILE:/a" }] },
        "invalid_predicate",
        "intents.0.predicate",
      ],
      ["release_leases", {}, "invalid_request", "agent_id"],
      ["acquire_leases", { agent_id: "a", intents: mutates("FILE:/a"), hold_ms: 60_000 }, "invalid_request", "hold_ms"],
      ["acquire_leases", { agent_id: "a", intents: mutates("FILE:/a"), extra: 1 }, "invalid_request", "extra"],
      ["acquire_leases", { agent_id: "nobody", intents: mutates("FILE:/a") }, "agent_unknown", "agent_id"],
      ["await_request", { request_id: "req_no" }, "request_unknown", undefined],
      ["lease_next", { worker_id: "noDot" }, "invalid_worker_id", undefined],
      ["lease_next", {}, "invalid_request", "worker_id"],
      ["submit_receipt", { phase: "complete", created_at: "yesterday" }, "invalid_receipt", "created_at"],
      ["complete_task", { lease_id: "lse_no" }, "lease_unknown", undefined],
      ["checkpoint", { agent_id: "a", checkpoint_id: "c", resume_point: "" }, "invalid_digest", "resume_point"],
    ];
    for (const [tool, args, error, field] of cases) {
      const told = await caller.call(tool, args);
      const label = `${tool} ${JSON.stringify(args)}: ${told.text}`;
      assert.equal(told.isError, true, label);
      assert.equal(told.body.error, error, label);
      if (field !== undefined) assert.equal(told.body.field, field, label);
      assert.ok(told.text.startsWith(`${error}: `), label);
    }
    await assert.rejects(caller.call("no_such_tool"), /Unknown tool no_such_tool/);
    await assert.rejects(
      caller.client.callTool({ name: "who_holds", arguments: "text" as unknown as Record<string, unknown> }),
    );
  });
}

test("a request that is not MCP gets an MCP error, and never a 5xx", async (t) => {
  const { address } = await serve(t);
  const url = `${address.url}/mcp`;
  const cases: readonly (readonly [name: string, sent: Promise<Raw>, status: number])[] = [
    ["no JSON", send(url, {}, "{"), 400],
    ["nothing", send(url, {}, ""), 400],
    ["not a message", send(url, {}, `{"a":1}`), 400],
    ["another type", send(url, { "content-type": "text/plain" }, "{}"), 415],
    ["too large", send(url, {}, `"${"x".repeat(2_000_000)}"`), 413],
    ["a revision to come", send(url, { "mcp-protocol-version": "2099-01-01" }, bodyOf("verify_all", {})), 400],
    ["an unknown toolset", send(`${url}?toolsets=magic`, {}, bodyOf("verify_all", {})), 400],
    ["a session's stream", send(url, {}, "", "GET"), 405],
    ["a session's end", send(url, {}, "", "DELETE"), 405],
    ["another method", send(url, {}, "{}", "PUT"), 405],
    ["what is below", send(`${url}/elsewhere`, {}, "{}"), 404],
  ];
  for (const [name, sent, status] of cases) assert.equal((await sent).status, status, name);
});

test("a reply has one Cache-Control, and Allow lists what is served: POST alone", async (t) => {
  const { address } = await serve(t);
  for (const path of ["/mcp", "/mcp/legivellum"]) {
    const reply = await send(`${address.url}${path}`, {}, bodyOf("list_agents", {}));
    const policies = reply.headers.filter((_, index, all) => all[index - 1]?.toLowerCase() === "cache-control");
    assert.deepEqual(policies, ["no-store, no-transform"], path);
    for (const method of ["GET", "DELETE", "OPTIONS"]) {
      const { headers } = await fetch(`${address.url}${path}`, { method });
      assert.equal(headers.get("allow"), "POST, OPTIONS", `${method} ${path}`);
    }
  }
});

test("a list of one is said in the singular", async (t) => {
  const { address, register } = await serve(t);
  const { call } = await overHttp(t, address.url);
  assert.equal((await call("list_agents")).text, "No agents.");
  await register("a");
  assert.equal((await call("list_agents")).text, "1 agent.");
  await register("b");
  assert.equal((await call("list_agents")).text, "2 agents.");
});

test("a foreign page cannot reach it, by DNS rebinding or by a cross-origin request", async (t) => {
  const { address } = await serve(t);
  for (const path of ["/mcp", "/mcp/legivellum"]) {
    const body = bodyOf("create_tenant", { tenant_id: "evil" });
    const rebound = await send(`${address.url}${path}`, { host: "evil.example" }, body);
    assert.deepEqual([rebound.status, JSON.parse(rebound.text).error], [403, "host_not_allowed"]);
    const foreign = await send(`${address.url}${path}`, { origin: "http://evil.example" }, body);
    assert.deepEqual([foreign.status, JSON.parse(foreign.text).error], [403, "origin_not_allowed"]);
  }
});

test("keys and roles apply: nothing without a key, and each role is offered its own tools", async (t) => {
  const { address, post } = await serve(t);
  const { body: operator } = await post<{ readonly key: string }>("/v1/keys", { role: "operator" });
  const keyFor = async (role: string): Promise<string> =>
    (await post<{ readonly key: string }>("/v1/keys", { role }, { key: operator.key })).body.key;
  assert.equal((await send(`${address.url}/mcp`, {}, bodyOf("verify_all", {}))).status, 401);
  assert.equal(
    (await send(`${address.url}/mcp`, { authorization: "Bearer no" }, bodyOf("verify_all", {}))).status,
    401,
  );

  const worker = await overHttp(t, address.url, { key: await keyFor("worker") });
  const names = (await worker.tools()).map(({ name }) => name);
  assert.ok(names.includes("lease_next") && !names.includes("acquire_leases") && !names.includes("create_key"));
  await assert.rejects(worker.call("create_key", { role: "operator" }), /Unknown tool create_key/);
  const reader = await overHttp(t, address.url, { key: await keyFor("reader") });
  assert.ok((await reader.tools()).every(({ annotations }) => annotations?.readOnlyHint === true));

  const agent = await overHttp(t, address.url, { key: await keyFor("agent") });
  const { agent_id, agent_token } = await agent.do("register_agent", { agent_id: "a" });
  const forbidden = await agent.call("acquire_leases", { agent_id, intents: mutates("FILE:/a") });
  assert.equal(forbidden.body.error, "forbidden");
  const granted = await agent.do("acquire_leases", { agent_token, intents: mutates("FILE:/a") });
  assert.equal(granted.verdict, "GRANTED", "the token says who it is for");
  await agent.do("register_agent", { agent_id });
  const stale = await agent.call("release_leases", { agent_id, agent_token });
  assert.equal(stale.body.error, "stale_epoch", "an older instance is shut out");
  const wrong = await agent.call("release_leases", { agent_id, agent_token: "lha1.default.9.YQ.x" });
  assert.equal(wrong.body.error, "unauthorized", "a credential that is shown is checked");
});

test("a token of another tenant is refused", async (t) => {
  const { address, post } = await serve(t);
  await post("/v1/tenants", { tenant_id: "acme" });
  const { body } = await post<{ readonly agent_token: string }>("/v1/agents", { agent_id: "a" }, { tenant: "acme" });
  const caller = await overHttp(t, address.url);
  const told = await caller.call("verify_all", { agent_token: body.agent_token });
  assert.equal(told.isError, true);
  const named = await caller.call("verify_all", { agent_id: "a", agent_token: body.agent_token });
  assert.equal(named.body.error, "forbidden");
});

test("?toolsets chooses the tools", async (t) => {
  const { address } = await serve(t);
  const caller = await overHttp(t, address.url, { path: "/mcp?toolsets=tasks" });
  const names = (await caller.tools()).map(({ name }) => name);
  assert.ok(names.includes("create_task") && !names.includes("acquire_leases"));
});

test("a call whose reply was lost is decided once when it is sent again", async (t) => {
  const server = await serve(t);
  const { address, grant, register, get, post } = server;
  await register("older");
  await register("younger");
  const lease = await grant("younger", "FILE:/a");
  const body = bodyOf("acquire_leases", { agent_id: "older", intents: mutates("FILE:/a"), hold_ms: 30_000 });
  for (const _ of [1, 2]) {
    const given = request(`${address.url}/mcp`, { method: "POST", headers: json });
    given.on("error", () => undefined);
    given.end(body);
    await held(server, 1);
    given.destroy();
    // The server has noticed; the wait is kept until the model calls again.
    await until(
      async () =>
        (await get<{ requests: readonly unknown[] }>("/v1/requests")).body.requests.length === 1 ? true : null,
      "one waits",
    );
    await until(() => (server.service.requests.size === 0 ? true : null), "nobody is held");
  }
  const third = send(`${address.url}/mcp`, {}, body);
  await held(server, 1);
  assert.equal((await get<{ requests: readonly unknown[] }>("/v1/requests")).body.requests.length, 1, "it waits once");
  await post(`/v1/leases/${lease.id}/release`);
  assert.match((await third).text, /"verdict\\?":\\?"GRANTED/);
});

test("two equal calls that are both answered are done twice", async (t) => {
  const { address } = await serve(t);
  const caller = await overHttp(t, address.url);
  const task = { task_type: "code.generate", principal_ai: "boss" };
  const one = await caller.do("create_task", task);
  const two = await caller.do("create_task", task);
  assert.notEqual(one.task_id, two.task_id);
});

test("the trace of a call is that of the task which it creates; an invalid one is ignored", async (t) => {
  const { address, get } = await serve(t);
  const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  const task = { task_type: "code.generate", principal_ai: "boss" };
  const callers = [
    ...(await Promise.all(revisions.map((revision) => overHttp(t, address.url, { revision })))),
    await overStdio(t, { url: address.url }),
  ];
  for (const { client } of callers) {
    for (const [traceparent, kept] of [
      [trace, trace],
      ["nonsense", undefined],
    ]) {
      const { structuredContent } = await client.callTool({
        name: "create_task",
        arguments: task,
        _meta: { traceparent },
      });
      const { task_id } = structuredContent as { readonly task_id: string };
      const { body } = await get<{ readonly traceparent?: string }>(`/v1/tasks/${task_id}`);
      assert.equal(body.traceparent, kept);
    }
  }
});

test("over HTTP leases get the longest TTL, unless the call asks for another", async (t) => {
  const { address } = await serve(t);
  const caller = await overHttp(t, address.url);
  await caller.do("register_agent", { agent_id: "a" });
  const long = await caller.do("acquire_leases", { agent_id: "a", intents: mutates("FILE:/a") });
  assert.equal(firstLease(long).ttl, 300_000);
  assert.deepEqual(long.warnings, []);
  const short = await caller.do("acquire_leases", { agent_id: "a", intents: mutates("FILE:/b"), ttl_ms: 5_000 });
  assert.equal(firstLease(short).ttl, 5_000);
});

test("a server that stops answers held calls, which do not keep it from ending", async (t) => {
  const server = await serve(t);
  await server.register("older");
  await server.register("younger");
  await server.grant("younger", "FILE:/a");
  const caller = await overHttp(t, server.address.url);
  const waiting = caller.call("acquire_leases", { agent_id: "older", intents: mutates("FILE:/a"), hold_ms: 45_000 });
  await held(server, 1);
  const closed = server.close();
  assert.equal((await waiting).body.verdict, "WAIT");
  await closed;
});

test("a notification stream ends with the server, and does not keep it from ending", async (t) => {
  const server = await serve(t, { shutdownTimeoutMs: 60_000 });
  const caller = await overHttp(t, server.address.url);
  const subscription = await caller.client.listen({ toolsListChanged: true });
  await server.close();
  await subscription.close().catch(() => undefined);
});

test("M6: without keys what would lock others out is not offered to a model, and with a key it is", async (t) => {
  const { address, post } = await serve(t);
  const locking = ["create_key", "delete_key", "set_policy", "suspend_tenant", "rotate_token_keys"];
  const offered = async (key?: string): Promise<readonly string[]> => {
    const caller = await overHttp(t, address.url, key === undefined ? {} : { key });
    return (await caller.tools()).map(({ name }) => name).filter((name) => locking.includes(name));
  };
  assert.deepEqual(await offered(), []);
  const hidden = await send(`${address.url}/mcp`, {}, bodyOf("create_key", { role: "operator" }));
  assert.match(hidden.text, /Unknown tool create_key/);
  const { body } = await post<{ key: string }>("/v1/keys", { role: "operator" });
  assert.deepEqual((await offered(body.key)).toSorted(), locking.toSorted());
});
