/**
 * A service under an even load for a long time: 500 lease cycles and 100 tasks a second, all with idempotency keys. What must
 * level off is memory and, once retention is reached, the disk (S4, S8). The ledger grows for ever (R1), so its size is
 * shown apart. The defaults of retention would be reached after hours; `--keep` MB each of events, ended leases and ended
 * tasks are reached within minutes. Prints a line a minute and writes a plot.
 *
 *   npm run soak [-- --minutes 30 --cycles 500 --tasks 100 --keep 48 --plot soak.svg]
 */
import { randomUUID } from "node:crypto";
import { statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { cpuMsOf, memoryOf, percentile, removeFolder, startLeasehold } from "./children.ts";
import { drawSoak, type SoakMinute } from "./soak-plot.ts";
import { SoakStream } from "./soak-stream.ts";

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "30" },
    cycles: { type: "string", default: "500" },
    tasks: { type: "string", default: "100" },
    keep: { type: "string", default: "48" },
    plot: { type: "string", default: "soak.svg" },
  },
});
const [minutes = 0, cyclesPerSecond = 0, tasksPerSecond = 0, keepMb = 0] = [
  values.minutes,
  values.cycles,
  values.tasks,
  values.keep,
].map(Number);
if (![minutes, cyclesPerSecond, tasksPerSecond, keepMb].every((number) => number > 0)) {
  console.error("soak: --minutes, --cycles, --tasks and --keep are numbers above 0.");
  process.exit(2);
}

const agents = 50;
const workers = 4;
/** How often what is due is sent. */
const beatMs = 5;

for (const kind of ["EVENTS", "ENDED", "ENDED_TASKS"]) {
  process.env[`LEASEHOLD_${kind}_KEEP_BYTES`] = String(Math.round(keepMb * 2 ** 20));
}
const server = await startLeasehold();
const stream = await SoakStream.open(server.port);
let latencies: number[] = [];
let isOver = false;
let done = { cycles: 0, tasks: 0 };
let failures = 0;

async function cycle(nth: number, dueAt: number): Promise<void> {
  const agent = `agent-${nth % agents}`;
  const intents = [{ predicate: "MUTATES", resource: `FILE:/soak/${nth % 100_000}` }];
  const { leases } = await stream.call<{ leases: readonly { id: string }[] }>("acquire", {
    agent_id: agent,
    intents,
    request_id: randomUUID(),
  });
  latencies.push(performance.now() - dueAt);
  await stream.call("release_lease", { lease_id: leases[0]?.id });
  done.cycles++;
}

async function createTask(): Promise<void> {
  await stream.call("create_task", { task_type: "soak", principal_ai: "soak", idempotency_key: randomUUID() });
}

async function work(workerId: string): Promise<void> {
  while (!isOver) {
    const polled = await stream.call<{ offers?: readonly { lease_id: string }[] } | null>("poll_tasks", {
      worker_id: workerId,
      max_tasks: 50,
      hold_ms: 1_000,
    });
    for (const { lease_id } of polled?.offers ?? []) {
      await stream.call("submit_receipt", { phase: "accepted", lease_id, dedupe_key: randomUUID() });
      await stream.call("submit_receipt", { phase: "complete", status: "success", lease_id, dedupe_key: randomUUID() });
      done.tasks++;
    }
  }
}

const noteFailure = (fault: unknown): void => {
  if (failures++ < 5) console.error("soak:", fault instanceof Error ? fault.message : fault);
};

for (let agent = 0; agent < agents; agent++) await stream.call("register_agent", { agent_id: `agent-${agent}` });
const running = Array.from({ length: workers }, (_, index) => work(`soak.${index}`).catch(noteFailure));
const began = performance.now();
let sent = { cycles: 0, tasks: 0 };
const beat = setInterval(() => {
  const seconds = (performance.now() - began) / 1_000;
  for (; sent.cycles < seconds * cyclesPerSecond; sent = { ...sent, cycles: sent.cycles + 1 })
    cycle(sent.cycles, began + (sent.cycles / cyclesPerSecond) * 1_000).catch(noteFailure);
  for (; sent.tasks < seconds * tasksPerSecond; sent = { ...sent, tasks: sent.tasks + 1 })
    createTask().catch(noteFailure);
}, beatMs);

const sizeOf = (name: string): number =>
  (statSync(join(server.dataFolder, name), { throwIfNoEntry: false })?.size ?? 0) / 2 ** 20;
/** The receipts of the tenant, about as they are stored. */
async function ledgerSize(): Promise<number> {
  const { usage } = await stream.call<{ usage: readonly { quota: string; used: number | null }[] }>("get_usage", {});
  return (usage.find(({ quota }) => quota === "receipt_bytes_max")?.used ?? 0) / 2 ** 20;
}
/** What V8 holds, garbage included: it is between what lives and what it lets pile up. */
async function heapSize(): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${server.port}/metrics`)).text();
  return Number(/kind="heapUsed"\} ([\d.e+]+)/.exec(text)?.[1] ?? Number.NaN) / 2 ** 20;
}
const rows: SoakMinute[] = [];
console.log(
  "minute  RSS MB  heap MB  database MB  without the ledger MB  WAL MB  p50 / p99 / max ms  cycles/s  tasks/s  CPU %  failures",
);
let cpuBefore = cpuMsOf(server.child.pid);
for (let minute = 1; minute <= minutes; minute++) {
  await new Promise((resolve) => setTimeout(resolve, began + minute * 60_000 - performance.now()));
  const sorted = latencies.sort((a, b) => a - b);
  latencies = [];
  const cpu = cpuMsOf(server.child.pid);
  const database = sizeOf("leasehold.sqlite");
  const row: SoakMinute = {
    minute,
    rss: memoryOf(server.child.pid).rss / 2 ** 20,
    heap: await heapSize(),
    database,
    bounded: database - (await ledgerSize()),
    wal: sizeOf("leasehold.sqlite-wal"),
    p50: percentile(sorted, 0.5),
    p99: percentile(sorted, 0.99),
    max: sorted.at(-1) ?? 0,
  };
  rows.push(row);
  const latency = `${row.p50.toFixed(1)} / ${row.p99.toFixed(0)} / ${row.max.toFixed(0)}`;
  const rates = `${(done.cycles / 60).toFixed(0)}  ${(done.tasks / 60).toFixed(0)}`;
  const sizes = `${row.rss.toFixed(0)}  ${row.heap.toFixed(0)}  ${row.database.toFixed(0)}  ${row.bounded.toFixed(0)}  ${row.wal.toFixed(1)}`;
  console.log(`${minute}  ${sizes}  ${latency}  ${rates}  ${((cpu - cpuBefore) / 600).toFixed(0)}  ${failures}`);
  done = { cycles: 0, tasks: 0 };
  cpuBefore = cpu;
}
isOver = true;
clearInterval(beat);
await Promise.all(running);
stream.close();
await server.stop();
writeFileSync(values.plot, drawSoak(rows));
console.log(`soak: wrote ${values.plot}`);
removeFolder(server.dataFolder);
