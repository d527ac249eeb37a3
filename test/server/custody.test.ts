import assert from "node:assert/strict";
import { test } from "node:test";
import { type Client, serve } from "./harness.ts";
import { openStream } from "./stream-client.ts";
import { taskClientOf } from "./task-client.ts";
import type { WireReceipt } from "./wire-types.ts";

interface ObligationPage {
  readonly obligations: readonly {
    readonly obligation_id: string;
    readonly state: string;
    readonly custodian: string;
    readonly deadline_at: string | null;
  }[];
}

interface Results {
  readonly results: readonly { readonly status: number; readonly body: { readonly receipt_id?: string } }[];
}

async function obligations({ get }: Client, query = "") {
  return (await get<ObligationPage>(`/v1/obligations${query}`)).body.obligations;
}

test("T4: a late complete that names only its lease, sent again byte for byte, gets the first answer", async (t) => {
  const server = await serve(t);
  const { create, offered, accept, send, reach } = taskClientOf(server);
  const taskId = await create();
  const offer = await offered("worker.a");
  await accept(offer);
  await server.post("/v1/revoke", { lease_id: offer.lease_id, reason: "test" });
  await reach(taskId, "queued");
  const late = { phase: "complete", status: "success", lease_id: offer.lease_id, dedupe_key: "k" } as const;
  const first = await send(late);
  assert.equal(first.status, 201, first.text);
  const again = await send(late);
  assert.deepEqual([again.status, again.body.receipt_id], [200, first.body.receipt_id], again.text);
  assert.equal((await send({ ...late, outcome_text: "other" })).body.error, "dedupe_conflict");
});

test("T12: a task can depend on one that ends in the same moment", async (t) => {
  const server = await serve(t);
  const { create, offered, accept, complete } = taskClientOf(server);
  const stream = await openStream(t, server.address.url);
  const [first, second] = [await create(), await create()];
  const ended = await offered("worker.a");
  await accept(ended);
  await complete(ended);
  const running = await offered("worker.a");
  await accept(running);
  const input = { task_type: "t", principal_ai: "p", depends_on: [first, second] };
  stream.send([
    { id: 1, op: "create_task", input },
    { id: 2, op: "submit_receipt", input: { phase: "complete", status: "success", lease_id: running.lease_id } },
  ]);
  assert.equal((await stream.answer(1)).status, 201);
  assert.equal((await stream.answer(2)).status, 201);
});

test("R3: a receipt without a key does not overtake one with a key about the same task", async (t) => {
  const server = await serve(t);
  const { create, offered } = taskClientOf(server);
  const stream = await openStream(t, server.address.url);
  for (let n = 0; n < 10; n++) {
    const task_id = await create();
    const { lease_id } = await offered("worker.a");
    stream.send({ id: `a${n}`, op: "submit_receipt", input: { phase: "accepted", lease_id, dedupe_key: `k${n}` } });
    stream.send({
      id: `c${n}`,
      op: "submit_receipt",
      input: { phase: "complete", status: "success", task_id, source_system: "worker.a" },
    });
    assert.equal((await stream.answer(`c${n}`)).status, 201);
  }
});

test("R8: a large batch is decided in slices, between which others have their turn, and a progress receipt stays small", async (t) => {
  const server = await serve(t);
  const { create, offered, accept } = taskClientOf(server);
  const taskId = await create({ task_body: "x".repeat(100_000), inputs: { text: "y".repeat(60_000) } });
  const offer = await offered("worker.a");
  await accept(offer);
  const slices: number[] = [];
  server.service.engine.subscribe((events) => slices.push(events.length));
  const progress = { phase: "progress", lease_id: offer.lease_id };
  const receipts = Array.from({ length: 5_000 }, () => progress);
  const { body } = await server.post<Results>("/v1/receipts/batch", { receipts });
  assert.ok(body.results.every(({ status }) => status === 201));
  assert.ok(Math.max(...slices) < 1_000, `at once: ${Math.max(...slices)} of ${receipts.length}`);
  const page = await server.get<{ receipts: readonly WireReceipt[] }>(`/v1/receipts?task_id=${taskId}&phase=progress`);
  assert.deepEqual([page.body.receipts[0]?.task_body, page.body.receipts[0]?.inputs], ["TBD", {}]);
});

test("R3: many receipts of one key in a batch are stored once, and all are answered with it", async (t) => {
  const server = await serve(t);
  const { create, offered, accept } = taskClientOf(server);
  await create();
  const offer = await offered("worker.a");
  await accept(offer);
  const one = { phase: "complete", status: "success", lease_id: offer.lease_id, dedupe_key: "same" };
  const { body } = await server.post<Results>("/v1/receipts/batch", {
    receipts: Array.from({ length: 500 }, () => one),
  });
  assert.equal(body.results.filter(({ status }) => status === 201).length, 1);
  assert.equal(new Set(body.results.map((result) => result.body.receipt_id)).size, 1);
});

test("R8: pages and chains are bounded in bytes, and say how to go on", async (t) => {
  const server = await serve(t);
  const { create, offered, accept } = taskClientOf(server);
  const taskId = await create();
  const offer = await offered("worker.a");
  const accepted = await accept(offer);
  const large = { phase: "progress", lease_id: offer.lease_id, outcome_text: "x".repeat(100_000) };
  for (let n = 0; n < 6; n++)
    await server.post("/v1/receipts/batch", { receipts: Array.from({ length: 10 }, () => large) });
  const mib = 1024 * 1024;
  const page = await server.get<{ receipts: readonly WireReceipt[]; next_cursor: string | null }>(
    `/v1/receipts?task_id=${taskId}&limit=1000`,
  );
  assert.ok(page.text.length < 5 * mib && page.body.next_cursor !== null, String(page.text.length));
  const rest = await server.get<typeof page.body>(
    `/v1/receipts?task_id=${taskId}&limit=1000&cursor=${page.body.next_cursor}`,
  );
  assert.equal(page.body.receipts.length + rest.body.receipts.length, 61);
  const chain = await server.get<{ truncated: boolean }>(`/v1/receipts/${accepted.receipt_id}/chain`);
  assert.ok(chain.text.length < 5 * mib && chain.body.truncated, String(chain.text.length));
});

test("R8: a full quota on receipts is a typed refusal that names it, what is used and the limit", async (t) => {
  const server = await serve(t);
  const { create, offered, accept, send, complete } = taskClientOf(server);
  await create();
  const offer = await offered("worker.a");
  await accept(offer);
  await server.call("PUT", "/v1/tenants/default/quotas", { receipts_max: 1 });
  const { status, body } = await send({ phase: "progress", lease_id: offer.lease_id });
  const { error, quota, used, limit } = body as unknown as Record<string, unknown>;
  assert.deepEqual([status, error, quota, used, limit], [403, "quota_exceeded", "receipts_max", 1, 1]);
  await complete(offer);
});

test("R5: an obligation has a deadline while it is worked on, is recovered when overdue, and discharged by its custodian", async (t) => {
  const server = await serve(t);
  const { create, offered, accept, send, reach } = taskClientOf(server);
  const taskId = await create({ lease_duration_ms: 3_000, requeue_delay_ms: 60_000, supervisor: "boss" });
  const offer = await offered("worker.a");
  await accept(offer);
  const [open] = await obligations(server);
  assert.deepEqual([open?.state, open?.custodian, open?.deadline_at], ["OPEN", "worker.a", offer.lease_expires_at]);
  const path = `/v1/obligations/${open?.obligation_id}/recover`;
  const recovery = { custodian: "worker.b", reason: "its machine is gone" };
  assert.equal((await server.post(path, recovery)).body.error, "obligation_not_overdue");
  assert.equal((await server.post("/v1/obligations/obl_none/recover", recovery)).status, 404);
  await reach(taskId, "retry_pending");
  const [overdue] = await obligations(server, "?custodian=boss");
  assert.deepEqual([overdue?.state, overdue?.deadline_at], ["OVERDUE", null]);
  const recovered = await server.post<ObligationPage["obligations"][number]>(path, recovery);
  assert.deepEqual([recovered.status, recovered.body.state, recovered.body.custodian], [200, "OPEN", "worker.b"]);
  assert.equal((await obligations(server, "?custodian=worker.b")).length, 1);
  const done = await send({ phase: "complete", status: "success", task_id: taskId, source_system: "worker.b" });
  assert.equal(done.status, 201, done.text);
  await reach(taskId, "succeeded");
  assert.deepEqual(await obligations(server), []);
});

test("R7: receipts name the key that submitted them, whatever the sender says, and a worker binds nobody else", async (t) => {
  const server = await serve(t);
  const { create, poll, send } = taskClientOf(server);
  const operator = (await server.post<{ key: string }>("/v1/keys", { role: "operator" })).body.key;
  const made = await server.post<{ key: string; key_id: string }>("/v1/keys", { role: "worker" }, { key: operator });
  const { key, key_id } = made.body;
  await create({}, { key: operator });
  const offer = await poll("worker.a-1", {}, { key });
  const { lease_id } = offer ?? { lease_id: "" };
  const bound = await send({ phase: "accepted", lease_id, for_principal: "agent:innocent" }, { key });
  assert.deepEqual([bound.status, bound.body.error], [422, "invalid_receipt"]);
  const forged = { phase: "accepted", lease_id, submitted_by: "key_of_another" };
  const stored = await send(forged, { key });
  assert.deepEqual([stored.status, stored.body.submitted_by, stored.body.for_principal], [201, key_id, "worker.a-1"]);
  assert.equal(stored.body.from_principal, "delegate.root");
});

test("R3: a worker cannot use up another's dedupe key, neither while its task is alive nor afterwards", async (t) => {
  const server = await serve(t);
  const { create, poll, send } = taskClientOf(server);
  const operator = (await server.post<{ key: string }>("/v1/keys", { role: "operator" })).body.key;
  const keyOf = async () =>
    (await server.post<{ key: string }>("/v1/keys", { role: "worker" }, { key: operator })).body.key;
  const [thief, owner] = [await keyOf(), await keyOf()];
  const begin = async (workerId: string, key: string): Promise<string> => {
    await create({}, { key: operator });
    const { lease_id = "" } = (await poll(workerId, {}, { key })) ?? {};
    assert.equal((await send({ phase: "accepted", lease_id }, { key })).status, 201);
    return lease_id;
  };
  const [first, second, third] = [
    await begin("thief.1", thief),
    await begin("owner.1", owner),
    await begin("owner.1", owner),
  ];
  const done = { phase: "complete", status: "success" } as const;
  for (const dedupe_key of ["csv-1-done", "csv-2-done"])
    assert.equal((await send({ phase: "progress", lease_id: first, dedupe_key }, { key: thief })).status, 201);
  assert.equal((await send({ ...done, lease_id: second, dedupe_key: "csv-1-done" }, { key: owner })).status, 201);
  assert.equal((await send({ ...done, lease_id: first }, { key: thief })).status, 201);
  assert.equal((await send({ ...done, lease_id: third, dedupe_key: "csv-2-done" }, { key: owner })).status, 201);
  assert.equal((await send({ ...done, lease_id: third, dedupe_key: "csv-2-done" }, { key: owner })).status, 200);
});
