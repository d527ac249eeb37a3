import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Lease } from "../kernel/contract/records.ts";
import type { Task } from "../kernel/contract/task-records.ts";
import { headText } from "../ledger/head.ts";
import { createLedgerKey, type LedgerKey, signatureCheck } from "../ledger/keys.ts";
import { genesisHash, readStoredReceipt } from "../ledger/seal.ts";
import { verifyLedger } from "../ledger/verify.ts";
import { createMemoryDisk, createMemoryStore, type MemoryDisk } from "../store/memory.ts";
import type { SignedHead } from "../store/store.ts";
import { Engine } from "./engine.ts";
import { DatabaseUnavailable, type Decision, type EngineOptions } from "./engine-types.ts";
import { completeReply, findEndedTask } from "./history.ts";
import { headEvery, headMs } from "./ledger-chain.ts";
import { createTask, heartbeatTask, poll, releaseTask, submit } from "./testing/test-tasks.ts";

const key = createLedgerKey();

async function startEngine(disk: MemoryDisk = createMemoryDisk(), options: Partial<EngineOptions> = {}) {
  const lines: string[] = [];
  const note = (_details: object, message: string): void => void lines.push(message);
  const engine = new Engine({
    store: createMemoryStore(disk),
    encodeEvent: ({ type }) => JSON.stringify({ type }),
    log: { info: note, warn: note, error: note },
    ledgerKey: () => key,
    ...options,
  });
  await engine.start();
  return { engine, disk, lines };
}

/** What is on the disk must be a whole ledger, always. */
function checkDisk({ ledger }: MemoryDisk, ...keys: LedgerKey[]): void {
  const tenants = new Set(ledger.heads.map(({ tenant }) => tenant));
  const heads = new Map(
    Array.from(tenants, (tenant): [string, SignedHead[]] => [
      tenant,
      ledger.heads.filter((one) => one.tenant === tenant),
    ]),
  );
  const { findings } = verifyLedger(ledger.receipts, { heads, keys: [key, ...keys] });
  assert.deepEqual(findings, []);
}

async function make(engine: Engine, task: Parameters<typeof createTask>[0] = {}): Promise<Task> {
  const { reply } = await engine.command(createTask(task));
  assert.ok(reply.type === "task", reply.type === "refused" ? reply.detail : reply.type);
  return reply.task;
}

async function take(engine: Engine, workerId = "code.1"): Promise<{ readonly task: Task; readonly lease: Lease }> {
  const { reply } = await engine.command(poll(workerId));
  const offer = reply.type === "offers" ? reply.offers[0] : undefined;
  assert.ok(offer !== undefined);
  return offer;
}

async function accept(engine: Engine, leaseId: string) {
  return engine.command(submit({ phase: "accepted", leaseId }));
}

/** From its creation to its end. */
async function run(engine: Engine): Promise<{ readonly task: Task; readonly lease: Lease }> {
  await make(engine, { inputs: { file: "a.ts" } });
  const offer = await take(engine);
  await accept(engine, offer.lease.id);
  const { reply } = await engine.command(submit({ phase: "complete", leaseId: offer.lease.id, status: "success" }));
  assert.equal(reply.type, "receipt");
  return offer;
}

describe("R6: the engine seals what the kernel adds to the ledger", () => {
  test("an answer brings its receipts with their hashes, and the ledger has them so", async () => {
    const { engine, disk } = await startEngine();
    await make(engine);
    const { lease, task } = await take(engine);
    const accepted = await accept(engine, lease.id);
    const completed = await engine.command(submit({ phase: "complete", leaseId: lease.id, status: "success" }));
    const [first] = accepted.receipts;
    const [second] = completed.receipts;
    assert.equal(first?.previousHash, genesisHash);
    assert.equal(second?.previousHash, first?.hash);
    const page = await engine.store.receiptsPage({ tenant: "default", taskId: task.id, limit: 10 });
    assert.deepEqual(page.receipts.map(readStoredReceipt), [first, second]);
    assert.deepEqual((await engine.command(createTask())).receipts, []);
    await engine.close();
    assert.deepEqual(disk.ledger.receipts.map(readStoredReceipt), [first, second]);
    checkDisk(disk);
  });

  test("a task that has ended is in history with its payload, and nothing of it is left alive", async () => {
    const { engine, disk } = await startEngine();
    const { task } = await run(engine);
    const [row] = await engine.store.endedTasks("default", [task.id]);
    assert.deepEqual([row?.status, row?.taskType], ["succeeded", "code.review"]);
    const ended = await findEndedTask(engine.store, "default", task.id);
    assert.deepEqual([ended?.status, ended?.payload?.inputs], ["succeeded", { file: "a.ts" }]);
    const kinds = new Set([...disk.live.values()].map(({ kind }) => kind));
    assert.deepEqual([kinds.has("task"), kinds.has("payload")], [false, false]);
    await engine.close();
  });

  test("S1: a head that is asked for says what is durable, and not what is under way", async () => {
    const { engine, disk } = await startEngine();
    assert.deepEqual([engine.signHead("default").sequence, engine.signHead("default").hash], [0, genesisHash]);
    await make(engine);
    const { lease } = await take(engine);
    let letGo = (): void => undefined;
    const gate = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    disk.beforeCommit = () => gate;
    const underWay = accept(engine, lease.id);
    await new Promise((resolve) => setTimeout(resolve, 20));
    assert.equal(engine.signHead("default").sequence, 0);
    disk.beforeCommit = null;
    letGo();
    const [receipt] = (await underWay).receipts;
    const head = engine.signHead("default");
    assert.deepEqual([head.sequence, head.hash, head.keyId], [1, receipt?.hash, key.keyId]);
    assert.ok(signatureCheck(key)?.(headText(head), head.signature));
    await engine.close();
  });

  test("a head is signed and stored after N receipts, after a time, and when the service ends", async () => {
    const now = { wall: 1_900_000_000_000, monotonic: 0 };
    const time = { wall: () => now.wall, monotonic: () => now.monotonic };
    const { engine, disk } = await startEngine(createMemoryDisk(), { time });
    await make(engine, { leaseDurationMs: 3_600_000 });
    const { lease } = await take(engine);
    await accept(engine, lease.id);
    const progress = () => engine.command(submit({ phase: "progress", leaseId: lease.id }));
    await Promise.all(Array.from({ length: headEvery - 2 }, progress));
    assert.equal(disk.ledger.heads.length, 0);
    await progress();
    assert.deepEqual(
      disk.ledger.heads.map(({ sequence }) => sequence),
      [headEvery],
    );
    await progress();
    now.monotonic += headMs;
    await engine.command(createTask());
    await progress();
    await engine.close();
    assert.deepEqual(
      disk.ledger.heads.map(({ sequence }) => sequence),
      [headEvery, headEvery + 1, headEvery + 2],
    );
    checkDisk(disk);
  });
});

test("R6: a ledger that has gone quiet is signed too, without anybody asking for anything", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const now = { wall: 1_900_000_000_000, monotonic: 0 };
  const time = { wall: () => now.wall, monotonic: () => now.monotonic };
  const { engine, disk } = await startEngine(createMemoryDisk(), { time });
  await run(engine);
  assert.equal(disk.ledger.heads.length, 0);
  now.monotonic += headMs;
  t.mock.timers.tick(headMs);
  while (disk.ledger.heads.length === 0) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(disk.ledger.heads[0]?.sequence, 2);
  await engine.close();
  assert.equal(disk.ledger.heads.length, 1);
});

describe("R6: the chain goes on", () => {
  test("after a restart, an orderly one or a kill, and the heads that were not signed are", async () => {
    const disk = createMemoryDisk();
    for (let round = 1; round <= 4; round += 1) {
      const { engine } = await startEngine(disk);
      await run(engine);
      if (round % 2 === 0) disk.owner = null;
      else await engine.close();
    }
    const { engine } = await startEngine(disk);
    await engine.command(createTask());
    assert.equal(disk.ledger.heads.at(-1)?.sequence, 8);
    await engine.close();
    assert.equal(disk.ledger.receipts.length, 8);
    checkDisk(disk);
  });

  for (const fate of ["lost", "stored"] as const) {
    test(`S2: after a commit that failed and was ${fate}, from what is on the disk`, async () => {
      const { engine, disk } = await startEngine();
      await run(engine);
      await make(engine);
      const { lease } = await take(engine);
      disk.failNextCommit = fate;
      await assert.rejects(accept(engine, lease.id), DatabaseUnavailable);
      assert.throws(() => engine.signHead("default"), DatabaseUnavailable);
      while (!engine.isServing) await new Promise((resolve) => setTimeout(resolve, 5));
      assert.equal(engine.signHead("default").sequence, fate === "stored" ? 3 : 2);
      await accept(engine, lease.id);
      await engine.command(submit({ phase: "complete", leaseId: lease.id, status: "success" }));
      await engine.close();
      assert.deepEqual(
        disk.ledger.receipts.map(({ sequence }) => sequence),
        [1, 2, 3, 4],
      );
      checkDisk(disk);
    });
  }

  test("with another key, and what the old one signed can still be checked", async () => {
    const disk = createMemoryDisk();
    const next = createLedgerKey();
    for (const ledgerKey of [key, next, next]) {
      const { engine } = await startEngine(disk, { ledgerKey: () => ledgerKey });
      await run(engine);
      assert.equal(engine.ledgerKey.keyId, ledgerKey.keyId);
      await engine.close();
      assert.deepEqual(
        engine.ledgerKeys.map(({ keyId }) => keyId),
        ledgerKey === key ? [key.keyId] : [key.keyId, next.keyId],
      );
    }
    checkDisk(disk, next);
  });

  test("where receipts were taken out behind its back the service says so and goes on; where some were added it does not start", async () => {
    const disk = createMemoryDisk();
    const first = await startEngine(disk);
    await run(first.engine);
    await first.engine.close();
    const [one, two] = disk.ledger.receipts;
    assert.ok(one !== undefined && two !== undefined);
    disk.ledger.receipts.pop();
    const second = await startEngine(disk);
    assert.ok(second.lines.some((line) => line.includes("ends at 1, but 2 receipts were given")));
    await run(second.engine);
    await second.engine.close();
    const { findings } = verifyLedger(disk.ledger.receipts);
    assert.deepEqual([findings[0]?.code, findings[0]?.sequence], ["receipts_missing", 2]);
    disk.ledger.receipts.push({ ...two, sequence: 9 });
    await assert.rejects(startEngine(disk), /has 9 receipts, but 4 were given/);
  });
});

describe("T13: what has ended is answered from history", () => {
  test("a late complete gets the winning receipt, and the same one sent again is the first", async () => {
    const { engine } = await startEngine();
    await make(engine);
    const { lease, task } = await take(engine);
    await accept(engine, lease.id);
    const complete = submit({ phase: "complete", taskId: task.id, status: "success", dedupeKey: "done" });
    const { reply, receipts } = await engine.command(complete);
    assert.equal(reply.type, "receipt");
    const again = await answered(engine, complete);
    assert.deepEqual(again, { type: "receipt_known", receiptId: receipts[0]?.receipt.id });
    const [known] = await engine.store.receiptsById("default", [receipts[0]?.receipt.id ?? ""]);
    assert.equal(known?.body, receipts[0]?.text);
    const late = await answered(engine, submit({ phase: "complete", status: "failure", taskId: task.id }));
    assert.equal(late.type === "refused" ? late.code : late.type, "already_completed");
    assert.equal(late.type === "refused" ? late.winningReceiptId : null, receipts[0]?.receipt.id);
    const unknown = await answered(engine, submit({ phase: "complete", status: "success", taskId: "T-never" }));
    assert.equal(unknown.type === "refused" ? unknown.code : null, "task_unknown");
    await engine.close();
  });

  test("a heartbeat on a lease that is over is refused with how it ended", async () => {
    const { engine } = await startEngine();
    await make(engine);
    const { lease } = await take(engine);
    await engine.command(releaseTask(lease.id));
    const late = await answered(engine, heartbeatTask(lease.id));
    assert.equal(late.type === "refused" ? late.code : late.type, "lease_released");
    await engine.close();
  });
});

describe("T1: a listener for ready tasks", () => {
  test("is called before the batch leaves, so that creation and offer share one commit", async () => {
    const { engine, disk } = await startEngine();
    let commits = 0;
    disk.beforeCommit = async () => void commits++;
    const offered: string[] = [];
    let depth = 0;
    const stop = engine.onReady((ready) => {
      assert.equal(depth++, 0, "never from within itself");
      for (const { tenant, taskType } of ready) {
        assert.deepEqual([tenant, taskType], ["default", "code.review"]);
        engine.submit(poll("code.1"), {
          encode: null,
          send({ reply }: Decision) {
            if (reply.type === "offers") offered.push(...reply.offers.map(({ task }) => task.id));
          },
          fail: assert.fail,
        });
      }
      depth--;
    });
    const tasks = await Promise.all([make(engine), make(engine)]);
    assert.equal(commits, 1);
    assert.deepEqual(
      offered,
      tasks.map(({ id }) => id),
    );
    stop();
    await make(engine);
    assert.equal(offered.length, 2);
    await engine.close();
  });
});

/** As an edge answers: what the kernel does not know any more is completed from history. */
async function answered(engine: Engine, command: Parameters<Engine["command"]>[0]) {
  return completeReply(engine.store, command, (await engine.command(command)).reply);
}
