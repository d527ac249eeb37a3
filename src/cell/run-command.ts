/** Runs a command of the user's to its end: limited in time and in what it may print, and with nothing left of it. */
import type { ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { NothingBegun } from "./driver.ts";
import type { Launcher } from "./launching.ts";
import { ProcessTree } from "./process-tree.ts";

interface CommandRun {
  readonly launcher: Launcher;
  readonly command: readonly string[];
  /** What it is about, as LEASEHOLD_… in its environment and as JSON on standard input. */
  readonly facts: Readonly<Record<string, string | number>>;
  readonly signal: AbortSignal;
}

const outputBytesMax = 65_536;
const graceMs = 200;
const killMs = 5_000;

/** What it printed; throws if it failed, with the last line that it said. */
export async function runForLease({ launcher, command, facts, signal }: CommandRun): Promise<string> {
  signal.throwIfAborted();
  const [program = ""] = command;
  const variables = Object.entries(facts).map(([name, value]) => [`LEASEHOLD_${name.toUpperCase()}`, String(value)]);
  const environment = Object.fromEntries(variables) as Record<string, string>;
  const mark = [facts["cell"], facts["resource"], facts["event"], randomUUID()].join("|");
  const child = launcher.launch({ command, environment, mark, output: "pipe" });
  const tree = new ProcessTree(mark);
  if (child.pid !== undefined) tree.lead(child.pid);
  const output = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    child[name]?.setEncoding("utf8").on("data", (text: string) => {
      output[name] = (output[name] + text).slice(-outputBytesMax);
    });
  }
  // A command need not read its input.
  child.stdin?.on("error", () => {});
  child.stdin?.end(`${JSON.stringify(facts)}\n`);
  try {
    const { code, by } = await exitOf(child, signal);
    if (code === 0) return output.stdout;
    const said = (output.stderr.trim() || output.stdout.trim()).split("\n").at(-1)?.slice(0, 200) ?? "";
    throw new Error(`${program} ${by === null ? `ended with ${code}` : `was ended by ${by}`}${said && `: ${said}`}`);
  } finally {
    child.stdout?.destroy();
    child.stderr?.destroy();
    // What it set up in the background is its purpose, and stays; what hangs is not left to hang.
    if (signal.aborted) await tree.end(graceMs, killMs);
    tree.stopWatching();
  }
}

function exitOf(child: ChildProcess, signal: AbortSignal) {
  return new Promise<{ code: number | null; by: NodeJS.Signals | null }>((resolve, reject) => {
    child.on("error", (error) => reject(new NothingBegun(`it cannot be started: ${error.message}`, { cause: error })));
    // "exit" and not "close": a child in the background may keep the pipes open. What was printed before is in the pipes
    // then, and the next turn of the loop has read them: this one may have polled them before.
    child.on("exit", (code, by) => setImmediate(() => setImmediate(() => resolve({ code, by }))));
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}
