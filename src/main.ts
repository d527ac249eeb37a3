/** The command line: finds the command, runs it, and ends with a code and one clear line if it cannot be done. */
import { enableCompileCache } from "node:module";
import { fileURLToPath } from "node:url";

// The data holds the secret that agents' tokens are made with: it is for this user alone.
process.umask(0o077);
// What was compiled once need not be again: starts are quicker. The cache is code that will be run, so it lies where
// the code lies, and not where others can write.
enableCompileCache(fileURLToPath(new URL("../node_modules/.cache/leasehold", import.meta.url)));

const { describeFailure } = await import("./server/commands/failure.ts");
const { runCommand } = await import("./server/commands/run.ts");
try {
  process.exitCode = await runCommand(process.argv.slice(2), process.env);
} catch (error) {
  const { line, code } = describeFailure(error);
  process.stderr.write(`leasehold: ${line}\n`);
  process.exit(code);
}
