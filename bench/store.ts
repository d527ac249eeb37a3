/**
 * The commit path alone: the cost of a lease command once the kernel has decided it. Best run on an idle machine; each
 * figure has a reference that is measured in the same run.
 *
 *   node bench/store.ts [--quick]
 */
import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createSqliteStore } from "../src/store/sqlite.ts";
import type { Batch, EndedLease, LiveRow } from "../src/store/store.ts";

const quick = process.argv.includes("--quick");
const commandsPerSize = quick ? 30_000 : 200_000;
const liveLeases = 3_000;
const agents = 256;

async function main(): Promise<void> {
  await groupCommit();
  await loneCommit();
  await loading(quick ? 100_000 : 1_000_000);
}

/** Acquire, heartbeat and release in equal parts: 1.3 puts, 0.3 removes, 0.3 ended leases and one event a command. */
function* lease(size: number): Generator<Batch, never> {
  const open: number[] = [];
  let [n, seq, now, random] = [agents, 1, 1_800_000_000_000, 1];
  // Through JSON.stringify as in the engine: a concatenated string would be flattened once more on its way.
  const record = (id: number, what: string): string =>
    JSON.stringify({
      tenant: "default",
      id: `${what}_${(now + id).toString(36)}0123456789ab`,
      resource: `FILE:/src/d${id % 97}/f${id}.ts`,
      predicate: "MUTATES",
      agentId: `agt_01jf0000000${id % agents}`,
      requestId: `req_${id}0123456789`,
      state: "ACTIVE",
      fence: id,
      generation: 1,
      acquiredAt: now,
      expiresAt: now + 60_000,
      ttl: 60_000,
    });
  const agent = (id: number): LiveRow => ({ n: (id % agents) + 1, kind: "agent", body: record(id % agents, "agt") });
  const put = (id: number): LiveRow => ({ n: id, kind: "lease", body: record(id, "lse") });
  for (let first = true; ; first = false) {
    now += 1;
    const puts: LiveRow[] = [];
    const removes: number[] = [];
    const ended: EndedLease[] = [];
    const events: unknown[] = [];
    if (first) for (; open.length < liveLeases; puts.push(put(n))) open.push(++n);
    for (let index = 0; index < size; index += 1) {
      const kind = (seq + index) % 3;
      if (kind === 0) {
        open.push(++n);
        puts.push(put(n), agent(n));
      } else if (kind === 1) {
        random = (random * 48_271) % 2_147_483_647;
        puts.push(put(open[random % open.length] ?? 0));
      } else {
        const id = open.shift() ?? 0;
        removes.push(id);
        const name = {
          tenant: "default",
          id: `lse_${(now + id).toString(36)}0123456789ab`,
          agentId: `agt_${id % agents}`,
        };
        const rest = { resource: `FILE:/src/d${id % 97}/f${id}.ts`, predicate: "MUTATES", writes: true, endedAt: now };
        ended.push({ ...name, ...rest, body: record(id, "lse") });
        puts.push(agent(id));
      }
      const resource = `FILE:/src/d${n % 97}/f${n}.ts`;
      const event = {
        type: "lease.granted",
        tenant: "default",
        at: now,
        lease: `lse_${n}0123456789ab`,
        resource,
        fence: n,
      };
      events.push({ ...event, agentId: `agt_01jf0000000${n % agents}`, expiresAt: now + 60_000 });
    }
    const others = {
      payloads: [],
      payloadRemoves: [],
      endedTasks: [],
      endedRequests: [],
      receipts: [],
      heads: [],
      audits: [],
    };
    yield {
      now,
      puts,
      removes,
      ended,
      ...others,
      events: { firstSeq: seq, count: size, body: JSON.stringify(events) },
    };
    seq += size;
  }
}

async function groupCommit(): Promise<void> {
  console.log("\nGroup commit: one batch under way while the next one fills");
  console.log("batch   commits/s   commands/s     rows/s   main thread µs/command   commit p50 ms   p99 ms");
  for (const size of [1, 16, 64, 256, 1024]) {
    await inFolder(async (folder) => {
      const store = createSqliteStore(folder);
      await store.open();
      const batches = lease(size);
      const warm = Math.ceil((size === 1 ? 2_000 : 20_000) / size);
      for (let index = 0; index < warm; index += 1) await store.commit(batches.next().value);
      const count = Math.ceil((size === 1 ? commandsPerSize / 40 : commandsPerSize) / size);
      const times: number[] = [];
      let [rows, main] = [0, 0];
      let next = batches.next().value;
      const began = performance.now();
      for (let index = 0; index < count; index += 1) {
        const sent = performance.now();
        const durable = store.commit(next);
        main += performance.now() - sent;
        rows += next.puts.length + next.removes.length + next.ended.length + 1;
        next = batches.next().value; // Stands for the kernel's work meanwhile, at about its cost.
        await durable;
        times.push(performance.now() - sent);
      }
      const wall = performance.now() - began;
      const perSecond = (amount: number): string => Math.round((amount / wall) * 1000).toLocaleString("en");
      console.log(
        String(size).padStart(5),
        perSecond(count).padStart(11),
        perSecond(count * size).padStart(12),
        perSecond(rows).padStart(10),
        ((main / count / size) * 1000).toFixed(2).padStart(24),
        quantile(times, 0.5).toFixed(2).padStart(15),
        quantile(times, 0.99).toFixed(2).padStart(8),
      );
      await store.close();
    });
  }
}

/** One client that shares its fsync with nobody. Interleaved with the reference, so that both see the same disk. */
async function loneCommit(): Promise<void> {
  await inFolder(async (folder) => {
    const store = createSqliteStore(folder);
    await store.open();
    const batches = lease(1);
    await store.commit(batches.next().value);
    // A block of the journal.
    const bytes = 4_096;
    const commits: number[] = [];
    const appends: number[] = [];
    const file = openSync(join(folder, "append"), "w");
    const buffer = Buffer.alloc(bytes, 7);
    for (let index = 0; index < (quick ? 500 : 3_000); index += 1) {
      const batch = batches.next().value;
      const began = performance.now();
      await store.commit(batch);
      const committed = performance.now();
      writeSync(file, buffer);
      fdatasyncSync(file);
      commits.push(committed - began);
      appends.push(performance.now() - committed);
    }
    closeSync(file);
    await store.close();
    console.log(`\nOne lone command (${bytes} bytes to the journal): p50 ms (p99)`);
    for (const [name, times] of [
      ["commit", commits],
      ["bare append and fdatasync", appends],
    ] as const) {
      console.log(`  ${name}: ${quantile(times, 0.5).toFixed(3)} (${quantile(times, 0.99).toFixed(3)})`);
    }
  });
}

async function loading(rows: number): Promise<void> {
  await inFolder(async (folder) => {
    const store = createSqliteStore(folder);
    await store.open();
    const body = JSON.stringify(["default", "lse_01jf00000000123456789ab", "x".repeat(310)]);
    for (let n = 1; n <= rows; n += 10_000) {
      const puts = Array.from({ length: 10_000 }, (_, index) => ({ n: n + index, kind: "lease", body }));
      await store.commit({
        now: n,
        puts,
        removes: [],
        events: null,
        ended: [],
        endedTasks: [],
        payloads: [],
        payloadRemoves: [],
        endedRequests: [],
        receipts: [],
        heads: [],
        audits: [],
      });
    }
    await store.close();
    const began = performance.now();
    await store.open();
    const opened = performance.now();
    let [found, longest] = [0, 0];
    const count = ({ length }: readonly unknown[]): void => {
      found += length;
      longest = Math.max(longest, length);
    };
    await store.load({ onRows: count, lists: { kind: "lease", repeating: [0] }, onLists: ({ n }) => count(n) });
    const loaded = performance.now();
    console.log(
      `\nOpened in ${(opened - began).toFixed(0)} ms; ${found.toLocaleString("en")} rows of ${body.length} bytes loaded in ${(loaded - opened).toFixed(0)} ms`,
    );
    await store.close();
  });
}

async function inFolder(body: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-bench-"));
  try {
    await body(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function quantile(values: readonly number[], share: number): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length * share)] ?? 0;
}

await main();
