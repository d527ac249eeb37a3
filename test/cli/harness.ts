/** Runs the real binary, against a real server, as a user would. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { checkOf } from "../../src/protocol/schema/check.ts";
import type { TSchema } from "../../src/protocol/schema/schema.ts";

export const binary = fileURLToPath(new URL("../../bin/leasehold.cjs", import.meta.url));

export interface Ended {
  readonly code: number | NodeJS.Signals;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Running {
  readonly child: ChildProcess;
  readonly output: { stdout: string; stderr: string };
  readonly ended: Promise<Ended>;
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly input?: string;
  /** In place of the binary: what `npm start` runs. */
  readonly program?: string;
}

/** Only PATH of this process's environment, so that the tests do not depend on the rest. */
export function start(args: readonly string[], { env = {}, cwd, input, program = binary }: RunOptions = {}): Running {
  const { PATH, HOME } = process.env;
  const child = spawn(process.execPath, [program, ...args], {
    env: { PATH, HOME, ...env },
    stdio: [input === undefined ? "ignore" : "pipe", "pipe", "pipe"],
    ...(cwd !== undefined && { cwd }),
  });
  child.stdin?.on("error", () => undefined);
  child.stdin?.end(input);
  const output = { stdout: "", stderr: "" };
  child.stdout?.on("data", (chunk: Buffer) => (output.stdout += chunk.toString()));
  child.stderr?.on("data", (chunk: Buffer) => (output.stderr += chunk.toString()));
  const ended = new Promise<Ended>((resolve) => {
    child.once("close", (code, signal) => resolve({ code: code ?? signal ?? "SIGKILL", ...output }));
  });
  return { child, output, ended };
}

export interface Server {
  readonly url: string;
  readonly process: Running;
  /** Runs a command line against this server until it exits. */
  line(args: readonly string[], options?: RunOptions): Promise<Ended>;
  /** The same for a command line that must succeed: its JSON. */
  json<T = Record<string, unknown>>(args: readonly string[], options?: RunOptions): Promise<T>;
  begin(args: readonly string[], options?: RunOptions): Running;
  stop(): Promise<void>;
}

/** A server on a free port, in memory unless `data` is given. */
export async function startServer(args: readonly string[] = ["--store", "memory"]): Promise<Server> {
  const running = start(["serve", "--port", "0", "--log-level", "warn", ...args]);
  const url = await new Promise<string>((resolve, reject) => {
    running.child.stdout?.on("data", () => {
      const [, found] = /listening on (\S+)/.exec(running.output.stdout) ?? [];
      if (found !== undefined) resolve(found);
    });
    void running.ended.then(({ code, stderr }) => reject(new Error(`the server ended with ${code}: ${stderr}`)));
  });
  const within = (options: RunOptions = {}) => ({ ...options, env: { LEASEHOLD_URL: url, ...options.env } });
  const server: Server = {
    url,
    process: running,
    line: (line, options) => start(line, within(options)).ended,
    async json<T>(line: readonly string[], options?: RunOptions) {
      const { code, stdout, stderr } = await server.line([...line, "--json"], options);
      assert.equal(code, 0, `${line.join(" ")}: ${stderr}`);
      assert.equal(stdout.trimEnd().includes("\n"), false, "one object on one line");
      return JSON.parse(stdout) as T;
    },
    begin: (line, options) => start(line, within(options)),
    async stop() {
      running.child.kill("SIGKILL");
      await running.ended;
    },
  };
  return server;
}

export interface Folder {
  readonly path: string;
  remove(): void;
}

export function makeFolder(): Folder {
  const path = mkdtempSync(join(tmpdir(), "leasehold-cli-"));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** One line on standard error, and no other output. */
export function assertOneLine({ stdout, stderr }: Ended, what: string): void {
  assert.equal(stdout, "", what);
  assert.match(stderr, /^leasehold: [^\n]+\n$/, what);
  assert.doesNotMatch(stderr, /\n {4}at |node:internal/, what);
}

/** Few at a time: each is a process. */
export async function inTurns<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const rest = [...items];
  const worker = async (): Promise<void> => {
    for (let item = rest.shift(); item !== undefined; item = rest.shift()) await work(item);
  };
  await Promise.all([worker(), worker(), worker()]);
}

export async function until<T>(look: () => Promise<T | null> | T | null, what: string, withinMs = 30_000): Promise<T> {
  const end = performance.now() + withinMs;
  for (;;) {
    const found = await look();
    if (found !== null) return found;
    assert.ok(performance.now() < end, `not within ${withinMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Checks the JSON against the operation's schema. */
export function assertFits(schema: TSchema, value: unknown): void {
  const checked = checkOf(schema)(value);
  assert.ok(checked.ok, checked.ok ? "" : `${checked.detail} ${JSON.stringify(value)}`);
}
