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
import type { ChildProcess } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { resolve } from "node:path";
import type { Binding } from "../binding.ts";
import { Driver, type Operations, type ProbeResult } from "../driver.ts";
import { readAllowed } from "../environment.ts";
import { type AccessFailure, reasonOf } from "../failure.ts";
import type { Fields } from "../fields.ts";
import { answerFailure, HttpListener, tokenOf, whenOver } from "../http-listener.ts";
import { Launcher, type LaunchOptions, readLaunchOptions } from "../launching.ts";
import { type Listening, readListening } from "../listening.ts";
import { processGuard } from "../process-guard.ts";
import { ControlGroup, markName, ProcessTree } from "../process-tree.ts";
import { environmentOf, hasProc, listProcesses } from "../processes.ts";
import { readAll } from "../pump.ts";
import { within } from "../time-limit.ts";
import { readRun } from "./process-request.ts";

interface ProcessOptions {
  readonly command: readonly string[] | null;
  /** Programs that the holder may start, by their real paths; "*" is any. */
  readonly allow: readonly string[];
  /** Variables that the holder may set. */
  readonly envAllow: readonly string[];
  readonly launch: LaunchOptions;
  readonly runsMax: number;
  /** Of one run; null: as long as the lease. */
  readonly runMsMax: number | null;
  readonly folder: string;
  readonly graceMs: number;
  readonly killMs: number;
  /** A folder of the control group file system in which the cell may make groups. */
  readonly cgroup: string | null;
  readonly listening: Listening;
}

export function readProcessOptions(fields: Fields, base: string): ProcessOptions {
  const cgroup = fields.text("cgroup", null);
  const options = {
    command: fields.command("command"),
    allow: fields.list("allow") ?? [],
    envAllow: readAllowed(fields),
    launch: readLaunchOptions(fields, cgroup !== null),
    runsMax: fields.integer("runs_max", [1, 1_000_000], 100),
    runMsMax: fields.integer("run_ms_max", [1, 2 ** 31 - 1], null),
    folder: resolve(base, fields.text("folder", ".")),
    graceMs: fields.integer("grace_ms", [0, 600_000], 2_000),
    killMs: fields.integer("kill_ms", [1, 600_000], 5_000),
    cgroup,
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
const bodyMsMax = 30_000;
const tooLarge = `Send at most ${bodyBytesMax} bytes.`;
const tookTooLong: AccessFailure = { code: "run_timeout", detail: "The program took longer than it may here." };

export class ProcessDriver extends Driver<ProcessOptions> {
  static readonly operations: Operations = { run: "opaque" };
  private readonly launcher = new Launcher(this.options.launch);
  private readonly running = new Map<string, Running>();
  private starts = 0;
  private hasWarned = false;
  private readonly listener = new HttpListener(this.options.listening, this.place.tls, {
    request: (request, response) => this.serve(request, response),
  });

  /** What an earlier run of the cell has left behind (it was killed, perhaps) is ended first. */
  override async start(): Promise<void> {
    await this.launcher.prepare();
    if (this.launcher.isOwnUser && !this.hasWarned) {
      const { resource, log } = this.place;
      log(
        `${resource}: its programs run as the cell's own user and can read what the cell can, its key file too; set user`,
      );
      this.hasWarned = true;
    }
    await this.reset();
    if (this.options.allow.length > 0) await this.listener.open();
  }

  async bind(binding: Binding): Promise<string> {
    const { id } = binding.lease;
    if (this.options.command !== null) this.requireWriter(binding, "run");
    const group = this.options.cgroup === null ? null : new ControlGroup(this.options.cgroup, this.groupName(id));
    group?.limit(this.launcher.groupLimits);
    const running = { tree: new ProcessTree(this.markOf(id)), group };
    this.running.set(id, running);
    this.guard(binding);
    if (this.options.command !== null) await this.startFixed(this.options.command, binding);
    return this.listener.address === null ? "" : this.listener.url;
  }

  override renewed(binding: Binding): void {
    this.guard(binding);
  }

  /** The command was started for a holder who wrote, and runs on. */
  override canWeaken(): boolean {
    return this.options.command === null;
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
    within(bodyMsMax, () => readAll(request, bodyBytesMax, tooLarge)).then(
      (body) => this.run(body, request, response),
      (error) => {
        if (reasonOf(error) === tooLarge) fail({ code: "payload_too_large", detail: tooLarge });
        else fail({ code: "request_timeout", detail: `Send the body within ${bodyMsMax} ms.` });
      },
    );
  }

  /** Reports the process until it ends, and ends it when the client has gone. */
  private run(body: string, request: IncomingMessage, response: ServerResponse): void {
    const asked = readRun(body, this.options);
    if ("code" in asked) return answerFailure(response, asked);
    let finish = (): void => {};
    const access = { operation: "run", program: () => asked.program };
    const pass = this.place.admission.admit(tokenOf(request), access, (failure) => {
      if (response.headersSent) response.end(line({ type: "end", error: failure.code }));
      else answerFailure(response, failure);
      finish();
    });
    if ("code" in pass) return answerFailure(response, pass);
    const { runMsMax, runsMax } = this.options;
    if (pass.binding.inFlight > runsMax) {
      pass.close();
      return answerFailure(response, {
        code: "too_many_runs",
        detail: `A lease runs up to ${runsMax} here at a time.`,
      });
    }
    const { child, tree } = this.spawn([asked.program, ...asked.args], asked.env, pass.binding, "pipe");
    const timer = runMsMax === null ? null : setTimeout(() => pass.cut(tookTooLong), runMsMax);
    // Several things can be what ends a run, and some come together.
    let isFinishing = false;
    /** The pass is held until all that was started is gone; if that fails, the teardown of the binding will say so. */
    finish = (): void => {
      if (child.pid === undefined || isFinishing) return;
      isFinishing = true;
      if (timer !== null) clearTimeout(timer);
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
    const child = this.launcher.launch({
      command,
      environment: {
        ...given,
        LEASEHOLD_TENANT: tenant,
        LEASEHOLD_LEASE: id,
        LEASEHOLD_FENCE: String(fence),
        LEASEHOLD_EXPIRES_AT: String(expiresAt),
      },
      mark: `${this.markOf(id)}${this.starts}|`,
      output,
      folder: this.options.folder,
      group: running.group,
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

function line(value: object): string {
  return `${JSON.stringify(value)}\n`;
}
