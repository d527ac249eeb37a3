import assert from "node:assert/strict";
import { test } from "node:test";
import { tools } from "../../src/mcp/tools.ts";
import { tasksExtension } from "../../src/mcp/waits.ts";
import { serve } from "../server/harness.ts";
import { type Body, type Caller, firstLease, mutates, overHttp, overStdio } from "./harness.ts";

/** What a model reads of a list: about four bytes a token. */
async function tokensOf(caller: Caller): Promise<number> {
  const list = await caller.tools();
  const texts = list.map(({ name, description, inputSchema }) => `${name}${description}${JSON.stringify(inputSchema)}`);
  return Buffer.byteLength(texts.join("")) / 4;
}

const plainPath = { path: "/mcp" };

test("by default there are at most nine tools, in under 2,500 tokens, over HTTP and stdio", async (t) => {
  const { address } = await serve(t);
  const http = await overHttp(t, address.url, plainPath);
  const stdio = await overStdio(t, { url: address.url, args: ["--toolsets", "core"] });
  for (const caller of [http, stdio]) {
    const names = (await caller.tools()).map(({ name }) => name);
    assert.equal(names.length, 9, names.join());
    assert.ok((await tokensOf(caller)) < 2_500, String(await tokensOf(caller)));
  }
  const whole = await overHttp(t, address.url);
  assert.ok((await tokensOf(whole)) > 2_500, "the twin: all tools are far more");
});

test("output schemas name the fields of an answer and no more", async (t) => {
  const { address } = await serve(t);
  const caller = await overHttp(t, address.url);
  const listed = await caller.tools();
  const bytes = JSON.stringify(listed.map(({ outputSchema }) => outputSchema)).length;
  const wholeBytes = JSON.stringify(tools.map(({ outputSchema }) => outputSchema)).length;
  assert.ok(bytes < wholeBytes / 4, `${bytes} of ${wholeBytes}`);
  const acquired = JSON.stringify(listed.find(({ name }) => name === "acquire_leases")?.outputSchema);
  for (const field of ["verdict", "leases", "request_id", "blocked_by", "error", "detail"])
    assert.ok(acquired.includes(`"${field}":`));
});

test("the nine tools suffice: a model becomes an agent with its first call, waits, works and completes", async (t) => {
  const { address, post } = await serve(t);
  const [older, younger] = [
    await overHttp(t, address.url, plainPath),
    await overHttp(t, address.url, { ...plainPath, revision: "2025-11-25" }),
  ];
  const first = await older.do("acquire_leases", { intents: mutates("FILE:/shop/a.ts"), purpose: "rename" });
  assert.match(String(first.agent_id), /^agt_/);
  const behind = await younger.do("acquire_leases", { intents: mutates("FILE:/shop/a.ts"), hold_ms: 0 });
  assert.equal(behind.verdict, "STANDBY", "hold_ms is not shown, and taken all the same");
  const awaited = younger.do("await_request", { request_id: behind.request_id });
  await older.do("release_leases", { agent_id: first.agent_id });
  assert.equal((await awaited).verdict, "GRANTED");
  const { leases } = await younger.do("verify_all", { agent_id: behind.agent_id });
  assert.equal((leases as readonly Body[]).length, 1);
  await younger.do("release_leases", { agent_id: behind.agent_id });

  const task = { task_type: "code.csv", principal_ai: "boss", inputs: { n: 1 } };
  const { body: made } = await post<{ task_id: string }>("/v1/tasks", task);
  assert.match(String((await older.do("explain_task", { task_id: made.task_id })).status), /queued/);
  const { offers } = await younger.do("lease_next", { worker_id: "coder.1", accept_types: ["code.csv"] });
  const [offer] = offers as readonly { lease_id: string }[];
  await younger.do("report_progress", { lease_id: offer?.lease_id, progress: { percent: 50 } });
  await younger.do("complete_task", { lease_id: offer?.lease_id, outcome_text: "done" });
  assert.equal((await older.do("explain_task", { task_id: made.task_id })).status, "succeeded");
});

test("T3: complete_task of a task that was not accepted accepts it first, and is one receipt however often sent", async (t) => {
  const { address, post, get } = await serve(t);
  const caller = await overHttp(t, address.url, plainPath);
  const { body: made } = await post<{ task_id: string }>("/v1/tasks", { task_type: "a", principal_ai: "boss" });
  const { offers } = await caller.do("lease_next", { worker_id: "coder.1" });
  const [offer] = offers as readonly { lease_id: string }[];
  const done = { lease_id: offer?.lease_id, outcome_text: "42" };
  const one = await caller.do("complete_task", done);
  assert.equal((await caller.do("complete_task", done)).receipt_id, one.receipt_id);
  const { body } = await get<{ status: string; receipts: readonly Body[] }>(`/v1/tasks/${made.task_id}`);
  assert.equal(body.status, "succeeded");
  assert.deepEqual(
    body.receipts.map(({ phase }) => phase),
    ["accepted", "complete"],
  );
});

test("what an operator does is offered with an operator's key only", async (t) => {
  const { address, post } = await serve(t);
  const operating = tools.filter(({ set }) => set === "operating").map(({ name }) => name);
  const offered = async (key?: string): Promise<readonly string[]> => {
    const caller = await overHttp(t, address.url, key === undefined ? {} : { key });
    return (await caller.tools()).map(({ name }) => name).filter((name) => operating.includes(name));
  };
  assert.deepEqual(await offered(), []);
  const { body: operator } = await post<{ key: string }>("/v1/keys", { role: "operator" });
  const { body: agent } = await post<{ key: string }>("/v1/keys", { role: "agent" }, { key: operator.key });
  assert.deepEqual((await offered(operator.key)).toSorted(), operating.toSorted());
  assert.ok(!(await offered(agent.key)).includes("suspend_tenant"));
});

test("a key that registers agents gets the new agent's token with its first grant", async (t) => {
  const { address, post } = await serve(t);
  const { body: made } = await post<{ key: string }>("/v1/keys", { role: "operator" });
  const { body: agent } = await post<{ key: string }>("/v1/keys", { role: "agent" }, { key: made.key });
  const caller = await overHttp(t, address.url, { ...plainPath, key: agent.key });
  const { agent_id, agent_token, ...granted } = await caller.do("acquire_leases", { intents: mutates("FILE:/a") });
  assert.ok(firstLease(granted).fence > 0);
  assert.equal(typeof agent_token, "string");
  const { leases } = await caller.do("release_leases", { agent_id, agent_token });
  assert.equal((leases as readonly unknown[]).length, 1);
});

interface Result {
  readonly resultType?: string;
  readonly taskId?: string;
  readonly status?: string;
  readonly createdAt?: string;
  readonly isError?: boolean;
  readonly structuredContent?: Body;
  readonly result?: Result;
}

interface Rpc {
  readonly result?: Result;
  readonly error?: { readonly code: number; readonly message: string };
}

/** A client of 2026 that takes tasks, or one that does not. */
function rpcOf(url: string, takesTasks: boolean) {
  const clientCapabilities = takesTasks ? { extensions: { [tasksExtension]: {} } } : {};
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": { name: "a-test", version: "1" },
    "io.modelcontextprotocol/clientCapabilities": clientCapabilities,
  };
  return async (method: string, params: Readonly<Record<string, unknown>>): Promise<Rpc> => {
    const { name, taskId } = params as { readonly name?: string; readonly taskId?: string };
    const response = await fetch(`${url}/mcp`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "application/json",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": method,
        ...((name ?? taskId) !== undefined && { "mcp-name": name ?? taskId ?? "" }),
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: { ...params, _meta } }),
    });
    return (await response.json()) as Rpc;
  };
}

test("where the client takes tasks, a wait is a task that it polls until the verdict, and can cancel", async (t) => {
  const { address, register, grant, post } = await serve(t);
  await register("holder");
  const lease = await grant("holder", "FILE:/a");
  await register("younger");
  const rpc = rpcOf(address.url, true);
  const args = { agent_id: "younger", intents: mutates("FILE:/a") };
  const acquire = { name: "acquire_leases", arguments: args };
  const { result: created } = await rpc("tools/call", acquire);
  assert.deepEqual([created?.resultType, created?.status], ["task", "working"]);
  const taskId = created?.taskId ?? "";
  assert.match(taskId, /^req_/);
  const { result: pending } = await rpc("tasks/get", { taskId });
  assert.deepEqual([pending?.resultType, pending?.status], ["complete", "working"]);
  assert.equal(pending?.createdAt, created?.createdAt);
  await post(`/v1/leases/${lease.id}/release`);
  const { result: done } = await rpc("tasks/get", { taskId });
  assert.equal(done?.status, "completed");
  assert.equal(done?.result?.structuredContent?.verdict, "GRANTED");

  await register("third");
  const { result: second } = await rpc("tools/call", { ...acquire, arguments: { ...args, agent_id: "third" } });
  assert.deepEqual((await rpc("tasks/cancel", { taskId: second?.taskId ?? "" })).error, undefined);
  const { result: over } = await rpc("tasks/get", { taskId: second?.taskId ?? "" });
  assert.deepEqual([over?.status, over?.result?.isError], ["completed", true]);
  assert.equal((await rpc("tasks/get", { taskId: "req_none~1" })).error?.code, -32602);
});

test("a client that does not take tasks is never given one", async (t) => {
  const { address, register, grant } = await serve(t);
  await register("holder");
  await grant("holder", "FILE:/a");
  await register("younger");
  const rpc = rpcOf(address.url, false);
  const args = { agent_id: "younger", intents: mutates("FILE:/a"), hold_ms: 0 };
  const { result } = await rpc("tools/call", { name: "acquire_leases", arguments: args });
  assert.equal(result?.resultType, "complete");
  assert.equal(result?.structuredContent?.verdict, "STANDBY");
});
