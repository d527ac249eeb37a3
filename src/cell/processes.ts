/** The processes of this machine, as Linux tells them in /proc. */
import { existsSync, readdirSync, readFileSync } from "node:fs";

export interface Process {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  readonly session: number;
  /** In ticks since the machine started. With the pid it names one process for ever. */
  readonly startedAt: string;
}

export const hasProc = existsSync("/proc/self/stat");

/** All that are alive. A zombie is not: it only waits for its parent to notice. */
export function listProcesses(): readonly Process[] {
  return readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    const found = readProcess(Number(name));
    return found === null ? [] : [found];
  });
}

/** null: it is gone. */
export function readProcess(pid: number): Process | null {
  const text = readOrNull(`/proc/${pid}/stat`);
  if (text === null) return null;
  // The name stands in brackets and may hold anything, brackets and spaces too.
  const [state, parent, group, session, ...rest] = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const startedAt = rest[15];
  if (state === "Z" || state === "X" || startedAt === undefined) return null;
  return { pid, parent: Number(parent), group: Number(group), session: Number(session), startedAt };
}

/** What it was started with, and its children after it, unless they took care to forget. */
export function environmentOf(pid: number): readonly string[] {
  return readOrNull(`/proc/${pid}/environ`)?.split("\0") ?? [];
}

export function nameOf({ pid, startedAt }: Process): string {
  return `${pid}@${startedAt}`;
}

function readOrNull(file: string): string | null {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return null;
  }
}
