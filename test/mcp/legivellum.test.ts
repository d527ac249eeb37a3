import assert from "node:assert/strict";
import { test } from "node:test";
import { serve } from "../server/harness.ts";
import { type Body, plainClient, post } from "./plain-client.ts";

const worker = { worker_id: "worker.codegen-1" };
const task = { type: "code.generate", payload: { n: 1 }, principal_ai: "delegate.root", agent_id: "delegate.root" };

type Run = ReturnType<typeof plainClient>["run"];

function ids(receipts: unknown): readonly unknown[] {
  return (receipts as readonly Body[]).map(({ receipt_id: id }) => id);
}

async function offered(run: Run): Promise<{ readonly task_id: string; readonly lease_id: string }> {
  const { tasks } = await run("asyncgate.lease_next", worker);
  const [offer] = tasks as readonly { readonly task_id: string; readonly lease_id: string }[];
  assert.ok(offer !== undefined);
  return { task_id: offer.task_id, lease_id: offer.lease_id };
}

/** A task that was accepted, with three reports on the way, and is done. */
async function completed(run: Run): Promise<string> {
  await run("asyncgate.create_task", task);
  const { task_id, lease_id } = await offered(run);
  await run("asyncgate.start_task", { ...worker, lease_id });
  for (const n of [1, 2, 3])
    await run("receiptgate.submit_receipt", { receipt: { phase: "progress", lease_id, body: { n } } });
  await run("asyncgate.complete", { ...worker, lease_id, result: { done: true } });
  return task_id;
}

test("a client without an Accept header, or with */*, is answered with JSON, on /mcp too", async (t) => {
  const { address } = await serve(t);
  const list = { jsonrpc: "2.0", id: 1, method: "tools/list", params: {} };
  for (const path of ["/mcp", "/mcp/legivellum", "/mcp/legivellum/mcp"]) {
    for (const headers of [{}, { accept: "*/*" }, { accept: "application/json" }, { accept: "text/html, */*;q=0.8" }]) {
      const { status, type, body } = await post(`${address.url}${path}`, list, headers);
      assert.deepEqual([status, type.split(";")[0], body.id], [200, "application/json", 1], path);
      assert.ok(Array.isArray(body.result?.tools), path);
    }
  }
  const html = await post(`${address.url}/mcp`, list, { accept: "text/html" });
  assert.equal(html.status, 406);
  const streamed = await fetch(`${address.url}/mcp/legivellum`, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
    body: JSON.stringify(list),
  });
  assert.equal(streamed.headers.get("content-type"), "text/event-stream", "a client of MCP gets what it asked for");
  await streamed.body?.cancel();
});

test("a plain JSON-RPC call gets the answer itself as result, and a client of MCP the content of a tool", async (t) => {
  const { address } = await serve(t);
  const url = `${address.url}/mcp/legivellum`;
  assert.equal((await plainClient(url).run("asyncgate.health")).status, "healthy");
  const versioned = await plainClient(url, { "mcp-protocol-version": "2025-06-18" }).run("asyncgate.health");
  assert.ok(Array.isArray(versioned.content));
  const unknown = await plainClient(url).refused("asyncgate.no_such_tool");
  assert.equal(unknown.code, "unknown_tool");
});

test("the life of a task in the words of AsyncGate, by plain JSON-RPC at an address with /mcp added", async (t) => {
  const { address } = await serve(t);
  const { run } = plainClient(`${address.url}/mcp/legivellum/mcp`);
  const { task_id } = await run("asyncgate.create_task", {
    ...task,
    priority: 3,
    requirements: { capabilities: ["py"] },
  });
  const found = await run("asyncgate.lease_next", { ...worker, capabilities: ["py"], accept_types: ["code.generate"] });
  const [offer] = found.tasks as readonly Body[];
  assert.deepEqual([offer?.task_id, offer?.type, offer?.payload], [task_id, "code.generate", { n: 1 }]);
  assert.equal(offer?.expires_at, offer?.lease_expires_at);
  const lease = { ...worker, task_id, lease_id: offer?.lease_id };
  const started = await run("asyncgate.start_task", lease);
  assert.deepEqual([started.ok, started.status, typeof started.started_at], [true, "running", "string"]);
  const renewed = await run("asyncgate.renew_lease", lease);
  assert.deepEqual([renewed.ok, renewed.expires_at], [true, renewed.lease_expires_at]);
  assert.equal((await run("asyncgate.report_progress", { ...lease, progress: { percent: 50 } })).ok, true);

  const inbox = await run("receiptgate.list_inbox", { recipient_ai: worker.worker_id });
  assert.deepEqual([inbox.count, ids(inbox.receipts)], [1, [started.receipt_id]]);
  const closed = (): Promise<Body> => run("asyncgate.check_terminator", { parent_receipt_id: started.receipt_id });
  assert.equal((await closed()).has_terminator, false);
  assert.equal((await run("asyncgate.complete", { ...lease, result: { sum: 3 } })).ok, true);
  assert.equal((await closed()).has_terminator, true);

  const shown = await run("asyncgate.get_task", { task_id });
  assert.deepEqual(
    [shown.type, shown.payload, shown.priority, shown.attempt, shown.requirements],
    ["code.generate", { n: 1 }, 3, 1, { capabilities: ["py"] }],
  );
  const { outcome, result, error } = shown.result as Body;
  assert.deepEqual([outcome, result, error], ["succeeded", { sum: 3 }, null]);
  const listed = await run("asyncgate.list_tasks", { type: "code.generate" });
  assert.equal((listed.tasks as readonly Body[])[0]?.type, "code.generate");
  assert.equal(listed.next_cursor, null);
  const { chain } = await run("receiptgate.get_receipt_chain", { receipt_id: (shown.result as Body).receipt_id });
  assert.deepEqual(ids(chain), [(shown.result as Body).receipt_id, started.receipt_id]);
});

test("asyncgate.fail says whether the task is tried again", async (t) => {
  const { address } = await serve(t);
  const { run } = plainClient(`${address.url}/mcp/legivellum`);
  await run("asyncgate.create_task", { ...task, max_attempts: 2, retry_backoff_seconds: 60 });
  const first = await offered(run);
  const failed = await run("asyncgate.fail", { ...worker, ...first, error: { why: "disk" }, retryable: true });
  assert.deepEqual([failed.ok, failed.requeued, typeof failed.next_eligible_at], [true, true, "string"]);
  await run("asyncgate.create_task", task);
  const final = await run("asyncgate.fail", { ...worker, ...(await offered(run)), error: "no", retryable: false });
  assert.deepEqual([final.requeued, final.next_eligible_at], [false, null]);
});

test("R1: pages of receipts lose none that were stored in the same millisecond", async (t) => {
  const { address } = await serve(t);
  const { run } = plainClient(`${address.url}/mcp/legivellum`);
  await run("asyncgate.create_task", task);
  const { lease_id } = await offered(run);
  const { receipt_id: before } = await run("asyncgate.start_task", { ...worker, lease_id });
  const receipts = Array.from({ length: 60 }, (_, n) => ({
    phase: "progress",
    lease_id,
    body: { n },
    dedupe_key: `p${n}`,
  }));
  const batch = await fetch(`${address.url}/v1/receipts/batch`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ receipts }),
  });
  assert.equal(batch.status, 200);
  for (const tool of ["asyncgate.list_receipts", "asyncgate.list_receipts_ledger"]) {
    const seen: unknown[] = [];
    let since: unknown = before;
    while (typeof since === "string") {
      const to = tool === "asyncgate.list_receipts" ? { to_kind: "agent", to_id: "delegate.root" } : {};
      const page = await run(tool, { ...to, since_receipt_id: since, limit: 7 });
      seen.push(...(page.receipts as readonly { readonly body: { readonly n: number } }[]).map(({ body }) => body.n));
      since = page.next_cursor;
    }
    assert.deepEqual(
      seen,
      receipts.map(({ body }) => body.n),
      tool,
    );
  }
});

test("desc with a limit begins with the last receipt, and searches show the newest first", async (t) => {
  const { address, get } = await serve(t);
  const { run } = plainClient(`${address.url}/mcp/legivellum`);
  const task_id = await completed(run);
  const last = await run("receiptgate.list_task_receipts", { task_id, sort: "desc", limit: 1 });
  assert.deepEqual(
    (last.receipts as readonly Body[]).map(({ phase }) => phase),
    ["complete"],
  );
  const first = await run("receiptgate.list_task_receipts", { task_id, sort: "asc", limit: 1 });
  assert.deepEqual(
    (first.receipts as readonly Body[]).map(({ phase }) => phase),
    ["accepted"],
  );
  const all = await run("receiptgate.search_receipts", { root_task_id: task_id });
  assert.deepEqual(
    (all.receipts as readonly Body[]).map(({ phase }) => phase),
    ["complete", "progress", "progress", "progress", "accepted"],
  );
  const oldest = ids(first.receipts)[0];
  const { body } = await get<Body>(`/v1/receipts?sort=desc&after_receipt_id=${oldest}&limit=2`);
  assert.deepEqual(ids(body.receipts), ids(all.receipts).slice(0, 2));
  assert.equal((await get("/v1/receipts?after_receipt_id=rcp_none")).body.error, "receipt_unknown");
});

test("every cursor that is answered can be given back, and leads to the next page", async (t) => {
  const { address } = await serve(t);
  const { run } = plainClient(`${address.url}/mcp/legivellum`);
  const task_id = await completed(run);
  for (const _ of [1, 2, 3]) {
    await run("asyncgate.create_task", task);
    await run("asyncgate.start_task", { ...worker, lease_id: (await offered(run)).lease_id });
  }
  const { worker_id } = worker;
  const cases: readonly (readonly [tool: string, args: object, list: keyof Body, cursor: string, count: number])[] = [
    ["receiptgate.list_inbox", { recipient_ai: worker_id, limit: 2 }, "obligations", "cursor", 3],
    ["asyncgate.bootstrap", { agent_id: worker_id, max_items: 2 }, "open_obligations", "since_receipt_id", 3],
    ["receiptgate.list_task_receipts", { task_id, limit: 2 }, "receipts", "cursor", 5],
    ["receiptgate.list_task_receipts", { task_id, limit: 2, sort: "desc" }, "receipts", "cursor", 5],
    ["receiptgate.search_receipts", { root_task_id: task_id, limit: 2 }, "receipts", "cursor", 5],
    ["asyncgate.list_tasks", { limit: 2 }, "tasks", "cursor", 4],
  ];
  for (const [tool, args, list, field, count] of cases) {
    const seen: string[] = [];
    let next: unknown = null;
    do {
      const page: Body = await run(tool, { ...args, ...(next !== null && { [field]: next }) });
      assert.equal(page.cursor, page.next_cursor, tool);
      seen.push(...(page[list] as readonly Body[]).map((one) => JSON.stringify(one)));
      next = page.next_cursor;
    } while (next !== null);
    assert.deepEqual([seen.length, new Set(seen).size], [count, count], tool);
  }
});

test("R2: the first artifact of asyncgate.complete is the receipt's, with its type and checksum", async (t) => {
  const { address } = await serve(t);
  const { run } = plainClient(`${address.url}/mcp/legivellum`);
  const ref = { type: "depotgate", uri: "depotgate://a1", mime: "text/plain", size_bytes: 42, checksum: "sha256:abc" };
  const complete = async (artifacts: unknown, result: unknown): Promise<Body> => {
    await run("asyncgate.create_task", task);
    return run("asyncgate.complete", { ...worker, ...(await offered(run)), result, artifacts });
  };
  const mixed = await complete([{ ...ref, location: "shipped" }, { uri: "depotgate://a2" }], { summary: "done" });
  assert.deepEqual(
    [mixed.outcome_kind, mixed.artifact_pointer, mixed.artifact_location, mixed.artifact_mime],
    ["mixed", "depotgate://a1", "shipped", "text/plain"],
  );
  assert.deepEqual([mixed.artifact_checksum, mixed.artifact_size_bytes], ["sha256:abc", 42]);
  assert.equal((mixed.artifact_refs as readonly unknown[]).length, 2);
  const alone = await complete(ref, null);
  assert.deepEqual([alone.outcome_kind, alone.artifact_location], ["artifact_pointer", "depotgate://a1"]);
  const none = await complete([{ note: "nowhere" }], "text");
  assert.deepEqual([none.outcome_kind, none.artifact_pointer], ["response_text", "NA"]);
});

test("a receipt sent again is an idempotent replay", async (t) => {
  const { address } = await serve(t);
  const { run, refused } = plainClient(`${address.url}/mcp/legivellum`);
  await run("asyncgate.create_task", task);
  const { lease_id } = await offered(run);
  const receipt = { phase: "accepted", lease_id, dedupe_key: "k1" };
  const first = await run("receiptgate.submit_receipt", { receipt });
  const again = await run("receiptgate.submit_receipt", { receipt });
  assert.deepEqual([first.idempotent_replay, again.idempotent_replay], [false, true]);
  assert.deepEqual([again.receipt_id, again.canonical_hash], [first.receipt_id, first.hash]);
  const other = { ...receipt, metadata: { n: 2 } };
  assert.equal((await refused("receiptgate.submit_receipt", { receipt: other })).code, "RECEIPT_ID_COLLISION");
});

test("refusals have the codes that AsyncGate's circuit breaker knows, beside ours", async (t) => {
  const { address } = await serve(t);
  const { run, refused } = plainClient(`${address.url}/mcp/legivellum`);
  const task_id = await completed(run);
  await run("asyncgate.create_task", task);
  const { lease_id } = await offered(run);
  const submit = (receipt: object) => ["receiptgate.submit_receipt", { receipt }] as const;
  const cases: readonly (readonly [call: readonly [string, object], code: string, error: string])[] = [
    [["asyncgate.get_task", { task_id: "T-none" }], "TASK_NOT_FOUND", "task_unknown"],
    [["asyncgate.renew_lease", { ...worker, lease_id: "lse_no" }], "LEASE_INVALID_OR_EXPIRED", "lease_unknown"],
    [submit({ phase: "complete", lease_id, status: "success" }), "COMPLETE_WITHOUT_ACCEPT", "complete_without_accept"],
    [submit({ phase: "complete", lease_id: "lse_no", status: "success" }), "COMPLETE_WITHOUT_ACCEPT", "lease_unknown"],
    [
      submit({ phase: "escalate", lease_id: "lse_no", escalation_class: "scope", escalation_reason: "x" }),
      "ESCALATE_WITHOUT_ACCEPT",
      "lease_unknown",
    ],
    [
      submit({ phase: "accepted", task_id, source_system: "worker.codegen-1" }),
      "OBLIGATION_ALREADY_TERMINATED",
      "already_completed",
    ],
    [["receiptgate.get_receipt", { receipt_id: "rcp_none" }], "not_found", "receipt_unknown"],
    [["receiptgate.list_inbox", {}], "validation_failed", "invalid_request"],
    [["asyncgate.list_tasks", { tenant_id: "another" }], "TENANT_MISMATCH", "tenant_mismatch"],
  ];
  for (const [[tool, args], code, error] of cases) {
    const answered = await refused(tool, args);
    assert.deepEqual([answered.code, answered.details?.error], [code, error], `${tool} ${answered.message}`);
  }
});

test("S5: X-API-Key and auth_token are credentials there, and checked like any", async (t) => {
  const { address, post: ask } = await serve(t);
  const { body: operator } = await ask<{ readonly key: string }>("/v1/keys", { role: "operator" });
  const { body: reader } = await ask<{ readonly key: string }>("/v1/keys", { role: "reader" }, { key: operator.key });
  const url = `${address.url}/mcp/legivellum`;
  const { call, run, refused } = plainClient(url);
  assert.equal((await call("asyncgate.list_tasks")).status, 401);
  assert.equal((await call("asyncgate.list_tasks", { auth_token: "lhk_wrong" })).status, 401);
  assert.deepEqual((await run("asyncgate.list_tasks", { auth_token: reader.key })).tasks, []);
  assert.equal((await refused("asyncgate.create_task", { ...task, auth_token: reader.key })).code, "unknown_tool");
  await run("asyncgate.create_task", { ...task, auth_token: operator.key });
  const byHeader = plainClient(url, { "x-api-key": reader.key });
  assert.equal(((await byHeader.run("asyncgate.list_tasks")).tasks as readonly unknown[]).length, 1);
  assert.equal((await plainClient(url, { "x-api-key": "lhk_wrong" }).call("asyncgate.list_tasks")).status, 401);
  const elsewhere = await fetch(`${address.url}/v1/tasks`, { headers: { "x-api-key": reader.key } });
  assert.equal(elsewhere.status, 401, "only where LegiVellum's programs call");
});

test("the ledger can be searched by type of receipt and status of task", async (t) => {
  const { address } = await serve(t);
  const { run } = plainClient(`${address.url}/mcp/legivellum`);
  const done = await completed(run);
  await run("asyncgate.create_task", task);
  await run("asyncgate.start_task", { ...worker, ...(await offered(run)) });
  const found = async (filter: object): Promise<readonly Body[]> =>
    (await run("asyncgate.list_receipts_ledger", filter)).receipts as readonly Body[];
  assert.deepEqual(
    (await found({ receipt_type: "task.completed" })).map((one) => one.task_id),
    [done],
  );
  assert.equal((await found({ receipt_type: "task.accepted" })).length, 2);
  assert.equal((await found({ receipt_type: "task.accepted", task_status: "accepted" })).length, 1);
  assert.equal((await found({ task_id: done })).length, 5);
  assert.deepEqual(await found({ receipt_type: "task.canceled" }), []);
});

test("depotgate: what is staged for a task is listed, fetched by its location, and kept apart by tenant", async (t) => {
  const { address, post: ask } = await serve(t);
  const url = `${address.url}/mcp/legivellum`;
  const { run, refused } = plainClient(url);
  const content = Buffer.from("print('hello')").toString("base64");
  const root = { root_task_id: "T-1" };
  const one = await run("depotgate.stage_artifact", {
    ...root,
    content_base64: content,
    mime_type: "text/x-python",
    artifact_role: "final_output",
  });
  await run("depotgate.stage_artifact", {
    ...root,
    content_base64: Buffer.from("plan").toString("base64"),
    artifact_role: "plan",
  });
  await run("depotgate.stage_artifact", { ...root, root_task_id: "T-2", content_base64: content });
  const { artifacts } = await run("depotgate.list_staged_artifacts", root);
  assert.deepEqual(
    (artifacts as readonly Body[]).map(({ artifact_role: role }) => role),
    ["final_output", "plan"],
  );
  const plans = await run("depotgate.list_staged_artifacts", { ...root, artifact_role: "plan" });
  assert.equal((plans.artifacts as readonly unknown[]).length, 1);
  const { artifact_id, content_hash, size_bytes, root_task_id } = await run("depotgate.get_artifact", {
    artifact_id: one.artifact_id,
  });
  assert.deepEqual(
    [artifact_id, content_hash, size_bytes, root_task_id],
    [one.artifact_id, one.artifact_id, 14, "T-2"],
  );
  const bytes = await fetch(`${address.url}/v1/artifacts/${String(one.artifact_id)}`);
  assert.equal(await bytes.text(), "print('hello')");

  assert.equal((await refused("depotgate.get_artifact", { artifact_id: "0".repeat(64) })).code, "not_found");
  const bad = await refused("depotgate.stage_artifact", { ...root, content_base64: "no base64!" });
  assert.deepEqual([bad.code, bad.details?.field], ["validation_failed", "content_base64"]);
  await ask("/v1/tenants", { tenant_id: "acme" });
  const other = plainClient(url, { "leasehold-tenant": "acme" });
  assert.deepEqual((await other.run("depotgate.list_staged_artifacts", root)).artifacts, []);
  assert.equal((await other.refused("depotgate.get_artifact", { artifact_id: one.artifact_id })).code, "not_found");
});
