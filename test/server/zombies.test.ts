import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { type TestContext, test } from "node:test";
import { hashOf, readStoredReceipt } from "../../src/ledger/seal.ts";
import type { RunningServer } from "../../src/server/start.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { serve, until } from "./harness.ts";
import { taskClientOf } from "./task-client.ts";
import type { WireOffer } from "./wire-types.ts";

interface ChildReport {
  readonly step: string;
  readonly lease_id?: string;
  readonly status: number;
  readonly body?: { readonly error?: string; readonly winning_receipt_id?: string; readonly receipt_id?: string };
}

function startWorker(t: TestContext, url: string, workerId: string, workMs: number) {
  const child: ChildProcess = spawn(
    process.execPath,
    [join(import.meta.dirname, "zombie.child.ts"), url, workerId, String(workMs)],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  t.after(() => child.kill("SIGKILL"));
  const said: ChildReport[] = [];
  assert.ok(child.stdout !== null);
  createInterface(child.stdout).on("line", (line) => said.push(JSON.parse(line) as ChildReport));
  const step = (name: string) => until(() => said.find((one) => one.step === name) ?? null, `${workerId} has ${name}`);
  return { child, step };
}

/** Every receipt has the hash of the one before, and none is missing (R6). */
async function verifyLedger({ service }: RunningServer): Promise<number> {
  const { store } = service.engine;
  let sequence = 0;
  let hash = "0".repeat(64);
  for (;;) {
    const rows = await store.receiptsAfter({ tenant: "default", sequence, limit: 1_000 });
    if (rows.length === 0) break;
    for (const row of rows) {
      assert.equal(row.sequence, sequence + 1);
      assert.equal(readStoredReceipt(row).previousHash, hash);
      assert.equal(hashOf(row.body), row.hash);
      ({ sequence, hash } = row);
    }
  }
  assert.equal(service.engine.signHead("default").hash, hash);
  return sequence;
}

async function serveOnDisk(t: TestContext) {
  const data = temporaryFolder("leasehold-zombies-");
  return serve(t, { store: "sqlite", data });
}

test("a worker that was stopped past its lease wakes and completes: 409 with the winning receipt, the result unchanged", async (t) => {
  const server = await serveOnDisk(t);
  const { create, poll, accept, complete, show } = taskClientOf(server);
  const taskId = await create({ lease_duration_ms: 2_000, requeue_delay_ms: 0 });
  const zombie = startWorker(t, server.address.url, "worker.zombie", 1_500);
  await zombie.step("accepted");
  zombie.child.kill("SIGSTOP");
  const offer = await until<WireOffer>(() => poll("worker.other"), "the task is offered to another");
  await accept(offer);
  const won = await complete(offer, { outcome_text: "by worker.other" });
  zombie.child.kill("SIGCONT");
  for (const name of ["completed", "completed again"]) {
    const { status, body } = await zombie.step(name);
    assert.deepEqual([status, body?.error, body?.winning_receipt_id], [409, "already_completed", won.receipt_id]);
  }
  const task = await show(taskId);
  assert.deepEqual([task.status, task.result?.outcome_text], ["succeeded", "by worker.other"]);
  assert.equal(await verifyLedger(server), task.receipts.length);
});

test("while another worker has the task, a zombie is refused with stale_fence and the other's result stands", async (t) => {
  const server = await serveOnDisk(t);
  const { create, poll, accept, complete, show } = taskClientOf(server);
  const taskId = await create({ lease_duration_ms: 2_000, requeue_delay_ms: 0 });
  const zombie = startWorker(t, server.address.url, "worker.zombie", 1_500);
  await zombie.step("accepted");
  zombie.child.kill("SIGSTOP");
  const offer = await until<WireOffer>(() => poll("worker.other"), "the task is offered to another");
  await accept(offer);
  const beating = setInterval(() => void server.post(`/lease/${offer.lease_id}/heartbeat`), 100);
  t.after(() => clearInterval(beating));
  zombie.child.kill("SIGCONT");
  assert.deepEqual(
    [(await zombie.step("completed")).status, (await zombie.step("completed")).body?.error],
    [409, "stale_fence"],
  );
  clearInterval(beating);
  await complete(offer, { outcome_text: "by worker.other" });
  assert.equal((await show(taskId)).result?.outcome_text, "by worker.other");
  await verifyLedger(server);
});

test("a worker that was killed leaves its task to the next, once, and the ledger intact", async (t) => {
  const server = await serveOnDisk(t);
  const { create, phases, reach } = taskClientOf(server);
  const taskId = await create({ lease_duration_ms: 2_000, requeue_delay_ms: 0 });
  const killed = startWorker(t, server.address.url, "worker.killed", 60_000);
  await killed.step("accepted");
  killed.child.kill("SIGKILL");
  const next = startWorker(t, server.address.url, "worker.next", 0);
  assert.equal((await next.step("completed")).status, 201);
  assert.equal((await next.step("completed again")).body?.error, "already_completed");
  await reach(taskId, "succeeded");
  assert.deepEqual(await phases(taskId), ["accepted", "escalate lease_expired", "accepted", "complete success"]);
  await verifyLedger(server);
});

test("T4: repeated and reordered requests of many tasks: each is completed exactly once, and obligations agree", async (t) => {
  const server = await serveOnDisk(t);
  const { create, offered, send, show } = taskClientOf(server);
  const count = 60;
  const ids = await Promise.all(Array.from({ length: count }, () => create({ requeue_delay_ms: 0 })));
  const offers = await Promise.all(Array.from({ length: count }, (_, index) => offered(`worker.${index % 7}`)));
  // Everything is sent four times in random order: what comes too early is refused, and sent once more at the end.
  const said = offers.flatMap(({ lease_id }) => {
    const accepted = { phase: "accepted", lease_id, dedupe_key: `a-${lease_id}` };
    const complete = { phase: "complete", status: "success", lease_id, dedupe_key: `c-${lease_id}` };
    return [complete, accepted, complete, accepted, accepted, complete, accepted, complete];
  });
  const scattered = said.map((one, index) => ({ one, at: (index * 7_919) % said.length })).sort((a, b) => a.at - b.at);
  const answers = await Promise.all(scattered.map(({ one }) => send(one)));
  assert.ok(answers.every(({ status }) => status === 201 || status === 200 || status === 409));
  for (const { lease_id } of offers) {
    await send({ phase: "accepted", lease_id, dedupe_key: `a-${lease_id}` });
    await send({ phase: "complete", status: "success", lease_id, dedupe_key: `c-${lease_id}` });
  }
  for (const id of ids) {
    const task = await show(id);
    assert.deepEqual([task.status, task.receipts.map(({ phase }) => phase)], ["succeeded", ["accepted", "complete"]]);
  }
  const { body } = await server.get<{ obligations: readonly unknown[] }>("/v1/obligations");
  assert.deepEqual(body.obligations, []);
  assert.equal(await verifyLedger(server), 2 * count);
});
