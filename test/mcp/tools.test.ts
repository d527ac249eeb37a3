import assert from "node:assert/strict";
import { test } from "node:test";
import { Compile } from "typebox/compile";
import { legivellumTools } from "../../src/mcp/legivellum/tools.ts";
import { isForModels } from "../../src/mcp/tools/rest.ts";
import { tools } from "../../src/mcp/tools.ts";
import { isErrorCode } from "../../src/protocol/answers/errors.ts";
import { operations } from "../../src/protocol/operations.ts";
import { serve } from "../server/harness.ts";
import { byHarm, exampleFor, populate } from "./examples.ts";
import { type Body, overHttp } from "./harness.ts";

test("every command and query of the protocol has a tool", () => {
  const offered = new Set(tools.flatMap((tool) => tool.operations));
  const missing = operations.filter((operation) => isForModels(operation) && !offered.has(operation));
  assert.deepEqual(missing, []);
});

test("tool names are accepted by every client: short, of letters, digits and underscores, and unique", () => {
  for (const { name } of tools) assert.match(name, /^[a-z][a-z0-9_]{2,40}$/);
  for (const { name } of legivellumTools) assert.match(name, /^(asyncgate|receiptgate|depotgate)\.[a-z_]{3,40}$/);
  const names = [...tools, ...legivellumTools].map(({ name }) => name);
  assert.equal(new Set(names).size, names.length);
});

test("exactly the tools that only look have the read-only hint", () => {
  for (const { name, annotations, operations: asked } of [...tools, ...legivellumTools]) {
    const looks = asked.every(({ kind, method }) => kind === "query" || (kind === "edge" && method === "GET"));
    assert.equal(annotations.readOnlyHint, looks, name);
    assert.ok(!(annotations.readOnlyHint && annotations.destructiveHint), name);
    assert.equal(annotations.openWorldHint, false);
  }
  const destructive = tools.filter(({ annotations }) => annotations.destructiveHint).map(({ name }) => name);
  assert.deepEqual(destructive.sort(), [
    "assign_name",
    "cancel_task",
    "cancel_tasks",
    "delete_key",
    "delete_policy",
    "fence_resource",
    "pause_agent",
    "revoke_leases",
    "rotate_key",
    "set_policy",
    "suspend_tenant",
    "transition_agent",
    "withdraw_resource",
  ]);
});

test("tool schemas are plain: no extensions, no null in inputs, and an object at the root", () => {
  for (const { name, inputSchema, outputSchema } of [...tools, ...legivellumTools]) {
    const text = JSON.stringify([inputSchema, outputSchema]);
    assert.ok(!text.includes('"x-'), name);
    assert.ok(!JSON.stringify(inputSchema).includes('"null"'), name);
    assert.deepEqual([inputSchema.type, outputSchema.type], ["object", "object"]);
    assert.ok(!("anyOf" in inputSchema), name);
  }
});

test("descriptions say when to use each tool, and what to do on WAIT, DIE and PAUSED", () => {
  for (const { name, description } of tools) assert.ok(description.length >= 40, name);
  const { description } = tools.find(({ name }) => name === "acquire_leases") ?? { description: "" };
  for (const verdict of ["GRANTED", "WAIT", "DIE", "PAUSED"]) assert.ok(description.includes(`${verdict}:`), verdict);
});

test("each tool is listed, and answers a call with its output schema or an error code", async (t) => {
  const { address, post } = await serve(t);
  // With a key from the start: after the first key, calls without one are refused.
  const { body: made } = await post<{ readonly key: string }>("/v1/keys", { role: "operator" });
  const caller = await overHttp(t, address.url, { key: made.key });
  const listed = await caller.tools();
  assert.deepEqual(listed.map(({ name }) => name).sort(), tools.map(({ name }) => name).sort());
  const world = await populate(caller.do);
  const refusals = new Map<string, unknown>();
  for (const tool of byHarm(tools)) {
    // The client holds results to the short schema that it is shown; here they are held to the whole one.
    const { isError, body, text } = await caller.call(tool.name, exampleFor(tool, world));
    assert.ok(Compile(tool.outputSchema).Check(body), `${tool.name}: ${JSON.stringify(body)}`);
    if (isError) refusals.set(tool.name, body.error);
    if (isError) assert.ok(isErrorCode(String(body.error)), `${tool.name}: ${text}`);
    else assert.ok(text.length > 0 && text.length < 2_000, tool.name);
  }
  // All succeed but those that come too late, or name a missing key, cell, obligation, operation or token.
  assert.deepEqual([...refusals].sort(), [
    ["assign_name", "key_unknown"],
    ["delete_key", "key_unknown"],
    ["escalate_task", "already_completed"],
    ["get_operation", "operation_unknown"],
    ["readmit_cell", "cell_unknown"],
    ["recover_obligation", "obligation_unknown"],
    ["redrive_task", "task_not_dead"],
    ["rotate_key", "key_unknown"],
    ["verify_token", "token_invalid"],
  ]);
});

test("each tool with a name of AsyncGate or ReceiptGate is listed, and does what those documents say", async (t) => {
  const { address, call: control } = await serve(t);
  const { tools: list, do: run } = await overHttp(t, address.url, { path: "/mcp/legivellum" });
  assert.deepEqual((await list()).map(({ name }) => name).sort(), legivellumTools.map(({ name }) => name).sort());
  const mine = { tenant_id: "default" };
  const worker = { worker_id: "worker.codegen-1", ...mine };
  const task = { type: "code.generate", payload: { n: 1 }, principal_ai: "delegate.root", agent_id: "delegate.root" };
  const { task_id } = await run("asyncgate.create_task", { ...task, ...mine, idempotency_key: "k1", priority: 5 });
  await run("asyncgate.create_task", { ...task, delay_seconds: 60, requirements: { capabilities: ["gpu"] } });
  const claim = { ...worker, capabilities: ["python"], accept_types: ["code.generate"], lease_ttl_seconds: 60 };
  const { tasks } = await run("asyncgate.lease_next", { ...claim, max_tasks: 1 });
  const [offered] = tasks as readonly Body[];
  assert.deepEqual([offered?.task_id, offered?.payload], [task_id, { n: 1 }]);
  const lease = { ...worker, task_id, lease_id: offered?.lease_id };
  const { receipt_id } = await run("asyncgate.start_task", lease);
  await run("asyncgate.renew_lease", { ...lease, extend_by_seconds: 60 });
  await run("asyncgate.report_progress", { ...lease, progress: { percent: 50 } });
  await run("asyncgate.complete", { ...lease, result: { ok: true }, artifacts: { pointer: "s3://b/x" } });
  assert.equal((await run("asyncgate.get_task", { task_id })).status, "succeeded");
  assert.equal(((await run("asyncgate.list_tasks", { type: "code.generate" })).tasks as readonly unknown[]).length, 2);

  await run("asyncgate.ack_receipt", { receipt_id, agent_id: "delegate.root" });
  const all = await run("receiptgate.list_task_receipts", { task_id, sort: "desc", include_payload: true });
  const phases = (all.receipts as readonly Body[]).map(({ phase }) => phase);
  assert.deepEqual(phases, ["complete", "accepted"]);
  const found = await run("receiptgate.search_receipts", { root_task_id: task_id, phase: "complete" });
  assert.equal((found.receipts as readonly unknown[]).length, 1);
  await run("receiptgate.get_receipt", { receipt_id });
  const chain = await run("receiptgate.get_receipt_chain", { receipt_id });
  assert.equal((chain.effects as readonly unknown[]).length, 1);
  const to = { to_kind: "agent", to_id: "delegate.root" };
  const mail = (await run("asyncgate.list_receipts", to)).receipts as readonly Body[];
  const last = mail.at(-1)?.receipt_id;
  assert.equal(mail.at(-1)?.phase, "complete");
  const later = await run("asyncgate.list_receipts", { ...to, since_receipt_id: last });
  assert.deepEqual(later.receipts, [], "nothing is said twice");

  const failing = await run("asyncgate.create_task", { ...task, type: "code.test" });
  const again = await run("asyncgate.lease_next", { ...worker });
  const [second] = again.tasks as readonly Body[];
  assert.equal(second?.task_id, failing.task_id);
  const failed = { ...worker, task_id: failing.task_id, lease_id: second?.lease_id, error: { why: "no disk" } };
  assert.equal((await run("asyncgate.fail", { ...failed, retryable: true })).phase, "complete");
  assert.equal((await run("asyncgate.get_task", { task_id: failing.task_id })).status, "retry_pending");
  await run("asyncgate.cancel_task", { task_id: failing.task_id, agent_id: "delegate.root", reason: "enough" });

  const third = await run("asyncgate.create_task", { ...task, type: "code.docs" });
  const [third_offer] = (await run("asyncgate.lease_next", { ...worker })).tasks as readonly Body[];
  const accepted = { phase: "accepted", task_id: third.task_id, source_system: "worker.codegen-1" };
  await run("receiptgate.submit_receipt", {
    receipt: { ...accepted, lease_id: third_offer?.lease_id, tenant_id: "default" },
  });
  const inbox = await run("receiptgate.list_inbox", { recipient_ai: "worker.codegen-1", limit: 10 });
  assert.equal((inbox.obligations as readonly unknown[]).length, 1);
  const boot = await run("asyncgate.bootstrap", { agent_id: "worker.codegen-1", max_items: 5, ...mine });
  assert.equal((boot.open_obligations as readonly unknown[]).length, 1);
  await run("receiptgate.bootstrap", { agent_name: "worker.codegen-1", session_id: "s1" });
  await control("PUT", "/v1/tenants/default/settings", { foreign_receipts: true });
  await run("receiptgate.submit_receipt", {
    receipt: { ...accepted, task_id: "elsewhere/1", task_summary: "another's", for_principal: "boss" },
  });
  const others = await run("receiptgate.list_inbox", { recipient_ai: "boss", limit: 10 });
  assert.equal((others.obligations as readonly Body[])[0]?.task_id, "elsewhere/1");
  await run("asyncgate.get_config");
  assert.equal((await run("asyncgate.health")).status, "healthy");
  assert.equal((await run("receiptgate.health")).service, "ReceiptGate");
});

test("a tenant_id other than the credential's is refused by every tool", async (t) => {
  const { address } = await serve(t);
  const caller = await overHttp(t, address.url, { path: "/mcp/legivellum" });
  const told = await caller.call("asyncgate.list_tasks", { tenant_id: "another" });
  assert.deepEqual([told.isError, told.body.error, told.body.field], [true, "tenant_mismatch", "tenant_id"]);
});

test("A4: GRANTED after a pause says in its sentence what others changed meanwhile", async (t) => {
  const server = await serve(t);
  const mcp = await overHttp(t, server.address.url);
  await server.register("old");
  await server.register("young");
  const held = await server.grant("old", "FILE:/x");
  const acquire = { agent_id: "young", intents: [{ predicate: "MUTATES", resource: "FILE:/x" }] };
  assert.match((await mcp.call("acquire_leases", { ...acquire, standby_ms: 0 })).text, /^DIE/);
  await server.post(`/v1/leases/${held.id}/release`, { version: "v2" });
  const { text } = await mcp.call("acquire_leases", acquire);
  assert.match(
    text,
    /^GRANTED: .* CHANGED meanwhile: old MUTATES FILE:\/x \(now "v2", quoted text is another agent's.*\)\. Read these again/,
  );
});
