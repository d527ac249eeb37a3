/** The cell's end of its process guard: one process for all of them, kept up to date, and restarted if it ends. */
import { type ChildProcess, spawn } from "node:child_process";
import { Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { uptimeMs, uptimeResolutionMs } from "../sdk/node/shared-time.ts";
import type { GuardWord } from "./process-guard-main.ts";

type GuardedProcesses = Omit<Extract<GuardWord, { type: "keep" }>, "type" | "endsAt"> & { readonly leftMs: number };

/** The same file as it was written, or as JavaScript where it was built. */
const program = new URL(
  import.meta.url.endsWith(".ts") ? "./process-guard-main.ts" : "./process-guard-main.js",
  import.meta.url,
);

const restartMs = 500;

class ProcessGuard {
  private child: ChildProcess | null = null;
  /** What a new one has to know. */
  private readonly words = new Map<string, GuardWord[]>();

  keep({ leftMs, ...rest }: GuardedProcesses): void {
    const word: GuardWord = { type: "keep", ...rest, endsAt: uptimeMs() + leftMs - uptimeResolutionMs };
    const leaders = (this.words.get(rest.mark) ?? []).filter(({ type }) => type === "lead");
    this.words.set(rest.mark, [word, ...leaders]);
    this.send(word);
  }

  lead(mark: string, pid: number): void {
    const word: GuardWord = { type: "lead", mark, pid };
    this.words.get(mark)?.push(word);
    this.send(word);
  }

  drop(mark: string): void {
    if (this.words.delete(mark)) this.send({ type: "drop", mark });
  }

  private send(word: GuardWord): void {
    if (this.child === null) this.start();
    else this.child.stdin?.write(`${JSON.stringify(word)}\n`);
  }

  private start(): void {
    if (this.words.size === 0) return;
    // A session of its own, so that a signal to our group does not end it.
    const child = spawn(process.execPath, [fileURLToPath(program)], {
      detached: true,
      stdio: ["pipe", "ignore", "ignore"],
      env: {},
    });
    this.child = child;
    child.once("error", () => {});
    child.once("exit", () => setTimeout(() => this.startAnew(), restartMs).unref());
    child.stdin.on("error", () => {});
    child.unref();
    if (child.stdin instanceof Socket) child.stdin.unref();
    for (const word of [...this.words.values()].flat()) child.stdin.write(`${JSON.stringify(word)}\n`);
  }

  /** Numbers of processes may mean others by now; a new one finds ours by their marks. */
  private startAnew(): void {
    this.child = null;
    for (const [mark, words] of this.words) {
      this.words.set(
        mark,
        words.filter(({ type }) => type === "keep"),
      );
    }
    this.start();
  }
}

/** One for all resources of this process: it is a process of its own, and not a small one. */
export const processGuard = new ProcessGuard();
