/**
 * Processes of this machine, by number and start time: a number alone may come back. A coding agent's hooks, its shell
 * commands and its MCP servers all descend from it, which is how they find each other.
 */
const { readdirSync, readFileSync } = process.getBuiltinModule("node:fs");

export interface ProcessId {
  readonly pid: number;
  /** As the system writes it; equal for the same process only. */
  readonly started: string;
}

interface RunningProcess extends ProcessId {
  readonly name: string;
  readonly parent: number;
}

const depthMax = 64;
const shells = /^-?(?:sh|bash|dash|zsh|fish|ksh)$/;

/** From the given one upwards; empty where the system does not say. */
export function ancestorsOf(pid: number): readonly RunningProcess[] {
  const found: RunningProcess[] = [];
  for (let at = pid; at > 1 && found.length < depthMax; ) {
    const one = processOf(at);
    if (one === null) break;
    found.push(one);
    at = one.parent;
  }
  return found;
}

/** The coding agent above one of its hooks or commands: neither a shell nor a start of this program. */
export function toolAbove(pid: number): ProcessId | null {
  const found = ancestorsOf(pid).find((one) => !shells.test(one.name) && !isOwnHook(one.pid));
  return found === undefined ? null : { pid: found.pid, started: found.started };
}

export function isAlive({ pid, started }: ProcessId): boolean {
  return processOf(pid)?.started === started;
}

/** Whether a process below this one is younger than `since` (ms since the epoch): a command that it runs. */
export function hasYoungDescendant(pid: number, since: number): boolean {
  const ageMs = Date.now() - since;
  const now = uptimeMs();
  if (now === null) return false;
  const below = new Set([pid]);
  const all = processes();
  for (let isMore = true; isMore; ) {
    isMore = false;
    for (const one of all) {
      if (!below.has(one.parent) || below.has(one.pid)) continue;
      below.add(one.pid);
      isMore = true;
      // A process that was there before the command is a server of the tool.
      if (now - Number(one.started) * tickMs <= ageMs + tickMs && !isOwnHook(one.pid)) return true;
    }
  }
  return false;
}

/** Linux counts start times in hundredths of a second since boot. */
const tickMs = 10;

function uptimeMs(): number | null {
  const [seconds = ""] = (readText("/proc/uptime") ?? "").split(" ");
  return seconds === "" ? null : Number(seconds) * 1_000;
}

function processes(): readonly RunningProcess[] {
  try {
    const names = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
    return names.flatMap((name) => processOf(Number(name)) ?? []);
  } catch {
    return [];
  }
}

function processOf(pid: number): RunningProcess | null {
  const stat = readText(`/proc/${pid}/stat`);
  if (stat === null) return process.platform === "linux" ? null : processByPs(pid);
  // "pid (name) state parent …", the start time is the 22nd field; a name may hold brackets and spaces.
  const [, name = "", state = "", rest = ""] = /^\d+ \((.*)\) (\S) (.*)$/s.exec(stat) ?? [];
  const fields = rest.split(" ");
  if (name === "" || state === "Z" || state === "X") return null;
  return { pid, name, parent: Number(fields[0]), started: fields[18] ?? "" };
}

/** For systems without /proc. */
function processByPs(pid: number): RunningProcess | null {
  const { execFileSync } = process.getBuiltinModule("node:child_process");
  try {
    const args = ["-o", "ppid=,lstart=,comm=", "-p", String(pid)];
    const line = execFileSync("ps", args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
    const [, parent = "", started = "", path = ""] =
      /^(\d+)\s+(\w+\s+\w+\s+\d+\s+[\d:]+\s+\d+)\s+(.*)$/.exec(line) ?? [];
    return parent === "" ? null : { pid, name: path.split("/").at(-1) ?? "", parent: Number(parent), started };
  } catch {
    return null;
  }
}

/** A start of `leasehold guard hook`, perhaps by another Node that passes the call on. */
function isOwnHook(pid: number): boolean {
  return readText(`/proc/${pid}/cmdline`)?.includes("\0guard\0hook\0") === true;
}

function readText(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return null;
  }
}
