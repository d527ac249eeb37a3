/** A server from the installed package. */
import { spawn } from "node:child_process";

export interface Running {
  readonly url: string;
  stop(): Promise<void>;
}

export function startServerWith(node: string, project: string): Promise<Running> {
  const args = [
    "node_modules/leasehold/bin/leasehold.cjs",
    "serve",
    "--port",
    "0",
    "--log-level",
    "warn",
    "--data",
    `server-data-${process.hrtime.bigint()}`,
  ];
  const child = spawn(node, args, { cwd: project, stdio: ["ignore", "pipe", "pipe"] });
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  let stdout = "";
  let stderr = "";
  child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
  const stop = async (): Promise<void> => {
    child.kill("SIGTERM");
    await ended;
  };
  return new Promise((resolve, reject) => {
    child.stdout.on("data", (chunk: Buffer) => {
      stdout += chunk.toString();
      const [, url] = /listening on (\S+)/.exec(stdout) ?? [];
      if (url !== undefined) resolve({ url, stop });
    });
    void ended.then(() => reject(new Error(`the server did not start: ${stderr}`)));
  });
}
