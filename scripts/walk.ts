/**
 * How long the way of a request through `src` is, measured over the inspector of a running server (store: SQLite):
 *
 *   files, functions   those that run on the main thread, by V8's precise coverage: for one warm `POST /v1/acquire` that
 *                      is granted, and for one task from its creation through poll, accepted and complete. Each is
 *                      measured several times, and only what runs every time counts: a timer that fires in between
 *                      (metrics, the heap's watch) does not.
 *   borders            calls from a top-level folder of `src` into another on the way of the acquire, seen by breakpoints
 *                      at the beginning of the functions above until the answer is written. A call back into an outer
 *                      folder counts, and so does the acknowledgement of a commit (store to engine); a return does not.
 *
 * Usage: npm run walk [-- --files]     --files lists the files, their functions, and the calls that cross a border
 */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { startServer } from "../src/server/start.ts";

const bars = { acquireFiles: 45, acquireFunctions: 140, acquireBorders: 9, taskFiles: 65 };
const idleMs = 300;
const warmUps = 30;
const rounds = 5;
const root = new URL("../src/", import.meta.url).href;
const { values: flags } = parseArgs({
  options: { files: { type: "boolean", default: false }, serve: { type: "string" } },
});

async function main(): Promise<void> {
  const data = await mkdtemp(join(tmpdir(), "leasehold-walk-"));
  const flagsOfNode = ["--inspect=127.0.0.1:0", import.meta.filename, "--serve", data];
  const child = spawn(process.execPath, flagsOfNode, { stdio: ["ignore", "pipe", "pipe"] });
  try {
    const [url, inspectorUrl] = await Promise.all([
      findLine(child.stdout, /^(http:.*)$/),
      findLine(child.stderr, /(ws:.*)$/),
    ]);
    const inspector = await Inspector.open(inspectorUrl);
    process.exitCode = await report(url, inspector);
    inspector.close();
  } finally {
    await end(child);
    await rm(data, { recursive: true, force: true });
  }
}

async function report(url: string, inspector: Inspector): Promise<number> {
  const { agent_token: token } = await post(url, "/v1/agents", { agent_id: "walker" });
  const acquire = async (name: string): Promise<void> => {
    const intents = [{ predicate: "MUTATES", resource: `FILE:/walk/${name}` }];
    const { verdict } = await post(url, "/v1/acquire", { agent_id: "walker", intents }, String(token));
    assert.equal(verdict, "GRANTED");
  };
  const acquired = await measure(inspector, acquire);
  // A timer that fires in between crosses borders of its own: of several walks the shortest counts.
  const walks = await stacksOf(inspector, acquired, (round) => acquire(`stepped-${round}`));
  const borders = walks.map(bordersIn).reduce((one, other) => (other.length < one.length ? other : one));
  const worked = await measure(inspector, () => workOffATask(url));
  if (flags.files) {
    list("acquire: files and their functions", listingOf(acquired));
    list("acquire: borders", borders);
    list("task: files and their functions", listingOf(worked));
  }
  const figures = [
    ["acquire: files of src", filesOf(acquired).length, bars.acquireFiles],
    ["acquire: functions", acquired.size, bars.acquireFunctions],
    ["acquire: borders", borders.length, bars.acquireBorders],
    ["task: files of src", filesOf(worked).length, bars.taskFiles],
  ] as const;
  for (const [name, figure, bar] of figures) {
    console.log(`${name.padEnd(24)}${String(figure).padStart(4)}   at most ${bar}${figure > bar ? "   ABOVE" : ""}`);
  }
  return figures.some(([, figure, bar]) => figure > bar) ? 1 : 0;
}

/** The functions that run each time, as "folder/file.ts start end name". */
async function measure(inspector: Inspector, walk: (name: string) => Promise<void>): Promise<ReadonlySet<string>> {
  await inspector.post("Profiler.enable");
  await inspector.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
  for (let round = 0; round < warmUps; round++) await walk(`warm-${round}`);
  await inspector.post("Profiler.takePreciseCoverage");
  await new Promise((resolve) => setTimeout(resolve, idleMs));
  // What runs on timers does so without a request, so it does not count.
  const idle = functionsIn(await inspector.post("Profiler.takePreciseCoverage"));
  let functions: ReadonlySet<string> | null = null;
  for (let round = 0; round < rounds; round++) {
    await inspector.post("Profiler.takePreciseCoverage");
    await walk(`measured-${round}`);
    const ran = functionsIn(await inspector.post("Profiler.takePreciseCoverage"));
    functions = functions === null ? ran : functions.intersection(ran);
  }
  await inspector.post("Profiler.stopPreciseCoverage");
  return functions?.difference(idle) ?? new Set();
}

interface Coverage {
  readonly result: readonly {
    readonly url: string;
    readonly functions: readonly {
      readonly functionName: string;
      readonly ranges: readonly { readonly startOffset: number; readonly endOffset: number; readonly count: number }[];
    }[];
  }[];
}

function functionsIn(coverage: unknown): ReadonlySet<string> {
  const { result } = coverage as Coverage;
  const ran = new Set<string>();
  for (const { url, functions } of result) {
    if (!url.startsWith(root)) continue;
    for (const { functionName, ranges } of functions) {
      const [whole] = ranges;
      if (whole !== undefined && whole.count > 0)
        ran.add(`${url.slice(root.length)} ${whole.startOffset} ${whole.endOffset} ${functionName}`);
    }
  }
  return ran;
}

function filesOf(functions: ReadonlySet<string>): readonly string[] {
  return [...new Set(Array.from(functions, (name) => name.slice(0, name.indexOf(" "))))].sort();
}

/** Each file with the names of its functions; those without a name are arrow functions. */
function listingOf(functions: ReadonlySet<string>): readonly string[] {
  return filesOf(functions).map((file) => {
    const own = Array.from(functions, (name) => name.split(" ")).filter(([path]) => path === file);
    return `${file}: ${own.map(([, , , name]) => name || "=>").join(", ")}`;
  });
}

/** Of each round, each time that one of the functions is called, those of `src` on the stack, outermost first. */
async function stacksOf(
  inspector: Inspector,
  functions: ReadonlySet<string>,
  walk: (round: number) => Promise<void>,
): Promise<readonly (readonly (readonly string[])[])[]> {
  const walks: (readonly (readonly string[])[])[] = [];
  let stacks: (readonly string[])[] = [];
  inspector.onPaused = (frames) => {
    const ours = frames.filter(({ url }) => url.startsWith(root));
    stacks.push(ours.map(({ url, functionName }) => `${url.slice(root.length)} ${functionName}`).reverse());
    void inspector.post("Debugger.resume");
  };
  await inspector.post("Debugger.enable");
  for (const name of functions) await inspector.breakAt(name);
  for (let round = 0; round < rounds; round++) {
    stacks = [];
    await walk(round);
    // What subscribers do with the events comes after the answer.
    const answered = stacks.findLastIndex((stack) => stack.some((name) => name.endsWith(" sendAnswer")));
    walks.push(stacks.slice(0, answered + 1));
  }
  await inspector.post("Debugger.disable");
  return walks;
}

/**
 * Each stack ends with a call that is new; of those above it, what was not there before is new too. A turn of the loop goes
 * on with work that was handed over before, and so begins without a border, except for what a commit's end leads to.
 */
function bordersIn(stacks: readonly (readonly string[])[]): readonly string[] {
  const borders: string[] = [];
  let before: readonly string[] = [];
  for (const stack of stacks) {
    let known = 0;
    while (known < stack.length - 1 && stack[known] === before[known]) known++;
    for (const [index, callee] of stack.entries()) {
      if (index < known) continue;
      const caller = index > 0 ? stack[index - 1] : before[0];
      if (caller === undefined || folderOf(caller) === folderOf(callee)) continue;
      if (index > 0 || folderOf(caller) === "store") borders.push(`${caller} -> ${callee}`);
    }
    before = stack;
  }
  return borders;
}

function folderOf(name: string): string {
  return name.slice(0, name.indexOf("/"));
}

async function workOffATask(url: string): Promise<void> {
  await post(url, "/v1/tasks", { task_type: "walk.task", principal_ai: "walk.principal" });
  const { lease_id } = await post(url, "/lease", { worker_id: "walk.worker" });
  assert.ok(lease_id !== undefined);
  await post(url, "/v1/receipts", { phase: "accepted", lease_id });
  await post(url, "/v1/receipts", { phase: "complete", status: "success", lease_id });
}

async function post(url: string, path: string, body: object, token?: string): Promise<Record<string, unknown>> {
  const headers = {
    "content-type": "application/json",
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
  };
  const response = await fetch(`${url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  assert.ok(response.ok, `${path}: ${response.status}`);
  return (await response.json()) as Record<string, unknown>;
}

interface Frame {
  readonly url: string;
  readonly functionName: string;
}

/** The inspector's protocol, as far as it is needed here. */
class Inspector {
  private readonly socket: WebSocket;
  private readonly pending = new Map<number, PromiseWithResolvers<unknown>>();
  private readonly urls = new Map<string, string>();
  private readonly ticking: NodeJS.Timeout;
  private nextId = 1;
  onPaused: ((frames: readonly Frame[]) => void) | null = null;

  private constructor(socket: WebSocket) {
    this.socket = socket;
    // The inspector writes its answers in pieces and each waits for the TCP ACK before it, which is delayed by 40 ms
    // unless there is something to send.
    this.ticking = setInterval(() => socket.send(JSON.stringify({ id: 0, method: "Runtime.getIsolateId" })), 2);
    socket.addEventListener("message", ({ data }) => this.receive(JSON.parse(String(data)) as Message));
  }

  static async open(url: string): Promise<Inspector> {
    const socket = new WebSocket(url);
    await once(socket, "open");
    return new Inspector(socket);
  }

  post(method: string, params: object = {}): Promise<unknown> {
    const id = this.nextId++;
    const answer = Promise.withResolvers<unknown>();
    this.pending.set(id, answer);
    this.socket.send(JSON.stringify({ id, method, params }));
    return answer.promise;
  }

  /** `name` is "folder/file.ts start end name", in characters. */
  async breakAt(name: string): Promise<void> {
    const [file, start, end] = name.split(" ");
    const [scriptId] = [...this.urls].find(([, url]) => url === `${root}${file}`) ?? [];
    if (scriptId === undefined) throw new Error(`the debugger has no script ${file}`);
    const { scriptSource } = (await this.post("Debugger.getScriptSource", { scriptId })) as { scriptSource: string };
    const locationOf = (offset: number) => {
      const lines = scriptSource.slice(0, offset).split("\n");
      return { scriptId, lineNumber: lines.length - 1, columnNumber: lines.at(-1)?.length ?? 0 };
    };
    const { locations } = (await this.post("Debugger.getPossibleBreakpoints", {
      start: locationOf(Number(start)),
      end: locationOf(Number(end)),
    })) as { locations: readonly object[] };
    // Refused where an inner function begins at the same place and has been given its breakpoint already.
    await this.post("Debugger.setBreakpoint", { location: locations[0] }).catch(() => undefined);
  }

  close(): void {
    clearInterval(this.ticking);
    this.socket.close();
  }

  private receive({ id, result, error, method, params }: Message): void {
    if (id !== undefined) {
      if (error === undefined) this.pending.get(id)?.resolve(result);
      else this.pending.get(id)?.reject(new Error(JSON.stringify(error)));
      this.pending.delete(id);
    } else if (method === "Debugger.scriptParsed" && params?.scriptId !== undefined) {
      this.urls.set(params.scriptId, params.url ?? "");
    } else if (method === "Debugger.paused") {
      const frames = params?.callFrames ?? [];
      this.onPaused?.(
        frames.map(({ functionName, location }) => ({ functionName, url: this.urls.get(location.scriptId) ?? "" })),
      );
    }
  }
}

interface Message {
  readonly id?: number;
  readonly result?: unknown;
  readonly error?: unknown;
  readonly method?: string;
  readonly params?: {
    readonly scriptId?: string;
    readonly url?: string;
    readonly callFrames?: readonly {
      readonly functionName: string;
      readonly location: { readonly scriptId: string };
    }[];
  };
}

async function findLine(from: NodeJS.ReadableStream, wanted: RegExp): Promise<string> {
  for await (const line of createInterface({ input: from })) {
    const found = wanted.exec(line)?.[1];
    if (found !== undefined) return found;
  }
  throw new Error(`the server ended without printing ${wanted}`);
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  // With a debugger attached it would wait for that to leave.
  child.kill("SIGKILL");
  await once(child, "exit");
}

function list(title: string, lines: readonly string[]): void {
  console.log(`${title}\n${lines.map((line) => `  ${line}`).join("\n")}\n`);
}

// Last, because classes are not hoisted.
if (flags.serve === undefined) await main();
else {
  const { address } = await startServer({ port: 0, store: "sqlite", data: flags.serve });
  console.log(address.url);
}
