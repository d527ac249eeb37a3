/** The supervisor's end of the watchdog: tells it how long the leases last, and dismisses it. */
import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { type Instruction, machineNow } from "./watchdog.ts";

/** The same file as it was written, or as JavaScript where it was built. */
const program = new URL(import.meta.url.endsWith(".ts") ? "./watchdog.ts" : "./watchdog.js", import.meta.url);

/** Started early, so that it runs by the time that the lease is granted. */
export class Watchdog {
  private readonly process: ChildProcess;
  private isGone = false;

  constructor() {
    // A group of its own, so that neither a terminal's Ctrl-C nor a signal to our group ends it.
    this.process = spawn(process.execPath, [fileURLToPath(program)], {
      detached: true,
      stdio: ["pipe", "ignore", "ignore"],
    });
    const gone = (): void => {
      this.isGone = true;
    };
    this.process.once("error", gone);
    this.process.once("exit", gone);
    this.process.stdin?.on("error", gone);
    this.process.unref();
  }

  /** Sends the group SIGTERM in `termInMs` and SIGKILL in `killInMs`, unless it hears again before. */
  tell(group: number, termInMs: number, killInMs: number, isEnding: boolean): void {
    const { at, sleptMs } = machineNow();
    this.send({ group, termAt: at + termInMs, killAt: at + killInMs, sleptMs, isEnding, isDone: false });
  }

  /** The command has ended, and there is nothing left to watch. */
  dismiss(): void {
    this.send({ group: 0, termAt: 0, killAt: 0, sleptMs: 0, isEnding: false, isDone: true });
    if (!this.isGone) this.process.stdin?.end();
  }

  private send(instruction: Instruction): void {
    if (!this.isGone) this.process.stdin?.write(`${JSON.stringify(instruction)}\n`);
  }
}
