import assert from "node:assert/strict";
import { test } from "node:test";
import { unstamped } from "../kernel/contract/commands.ts";
import type { Offer } from "../kernel/contract/replies.ts";
import { isAway, snapshot } from "../kernel/kernel.ts";
import { findDigest } from "../kernel/views.ts";
import { readStoredReceipt } from "../ledger/seal.ts";
import { createMemoryDisk, type MemoryDisk } from "../store/memory.ts";
import type { Engine } from "./engine.ts";
import { findEndedTask } from "./history.ts";
import { asked, register, startEngine } from "./testing/test-engine.ts";
import { createTask, poll, submit } from "./testing/test-tasks.ts";

const body = "b".repeat(5_000);
const inputs = { files: ["a.ts", "b.ts"] };

/** Memory keeps nothing of what is stored apart. */
const start = (disk?: MemoryDisk) => startEngine(disk, { payloadCharsMax: 0 });

async function create(engine: Engine): Promise<string> {
  const { reply } = await engine.command(createTask({ taskBody: body, inputs }));
  assert.ok(reply.type === "task");
  return reply.task.id;
}

async function offersOf(engine: Engine, most = 1): Promise<readonly Offer[]> {
  const { reply } = await engine.command(poll("code.1", most));
  assert.ok(reply.type === "offers");
  return reply.offers;
}

const kindsHeld = (engine: Engine): Promise<readonly string[]> =>
  engine.ask((state) => snapshot(state).map(({ kind }) => kind));

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("S4: a task's body and inputs leave memory once they are stored, and its offer has them", async () => {
  const { engine } = await start();
  const id = await create(engine);
  assert.ok(!(await kindsHeld(engine)).includes("payload"));
  assert.equal((await engine.payloads.ofTask("default", id))?.taskBody, body);
  const [offer] = await offersOf(engine);
  assert.deepEqual([offer?.task.id, offer?.payload?.taskBody, offer?.payload?.inputs], [id, body, inputs]);
  await engine.close();
});

test("S4, R2: receipts repeat a payload that was away, in the order in which they came", async () => {
  const { engine, disk } = await start();
  const id = await create(engine);
  const [offer] = await offersOf(engine);
  const leaseId = offer?.lease.id ?? "";
  // In one turn, as a batch of receipts is.
  const phases = [{ phase: "accepted" }, { phase: "progress" }, { phase: "complete", status: "success" }].map(
    (receipt) => engine.command(submit({ ...receipt, leaseId })),
  );
  for (const { reply } of await Promise.all(phases)) assert.equal(reply.type, "receipt");
  const receipts = disk.ledger.receipts.map((row) => readStoredReceipt(row).receipt);
  assert.deepEqual(
    receipts.map(({ phase, taskBody }) => [phase, taskBody?.length ?? null]),
    [
      ["accepted", body.length],
      ["progress", null],
      ["complete", body.length],
    ],
  );
  const ended = await findEndedTask(engine.store, "default", id);
  assert.deepEqual([ended?.status, ended?.payload?.taskBody, ended?.payload?.inputs], ["succeeded", body, inputs]);
  await engine.close();
});

test("S4: after a restart payloads are read when they are needed, and not before", async () => {
  const disk = createMemoryDisk();
  const first = await startEngine(disk);
  const ids = [await create(first.engine), await create(first.engine)];
  await first.engine.close();
  const { engine } = await startEngine(disk);
  assert.ok(!(await kindsHeld(engine)).includes("payload"));
  const offers = await offersOf(engine, 2);
  assert.deepEqual(
    offers.map(({ task, payload }) => [task.id, payload?.taskBody]),
    ids.map((id) => [id, body]),
  );
  await engine.close();
});

test("S4: memory keeps the youngest payloads up to a size", async () => {
  const { engine } = await startEngine(undefined, { payloadCharsMax: 3 * (body.length + 200) });
  for (let nth = 0; nth < 10; nth++) await create(engine);
  assert.equal((await kindsHeld(engine)).filter((kind) => kind === "payload").length, 3);
  const offers = await offersOf(engine, 10);
  assert.deepEqual(new Set(offers.map(({ payload }) => payload?.taskBody)), new Set([body]));
  while ((await kindsHeld(engine)).filter((kind) => kind === "payload").length > 3) await nextTurn();
  await engine.close();
});

test("S4: a task that is created and called off in one commit is in history with its payload", async () => {
  const { engine, disk } = await start();
  let letGo = (): void => undefined;
  disk.beforeCommit = () => new Promise((resolve) => (letGo = resolve));
  const blocking = engine.command(register("a"));
  await new Promise((resolve) => setTimeout(resolve, 5));
  const created = engine.command(createTask({ taskBody: body, idempotencyKey: "k" }));
  const id =
    engine.peek((state) => snapshot(state).flatMap((one) => (one.kind === "task" ? [one.record.id] : [])))[0] ?? "";
  const canceled = engine.command({ ...asked, type: "cancel_task", taskId: id, reason: null, entropy: unstamped });
  disk.beforeCommit = null;
  letGo();
  await Promise.all([blocking, created, canceled]);
  const ended = await findEndedTask(engine.store, "default", id);
  assert.deepEqual([ended?.status, ended?.payload?.taskBody], ["canceled", body]);
  await engine.close();
});

test("S4, A2: a digest's context leaves memory, is replaced, comes with a resume, and goes with the digest", async () => {
  const { engine, disk } = await start();
  await engine.command(register("a"));
  const save = (text: string) =>
    engine.command({
      ...asked,
      type: "save_digest",
      agentId: "a",
      digest: {
        checkpointId: "c",
        resumePoint: "p",
        context: { text },
        intentBacklog: [],
        resolutionStrategy: "RETRY",
        assumptions: [],
      },
      entropy: unstamped,
    });
  await save("first");
  // The second is decided while the first may be put away.
  await Promise.all([save("second"), engine.command(register("b"))]);
  const held = await engine.ask((state) => findDigest(state, asked, "a"));
  assert.ok(!("code" in held) && isAway(held));
  assert.deepEqual([...disk.payloads.values()], ['{"text":"second"}']);
  await engine.close();
  const next = await start(disk);
  const { reply } = await next.engine.command({
    ...asked,
    type: "resume_agent",
    agentId: "a",
    assumptions: [],
    entropy: unstamped,
  });
  assert.ok(reply.type === "resumed");
  assert.deepEqual(reply.digest.context, { text: "second" });
  const replan = { type: "transition_agent", agentId: "a", to: "ABORTED", entropy: unstamped } as const;
  await next.engine.command({ ...asked, ...replan });
  await next.engine.close();
});

test("S4: a payload that somebody has deleted leaves a task that can be done", async () => {
  const { engine, disk } = await start();
  await create(engine);
  disk.payloads.clear();
  const [offer] = await offersOf(engine);
  assert.equal(offer?.payload?.taskBody, null);
  const { reply } = await engine.command(submit({ phase: "accepted", leaseId: offer?.lease.id ?? "" }));
  assert.equal(reply.type, "receipt");
  await engine.close();
});
