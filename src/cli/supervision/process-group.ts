/** A command's process group: signalled, checked, and ended. */
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/** To all of the group. False where nobody is left to hear it. */
export function signalGroup(group: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(-group, signal);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // Some systems refuse to signal a group of zombies.
    if (code === "ESRCH" || code === "EPERM") return false;
    throw error;
  }
}

/**
 * Whether anything of it still runs. What has ended stays in its group until somebody has asked for its exit code, and
 * in a container often nobody does; such a group hears signals for ever, and does nothing.
 */
export function isGroupRunning(group: number): boolean {
  if (!signalGroup(group, 0)) return false;
  if (process.platform !== "linux") return true;
  try {
    return readdirSync("/proc").some((name) => /^\d+$/.test(name) && isRunningIn(name, group));
  } catch {
    return true;
  }
}

function isRunningIn(pid: string, group: number): boolean {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, "latin1");
  } catch {
    return false; // It has gone meanwhile.
  }
  // The name, in parentheses, may hold anything; what follows it does not: state, parent, group.
  const [state, , own] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return Number(own) === group && state !== "Z" && state !== "X";
}

const lookMs = 20;

/** SIGTERM, `graceMs` to tidy up, SIGKILL; returns when nothing of the group runs any more. */
export async function endGroup(group: number, graceMs: number): Promise<void> {
  const end = performance.now() + graceMs;
  let isRunning = signalGroup(group, "SIGTERM") && signalGroup(group, "SIGCONT") && isGroupRunning(group);
  while (isRunning && performance.now() < end) {
    await sleep(Math.min(lookMs, Math.max(0, end - performance.now())));
    isRunning = isGroupRunning(group);
  }
  while (isRunning) {
    signalGroup(group, "SIGKILL");
    await sleep(lookMs);
    isRunning = isGroupRunning(group);
  }
}
