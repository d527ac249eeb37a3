/**
 * The command that coding agents run at their hooks: `leasehold guard hook TOOL EVENT`, with what happens on standard
 * input. It hands the call to the resident helper, or does the work itself where none answers, and prints the answer in the
 * tool's own words. It never hangs.
 *
 * It is a program of its own that imports nothing of the command line, so that it starts quickly. For the same reason
 * it gets Node's own modules by `process.getBuiltinModule`: to import one reads all of its exports, and some of those
 * load a lot (of `node:http`, a whole web client; of `node:crypto`, web cryptography; of `node:fs`, its streams), which
 * is more than all that a hook does.
 */
import { readInput } from "./hook-input.ts";
import { askHelper, noteShellSocket, startHelper } from "./resident/client.ts";

export interface HookResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `guard hook …`, and ends the process. */
export async function main(args: readonly string[], environment: NodeJS.ProcessEnv): Promise<never> {
  if (args[0] === "helper") return await (await import("./resident/serve.ts")).serveHelper(environment);
  const { code, stdout, stderr } = await runHook(args, environment);
  if (stderr !== "") process.stderr.write(stderr);
  await new Promise<void>((resolve) => process.stdout.write(stdout, () => resolve()));
  process.exit(code);
}

async function runHook(args: readonly string[], environment: NodeJS.ProcessEnv): Promise<HookResult> {
  // Git's hooks get nothing on standard input that counts, and may have inherited a terminal's.
  const read = args[0] === "git" ? { input: "", problem: null } : await readInput(process.stdin);
  const call = { args, input: read.input, cwd: process.cwd(), environment, pid: process.pid };
  const answered = read.problem === null ? await askHelper(call) : null;
  if (answered !== null) {
    noteShellSocket(environment);
    return answered;
  }
  const { answerHook } = await import("./hook-run.ts");
  if (read.problem === null) startHelper(environment);
  return await answerHook(call, read.problem);
}
