/**
 * A key that no other process can see. In the environment or in an argument it stays readable in /proc for as long as the
 * process lives, for everything that runs as the same user; in an argument for everybody.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { readKeyFile as readKey } from "../trust/key-file.ts";
import { TrustProblem } from "../trust/loopback.ts";
import type { Environment } from "./command.ts";
import { UsageProblem } from "./problem.ts";

/** Set by a command that starts itself again: the file was made for this one start, and goes with it. */
const onceName = "LEASEHOLD_KEY_FILE_ONCE";

/** In the words of the command line. A file that was made for one start goes with it. */
export function readKeyFile(file: string, environment: Environment): string {
  try {
    return readKey(file);
  } catch (error) {
    throw error instanceof TrustProblem ? new UsageProblem(error.message) : error;
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
