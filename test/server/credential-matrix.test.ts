/** Every operation, over HTTP, the stream and MCP, with every kind of credential that is not good: the same refusal. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { WebSocket } from "ws";
import { legivellumTools } from "../../src/mcp/legivellum/tools.ts";
import type { Tool } from "../../src/mcp/tool.ts";
import { tools } from "../../src/mcp/tools.ts";
import type { Operation } from "../../src/protocol/operation.ts";
import { operations } from "../../src/protocol/operations.ts";
import { exampleRequest } from "./example-request.ts";
import { type CallOptions, serve, until } from "./harness.ts";
import { openStream } from "./stream-client.ts";
import type { WireKey, WireRegisteredAgent } from "./wire-types.ts";

type MadeKey = WireKey & { readonly key: string };

/** Credentials that were good, or are good elsewhere. */
async function badCredentials(t: TestContext) {
  // This many refusals from one address would be answered with 429.
  const server = await serve(t, { authFailureLimit: 0 });
  const elsewhere = await serve(t);
  const { post, call, register } = server;
  const operator = { key: (await post<MadeKey>("/v1/keys", { role: "operator" })).body.key };
  const make = async (role: string, more: object = {}, options: CallOptions = operator): Promise<MadeKey> =>
    (await post<MadeKey>("/v1/keys", { role, ...more }, options)).body;
  const soon = { expires_at: new Date(Date.now() + 1_500).toISOString() };
  const expiring = await make("operator", soon);
  const expiringAgents = await make("agent", soon);
  const drawn = (await register("expired", { key: expiringAgents.key })).agent_token;
  const deleted = await make("operator");
  const deletedAgents = await make("agent");
  const orphan = (await register("orphan", { key: deletedAgents.key })).agent_token;
  const replaced = await make("operator");
  for (const { key_id } of [deleted, deletedAgents]) await call("DELETE", `/v1/keys/${key_id}`, undefined, operator);
  await post(`/v1/keys/${replaced.key_id}/rotate`, { overlap_ms: 0 }, operator);
  const keyless = (await elsewhere.register("stranger")).agent_token;
  const foreign = (await elsewhere.post<MadeKey>("/v1/keys", { role: "operator" })).body.key;
  const there = { key: foreign };
  const foreignAgent = (await elsewhere.register("stranger", there)).agent_token;
  await until(
    async () => ((await server.get("/v1/keys", { key: expiring.key })).status === 401 ? true : null),
    "expiry",
  );
  const bad: Readonly<Record<string, string>> = {
    wrong: "lhk_wrong",
    malformed: "lha2.default.1.YQ.-.0.9.AAAA",
    expired: expiring.key,
    "drawn from an expired key": drawn,
    deleted: deleted.key,
    "drawn from a deleted key": orphan,
    replaced: replaced.key,
    "of another server": foreign,
    "an agent's of another server": foreignAgent,
    "an agent's without a key, elsewhere": keyless,
  };
  return { server, operator, make, bad };
}

const guarded = operations.filter(({ roles }) => roles !== "anyone");

test("S5: over HTTP every operation refuses every bad credential alike, by each of its routes", async (t) => {
  const { server, bad } = await badCredentials(t);
  let first: string | null = null;
  for (const [kind, key] of Object.entries(bad)) {
    for (const operation of guarded) {
      for (const route of [operation, ...operation.also]) {
        const { path, body } = exampleRequest(operation, route);
        const { status, text } = await server.call(route.method, path, body, { key });
        first ??= text;
        assert.deepEqual([status, text], [401, first], `${kind}: ${route.method} ${path}`);
      }
    }
  }
  assert.match(first ?? "", /"error":"unauthorized"/);
});

test("S5: no bad credential opens a stream or a cell's link, and one that ends takes its stream with it", async (t) => {
  const { server, operator, make, bad } = await badCredentials(t);
  const url = server.address.url.replace("http", "ws");
  for (const path of ["/v1/stream", "/v1/cells/connect"]) {
    for (const [kind, key] of Object.entries(bad)) {
      const socket = new WebSocket(`${url}${path}`, { headers: { authorization: `Bearer ${key}` } });
      const refused = await new Promise<string>((resolve) => {
        socket.on("error", ({ message }) => resolve(message));
        socket.on("open", () => resolve("open"));
      });
      assert.match(refused, /401/, `${kind} at ${path}`);
    }
  }
  // Each command that was sent after the end is not answered at all.
  const key = await make("operator");
  const stream = await openStream(t, server.address.url, key.key);
  const closed = new Promise((resolve) => stream.socket.once("close", resolve));
  await server.call("DELETE", `/v1/keys/${key.key_id}`, undefined, operator);
  for (const { name, example } of guarded) stream.send({ id: name, op: name, input: example });
  await closed;
  assert.deepEqual(stream.frames, []);
});

test("A3: on an open stream every command of an agent refuses an older instance's token with stale_epoch", async (t) => {
  // The socket itself ends soon after; until then each command is judged.
  const server = await serve(t, { signOfLifeMs: 600_000 });
  await server.post("/v1/agents", { agent_id: "a" });
  const { agent_token: token } = (await server.post<WireRegisteredAgent>("/v1/agents", { agent_id: "a" })).body;
  const stream = await openStream(t, server.address.url, token);
  await server.post("/v1/agents", { agent_id: "a" });
  const asked = guarded.filter(({ kind, roles }) => kind !== "edge" && roles.includes("agent"));
  for (const operation of asked) {
    const { name, example } = operation;
    stream.send({ id: name, op: name, input: "agent_id" in example ? { ...example, agent_id: "a" } : example });
    const { body } = await stream.answer(name);
    // Of several at once each has its own answer.
    const { results = [{ body }] } = (body ?? {}) as { readonly results?: readonly { readonly body?: Refusal }[] };
    for (const { body: answered } of results)
      assert.ok(answered?.error === "stale_epoch" || isUnknown(answered?.error), `${name}: ${JSON.stringify(body)}`);
  }
  assert.ok(asked.length > 20);
});

interface Refusal {
  readonly error?: string;
}

/** What it is about does not exist, which is found before the caller's instance is compared; nothing was done. */
function isUnknown(code: string | undefined): boolean {
  return code !== undefined && (code.endsWith("_unknown") || code === "token_invalid");
}

test("S5: over HTTP a credential of another tenant is forbidden to name this one, for every operation", async (t) => {
  const { server, operator, make } = await badCredentials(t);
  await server.post("/v1/tenants", { tenant_id: "acme" }, operator);
  const acme = await make("supervisor", { tenant_id: "acme" });
  for (const operation of guarded) {
    const { path, body } = exampleRequest(operation, operation);
    const answered = await server.call(operation.method, path, body, { key: acme.key, tenant: "default" });
    assert.deepEqual([answered.status, answered.body.error], [403, "forbidden"], operation.name);
  }
});

test("S5: over MCP every tool refuses every bad credential, in the header and as an argument", async (t) => {
  const { server, operator, make, bad } = await badCredentials(t);
  const rpc = (tool: Tool, args: object, path: string, key: string) => {
    const body = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: tool.name, arguments: args } };
    const headers = { "mcp-protocol-version": "2025-11-25", accept: "application/json" };
    return server.call<RpcAnswer>("POST", path, body, { key, headers });
  };
  for (const [all, path] of [
    [tools, "/mcp?toolsets=all"],
    [legivellumTools, "/mcp/legivellum"],
  ] as const) {
    for (const [kind, key] of Object.entries(bad)) {
      for (const tool of all) {
        const { status, text } = await rpc(tool, {}, path, key);
        assert.equal(status, 401, `${kind}: ${tool.name} ${text}`);
        assert.match(text, /"error":"unauthorized"/);
      }
    }
  }
  const agents = await make("agent");
  const taking = tools.filter(({ inputSchema }) => "agent_token" in propertiesOf(inputSchema));
  assert.ok(taking.length > 20);
  for (const shown of [operator.key, agents.key]) {
    for (const [kind, token] of Object.entries(bad)) {
      for (const tool of taking) {
        const args = { ...argumentsFor(tool), agent_token: token };
        const { body, text } = await rpc(tool, args, "/mcp?toolsets=all", shown);
        // A tool that this key's role may not use at all is not there for it.
        if (body.error?.message?.includes("Unknown tool") === true) continue;
        assert.equal(body.result?.structuredContent?.error, "unauthorized", `${kind}: ${tool.name} ${text}`);
      }
    }
  }
});

interface RpcAnswer {
  readonly result?: { readonly structuredContent?: { readonly error?: string } };
  readonly error?: { readonly message?: string };
}

function propertiesOf(schema: object): object {
  return (schema as { readonly properties?: object }).properties ?? {};
}

/** The examples of its operation, as far as the tool has these arguments. */
function argumentsFor({ operations: asked, inputSchema }: Tool): object {
  const properties = propertiesOf(inputSchema);
  const examples = Object.assign({}, ...asked.map(({ example }: Operation) => example)) as object;
  const known = Object.entries(examples).filter(([name]) => name in properties);
  const agent = "agent_id" in properties ? { agent_id: "somebody" } : {};
  const resource = "resource" in properties ? { resource: "FILE:/a" } : {};
  return { ...resource, ...Object.fromEntries(known), ...agent };
}

test("S5: without keys no tool over MCP makes, deletes, rotates or assigns keys; with a key an operator's tools do", async (t) => {
  const server = await serve(t);
  const list = async (key?: string): Promise<readonly string[]> => {
    const body = { jsonrpc: "2.0", id: 1, method: "tools/list" };
    const headers = { "mcp-protocol-version": "2025-11-25", accept: "application/json" };
    const answered = await server.call<ToolList>("POST", "/mcp?toolsets=all", body, { key, headers });
    return answered.body.result.tools.map(({ name }) => name);
  };
  const deciding = operations.filter(({ locksOut }) => locksOut).map(({ name }) => name);
  const ofKeys = ["create_key", "delete_key", "rotate_key", "assign_name", "rotate_token_keys"];
  assert.deepEqual(
    ofKeys.filter((name) => !deciding.includes(name)),
    [],
  );
  const open = await list();
  assert.ok(open.includes("list_tasks") && !open.includes("revoke_leases"));
  assert.deepEqual(
    deciding.filter((name) => open.includes(name)),
    [],
  );
  const { key } = (await server.post<MadeKey>("/v1/keys", { role: "operator" })).body;
  const withKey = await list(key);
  assert.ok(deciding.every((name) => withKey.includes(name)));
});

interface ToolList {
  readonly result: { readonly tools: readonly { readonly name: string }[] };
}
