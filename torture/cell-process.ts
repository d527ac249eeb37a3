/** The real cell as a child process, which can be stopped, killed and restarted. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const binary = join(import.meta.dirname, "../bin/leasehold.cjs");
const linkedMsMax = 60_000;
const lookMs = 10;

/** A process that ends early kills its cells. */
const running = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

export interface CellProcess {
  readonly child: ChildProcess;
  readonly output: { stdout: string; stderr: string };
  /** Resolves when it has ended and its whole output is in `output`. */
  readonly exited: Promise<unknown>;
  /** Resolves when it has reported this often that it is linked. */
  linked(times?: number): Promise<void>;
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** Resolves when the system reports it as stopped. */
  stop(): Promise<void>;
  goOn(): void;
}

export interface CellOptions {
  readonly url?: string;
  readonly settings?: object;
  readonly env?: Readonly<Record<string, string>>;
  /** More of them. */
  readonly args?: readonly string[];
}

export function spawnCell(
  folder: string,
  name: string,
  resources: readonly object[],
  url: string,
  { settings = {}, env = {}, args = [] }: CellOptions = {},
): CellProcess {
  const config = join(folder, `${name}.json`);
  writeFileSync(config, JSON.stringify({ cell: name, state_file: `${name}.state.json`, ...settings, resources }));
  const { PATH, HOME } = process.env;
  const child = spawn(process.execPath, [binary, "cell", "--server", url, "--config", config, ...args], {
    env: { PATH, HOME, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  running.add(child);
  child.once("exit", () => running.delete(child));
  const output = { stdout: "", stderr: "" };
  child.stdout.on("data", (chunk) => (output.stdout += String(chunk)));
  child.stderr.on("data", (chunk) => (output.stderr += String(chunk)));
  const exited = once(child, "exit");
  const hasEnded = (): boolean => child.exitCode !== null || child.signalCode !== null;
  const cell: CellProcess = {
    child,
    output,
    exited: once(child, "close"),
    async linked(times = 1) {
      const end = performance.now() + linkedMsMax;
      while (output.stdout.split("is linked").length <= times) {
        if (hasEnded()) throw new Error(`the cell ${name} has ended: ${output.stderr}`);
        if (performance.now() > end) throw new Error(`the cell ${name} is not linked in time: ${output.stderr}`);
        await sleep(lookMs);
      }
    },
    async kill(signal = "SIGKILL") {
      if (hasEnded()) return;
      child.kill(signal);
      await exited;
    },
    async stop() {
      child.kill("SIGSTOP");
      while (!/\) T /.test(readFileSync(`/proc/${child.pid}/stat`, "utf8"))) await sleep(lookMs);
    },
    goOn: () => void child.kill("SIGCONT"),
  };
  return cell;
}
