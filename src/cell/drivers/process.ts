/**
 * `process`: commands that live only as long as the lease. A fixed `command` is started with the binding; what the
 * holder may start itself, by `POST /run`, the configuration lists in `allow`. At the end everything that stems from
 * them is ended, and the binding is gone only when nothing of it can be found any more.
 *
 *   POST /run   {"argv": ["/usr/bin/python3", "job.py"], "env": {…}, "stdin": "…"}
 *
 * The answer is a stream of JSON lines: started, stdout and stderr (base64), exit. When the client disconnects, its
 * process is ended.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, realpathSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { resolve } from "node:path";
import type { Binding } from "../binding.ts";
import { Driver, type ProbeResult } from "../driver.ts";
import type { AccessFailure } from "../failure.ts";
import type { Fields } from "../fields.ts";
import { answerFailure, HttpListener, tokenOf, whenOver } from "../http-listener.ts";
import { type Listening, readListening } from "../listening.ts";
import { processGuard } from "../process-guard.ts";
import { ControlGroup, markName, ProcessTree } from "../process-tree.ts";
import { environmentOf, hasProc, listProcesses } from "../processes.ts";
import { readAll } from "../pump.ts";

interface ProcessOptions {
  readonly command: readonly string[] | null;
  /** Programs that the holder may start, by their real paths; "*" is any. */
  readonly allow: readonly string[];
  readonly folder: string;
  readonly graceMs: number;
  readonly killMs: number;
  /** A folder of the control group file system in which the cell may make groups. */
  readonly cgroup: string | null;
  readonly listening: Listening;
}

export function readProcessOptions(fields: Fields, base: string): ProcessOptions {
  const options = {
    command: fields.command("command"),
    allow: fields.list("allow") ?? [],
    folder: resolve(base, fields.text("folder", ".")),
    graceMs: fields.integer("grace_ms", [0, 600_000], 2_000),
    killMs: fields.integer("kill_ms", [1, 600_000], 5_000),
    cgroup: fields.text("cgroup", null),
    listening: readListening(fields),
  };
  if (options.command === null && options.allow.length === 0 && fields.faults.length === 0) {
    fields.fault("command", "is missing, and so is allow; give one of them");
  }
  return options;
}

/** What runs under one binding. */
interface Running {
  readonly tree: ProcessTree;
  readonly group: ControlGroup | null;
}

const bodyBytesMax = 1_048_576;

export class ProcessDriver extends Driver<ProcessOptions> {
  private readonly running = new Map<string, Running>();
  private starts = 0;
  private readonly listener = new HttpListener(this.options.listening, {
    request: (request, response) => this.serve(request, response),
  });

  /** What an earlier run of the cell has left behind (it was killed, perhaps) is ended first. */
  override async start(): Promise<void> {
    await this.reset();
    if (this.options.allow.length > 0) await this.listener.open();
  }

  async bind(binding: Binding): Promise<string> {
    const { id } = binding.lease;
    const group = this.options.cgroup === null ? null : new ControlGroup(this.options.cgroup, this.groupName(id));
    const running = { tree: new ProcessTree(this.markOf(id)), group };
    this.running.set(id, running);
    this.guard(binding);
    binding.onRenew = () => this.guard(binding);
    if (this.options.command !== null) await this.startFixed(this.options.command, binding);
    return this.listener.address === null ? "" : `http://${this.listener.address}`;
  }

  override async teardown(binding: Binding): Promise<void> {
    const { graceMs, killMs } = this.options;
    const running = this.running.get(binding.lease.id);
    await (running?.tree ?? new ProcessTree(this.markOf(binding.lease.id))).end(graceMs, killMs);
    for (const group of this.groupsLeft(binding.lease.id)) await group.end(killMs);
    await binding.whenIdle();
    this.running.delete(binding.lease.id);
    processGuard.drop(this.markOf(binding.lease.id));
  }

  async probe(): Promise<ProbeResult> {
    const left = this.leftovers();
    if (left.length === 0) return { clean: true, detail: "nothing of it runs" };
    return { clean: false, detail: `${left.length} processes run, such as ${left[0]}` };
  }

  async reset(): Promise<void> {
    const { graceMs, killMs } = this.options;
    await new ProcessTree(this.markOf(null)).end(graceMs, killMs);
    for (const group of this.groupsLeft()) await group.end(killMs);
    for (const [id, { tree }] of this.running) {
      tree.stopWatching();
      processGuard.drop(this.markOf(id));
    }
    this.running.clear();
  }

  override async stop(): Promise<void> {
    for (const { tree } of this.running.values()) tree.stopWatching();
    await this.listener.close();
  }

  /** A cell that is stopped or killed cannot end what it has started; its guard does (G11). */
  private guard({ lease, clock }: Binding): void {
    const { graceMs, killMs, cgroup } = this.options;
    const group = cgroup === null ? null : { folder: cgroup, name: this.groupName(lease.id) };
    processGuard.keep({ mark: this.markOf(lease.id), leftMs: lease.expiresAt - clock.now(), graceMs, killMs, group });
  }

  private serve(request: IncomingMessage, response: ServerResponse): void {
    const fail = (failure: AccessFailure): void => answerFailure(response, failure);
    if (request.url?.split("?")[0] !== "/run") return fail({ code: "not_found", detail: "There is POST /run here." });
    if (request.method !== "POST") return fail({ code: "method_not_allowed", detail: "Send POST." });
    // Checked before the body is read, so that only a lease's holder can make us keep one.
    const first = this.place.admission.admit(tokenOf(request), { operation: "run", program: () => null }, () => {});
    if (!("code" in first)) first.close();
    else if (first.caveat !== "program") return fail(first);
    readAll(request, bodyBytesMax, "The body is too large.").then(
      (body) => this.run(body, request, response),
      () => fail({ code: "payload_too_large", detail: `Send at most ${bodyBytesMax} bytes.` }),
    );
  }

  /** Reports the process until it ends, and ends it when the client has gone. */
  private run(body: string, request: IncomingMessage, response: ServerResponse): void {
    const asked = decode(body);
    if (asked === null) {
      const detail = 'Send {"argv": ["/usr/bin/program", "argument"], "env": {}, "stdin": ""}.';
      return answerFailure(response, { code: "invalid_request", detail });
    }
    const program = allowedProgram(asked.argv[0] ?? "", this.options.allow);
    if (typeof program !== "string") return answerFailure(response, program);
    let finish = (): void => {};
    const access = { operation: "run", program: () => program };
    const pass = this.place.admission.admit(tokenOf(request), access, (failure) => {
      if (response.headersSent) response.end(line({ type: "end", error: failure.code }));
      else answerFailure(response, failure);
      finish();
    });
    if ("code" in pass) return answerFailure(response, pass);
    const { child, tree } = this.spawn([program, ...asked.argv.slice(1)], asked.env, pass.binding, "pipe");
    // Several things can be what ends a run, and some come together.
    let isFinishing = false;
    /** The pass is held until all that was started is gone; if that fails, the teardown of the binding will say so. */
    finish = (): void => {
      if (child.pid === undefined || isFinishing) return;
      isFinishing = true;
      const close = (): void => pass.close();
      tree.end(this.options.graceMs, this.options.killMs).then(close, close);
    };
    child.on("spawn", () => {
      response.writeHead(200, { "content-type": "application/x-ndjson" });
      response.write(line({ type: "started", pid: child.pid }));
    });
    child.on("error", (error) => {
      answerFailure(response, { code: "driver_failed", detail: `The program cannot be started: ${error.message}` });
      pass.close();
    });
    for (const name of ["stdout", "stderr"] as const) {
      child[name]?.on("data", (chunk: Buffer) => {
        if (!pass.take(chunk.length, "out")) return;
        if (response.write(line({ type: name, data: chunk.toString("base64") }))) return;
        child[name]?.pause();
        response.once("drain", () => child[name]?.resume());
      });
    }
    child.on("close", (code, signal) => {
      if (pass.cutBy === null) response.end(line({ type: "exit", code, signal }));
      finish();
    });
    whenOver(response, finish);
    child.stdin?.on("error", () => {});
    child.stdin?.end(asked.stdin);
  }

  private async startFixed(command: readonly string[], binding: Binding): Promise<void> {
    const { child } = this.spawn(command, {}, binding, "ignore");
    await new Promise<void>((resolve, reject) => {
      child.on("spawn", resolve);
      child.on("error", (error) => reject(new Error(`the command cannot be started: ${error.message}`)));
    });
    child.on("exit", (code, by) => {
      if (binding.endedAs === null)
        this.place.log(`${this.place.resource}: its command ended by itself (${by ?? code})`);
    });
  }

  /** In a session of its own, with a mark that its children inherit. */
  private spawn(
    command: readonly string[],
    given: Readonly<Record<string, string>>,
    binding: Binding,
    output: "pipe" | "ignore",
  ): { readonly child: ChildProcess; readonly tree: ProcessTree } {
    const { id, tenant, fence, expiresAt } = binding.lease;
    const running = this.running.get(id);
    if (running === undefined) throw new Error("The binding is not set up.");
    const own = new ProcessTree(`${this.markOf(id)}${++this.starts}|`);
    const { PATH } = process.env;
    const [program = "", ...args] = running.group?.enter(command) ?? command;
    const child = spawn(program, args, {
      detached: true,
      stdio: [output, output, output],
      cwd: this.options.folder,
      env: {
        PATH,
        ...given,
        LEASEHOLD_TENANT: tenant,
        LEASEHOLD_LEASE: id,
        LEASEHOLD_FENCE: String(fence),
        LEASEHOLD_EXPIRES_AT: String(expiresAt),
        [markName]: `${this.markOf(id)}${this.starts}|`,
      },
    });
    // A missing program is reported by "error"; without a listener it would be thrown.
    child.on("error", () => {});
    if (child.pid !== undefined) {
      for (const tree of [running.tree, own]) tree.lead(child.pid);
      processGuard.lead(this.markOf(id), child.pid);
    }
    return { child, tree: own };
  }

  private markOf(lease: string | null): string {
    return `${this.place.cell}|${this.place.resource}|${lease === null ? "" : `${lease}|`}`;
  }

  private groupName(lease: string): string {
    return `leasehold-${shortHash(this.markOf(null))}-${shortHash(lease)}`;
  }

  /** Also those that an earlier run of the cell has made. */
  private groupsLeft(lease: string | null = null): readonly ControlGroup[] {
    const { cgroup } = this.options;
    if (cgroup === null || !existsSync(cgroup)) return [];
    const wanted = lease === null ? `leasehold-${shortHash(this.markOf(null))}-` : this.groupName(lease);
    const names = readdirSync(cgroup).filter((name) => name.startsWith(wanted));
    return names.map((name) => new ControlGroup(cgroup, name));
  }

  private leftovers(): readonly number[] {
    if (!hasProc) return [...this.running.values()].flatMap(({ tree }) => [...tree.alive()]);
    const mark = `${markName}=${this.markOf(null)}`;
    const marked = listProcesses().filter(({ pid }) => environmentOf(pid).some((entry) => entry.startsWith(mark)));
    const grouped = this.groupsLeft().flatMap((group) => group.members());
    return [...new Set([...marked.map(({ pid }) => pid), ...grouped])];
  }
}

function shortHash(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}

/** By its real path, so that no link stands for another program. */
function allowedProgram(name: string, allow: readonly string[]): string | AccessFailure {
  if (!name.startsWith("/")) return { code: "invalid_request", detail: "Name the program by its whole path." };
  let real: string;
  try {
    real = realpathSync(name);
  } catch {
    return { code: "not_found", detail: "The program does not exist." };
  }
  if (allow.includes("*") || allow.includes(real) || allow.includes(name)) return real;
  return { code: "program_not_allowed", detail: "This program may not be started here." };
}

function decode(body: string) {
  try {
    const { argv, env = {}, stdin = "" } = JSON.parse(body) as Partial<Record<"argv" | "env" | "stdin", unknown>>;
    const isText = (value: unknown): value is string => typeof value === "string" && !value.includes("\0");
    if (!Array.isArray(argv) || argv.length === 0 || !argv.every(isText) || typeof stdin !== "string") return null;
    if (typeof env !== "object" || env === null || !Object.entries(env).flat().every(isText)) return null;
    return { argv: argv as readonly string[], env: env as Record<string, string>, stdin };
  } catch {
    return null;
  }
}

function line(value: object): string {
  return `${JSON.stringify(value)}\n`;
}
