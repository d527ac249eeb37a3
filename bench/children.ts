/**
 * Servers and load generators as separate processes, so that none shares a heap or an event loop with what is
 * measured.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createDispatcher, fetchThrough } from "../src/sdk/platform-tls.ts";

const root = join(import.meta.dirname, "..");

export async function freePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const address = probe.address();
  probe.close();
  await once(probe, "close");
  if (address === null || typeof address === "string") throw new Error("No free port.");
  return address.port;
}

export interface Running {
  readonly port: number;
  readonly child: ChildProcess;
  readonly dataFolder: string;
  stop(signal?: NodeJS.Signals): Promise<void>;
}

export async function startLeasehold(
  dataFolder = mkdtempSync(join(tmpdir(), "leasehold-bench-")),
  tls: { readonly cert: string; readonly key: string; readonly ca: string } | null = null,
  nodeFlags: readonly string[] = [],
  settings: readonly string[] = [],
): Promise<Running> {
  const port = await freePort();
  const common = ["--port", String(port), "--data", dataFolder, "--log-level", "warn"];
  const args = [...nodeFlags, "src/main.ts", ...common, ...settings];
  if (tls === null) return await startServer(args, port, dataFolder, "/readyz");
  const secureArgs = [...args, "--tls-cert", tls.cert, "--tls-key", tls.key];
  const fetcher = fetchThrough(createDispatcher({ ca: readFileSync(tls.ca, "utf8") }));
  return await startServer(secureArgs, port, dataFolder, "/readyz", fetcher);
}

export async function startEcho(): Promise<Running> {
  const port = await freePort();
  return await startServer(["bench/echo.ts", String(port)], port, "", "/readyz");
}

/** The machine's present speed, as a reference for figures without one of their own: bare echo requests per second. */
export async function measureEcho(seconds: number): Promise<number> {
  const echo = await startEcho();
  try {
    return (await runLoad<{ readonly rate: number }>("load-http.ts", echo.port, 64, seconds, "echo")).rate;
  } finally {
    await echo.stop();
  }
}

async function startServer(
  args: string[],
  port: number,
  dataFolder: string,
  readyPath: string,
  secureFetch: typeof fetch | null = null,
): Promise<Running> {
  const child = spawn(process.execPath, args, { cwd: root, stdio: ["ignore", "ignore", "inherit"] });
  const stop = async (signal: NodeJS.Signals = "SIGTERM"): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill(signal);
    await once(child, "exit");
  };
  for (let tries = 0; ; tries++) {
    if (child.exitCode !== null) throw new Error(`${args.join(" ")} ended with ${child.exitCode}`);
    const base = `${secureFetch === null ? "http" : "https"}://127.0.0.1:${port}`;
    const ready = await (secureFetch ?? fetch)(`${base}${readyPath}`).then(
      (response) => response.ok,
      () => false,
    );
    if (ready) return { port, child, dataFolder, stop };
    if (tries > 6_000) throw new Error(`${args.join(" ")} is not ready after a minute`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

export function removeFolder(folder: string): void {
  if (folder !== "") rmSync(folder, { recursive: true, force: true });
}

/** Runs a load generator and returns the one line of JSON that it prints. */
export async function runLoad<T>(script: string, ...args: (string | number)[]): Promise<T> {
  return JSON.parse(await runScript(script, ...args)) as T;
}

/** Runs a script of this folder to its end and returns what it prints. */
export async function runScript(script: string, ...args: (string | number)[]): Promise<string> {
  const child = spawn(process.execPath, [`bench/${script}`, ...args.map(String)], {
    cwd: root,
    stdio: ["ignore", "pipe", "inherit"],
  });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  const [code] = (await once(child, "close")) as [number];
  if (code !== 0) throw new Error(`${script} ended with ${code}`);
  return output;
}

/** Resident memory of a process, and its peak (Linux). */
export function memoryOf(pid: number | undefined): { readonly rss: number; readonly peak: number } {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const bytes = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(status)?.[1]) * 1024;
  return { rss: bytes("VmRSS"), peak: bytes("VmHWM") };
}

/** CPU time of a process with all its threads, which does not depend on how busy the machine is (Linux). */
export function cpuMsOf(pid: number | undefined): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The name in parentheses may contain anything; user and system time are the 12th and 13th field after it.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

export function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] ?? 0;
}

export function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

export const format = (value: number): string => Math.round(value).toLocaleString("en");
