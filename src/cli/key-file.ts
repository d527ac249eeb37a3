/**
 * A key that no other process can see. In the environment or in an argument it stays readable in /proc for as long as the
 * process lives, for everything that runs as the same user; in an argument for everybody.
 */
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Environment } from "./command.ts";
import { UsageProblem } from "./problem.ts";

/** Set by a command that starts itself again: the file was made for this one start, and goes with it. */
const onceName = "LEASEHOLD_KEY_FILE_ONCE";
const keyBytesMax = 8_192;

/** A descriptor too (`/dev/fd/3`). A plain file must be the owner's alone. */
export function readKeyFile(file: string, environment: Environment): string {
  try {
    const found = statSync(file);
    const { mode, size } = found;
    if (found.isFile() && process.platform !== "win32" && (mode & 0o077) !== 0) {
      throw new UsageProblem(`others may read the key in ${file}; make it the owner's alone: chmod 600 ${file}`);
    }
    if (size > keyBytesMax) throw new UsageProblem(`${file} is not a key: it has ${size} bytes`);
    const key = readFileSync(file, "utf8").trim();
    if (key === "") throw new UsageProblem(`the key file ${file} is empty`);
    return key;
  } catch (error) {
    if (error instanceof UsageProblem) throw error;
    throw new UsageProblem(`the key file ${file} cannot be read: ${(error as NodeJS.ErrnoException).code}`);
  } finally {
    if (environment[onceName]) rmSync(dirname(file), { recursive: true, force: true });
  }
}

/**
 * Starts this process again, under the same number, without a key in its environment or arguments (G13). Returns where
 * there is nothing to hide, or where the platform cannot do it.
 */
export function hideKey(key: string | null, environment: Environment): void {
  const args = withoutKey(process.argv.slice(2));
  const isVisible = process.env["LEASEHOLD_KEY"] !== undefined || args.length < process.argv.length - 2;
  if (key === null || !isVisible || environment !== process.env || process.execve === undefined) return;
  const folder = mkdtempSync(join(tmpdir(), "leasehold-key-"));
  const file = join(folder, "key");
  writeFileSync(file, key, { mode: 0o600, flag: "wx" });
  const { LEASEHOLD_KEY: _hidden, ...rest } = process.env;
  const program = [process.execPath, ...process.execArgv, process.argv[1] ?? ""];
  try {
    process.execve(process.execPath, [...program, ...args], {
      ...(rest as Record<string, string>),
      LEASEHOLD_KEY_FILE: file,
      [onceName]: "1",
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function withoutKey(args: readonly string[]): readonly string[] {
  const kept: string[] = [];
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] ?? "";
    if (arg === "--key") at++;
    else if (!arg.startsWith("--key=")) kept.push(arg);
  }
  return kept;
}

/** For commands that are started: they act as the agent or the task that they are given, never with the key. */
export function withoutKeys(environment: Environment): NodeJS.ProcessEnv {
  const { LEASEHOLD_KEY: _key, LEASEHOLD_KEY_FILE: _file, [onceName]: _once, ...rest } = environment;
  return rest;
}
