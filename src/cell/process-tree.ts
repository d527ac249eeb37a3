/**
 * All processes that stem from one start, found again whatever they do: by a mark in their environment, by session and
 * group, by their parents, and by having been seen before. A process that leaves its session, forgets its environment
 * and loses its parent between two checks escapes these; a control group (`cgroup`) lets none escape.
 */
import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { environmentOf, hasProc, listProcesses, nameOf, type Process, readProcess } from "./processes.ts";

export const markName = "LEASEHOLD_BOUND";
const lookAgainMs = 20;
const watchMs = 500;
const groupLookAgainMs = 10;

export class StillAlive extends Error {
  constructor(pids: readonly number[]) {
    super(`${pids.length === 1 ? "process" : "processes"} ${pids.slice(0, 8).join(", ")} cannot be killed`);
    this.name = "StillAlive";
  }
}

export class ProcessTree {
  /** What their mark begins with. */
  private readonly mark: string;
  private readonly leaders = new Map<number, string | null>();
  private seen = new Set<string>();
  private readonly innocent = new Set<string>();
  private watcher: NodeJS.Timeout | null = null;

  constructor(mark: string) {
    this.mark = `${markName}=${mark}`;
  }

  /** A process that was started with a session of its own. */
  lead(pid: number): void {
    this.leaders.set(pid, hasProc ? (readProcess(pid)?.startedAt ?? null) : null);
    if (!hasProc || this.watcher !== null) return;
    this.watcher = setInterval(() => this.look(), watchMs);
    this.watcher.unref();
  }

  /** Those that are alive now. */
  look(): readonly Process[] {
    const all = listProcesses();
    const found = new Map<number, Process>();
    for (const one of all) if (this.isOurs(one)) found.set(one.pid, one);
    // Children of children stand anywhere in the list.
    for (let before = -1; before !== found.size; ) {
      before = found.size;
      for (const one of all) if (found.has(one.parent)) found.set(one.pid, one);
    }
    this.seen = new Set([...found.values()].map(nameOf));
    this.forgetEmptySessions(all);
    return [...found.values()];
  }

  signal(signal: NodeJS.Signals): void {
    if (!hasProc) {
      for (const pid of this.leaders.keys()) send(-pid, signal);
      return;
    }
    const found = this.look();
    // The whole group in one step, so that none of it can have a child in between; then those that left it.
    const groups = new Set(found.map(({ group }) => group).filter((group) => this.leaders.has(group)));
    for (const group of groups) send(-group, signal);
    for (const { pid, group } of found) if (!groups.has(group)) send(pid, signal);
  }

  /** SIGTERM, a pause, SIGKILL, and checks until none is left. */
  async end(graceMs: number, killMs: number): Promise<void> {
    this.signal("SIGTERM");
    if (!(await this.isGoneWithin(graceMs))) {
      const giveUpAt = performance.now() + killMs;
      do {
        this.signal("SIGKILL");
      } while (!(await this.isGoneWithin(lookAgainMs)) && performance.now() < giveUpAt);
    }
    this.stopWatching();
    const left = this.alive();
    if (left.length > 0) throw new StillAlive(left);
  }

  alive(): readonly number[] {
    if (hasProc) return this.look().map(({ pid }) => pid);
    return [...this.leaders.keys()].filter((pid) => send(-pid, 0));
  }

  stopWatching(): void {
    if (this.watcher !== null) clearInterval(this.watcher);
    this.watcher = null;
  }

  private async isGoneWithin(ms: number): Promise<boolean> {
    const until = performance.now() + ms;
    for (;;) {
      if (this.alive().length === 0) return true;
      if (performance.now() >= until) return false;
      await sleep(lookAgainMs);
    }
  }

  private isOurs(one: Process): boolean {
    const name = nameOf(one);
    if (this.seen.has(name) || this.leaders.has(one.session)) return true;
    if (this.innocent.has(name)) return false;
    if (environmentOf(one.pid).some((entry) => entry.startsWith(this.mark))) return true;
    // An environment is fixed when a program is started, and `exec` keeps the pid: so it is read again
    // for young processes, and only once for those that were here before us.
    if (this.leaders.size === 0 || this.isOlder(one)) this.innocent.add(name);
    return false;
  }

  private isOlder({ startedAt }: Process): boolean {
    return [...this.leaders.values()].every((start) => start !== null && BigInt(startedAt) < BigInt(start));
  }

  /** Its number may be given to others once a session is empty; from then on it means nothing. */
  private forgetEmptySessions(all: readonly Process[]): void {
    for (const leader of this.leaders.keys()) {
      if (!all.some(({ session }) => session === leader)) this.leaders.delete(leader);
    }
  }
}

/** Whether there was a process to send it to. */
function send(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

export interface GroupLimits {
  readonly processesMax: number | null;
  readonly memoryBytesMax: number | null;
}

/** A control group (cgroup v2): the kernel's own list of a tree of processes, which none of them can leave. */
export class ControlGroup {
  readonly folder: string;

  /** A new one, under a folder that the cell may write to. */
  constructor(parent: string, name: string) {
    this.folder = join(parent, name);
    mkdirSync(this.folder, { recursive: true });
  }

  /** Throws where the group's controllers are not enabled: a limit that does not hold is none. */
  limit({ processesMax, memoryBytesMax }: GroupLimits): void {
    if (processesMax !== null) writeFileSync(join(this.folder, "pids.max"), String(processesMax));
    if (memoryBytesMax !== null) writeFileSync(join(this.folder, "memory.max"), String(memoryBytesMax));
  }

  add(pid: number): void {
    writeFileSync(join(this.folder, "cgroup.procs"), String(pid));
  }

  members(): readonly number[] {
    const text = readFileSync(join(this.folder, "cgroup.procs"), "utf8");
    return text.split("\n").filter(Boolean).map(Number);
  }

  async end(killMs: number): Promise<void> {
    const giveUpAt = performance.now() + killMs;
    while (!this.isEmpty()) {
      if (performance.now() >= giveUpAt) throw new StillAlive(this.members());
      writeFileSync(join(this.folder, "cgroup.kill"), "1");
      await sleep(groupLookAgainMs);
    }
    rmdirSync(this.folder);
  }

  private isEmpty(): boolean {
    return /^populated 0$/m.test(readFileSync(join(this.folder, "cgroup.events"), "utf8"));
  }
}
