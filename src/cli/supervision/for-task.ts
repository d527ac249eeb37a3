/** Runs a command for one task, and ends it when the task is cancelled, preempted or lost, before its lease ends. */
import type { TaskContext } from "../../sdk/task-run.ts";
import { type Child, startChild } from "./child.ts";
import { signalGroup } from "./process-group.ts";
import { supervise } from "./supervise.ts";
import { Watchdog } from "./watchdog-link.ts";

export interface ForTask {
  readonly command: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly input: string;
  readonly context: Pick<TaskContext, "signal" | "remainingMs">;
  readonly graceMs: number;
}

export interface TaskOutput {
  readonly code: number;
  readonly stdout: Buffer;
  /** The last that it printed, for the receipt of a failure. */
  readonly stderrTail: string;
}

const tailChars = 2_000;
const tellMs = 500;
/** A larger result does not fit in memory; the command has to store it somewhere itself. */
const stdoutBytesMax = 256 * 2 ** 20;

export async function runForTask({ command, env, input, context, graceMs }: ForTask): Promise<TaskOutput> {
  const watchdog = new Watchdog();
  const chunks: Buffer[] = [];
  let bytes = 0;
  let stderrTail = "";
  const start = async (onGroup: (group: number) => void): Promise<Child> => {
    const started = await startChild(command, { env, stdin: "pipe", stdout: "pipe", stderr: "pipe", onGroup });
    const { stdin, stdout, stderr } = started.process;
    stdin?.on("error", () => undefined); // It need not read its task.
    stdin?.end(input);
    stdout?.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= stdoutBytesMax) chunks.push(chunk);
      else signalGroup(started.group, "SIGKILL");
    });
    stderr?.on("data", (chunk: Buffer) => {
      process.stderr.write(chunk);
      stderrTail = (stderrTail + chunk.toString()).slice(-tailChars);
    });
    return started;
  };
  // The context keeps its own margin: at its end nothing of the command is left.
  const limits = () => {
    const leftMs = context.remainingMs();
    return { termInMs: Math.max(0, leftMs - graceMs), graceMs: Math.min(graceMs, leftMs) };
  };
  try {
    const { code, child } = await supervise({ watchdog, signal: context.signal, limits, everyMs: tellMs, start });
    await child.drained;
    return { code, stdout: Buffer.concat(chunks), stderrTail };
  } finally {
    watchdog.dismiss();
  }
}
