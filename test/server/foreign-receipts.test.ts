import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { ServerOptions } from "../../src/server/start.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { serve } from "./harness.ts";
import { taskClientOf } from "./task-client.ts";
import type { WireReceipt } from "./wire-types.ts";

interface Owed {
  readonly obligations: readonly {
    readonly obligation_id: string;
    readonly custodian: string;
    readonly task_id: string;
    readonly foreign: boolean;
    readonly status: string;
  }[];
}
interface Results {
  readonly results: readonly { readonly status: number; readonly body: { readonly error?: string } }[];
}

/** LegiVellum's receipt, version 1, as another system sends it. */
const accepted = {
  phase: "accepted",
  task_id: "elsewhere/1",
  task_type: "review",
  task_summary: "Read it",
  from_principal: "delegate.root",
  for_principal: "worker.x",
  recipient_ai: "worker.x",
  source_system: "worker.x",
  status: "NA",
  outcome_kind: "NA",
  escalation_to: "NA",
  completed_at: null,
  dedupe_key: "accepted-1",
};
const complete = { phase: "complete", task_id: "elsewhere/1", source_system: "worker.x", status: "success" };

async function serveLedger(t: TestContext, options: ServerOptions = {}) {
  const server = await serve(t, options);
  const set = await server.call("PUT", "/v1/tenants/default/settings", { foreign_receipts: true });
  assert.equal(set.status, 200, set.text);
  const send = (receipt: object) => server.post<WireReceipt & { error?: string }>("/v1/receipts", receipt);
  const owed = async (path: string) => (await server.get<Owed>(path)).body.obligations;
  return { ...server, server, send, owed };
}

test("R1: without the setting, a receipt about another's task is task_unknown as before", async (t) => {
  const { post } = await serve(t);
  const refused = await post<{ error: string }>("/v1/receipts", accepted);
  assert.deepEqual([refused.status, refused.body.error], [404, "task_unknown"], refused.text);
});

test("R5: receipts about another's task are chained, and in inboxes, lists and chains like our own", async (t) => {
  const { server, send, owed } = await serveLedger(t);
  const { create, offered, accept } = taskClientOf(server);
  await create();
  await accept(await offered("worker.a"));
  const first = await send(accepted);
  assert.equal(first.status, 201, first.text);
  const inbox = await owed("/v1/inbox/worker.x");
  assert.deepEqual(
    inbox.map(({ task_id, foreign, status, obligation_id }) => [task_id, foreign, status, obligation_id]),
    [["elsewhere/1", true, "accepted", first.body.obligation_id]],
  );
  assert.deepEqual((await owed("/v1/obligations")).map(({ foreign }) => foreign).sort(), [false, true]);
  const moved = await send({
    phase: "escalate",
    task_id: "elsewhere/1",
    source_system: "worker.x",
    escalation_class: "owner",
    escalation_reason: "not mine",
    escalation_to: "boss",
  });
  assert.equal(moved.status, 201, moved.text);
  assert.deepEqual([(await owed("/v1/inbox/worker.x")).length, (await owed("/v1/inbox/boss")).length], [0, 1]);
  const done = await send({ ...complete, source_system: "boss" });
  assert.equal(done.status, 201, done.text);
  assert.equal((await owed("/v1/inbox/boss")).length, 0);
  const page = await server.get<{ receipts: readonly WireReceipt[] }>("/v1/receipts?task_id=elsewhere/1");
  assert.deepEqual(
    page.body.receipts.map(({ phase }) => phase),
    ["accepted", "escalate", "complete"],
  );
  const chain = await server.get<{ causes: unknown[]; effects: unknown[] }>(
    `/v1/receipts/${moved.body.receipt_id}/chain`,
  );
  assert.deepEqual([chain.body.causes.length, chain.body.effects.length], [1, 1]);
  const head = await server.get<{ sequence: number }>("/v1/ledger/head");
  assert.equal(head.body.sequence, 4, "one ledger for all of them");
});

test("R3: a receipt about another's task that is sent again gets the first answer, also once it is complete", async (t) => {
  const { send } = await serveLedger(t);
  const first = await send(accepted);
  assert.deepEqual(
    [(await send(accepted)).status, (await send(accepted)).body.receipt_id],
    [200, first.body.receipt_id],
  );
  const keyed = { ...complete, dedupe_key: "done-1" };
  const done = await send(keyed);
  assert.equal(done.status, 201, done.text);
  for (const [receipt, id] of [
    [accepted, first.body.receipt_id],
    [keyed, done.body.receipt_id],
  ] as const) {
    const again = await send(receipt);
    assert.deepEqual([again.status, again.body.receipt_id], [200, id], again.text);
  }
  assert.equal((await send({ ...keyed, status: "failure" })).body.error, "dedupe_conflict");
  const bare = await send(complete);
  assert.deepEqual([bare.status, bare.body.error], [409, "complete_without_accept"]);
});

test("R1: a batch about others' tasks is decided in its order; a task of our own that has ended is not taken for another's", async (t) => {
  const { server, post } = await serveLedger(t);
  const { create, offered, accept, complete: end } = taskClientOf(server);
  const taskId = await create();
  const offer = await offered("worker.a");
  await accept(offer);
  await end(offer);
  const about = (task_id: string) => [
    { ...accepted, task_id, dedupe_key: undefined },
    { phase: "progress", task_id, source_system: "worker.x" },
    { ...complete, task_id },
    { ...complete, task_id },
  ];
  const ids = Array.from({ length: 50 }, (_, nth) => `elsewhere/${nth}`);
  const { body } = await post<Results>("/v1/receipts/batch", { receipts: [...ids.flatMap(about), ...about(taskId)] });
  assert.deepEqual(
    body.results.map(({ status }) => status),
    [...ids.flatMap(() => [201, 201, 201, 409]), 409, 409, 409, 409],
  );
  assert.equal(body.results.at(-1)?.body.error, "already_completed");
});

test("R1: open obligations on others' tasks survive a restart of the service", async (t) => {
  const data = temporaryFolder("leasehold-foreign-");
  const first = await serveLedger(t, { store: "sqlite", data });
  const sent = await first.send(accepted);
  assert.equal(sent.status, 201, sent.text);
  const before = await first.owed("/v1/obligations");
  await first.close();
  const second = await serveLedger(t, { store: "sqlite", data });
  assert.deepEqual(await second.owed("/v1/obligations"), before);
  assert.equal((await second.send(accepted)).body.receipt_id, sent.body.receipt_id);
  assert.equal((await second.send(complete)).status, 201);
  assert.deepEqual(await second.owed("/v1/obligations"), []);
});
