/** The real server as a child process, which can be killed and restarted on the same data. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";

const root = join(import.meta.dirname, "..");
const readyMsMax = 60_000;

export interface ServerProcess {
  readonly port: number;
  readonly pid: number;
  /** Lines of its log so far. */
  readonly log: readonly string[];
  readonly hasEnded: boolean;
  /** Resolves when it serves, with the time from its start until then; throws if it ends instead. */
  untilReady(): Promise<number>;
  /** kill -9; resolves when it is gone. */
  kill(): Promise<void>;
  /** SIGTERM; resolves with its exit code. */
  stop(): Promise<number | null>;
}

/** A process that ends early, by a signal or an error, kills its servers. */
const running = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** For scripts: without it a signal would end the process without the exit handler above. */
export function exitOnSignals(): void {
  process.on("SIGINT", () => process.exit(130));
  process.on("SIGTERM", () => process.exit(143));
}

export function spawnServer(port: number, dataFolder: string, nodeArgs: readonly string[] = []): ServerProcess {
  const args = [...nodeArgs, "src/main.ts", "--port", String(port), "--data", dataFolder, "--log-level", "info"];
  const began = performance.now();
  const child = spawn(process.execPath, args, { cwd: root, stdio: ["ignore", "pipe", "pipe"] });
  const exited = once(child, "exit");
  running.add(child);
  child.once("exit", () => running.delete(child));
  const log = collectLines(child);
  const hasEnded = (): boolean => child.exitCode !== null || child.signalCode !== null;
  return {
    port,
    pid: child.pid ?? 0,
    log,
    get hasEnded() {
      return hasEnded();
    },
    async untilReady() {
      while (performance.now() - began < readyMsMax) {
        if (hasEnded()) throw new Error(`the server ended during its start:\n${log.slice(-10).join("\n")}`);
        if (await isReady(port)) return performance.now() - began;
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      throw new Error(`the server is not ready after ${readyMsMax} ms`);
    },
    async kill() {
      child.kill("SIGKILL");
      await exited;
    },
    async stop() {
      child.kill("SIGTERM");
      await exited;
      return child.exitCode;
    },
  };
}

export async function isReady(port: number): Promise<boolean> {
  return await fetch(`http://127.0.0.1:${port}/readyz`).then(
    async (response) => {
      await response.arrayBuffer();
      return response.ok;
    },
    () => false,
  );
}

function collectLines({ stdout, stderr }: ChildProcess): string[] {
  const lines: string[] = [];
  for (const stream of [stdout, stderr]) {
    if (stream !== null) createInterface({ input: stream }).on("line", (line) => lines.push(line));
  }
  return lines;
}
