/**
 * How long a released lease takes to reach the next `leasehold run` on the same machine: one command after the other
 * under the same lease, with many waiting, from the end of one command to the start of the next.
 *
 *   npm run bench:handover [-- --waiting 50]
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { percentile, removeFolder, startLeasehold } from "./children.ts";

const { values } = parseArgs({ options: { waiting: { type: "string", default: "50" } } });
const waiting = Number(values.waiting);
/** Each has its lease for this long, so that all of them wait when the first is over. */
const holdSeconds = 0.05;
const settleMs = 2_000;
const [p50MsMax, p99MsMax] = [20, 100];

const server = await startLeasehold();
const folder = mkdtempSync(join(tmpdir(), "leasehold-handover-"));
const times = join(folder, "times");
const gate = join(folder, "gate");
writeFileSync(times, "");
const note = (what: string): string => `date +"${what} %s%N" >> ${times}`;
try {
  const first = run(`while [ ! -e ${gate} ]; do sleep 0.05; done; ${note("end")}`);
  await until(() => metric("leasehold_leases").then((count) => count === 1));
  const others = Array.from({ length: waiting }, () => run(`${note("start")}; sleep ${holdSeconds}; ${note("end")}`));
  await until(() => metric("leasehold_agents").then((count) => count > waiting));
  // An agent of its own asks for its lease right after it has registered.
  await new Promise((resolve) => setTimeout(resolve, settleMs));
  writeFileSync(gate, "");
  const codes = await Promise.all([first, ...others]);
  if (codes.some((code) => code !== 0)) throw new Error(`some runs failed: ${codes.join()}`);
} finally {
  await server.stop();
  removeFolder(server.dataFolder);
}

const lines = readFileSync(times, "utf8").trim().split("\n");
removeFolder(folder);
const gaps: number[] = [];
let endedAt = 0n;
for (const line of lines) {
  const [what, at = "0"] = line.split(" ");
  if (what === "end") endedAt = BigInt(at);
  else gaps.push(Number(BigInt(at) - endedAt) / 1e6);
}
gaps.sort((a, b) => a - b);
const [p50, p99] = [percentile(gaps, 0.5), percentile(gaps, 0.99)];
const isMet = p50 < p50MsMax && p99 < p99MsMax;
console.log(
  `${gaps.length} hand-overs with ${waiting} waiting: p50 ${p50.toFixed(1)} ms (bar ${p50MsMax}), p99 ${p99.toFixed(1)} ms (bar ${p99MsMax})${isMet ? "" : ": MISSED"}`,
);
if (!isMet) process.exitCode = 1;

async function run(script: string): Promise<number> {
  const args = ["src/main.ts", "run", "LOCK:/handover", "-w", "300s", "--", "sh", "-c", script];
  const env = { ...process.env, LEASEHOLD_URL: `http://127.0.0.1:${server.port}` };
  const child = spawn(process.execPath, args, { env, stdio: ["ignore", "ignore", "inherit"] });
  const [code] = (await once(child, "exit")) as [number | null];
  return code ?? 1;
}

async function until(check: () => Promise<boolean>): Promise<void> {
  while (!(await check())) await new Promise((resolve) => setTimeout(resolve, 100));
}

async function metric(name: string): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${server.port}/metrics`)).text();
  return [...text.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\d+)`, "gm"))].reduce(
    (sum, [, count]) => sum + Number(count),
    0,
  );
}
