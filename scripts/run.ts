import { spawn } from "node:child_process";
import { constants } from "node:os";

/**
 * Runs one of the project's JavaScript tools on this Node and resolves with its exit code. SIGTERM is forwarded,
 * because a test runner that outlives its parent keeps ports and files.
 */
export function run(args: readonly string[]): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { stdio: "inherit" });
    const forward = () => child.kill("SIGTERM");
    process.on("SIGTERM", forward);
    child.on("error", reject);
    child.on("close", (code, signal) => {
      process.off("SIGTERM", forward);
      resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal]));
    });
  });
}
