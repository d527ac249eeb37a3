/** The command line: finds the command, runs it, and ends with a code and one clear line if it cannot be done. */
import { describeFailure } from "./server/commands/failure.ts";
import { runCommand } from "./server/commands/run.ts";

// The data holds the secret that agents' tokens are made with: it is for this user alone.
process.umask(0o077);

try {
  process.exitCode = await runCommand(process.argv.slice(2), process.env);
} catch (error) {
  const { line, code } = describeFailure(error);
  process.stderr.write(`leasehold: ${line}\n`);
  process.exit(code);
}
