/** Faults of a running server's disk, and their end. */
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
 * strace attaches to every thread of the server and makes its system calls fail with `error`, from the `first` one on,
 * always or once, on all files or on one. A failed call is not executed.
 */
export async function failSyscalls(
  pid: number,
  calls: string,
  error: string,
  when: string,
  file: string | null = null,
): Promise<Fault> {
  const inject = `inject=${calls}:error=${error}:when=${when}`;
  const only = file === null ? [] : ["-P", file];
  const args = ["-f", "-o", "/dev/null", ...only, "-e", `trace=${calls}`, "-e", inject, "-p", String(pid)];
  const strace = spawn("strace", args, { stdio: ["ignore", "ignore", "pipe"] });
  await untilAttached(strace);
  return {
    async end() {
      // On SIGINT strace detaches; the server runs on.
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
  /** Fills the disk. */
  fill(): Fault;
  remove(): void;
}

/** A separate file system, if this user may mount one. */
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
        // The server wrote meanwhile; the disk is full anyway.
      }
      return {
        end: async () => rmSync(filler, { force: true }),
      };
    },
    remove() {
      // Lazy unmount: the killed server may not have exited yet.
      execFileSync("umount", ["-l", mountPoint]);
      rmSync(mountPoint, { recursive: true });
    },
  };
}

/** A limit on the server's file sizes: the substitute for a full disk where mounting is not allowed. */
export function limitFileSize(pid: number, bytes: number): Fault {
  const set = (limit: string): void => {
    execFileSync("prlimit", ["--pid", String(pid), `--fsize=${limit}`]);
  };
  set(`${bytes}:unlimited`);
  return { end: async () => set("unlimited:unlimited") };
}
