/** Ways to take the disk away from a running server, and to give it back. */
import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** A fault that is in force until it is ended. */
export interface Fault {
  end(): Promise<void>;
}

export const hasStrace = spawnSync("strace", ["-V"]).status === 0;

/**
 * strace attaches to every thread of the server, and fails its system calls: `error` from the `first` one on, for ever
 * or once. What it fails is not carried out.
 */
export async function failSyscalls(pid: number, calls: string, error: string, when: string): Promise<Fault> {
  const inject = `inject=${calls}:error=${error}:when=${when}`;
  const args = ["-f", "-o", "/dev/null", "-e", `trace=${calls}`, "-e", inject, "-p", String(pid)];
  const strace = spawn("strace", args, { stdio: ["ignore", "ignore", "pipe"] });
  await untilAttached(strace);
  return {
    async end() {
      // On SIGINT it lets go of its tracees; they run on.
      strace.kill("SIGINT");
      if (strace.exitCode === null && strace.signalCode === null) await once(strace, "exit");
    },
  };
}

async function untilAttached(strace: ChildProcess): Promise<void> {
  if (strace.stderr === null) throw new Error("strace has no stderr");
  const lines: string[] = [];
  for await (const line of createInterface({ input: strace.stderr })) {
    if (line.includes("attached")) return;
    lines.push(line);
  }
  throw new Error(`strace did not attach: ${lines.join(" / ")}`);
}

export interface SmallDisk {
  readonly folder: string;
  /** Takes all the room that is left. */
  fill(): Fault;
  remove(): void;
}

/** A file system of its own, if this user may mount one. */
export function createSmallDisk(mebibytes: number): SmallDisk | null {
  const mountPoint = mkdtempSync(join(tmpdir(), "leasehold-small-disk-"));
  const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", `size=${mebibytes}m`, "tmpfs", mountPoint]);
  if (mounted.status !== 0) {
    rmSync(mountPoint, { recursive: true });
    return null;
  }
  const folder = join(mountPoint, "data");
  mkdirSync(folder);
  const filler = join(mountPoint, "filler");
  return {
    folder,
    fill() {
      const { bavail, bsize } = statfsSync(mountPoint);
      try {
        writeFileSync(filler, Buffer.alloc(bavail * bsize));
      } catch {
        // The server wrote meanwhile; the disk is full all the same.
      }
      return {
        end: async () => rmSync(filler, { force: true }),
      };
    },
    remove() {
      // Lazily: the server that was killed a moment ago may still be on its way out.
      execFileSync("umount", ["-l", mountPoint]);
      rmSync(mountPoint, { recursive: true });
    },
  };
}

/** Files of the server can get no larger than this: what a full disk looks like to somebody who may not mount one. */
export function limitFileSize(pid: number, bytes: number): Fault {
  const set = (limit: string): void => {
    execFileSync("prlimit", ["--pid", String(pid), `--fsize=${limit}`]);
  };
  set(`${bytes}:unlimited`);
  return { end: async () => set("unlimited:unlimited") };
}
