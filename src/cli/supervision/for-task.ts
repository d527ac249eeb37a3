/** Runs a command for one task, and ends it when the task is cancelled, preempted or lost, before its lease ends. */
import type { TaskContext } from "../../sdk/task-run.ts";
import { startChild } from "./child.ts";
import { startGuard } from "./guard.ts";
import { endGroup, isGroupRunning, signalGroup } from "./process-group.ts";

export interface ForTask {
  readonly command: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly input: string;
  readonly context: Pick<TaskContext, "signal" | "remainingMs">;
  readonly graceMs: number;
}

export interface TaskRan {
  readonly code: number;
  readonly stdout: Buffer;
  /** The last of what it said, for the receipt of a failure. */
  readonly stderrTail: string;
}

const tailChars = 2_000;
const tellMs = 500;
/** What cannot be kept in memory is no result; it is for an artifact that the command itself puts somewhere. */
const stdoutBytesMax = 256 * 2 ** 20;

export async function runForTask({ command, env, input, context, graceMs }: ForTask): Promise<TaskRan> {
  const { signal } = context;
  const guard = startGuard();
  let group = 0;
  let ending: Promise<void> | null = null;
  // The context's own margin is kept: at its end nothing of the command is left.
  const graceFittingMs = (): number => Math.min(graceMs, context.remainingMs());
  const tell = (): void => {
    const leftMs = context.remainingMs();
    if (ending === null) guard.tell(group, Math.max(0, leftMs - graceMs), leftMs, false);
  };
  const stop = (): void => {
    const ms = graceFittingMs();
    guard.tell(group, 0, ms, true);
    ending = endGroup(group, ms);
  };
  try {
    const child = await startChild(command, {
      env,
      stdin: "pipe",
      stdout: "pipe",
      stderr: "pipe",
      onGroup: (started) => {
        group = started;
        tell();
      },
    });
    const telling = setInterval(tell, tellMs);
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
    const { stdin, stdout, stderr } = child.process;
    stdin?.on("error", () => undefined); // Whether it reads its task is its own affair.
    stdin?.end(input);
    const chunks: Buffer[] = [];
    let bytes = 0;
    let stderrTail = "";
    stdout?.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= stdoutBytesMax) chunks.push(chunk);
      else signalGroup(group, "SIGKILL");
    });
    stderr?.on("data", (chunk: Buffer) => {
      process.stderr.write(chunk);
      stderrTail = (stderrTail + chunk.toString()).slice(-tailChars);
    });
    try {
      const code = await child.ended;
      if (ending === null && isGroupRunning(group)) await endGroup(group, graceFittingMs());
      await ending;
      await child.drained;
      return { code, stdout: Buffer.concat(chunks), stderrTail };
    } finally {
      clearInterval(telling);
      signal.removeEventListener("abort", stop);
    }
  } finally {
    guard.dismiss();
  }
}
