/**
 * What memory keeps of many queued tasks with large bodies (S4), while they are created and after a restart. It prints
 * figures and asserts nothing.
 *
 * Usage: node --expose-gc bench/payload-memory.ts [tasks] [bytes of a body]
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Engine } from "../src/engine/engine.ts";
import { createTask } from "../src/engine/testing/test-tasks.ts";
import { createSqliteStore } from "../src/store/sqlite.ts";

const [count = 100_000, bytes = 10_000] = process.argv.slice(2).map(Number);
const together = 500;
const folder = mkdtempSync(join(tmpdir(), "leasehold-payload-memory-"));

async function open(): Promise<Engine> {
  const quiet = (): void => undefined;
  const log = { info: quiet, warn: quiet, error: console.error };
  const engine = new Engine({
    store: createSqliteStore(folder),
    encodeEvent: ({ type }) => JSON.stringify({ type }),
    log,
  });
  await engine.start();
  return engine;
}

function heapBytes(): number {
  for (let nth = 0; nth < 3; nth++) globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}

function report(what: string, before: number): void {
  const used = heapBytes() - before;
  console.log(`${what}: ${(used / 2 ** 20).toFixed(0)} MiB of heap, ${(used / count).toFixed(0)} bytes a task`);
}

try {
  let engine = await open();
  const empty = heapBytes();
  for (let made = 0; made < count; made += together) {
    const some = Array.from({ length: Math.min(together, count - made) }, (_, index) => {
      const taskBody = `${made + index} `.padEnd(bytes, "body ");
      return engine.command(createTask({ taskBody }));
    });
    await Promise.all(some);
  }
  report(`${count} tasks with bodies of ${bytes} bytes, created`, empty);
  await engine.close();
  const began = performance.now();
  engine = await open();
  console.log(`restart: ${(performance.now() - began).toFixed(0)} ms`);
  report("after a restart", empty);
  await engine.close();
} finally {
  rmSync(folder, { recursive: true });
}
