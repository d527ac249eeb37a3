/** One run of test files in a copy of the sources, and what it says about the fault planted there. */
import { type ChildProcess, spawn } from "node:child_process";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import type { Report } from "./failures.ts";

export type Verdict =
  | { readonly type: "passed" }
  | { readonly type: "failed"; readonly file: string; readonly test: string }
  | { readonly type: "crashed"; readonly error: string }
  | { readonly type: "hung" }
  /** None of the files has a test: nothing was found out. */
  | { readonly type: "not_run" };

/** All tests of the kernel take some twenty seconds; what takes this long is in an endless loop. */
const timeoutMs = 90_000;
const errorCharsMax = 300;

const flags = [
  ...["--test", "--test-isolation=none", "--test-reporter-destination=stdout"],
  `--test-reporter=${join(import.meta.dirname, "failures.ts")}`,
];
/** Most of the time of a single file is spent on reading TypeScript. */
const environment = { ...process.env, NODE_COMPILE_CACHE: join(tmpdir(), "leasehold-mutants-compiled") };

const children = new Set<ChildProcess>();

export function stopRuns(): void {
  for (const child of children) child.kill("SIGKILL");
}

/** The first failure ends it. */
export function verdictOf(copy: string, files: readonly string[]): Promise<Verdict> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [...flags, ...files], { cwd: copy, env: environment });
    children.add(child);
    let output = "";
    let errors = "";
    let hung = false;
    const timer = setTimeout(() => {
      hung = true;
      child.kill("SIGKILL");
    }, timeoutMs);
    child.stdout.on("data", (chunk: Buffer) => {
      output += chunk.toString();
      if (firstFailure(copy, output) !== null) child.kill("SIGKILL");
    });
    child.stderr.on("data", (chunk: Buffer) => {
      errors = (errors + chunk.toString()).slice(-errorCharsMax);
    });
    child.on("error", reject);
    child.on("close", (code) => {
      clearTimeout(timer);
      children.delete(child);
      const failure = firstFailure(copy, output);
      if (failure !== null) resolve(failure);
      else if (hung) resolve({ type: "hung" });
      else if (code !== 0) resolve({ type: "crashed", error: errors.trim() });
      else resolve({ type: reportsIn(output).length > 0 ? "passed" : "not_run" });
    });
  });
}

function firstFailure(copy: string, output: string): Verdict | null {
  const failed = reportsIn(output).find(([outcome]) => outcome === "failed");
  if (failed === undefined) return null;
  const [, file, test] = failed;
  return { type: "failed", file: relative(copy, file), test };
}

function reportsIn(output: string): Report[] {
  const lines = output.split("\n").slice(0, -1);
  return lines.filter((line) => line.startsWith('["')).map((line) => JSON.parse(line) as Report);
}
