/** The supervisor's end of the watchdog: keeps it told, and dismisses it. */
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { machineNow, type Word } from "./watchdog.ts";

export interface Guard {
  /** The leases can be counted on for so long from now; after the first, the group is told to end, after the second it is ended. */
  tell(group: number, termInMs: number, killInMs: number, isEnding: boolean): void;
  /** The command is gone, and nothing is left to watch. */
  dismiss(): void;
}

/** The same file as it was written, or as JavaScript where it was built. */
const program = new URL(import.meta.url.endsWith(".ts") ? "./watchdog.ts" : "./watchdog.js", import.meta.url);

/** Started early: it is up by the time that the lease is granted. */
export function startGuard(): Guard {
  // A group of its own, so that neither a terminal's Ctrl-C nor whoever ends our group ends it.
  const watchdog = spawn(process.execPath, [fileURLToPath(program)], {
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
  });
  let isGone = false;
  const gone = (): void => {
    isGone = true;
  };
  watchdog.once("error", gone);
  watchdog.once("exit", gone);
  watchdog.stdin.on("error", gone);
  watchdog.unref();
  const send = (word: Word): void => {
    if (!isGone) watchdog.stdin.write(`${JSON.stringify(word)}\n`);
  };
  return {
    tell(group, termInMs, killInMs, isEnding) {
      const { at, sleptMs } = machineNow();
      send({ group, termAt: at + termInMs, killAt: at + killInMs, sleptMs, isEnding, isDone: false });
    },
    dismiss() {
      send({ group: 0, termAt: 0, killAt: 0, sleptMs: 0, isEnding: false, isDone: true });
      if (!isGone) watchdog.stdin.end();
    },
  };
}
