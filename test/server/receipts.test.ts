import assert from "node:assert/strict";
import { test } from "node:test";
import { signatureCheck } from "../../src/ledger/keys.ts";
import { serve, until } from "./harness.ts";
import { type Refused, taskClientOf } from "./task-client.ts";
import type { WireKey, WireLedgerHead, WireObligation, WireReceipt } from "./wire-types.ts";

interface ReceiptPage {
  readonly receipts: readonly WireReceipt[];
  readonly next_cursor: string | null;
}
interface ObligationPage {
  readonly obligations: readonly WireObligation[];
}

/** A full receipt of LegiVellum's version 1, with every field, as its own tools write them. */
const full = (over: object) => ({
  schema_version: "1.0",
  tenant_id: "default",
  receipt_id: "NA",
  task_id: "NA",
  obligation_id: "NA",
  parent_task_id: "NA",
  caused_by_receipt_id: "NA",
  dedupe_key: "NA",
  attempt: 1,
  from_principal: "delegate.root",
  for_principal: "user.1",
  source_system: "worker.full-1",
  recipient_ai: "worker.full",
  trust_domain: "local",
  phase: "accepted",
  status: "NA",
  realtime: false,
  task_type: "code.generate",
  task_summary: "write it",
  task_body: "all of it",
  inputs: {},
  expected_outcome_kind: "response_text",
  expected_artifact_mime: "NA",
  outcome_kind: "NA",
  outcome_text: "NA",
  artifact_location: "NA",
  artifact_pointer: "NA",
  artifact_checksum: "NA",
  artifact_size_bytes: 0,
  artifact_mime: "NA",
  artifact_refs: [],
  escalation_class: "NA",
  escalation_reason: "NA",
  escalation_to: "NA",
  retry_requested: false,
  body: {},
  created_at: "2026-01-04T15:45:00Z",
  stored_at: null,
  started_at: null,
  completed_at: null,
  read_at: null,
  archived_at: null,
  metadata: {},
  ...over,
});

test("R2: LegiVellum's full receipts are accepted unchanged and shown with all their fields", async (t) => {
  const server = await serve(t);
  const { create, offered, send, show } = taskClientOf(server);
  const taskId = await create();
  await offered("worker.full-1");
  const accepted = await send(full({ task_id: taskId, receipt_id: "R-1" }));
  assert.equal(accepted.status, 201, accepted.text);
  assert.deepEqual(
    [accepted.body.receipt_id, accepted.body.created_at, accepted.body.task_summary, accepted.body.trust_domain],
    ["R-1", "2026-01-04T15:45:00.000Z", "write it", "local"],
  );
  const done = await send(
    full({
      task_id: taskId,
      phase: "complete",
      status: "success",
      outcome_kind: "response_text",
      outcome_text: "here",
      completed_at: "2026-01-04T16:00:00+00:00",
      caused_by_receipt_id: "R-1",
    }),
  );
  assert.equal(done.status, 201, done.text);
  const { hash: _hash, previous_hash: _before, sequence: _sequence, submitted_by, ...shown } = done.body;
  assert.equal(submitted_by, null, "no credential was shown");
  assert.deepEqual(Object.keys(shown).toSorted(), Object.keys(full({})).toSorted());
  assert.equal((await show(taskId)).result?.outcome_text, "here");
});

test("R2: a tenant_id that contradicts the credential is refused, and nothing is stored", async (t) => {
  const server = await serve(t);
  const { create, offered, send, show } = taskClientOf(server);
  const taskId = await create();
  await offered("worker.full-1");
  const { status, body } = await send(full({ task_id: taskId, tenant_id: "acme" }));
  assert.deepEqual([status, body.error, body.field], [403, "tenant_mismatch", "tenant_id"]);
  assert.deepEqual((await show(taskId)).receipts, []);
});

test("R3: the same key and content returns the first receipt, also after the task has ended; other content is refused", async (t) => {
  const server = await serve(t);
  const { create, offered, accept, send, complete } = taskClientOf(server);
  await create();
  const offer = await offered("worker.a");
  const said = { phase: "accepted", lease_id: offer.lease_id, dedupe_key: "a" } as const;
  const first = await send(said);
  assert.equal(first.status, 201);
  const again = await send(said);
  assert.deepEqual([again.status, again.body.receipt_id], [200, first.body.receipt_id]);
  assert.equal((await send({ ...said, task_summary: "other" })).body.error, "dedupe_conflict");
  await complete(offer, { dedupe_key: "c" });

  // The task has ended: now the ledger knows the keys, for every task.
  await create();
  const other = await offered("worker.a");
  const stolen = await send({ phase: "accepted", lease_id: other.lease_id, dedupe_key: "a", task_summary: "mine" });
  assert.deepEqual([stolen.status, stolen.body.error], [409, "dedupe_conflict"]);
  const repeated = await send(said);
  assert.deepEqual([repeated.status, repeated.body.receipt_id], [200, first.body.receipt_id]);
  await accept(other);
});

test("R3: a hundred copies of one receipt at once are stored once, and all are answered with it", async (t) => {
  const server = await serve(t);
  const { create, offered, accept, send, show } = taskClientOf(server);
  const taskId = await create();
  const offer = await offered("worker.a");
  await accept(offer);
  const said = { phase: "complete", status: "success", lease_id: offer.lease_id, dedupe_key: "once" } as const;
  const answers = await Promise.all(Array.from({ length: 100 }, () => send(said)));
  const [winner] = answers.filter(({ status }) => status === 201);
  assert.equal(answers.filter(({ status }) => status === 201).length, 1);
  assert.ok(answers.every(({ status, body }) => status < 300 && body.receipt_id === winner?.body.receipt_id));
  assert.equal((await show(taskId)).receipts.length, 2);
});

test("R3: two tasks cannot be completed under one key, in one call or concurrently", async (t) => {
  const server = await serve(t);
  const { create, offered, accept } = taskClientOf(server);
  const completing = async () => {
    await create();
    const offer = await offered("worker.a");
    await accept(offer);
    return { phase: "complete", status: "success", lease_id: offer.lease_id };
  };
  const receipts = [await completing(), await completing()].map((one) => ({ ...one, dedupe_key: "same" }));
  const { body } = await server.post<{ results: readonly { status: number; body: Refused }[] }>("/v1/receipts/batch", {
    receipts: receipts.map((one, index) => ({ ...one, outcome_text: `of ${index}` })),
  });
  assert.deepEqual(
    body.results.map((one) => [one.status, one.body.error]),
    [
      [201, undefined],
      [409, "dedupe_conflict"],
    ],
  );
  const racing = [await completing(), await completing()].map((one) => ({ ...one, dedupe_key: "race" }));
  const answers = await Promise.all(
    racing.map((one, index) => server.post("/v1/receipts", { ...one, outcome_text: `of ${index}` })),
  );
  assert.deepEqual(answers.map(({ status }) => status).toSorted(), [201, 409]);
});

test("receipts of one call are applied in order: accepted and then complete of one task", async (t) => {
  const server = await serve(t);
  const { create, offered, reach } = taskClientOf(server);
  for (const keyed of [
    ["a", undefined],
    [undefined, "b"],
    ["c", "d"],
    [undefined, undefined],
  ] as const) {
    const taskId = await create();
    const { lease_id } = await offered("worker.a");
    const [first, second] = keyed;
    const { body } = await server.post<{ results: readonly { status: number }[] }>("/v1/receipts/batch", {
      receipts: [
        { phase: "accepted", lease_id, ...(first !== undefined && { dedupe_key: first }) },
        { phase: "complete", status: "success", lease_id, ...(second !== undefined && { dedupe_key: second }) },
      ],
    });
    assert.deepEqual(
      body.results.map(({ status }) => status),
      [201, 201],
      JSON.stringify(keyed),
    );
    await reach(taskId, "succeeded");
  }
});

test("T7: progress receipts are stored, and heartbeats are not (R4)", async (t) => {
  const server = await serve(t);
  const { create, offered, accept, send, phases } = taskClientOf(server);
  const taskId = await create();
  const offer = await offered("worker.a");
  await accept(offer);
  await server.post(`/lease/${offer.lease_id}/heartbeat`, { progress: 1 });
  const progress = await send({ phase: "progress", lease_id: offer.lease_id, outcome_text: "half done" });
  assert.equal(progress.status, 201, progress.text);
  assert.deepEqual(await phases(taskId), ["accepted", "progress"]);
});

test("the ledger is searched by task, phase, recipient, source and time, page by page", async (t) => {
  const server = await serve(t);
  const { create, offered, accept, complete } = taskClientOf(server);
  const ids: string[] = [];
  for (let count = 0; count < 3; count++) {
    ids.push(await create());
    const offer = await offered(`worker.${count}`);
    await accept(offer);
    await complete(offer);
  }
  const list = async (query: string) => (await server.get<ReceiptPage>(`/v1/receipts?${query}`)).body;
  assert.deepEqual(
    (await list("")).receipts.map(({ sequence }) => sequence),
    [1, 2, 3, 4, 5, 6],
  );
  assert.deepEqual(
    (await list(`task_id=${ids[1]}`)).receipts.map(({ sequence }) => sequence),
    [3, 4],
  );
  assert.deepEqual(
    (await list("phase=complete")).receipts.map(({ sequence }) => sequence),
    [2, 4, 6],
  );
  assert.deepEqual(
    (await list("source_system=worker.2")).receipts.map(({ sequence }) => sequence),
    [5, 6],
  );
  assert.deepEqual(
    (await list("recipient_ai=delegate.root")).receipts.map(({ sequence }) => sequence),
    [2, 4, 6],
  );
  assert.deepEqual((await list("since=2999-01-01T00:00:00Z")).receipts, []);
  const seen: number[] = [];
  let cursor = "";
  do {
    const page = await list(`limit=4&cursor=${cursor}`);
    seen.push(...page.receipts.map(({ sequence }) => sequence));
    cursor = page.next_cursor ?? "";
  } while (cursor !== "");
  assert.deepEqual(seen, [1, 2, 3, 4, 5, 6]);
  const one = (await list("limit=1")).receipts[0];
  assert.deepEqual((await server.get<WireReceipt>(`/v1/receipts/${one?.receipt_id}`)).body, one);
  const never = await server.get("/v1/receipts/rcp_never");
  assert.deepEqual([never.status, never.body.error], [404, "receipt_unknown"]);
});

test("R5: obligations are OPEN, OVERDUE and CLOSED, with one custodian at a time, and agree with the inbox", async (t) => {
  const server = await serve(t);
  const { create, offered, accept, complete, reach } = taskClientOf(server);
  const overdue = await create({ lease_duration_ms: 1_000, requeue_delay_ms: 600_000 });
  await accept(await offered("worker.lost"));
  await reach(overdue, "retry_pending");
  const open = await create();
  await accept(await offered("worker.busy"));
  const closed = await create();
  const offer = await offered("worker.done");
  await accept(offer);
  await complete(offer);
  const of = async (query: string) =>
    (await server.get<ObligationPage>(`/v1/obligations?${query}`)).body.obligations.map((one) => one.task_id);
  assert.deepEqual(await of("state=OPEN"), [open]);
  assert.deepEqual(await of("state=OVERDUE"), [overdue]);
  assert.deepEqual(await of("state=CLOSED"), [closed]);
  assert.deepEqual((await of("")).toSorted(), [open, overdue].toSorted());
  assert.deepEqual(await of("custodian=worker.busy"), [open]);
  const inbox = await server.get<ObligationPage>("/v1/inbox/worker.busy");
  assert.deepEqual(
    inbox.body.obligations.map((one) => one.task_id),
    [open],
  );
});

test("R5: the chain of causes is followed both ways", async (t) => {
  const server = await serve(t);
  const { create, offered, accept, complete, send } = taskClientOf(server);
  await create();
  const first = await offered("worker.a");
  const cause = await accept(first);
  const child = await create({ parent_task_id: first.task.task_id });
  const second = await offered("worker.b");
  const accepted = await send({ phase: "accepted", lease_id: second.lease_id, caused_by_receipt_id: cause.receipt_id });
  const done = await complete(second);
  interface Chain {
    readonly causes: readonly WireReceipt[];
    readonly effects: readonly WireReceipt[];
    readonly truncated: boolean;
  }
  const { body } = await server.get<Chain>(`/v1/receipts/${accepted.body.receipt_id}/chain`);
  assert.deepEqual(
    [body.causes, body.effects].map((some) => some.map(({ receipt_id: id }) => id)),
    [[cause.receipt_id], [done.receipt_id]],
  );
  assert.equal(body.truncated, false);
  assert.equal(done.task_id, child);
});

test("R6: the head is signed, covers the last receipt, and can be verified with the public key", async (t) => {
  const server = await serve(t);
  const { create, offered, accept } = taskClientOf(server);
  const empty = await server.get<WireLedgerHead>("/v1/ledger/head");
  assert.equal(empty.body.sequence, 0);
  await create();
  const receipt = await accept(await offered("worker.a"));
  const { body, text } = await server.get<WireLedgerHead>("/v1/ledger/head");
  assert.deepEqual([body.sequence, body.hash], [receipt.sequence, receipt.hash]);
  const check = signatureCheck({ keyId: body.key_id, publicKey: body.public_key });
  const signed = `${text.slice(0, text.indexOf(',"signature"'))}}`;
  assert.ok(check?.(signed, body.signature));
  assert.ok(!check?.(signed.replace('"sequence":1', '"sequence":2'), body.signature));
});

test("T1, L13: a worker's key acts as the worker_ids that it used first, and as no other", async (t) => {
  const server = await serve(t);
  const { create, poll, send } = taskClientOf(server);
  const key = async (role: string, options = {}) =>
    (await server.post<WireKey & { key: string }>("/v1/keys", { role }, options)).body.key;
  const operator = await key("operator");
  const [one, two] = [await key("worker", { key: operator }), await key("worker", { key: operator })];
  await create({}, { key: operator });
  const offer = await poll("worker.mine", {}, { key: one });
  assert.ok(offer !== null);
  const other = await server.post("/lease", { worker_id: "worker.mine" }, { key: two });
  assert.deepEqual([other.status, other.body.error], [403, "forbidden"]);
  const accepted = { phase: "accepted", lease_id: offer.lease_id } as const;
  assert.equal((await send(accepted, { key: two })).body.error, "not_lease_holder");
  assert.equal((await server.post(`/lease/${offer.lease_id}/heartbeat`, {}, { key: two })).status, 403);
  assert.equal((await send(accepted, { key: one })).status, 201);
  assert.equal((await server.post(`/lease/${offer.lease_id}/heartbeat`, {}, { key: one })).status, 200);
  assert.equal((await server.post(`/lease/${offer.lease_id}/release`, {}, { key: operator })).status, 200);
  const late = await server.post(`/lease/${offer.lease_id}/heartbeat`, {}, { key: one });
  assert.deepEqual([late.status, late.body.error], [410, "lease_released"]);
  // A key that did not create the task may not cancel it.
  const taskId = await create({}, { key: one });
  assert.equal((await server.post(`/v1/tasks/${taskId}/cancel`, {}, { key: two })).status, 403);
  assert.equal((await server.post(`/v1/tasks/${taskId}/cancel`, {}, { key: one })).status, 200);
});

test("another tenant's tasks and receipts are answered exactly like unknown ones", async (t) => {
  const server = await serve(t);
  const { create, offered, accept } = taskClientOf(server);
  await server.post("/v1/tenants", { tenant_id: "acme" });
  const taskId = await create();
  const offer = await offered("worker.a");
  const { receipt_id: receiptId } = await accept(offer);
  const tenant = "acme";
  for (const [method, path, there, never] of [
    ["GET", (id: string) => `/v1/tasks/${id}`, taskId, "T-never"],
    ["GET", (id: string) => `/v1/tasks/${id}/explain`, taskId, "T-never"],
    ["POST", (id: string) => `/v1/tasks/${id}/cancel`, taskId, "T-never"],
    ["GET", (id: string) => `/v1/receipts/${id}`, receiptId, "rcp_never"],
    ["POST", (id: string) => `/lease/${id}/heartbeat`, offer.lease_id, "lse_never"],
    ["POST", (id: string) => `/lease/${id}/release`, offer.lease_id, "lse_never"],
  ] as const) {
    const body = method === "POST" ? {} : undefined;
    const seen = await server.call(method, path(there), body, { tenant });
    const unseen = await server.call(method, path(never), body, { tenant });
    assert.equal(seen.status, 404, path(there));
    assert.equal(seen.text.replaceAll(there, "X"), unseen.text.replaceAll(never, "X"), path(there));
  }
  const page = await server.get<ReceiptPage>("/v1/receipts", { tenant });
  assert.deepEqual(page.body.receipts, []);
  await until(
    async () => ((await server.get<WireLedgerHead>("/v1/ledger/head", { tenant })).body.sequence === 0 ? true : null),
    "an empty ledger",
  );
});
