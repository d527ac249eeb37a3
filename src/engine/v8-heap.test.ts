import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { unstamped } from "../kernel/contract/commands.ts";
import { createMemoryDisk, createMemoryStore } from "../store/memory.ts";
import { Engine } from "./engine.ts";
import { OutOfMemory } from "./engine-types.ts";
import { asked, register, startEngine } from "./testing/test-engine.ts";
import { createTask } from "./testing/test-tasks.ts";
import { V8Heap } from "./v8-heap.ts";

function recorded(options: { readonly mebibytes?: number; readonly recordsMin?: number } = {}) {
  const flags: string[] = [];
  const used = { mebibytes: options.mebibytes ?? 100 };
  const heap = new V8Heap({
    limitBytes: 4_000 * 2 ** 20,
    usedBytes: () => used.mebibytes * 2 ** 20,
    setFlag: (flag) => flags.push(flag),
    ...(options.recordsMin !== undefined && { recordsMin: options.recordsMin }),
  });
  return { heap, flags, used };
}

const bound = "--heap-growing-percent=90";
const free = "--heap-growing-percent=0";

test("the growth of a large heap is limited until it is small again; a small one is left alone", () => {
  const { heap, flags, used } = recorded();
  for (used.mebibytes of [100, 380]) heap.check();
  assert.deepEqual(flags, []);
  for (used.mebibytes of [400, 700, 300, 200]) heap.check();
  assert.deepEqual(flags, [bound]);
  used.mebibytes = 190;
  heap.check();
  assert.deepEqual(flags, [bound, free]);
});

test("a restore gets room once, by a small factor, when a tenth of many records is there", () => {
  const { heap, flags } = recorded();
  for (const restored of [1_000, 99_999]) heap.noteRestored(restored, 1_000_000);
  assert.deepEqual(flags, []);
  for (const restored of [100_000, 101_000, 1_000_000]) heap.noteRestored(restored, 1_000_000);
  assert.deepEqual(flags, ["--heap-growing-percent=1000"]);
  heap.endRestore();
  heap.endRestore();
  assert.deepEqual(flags, ["--heap-growing-percent=1000", free]);
});

test("a restore of few records sets nothing", () => {
  const { heap, flags } = recorded();
  for (const restored of [50_000, 99_999]) heap.noteRestored(restored, 99_999);
  heap.endRestore();
  assert.deepEqual(flags, []);
});

test("S2: after the recovery from a failed commit the bound on growth is in force again", async () => {
  const { heap, flags } = recorded({ mebibytes: 500, recordsMin: 10 });
  const disk = createMemoryDisk();
  const engine = await started(disk, heap);
  for (let count = 0; count < 50; count++) await engine.command(createTask());
  heap.check();
  assert.deepEqual(flags, [bound]);
  const recovered = new Promise<void>((resolve) => engine.onRecovery(resolve));
  disk.failNextCommit = "lost";
  await assert.rejects(engine.command(createTask()));
  await recovered;
  assert.equal(flags.length, 3, "the restore had room in between");
  assert.equal(flags.at(-1), bound);
  await engine.close();
});

test("a restart with many tasks and no lease gets room", async () => {
  const disk = createMemoryDisk();
  const first = await started(disk, recorded().heap);
  for (let count = 0; count < 50; count++) await first.command(createTask());
  await first.close();
  const { heap, flags } = recorded({ recordsMin: 10 });
  const second = await started(disk, heap);
  assert.equal(flags.length, 2);
  assert.equal(flags.at(-1), free);
  await second.close();
});

test("the flag that turns pretenuring off is one that this V8 knows", () => {
  const { heap, flags } = recorded();
  heap.stopPretenuring();
  assert.deepEqual(flags, ["--no-allocation-site-pretenuring"]);
  // V8 ignores a flag that it does not know, so its own list is searched.
  const { stdout } = spawnSync(process.execPath, ["--v8-options"], { encoding: "utf8" });
  assert.match(stdout, /--allocation-site-pretenuring/);
});

async function started(disk: ReturnType<typeof createMemoryDisk>, heap: V8Heap): Promise<Engine> {
  const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
  const engine = new Engine({ store: createMemoryStore(disk), encodeEvent: JSON.stringify, log, heap });
  await engine.start();
  return engine;
}

test("S4: a heap that is nearly full collects garbage early, and is full until a little less is used", () => {
  const { heap, flags, used } = recorded();
  const shares: [number, boolean][] = [
    [2_300, false],
    [2_500, false],
    [3_399, false],
    [3_401, true],
    [3_250, true],
    [3_199, false],
    [2_100, false],
  ];
  for (const [mebibytes, isFull] of shares) {
    used.mebibytes = mebibytes;
    heap.check();
    assert.equal(heap.isFull, isFull, `${mebibytes} MiB`);
  }
  assert.deepEqual(flags, [bound, "--heap-growing-percent=20", bound]);
});

test("S4: with a full heap what adds records fails, what ends them does not, and nothing is decided", async () => {
  const { heap, used } = recorded({ mebibytes: 100 });
  const { engine } = await startEngine(undefined, { heap });
  const created = await engine.command(createTask());
  assert.ok(created.reply.type === "task");
  used.mebibytes = 3_900;
  heap.check();
  await assert.rejects(engine.command(createTask()), OutOfMemory);
  await assert.rejects(engine.command(register("a")), OutOfMemory);
  const taskId = created.reply.task.id;
  const cancel = { ...asked, type: "cancel_task", taskId, reason: null, entropy: unstamped } as const;
  assert.equal((await engine.command(cancel)).reply.type, "task");
  used.mebibytes = 100;
  heap.check();
  assert.equal((await engine.command(createTask())).reply.type, "task");
  await engine.close();
});
