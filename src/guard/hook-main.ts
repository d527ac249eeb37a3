/**
 * The hook as a program of its own: it imports nothing of the command line, so that it starts quickly. For the same
 * reason it gets Node's own modules by `process.getBuiltinModule`: to import one reads all of its exports, and some of
 * those load a lot (of `node:http`, a whole web client; of `node:crypto`, web cryptography; of `node:fs`, its streams),
 * which is more than all that a hook does.
 */
import { inputBytesMax, inputMs, runHook } from "./hook.ts";
import { PayloadProblem } from "./payload.ts";

/** Runs `guard hook …`, and ends the process. */
export async function main(args: readonly string[], environment: NodeJS.ProcessEnv): Promise<never> {
  const { code, stdout, stderr } =
    args[0] === "git"
      ? await (await import("./git-hook.ts")).runGitHook(args.slice(1), process.cwd(), environment)
      : await runHook(args, readInput, environment);
  if (stderr !== "") process.stderr.write(stderr);
  await new Promise<void>((resolve) => process.stdout.write(stdout, () => resolve()));
  process.exit(code);
}

/** All of the input, up to a size and a time: a tool that leaves the pipe open is answered as well. */
function readInput(): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const timer = setTimeout(
      () => reject(new PayloadProblem(`its input did not end within ${inputMs / 1_000} s`)),
      inputMs,
    );
    const { stdin } = process;
    stdin.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size <= inputBytesMax) chunks.push(chunk);
      else reject(new PayloadProblem(`its input is larger than ${inputBytesMax / 2 ** 20} MiB`));
    });
    stdin.once("end", () => {
      clearTimeout(timer);
      resolve(Buffer.concat(chunks).toString("utf8"));
    });
    stdin.once("error", (error) => reject(new PayloadProblem(error.message)));
  });
}
