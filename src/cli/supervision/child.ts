/**
 * A command that runs under a lease, in a process group of its own: what it starts ends with it. Standard input and
 * output are ours, so it reads and writes as if it had been called directly.
 */
import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { constants } from "node:os";
import type { Writable } from "node:stream";
import { signalCode } from "../exit-codes.ts";

export interface Child {
  readonly process: ChildProcess;
  /** The id of its process group. */
  readonly group: number;
  /** Its exit code, or 128 and the signal's number. */
  readonly ended: Promise<number>;
  /** Once all that it has written was read. */
  readonly drained: Promise<void>;
}

export interface ChildOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly stdin: "inherit" | "pipe";
  readonly stdout: "inherit" | "pipe";
  readonly stderr?: "inherit" | "pipe";
  /** Called with the group's id before the command itself begins. */
  readonly onGroup: (group: number) => void;
}

/**
 * A shell stands in for the command until the watchdog knows the group, and then becomes the command: so there is no
 * moment at which our death would leave it running. If we die before, the shell reads the end of its input, and ends.
 */
const standIn = 'read -r go <&3 && exec "$0" "$@" 3<&-';

export async function startChild(command: readonly string[], options: ChildOptions): Promise<Child> {
  const { env, stdin, stdout, stderr = "inherit", onGroup } = options;
  const stdio: SpawnOptions["stdio"] = [stdin, stdout, stderr, "pipe"];
  const started = spawn("/bin/sh", ["-c", standIn, ...command], { env, stdio, detached: true });
  const ended = new Promise<number>((resolve) => {
    started.once("exit", (code, signal) =>
      resolve(code ?? signalCode(signal === null ? 0 : constants.signals[signal])),
    );
  });
  const drained = new Promise<void>((resolve) => {
    started.once("close", () => resolve());
  });
  await once(started, "spawn");
  const { pid } = started;
  if (pid === undefined) throw new TypeError("a process that was spawned has an id");
  onGroup(pid);
  const go = started.stdio[3] as Writable;
  go.on("error", () => undefined); // It has ended already; its exit code says how.
  go.end("go\n");
  return { process: started, group: pid, ended, drained };
}
