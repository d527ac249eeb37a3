/**
 * Programs that a cell starts, for holders or for itself: as another user where one is configured, with an environment
 * that the configuration allows, and within limits (G13).
 */
import { type ChildProcess, execFile, type SpawnOptions, spawn } from "node:child_process";
import { resolve } from "node:path";
import type { Writable } from "node:stream";
import { promisify } from "node:util";
import { passedEnvironment, readPassed } from "./environment.ts";
import type { Fields } from "./fields.ts";
import { type ControlGroup, type GroupLimits, markName } from "./process-tree.ts";

export interface LaunchOptions {
  /** Whose rights the programs have, by name or number; null: the cell's own. */
  readonly user: string | null;
  readonly group: string | null;
  readonly envPass: readonly string[];
  /** Of each program and its children. */
  readonly processesMax: number | null;
  readonly memoryBytesMax: number | null;
  /** Of each process: processor time. */
  readonly cpuSecondsMax: number | null;
}

const accountPattern = /^(?:\d{1,9}|[A-Za-z_][A-Za-z0-9_.-]{0,31})$/;
const accountHint = "give a name or a number";

/** A program that is named with a slash is taken from the configuration's folder; others are searched for in PATH. */
export function readCommand(fields: Fields, name: string, folder: string): readonly string[] | null {
  const [program, ...args] = fields.command(name) ?? [];
  if (program === undefined) return null;
  return [program.includes("/") ? resolve(folder, program) : program, ...args];
}

/** `isGrouped`: the programs are put into control groups, which count a tree of processes. */
export function readLaunchOptions(fields: Fields, isGrouped: boolean): LaunchOptions {
  const user = fields.matching("user", accountPattern, accountHint, null);
  const group = fields.matching("group", accountPattern, accountHint, null);
  const processesMax = fields.integer("processes_max", [1, 1_000_000], null);
  const memoryBytesMax = fields.integer("memory_bytes_max", [1_048_576, Number.MAX_SAFE_INTEGER], null);
  const cpuSecondsMax = fields.integer("cpu_seconds_max", [1, 1_000_000_000], null);
  if (group !== null && user === null) fields.fault("group", "is given without user; give both");
  if (user !== null && /^\d/.test(user) && group === null)
    fields.fault("group", "is missing; a user by number needs it");
  if (processesMax !== null && !isGrouped && user === null) {
    fields.fault("processes_max", "would count the cell's own processes too; give cgroup or user with it");
  }
  return { user, group, envPass: readPassed(fields), processesMax, memoryBytesMax, cpuSecondsMax };
}

export interface Launch {
  readonly command: readonly string[];
  /** Beside what every program gets. */
  readonly environment: Readonly<Record<string, string>>;
  /** Inherited by its children, by which they are found again. */
  readonly mark: string;
  readonly output: "pipe" | "ignore";
  readonly folder?: string;
  readonly group?: ControlGroup | null;
}

interface Account {
  readonly uid: number;
  readonly gid: number;
}

export class Launcher {
  private readonly options: LaunchOptions;
  private account: Account | null = null;

  constructor(options: LaunchOptions) {
    this.options = options;
  }

  /** Finds the user. Throws where the cell may not start programs as that one. */
  async prepare(): Promise<void> {
    const { user, group } = this.options;
    this.account = user === null ? null : await findAccount(user, group);
    const own = process.getuid?.();
    if (this.account === null || own === 0 || own === this.account.uid) return;
    throw new Error(`programs can be started as ${user} only by a cell that runs as root`);
  }

  /** Whether programs have the rights of the cell itself: then nothing that it can read is safe from them. */
  get isOwnUser(): boolean {
    return this.account === null || this.account.uid === process.getuid?.();
  }

  /** What a control group is to hold its members to. */
  get groupLimits(): GroupLimits {
    const { processesMax, memoryBytesMax } = this.options;
    return { processesMax, memoryBytesMax };
  }

  /** In a session of its own. A program that is missing is reported by "error". */
  launch({ command, environment, mark, output, folder, group = null }: Launch): ChildProcess {
    const [program = "", ...args] = this.withLimits(command, group !== null);
    const options: SpawnOptions = {
      detached: true,
      stdio: group === null ? [output, output, output] : [output, output, output, "pipe"],
      env: { ...environment, ...passedEnvironment(this.options.envPass), [markName]: mark },
      ...(folder !== undefined && { cwd: folder }),
      ...this.account,
    };
    const child = spawn(program, args, options);
    if (group !== null && child.pid !== undefined) admitTo(group, child, child.pid);
    return child;
  }

  /**
   * The command that first takes the limits upon itself, then waits until the cell has put it into its group, and then
   * becomes the given one: nothing of it ever runs outside.
   */
  private withLimits(command: readonly string[], isGrouped: boolean): readonly string[] {
    const { processesMax, memoryBytesMax, cpuSecondsMax } = this.options;
    const steps: string[] = [];
    if (cpuSecondsMax !== null) steps.push(`ulimit -t ${cpuSecondsMax}`);
    // A group counts a whole tree; without one the limits are the user's, and of each process.
    if (!isGrouped && memoryBytesMax !== null) steps.push(`ulimit -v ${Math.ceil(memoryBytesMax / 1_024)}`);
    // Shells do not agree about the letter.
    if (!isGrouped && processesMax !== null)
      steps.push(`{ ulimit -u ${processesMax} 2>&- || ulimit -p ${processesMax}; }`);
    if (isGrouped) steps.push("read -r _ <&3", "exec 3<&-");
    if (steps.length === 0) return command;
    return ["/bin/sh", "-c", `${steps.join(" && ")} && exec "$@"`, "sh", ...command];
  }
}

function admitTo(group: ControlGroup, child: ChildProcess, pid: number): void {
  const gate = child.stdio[3] as Writable;
  gate.on("error", () => {});
  try {
    group.add(pid);
    gate.end("in\n");
  } catch (error) {
    // Without the line it ends by itself.
    gate.destroy();
    child.emit("error", error);
  }
}

const run = promisify(execFile);

async function findAccount(user: string, group: string | null): Promise<Account> {
  const number = async (name: string, program: string, ...args: readonly string[]): Promise<number> => {
    if (/^\d+$/.test(name)) return Number(name);
    const found = await run(program, [...args, name]).catch(() => null);
    const id = /(?:^|:)(\d+)(?::|\s*$)/.exec(found?.stdout ?? "")?.[1];
    if (id === undefined) throw new Error(`${name} is not known on this machine`);
    return Number(id);
  };
  return {
    uid: await number(user, "id", "-u"),
    gid: group === null ? await number(user, "id", "-g") : await number(group, "getent", "group"),
  };
}
