/**
 * The cost of a gateway, and how fast it closes: requests per second through the http gateway and through a plain
 * proxy, alternating; and the time from a lease's end to the last byte on a thousand open connections, half HTTP
 * streams and half raw TCP, when the lease expires by the cell's own clock and when it is revoked.
 *
 *   npm run bench:gateway [-- --connections 1000 --rounds 5 --seconds 2]
 */
import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { cpuMsOf, format, median } from "./children.ts";

const { values } = parseArgs({
  options: {
    connections: { type: "string", default: "1000" },
    rounds: { type: "string", default: "5" },
    seconds: { type: "string", default: "2" },
  },
});
const bars = { lastByteMs: 100, share: 0.8 };
const loadConnections = 32;

interface Part {
  readonly child: ChildProcess;
  tell(line: string): void;
  hear<T>(): Promise<T>;
}

function start(name: string, ...args: readonly (string | number)[]): Part {
  const script = [`${import.meta.dirname}/gateway-parts.ts`, name, ...args.map(String)];
  const child = spawn(process.execPath, script, { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    child,
    tell: (line) => void child.stdin.write(`${line}\n`),
    async hear<T>() {
      const { value } = await lines.next();
      if (value === undefined) throw new Error(`${name} ended without output`);
      return JSON.parse(value) as T;
    },
  };
}

interface Bound {
  readonly bound: readonly { readonly coordinate: string; readonly token: string }[];
}

const service = start("service");
const behind = await service.hear<{ http: number; tcp: number }>();
const plain = start("plain", behind.http);
const plainPort = (await plain.hear<{ http: number }>()).http;
const cell = start("cell", behind.http, behind.tcp);
await cell.hear();

try {
  const isCheap = await measureRate();
  const shutsAtExpiry = await measureEnd("expires");
  const shutsWhenRevoked = await measureEnd("is revoked");
  if (!isCheap || !shutsAtExpiry || !shutsWhenRevoked) process.exitCode = 1;
} finally {
  for (const { child } of [service, plain, cell]) child.kill();
}

async function bind(): Promise<{ ports: number[]; tokens: string[] }> {
  cell.tell("bind");
  const { bound } = await cell.hear<Bound>();
  const ports = bound.map(({ coordinate }) => Number(new URL(coordinate).port));
  return { ports, tokens: bound.map(({ token }) => token) };
}

async function measureRate(): Promise<boolean> {
  const rates: Record<"plain" | "checked", number[]> = { plain: [], checked: [] };
  // CPU time per request, which does not depend on how busy the machine is.
  const costs: Record<"plain" | "checked", number[]> = { plain: [], checked: [] };
  const run = async (name: "plain" | "checked", port: number, token: string | null): Promise<number> => {
    const { pid } = (name === "plain" ? plain : cell).child;
    const before = cpuMsOf(pid);
    const load = start("load", port, loadConnections, values.seconds, ...(token === null ? [] : [token]));
    const { rate, answered, failed } = await load.hear<{ rate: number; answered: number; failed: number }>();
    costs[name].push((cpuMsOf(pid) - before) / answered);
    if (failed > 0) throw new Error(`${failed} requests were refused.`);
    return rate;
  };
  for (let round = -1; round < Number(values.rounds); round++) {
    const { ports, tokens } = await bind();
    const pair = [await run("plain", plainPort, null), await run("checked", ports[0] ?? 0, tokens[0] ?? "")] as const;
    cell.tell("end");
    await cell.hear();
    if (round < 0) continue; // Warm-up.
    rates.plain.push(pair[0]);
    rates.checked.push(pair[1]);
    console.log(`  ${format(pair[0])}/s plain, ${format(pair[1])}/s through the gateway`);
  }
  const share = median(rates.checked) / median(rates.plain);
  const isGood = share >= bars.share;
  const cpu = [costs.plain, costs.checked].map((ms) => Math.round(median(ms.slice(1)) * 1_000));
  console.log(`  of processor time a request takes ${cpu[0]} µs plain, ${cpu[1]} µs through the gateway`);
  console.log(
    `requests: ${format(median(rates.plain))}/s plain, ${format(median(rates.checked))}/s checked: ${share.toFixed(2)} (bar ${bars.share})${isGood ? "" : ": MISSED"}`,
  );
  return isGood;
}

interface Seen {
  readonly lastByte: { readonly p50: number; readonly p99: number; readonly max: number };
  readonly cut: { readonly p50: number; readonly p99: number; readonly max: number };
  readonly passedAfterEnd: number;
  readonly bytesAfterFailure: number;
  readonly code: string;
}

async function measureEnd(how: "expires" | "is revoked"): Promise<boolean> {
  const count = Number(values.connections);
  const { ports, tokens } = await bind();
  const watcher = start("watch", ports[0] ?? 0, ports[1] ?? 0, count, tokens[0] ?? "", tokens[1] ?? "");
  await watcher.hear();
  await new Promise((resolve) => setTimeout(resolve, 500));
  cell.tell(how === "expires" ? "expire" : "end");
  const { at: end } = await cell.hear<{ at: number }>();
  watcher.tell(String(end));
  const { lastByte, cut, passedAfterEnd, bytesAfterFailure, code } = await watcher.hear<Seen>();
  const isGood = lastByte.p99 < bars.lastByteMs && passedAfterEnd === 0 && bytesAfterFailure === 0;
  console.log(
    `a lease ${how}, ${format(count)} connections: last byte after ${lastByte.p99.toFixed(1)} ms at p99 (p50 ${lastByte.p50.toFixed(1)}, max ${lastByte.max.toFixed(1)}; bar ${bars.lastByteMs}); cut seen after ${cut.p50.toFixed(1)} ms at p50, ${cut.p99.toFixed(1)} at p99; ${passedAfterEnd} let something through that was sent after the end; ${bytesAfterFailure} bytes after ${code}${isGood ? "" : ": MISSED"}`,
  );
  return isGood;
}
