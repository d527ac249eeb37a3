/** Three servers on one database, as processes of this one: each has its own group, so that Ctrl-C reaches only this process. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Environment } from "./command.ts";
import { exitCodes } from "./exit-codes.ts";
import { readableLine } from "./log.ts";
import { Failure } from "./problem.ts";

export const serversCount = 3;
/** A server answers what is under way and resigns; that takes moments. */
const stopMsMax = 15_000;

export interface DevClusterOptions {
  /** Their shared data: the master key and artifacts. */
  readonly folder: string;
  readonly masterKeyFile: string;
  readonly store: string;
  /** Of the first; the others have the next ones. Null: any that are free. */
  readonly port: number | null;
  readonly logLevel: string;
  readonly environment: Environment;
  /** A line of a server's log, or that it has ended. */
  readonly say: (server: number, line: string) => void;
}

export interface DevServer {
  readonly number: number;
  readonly url: string;
  readonly pid: number;
}

export class DevCluster {
  readonly #options: DevClusterOptions;
  readonly #children: ChildProcess[] = [];
  #isStopping = false;

  constructor(options: DevClusterOptions) {
    this.#options = options;
  }

  /** Once all of them listen. Where one does not, it throws, and `stop` has to follow as well. */
  async start(): Promise<readonly DevServer[]> {
    const { port } = this.#options;
    const numbers = Array.from({ length: serversCount }, (_, index) => index + 1);
    return await Promise.all(numbers.map((number) => this.#startOne(number, port === null ? 0 : port + number - 1)));
  }

  /** When the last server has ended by itself. */
  async ended(): Promise<void> {
    await Promise.all(this.#children.map(exited));
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    await Promise.all(
      this.#children.map(async (child) => {
        if (isOver(child)) return;
        child.kill("SIGTERM");
        const timer = setTimeout(() => child.kill("SIGKILL"), stopMsMax);
        await exited(child);
        clearTimeout(timer);
      }),
    );
  }

  async #startOne(number: number, port: number): Promise<DevServer> {
    const { folder, masterKeyFile, logLevel, environment, say } = this.#options;
    const flags = ["--port", String(port), "--data", folder, "--master-key-file", masterKeyFile];
    const program = [...process.execArgv, process.argv[1] ?? "", "serve", ...flags, "--log-level", logLevel];
    const child = spawn(process.execPath, program, {
      // The address of the database may have a password, which others could read on a command line.
      env: { ...withoutSettings(environment), LEASEHOLD_STORE: this.#options.store },
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#children.push(child);
    const kill = (): void => void child.kill("SIGKILL");
    process.once("exit", kill);
    let last = "";
    createInterface({ input: child.stderr }).on("line", (line) => {
      last = line;
      say(number, readable(line));
    });
    const { promise, resolve, reject } = Promise.withResolvers<DevServer>();
    createInterface({ input: child.stdout }).on("line", (line) => {
      const url = /listening on (\S+)/.exec(line)?.[1];
      if (url !== undefined) resolve({ number, url, pid: child.pid ?? 0 });
    });
    child.once("close", (code, signal) => {
      process.off("exit", kill);
      if (!this.#isStopping) say(number, `ended (${signal ?? code})`);
      const reason = last.replace(/^leasehold: /, "") || `it ended with ${signal ?? code}`;
      reject(new Failure(`server ${number} did not start: ${reason}`, code ?? exitCodes.failed));
    });
    return promise;
  }
}

async function exited(child: ChildProcess): Promise<void> {
  if (!isOver(child)) await once(child, "exit");
}

function isOver({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null;
}

/** Settings of another server are not for these. */
function withoutSettings(environment: Environment): Environment {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !name.startsWith("LEASEHOLD_")));
}

/** A line of the log as a terminal shows it; the process is known from the server's number. */
function readable(line: string): string {
  if (!line.startsWith("{")) return line;
  try {
    const { pid: _pid, hostname: _host, ...rest } = JSON.parse(line) as Readonly<Record<string, unknown>>;
    return readableLine(JSON.stringify(rest));
  } catch {
    return line;
  }
}
