import { spawn } from "node:child_process";
import { constants } from "node:os";

/**
 * Runs one of the project's JavaScript tools on this Node and gives its exit code. A SIGTERM is handed on, because
 * a test runner that outlives whoever started it keeps ports and files.
 */
export function run(args: readonly string[]): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { stdio: "inherit" });
    const handOn = () => child.kill("SIGTERM");
    process.on("SIGTERM", handOn);
    child.on("error", reject);
    child.on("close", (code, signal) => {
      process.off("SIGTERM", handOn);
      resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal]));
    });
  });
}
