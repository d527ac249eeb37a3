/** A worker out of any command: it is run once for each task, with the task on its standard input. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { hostname } from "node:os";
import type { Client } from "../../sdk/client.ts";
import { TaskFailed, type TaskOutcome } from "../../sdk/task-outcome.ts";
import type { TaskContext } from "../../sdk/task-run.ts";
import type { Offer, OfferedTask } from "../../sdk/wire.ts";
import { agentFlag, agentNamed, announceRestart } from "../acting.ts";
import type { Call, Command } from "../command.ts";
import { addressEnvironment } from "../connection.ts";
import { withoutKeys } from "../key-file.ts";
import { Failure, UsageProblem } from "../problem.ts";
import { onStopSignals } from "../stop-signals.ts";
import { type Child, startChild } from "../supervision/child.ts";
import { findCommand } from "../supervision/find-command.ts";
import { LeasesFile } from "../supervision/leases-file.ts";
import { signalGroup } from "../supervision/process-group.ts";
import { supervise } from "../supervision/supervise.ts";
import { Watchdog } from "../supervision/watchdog-link.ts";

/** The ledger's limit for a result's text; what is longer is stored as an artifact. */
const textBytesMax = 100_000;
const graceMsDefault = 5_000;
/** The last that it printed, for the receipt of a failure. */
const tailChars = 2_000;
const tellMs = 500;
/** A check of an offer that takes longer declines it. */
const acceptMsMax = 60_000;
/** A larger result does not fit in memory; the command has to store it somewhere itself. */
const stdoutBytesMax = 256 * 2 ** 20;

const workCommand: Command = {
  name: "work",
  summary: "works on tasks: runs a command for each, and its output is the result",
  usage: "--type TYPE [--concurrency N] [--capability CAP] -- COMMAND [ARGUMENT…]",
  wraps: true,
  about: `The command gets the task as JSON on its standard input; what it prints is the result, and more than 100 KB of it
is stored as an artifact. Exit code 0 is success; any other is a failure, and the task is tried again as long as it has
attempts left, unless --no-retry. The task is kept while the command runs. If it is cancelled, preempted or lost, the
command and all of its process group are ended: SIGTERM, --grace, SIGKILL. SIGTERM or Ctrl-C drains: nothing new is
taken, and what runs may come to its end; a second one gives it back at once.

With --accept-if each offer is checked before it is accepted: the shell command gets the task as JSON on its standard
input, and any exit code but 0 declines. The task then goes back to the queue without an attempt, and this worker pauses
for 5 s.

The environment has LEASEHOLD_TASK_ID, LEASEHOLD_TASK_TYPE, LEASEHOLD_ATTEMPT, LEASEHOLD_FENCE, LEASEHOLD_LEASE_IDS
(those of the task's manifest) and LEASEHOLD_URL, and TRACEPARENT where the task belongs to a trace. Where a cell hosts what the task has leased, LEASEHOLD_LEASES is the
path of a JSON file: [{"resource", "lease_id", "fence", "coordinate", "token"}]. It is written again whenever a heartbeat
has renewed the tokens, so read it before each use; nobody else can, and it is deleted when the command ends. Commands that act as an agent (--agent, LEASEHOLD_AGENT_ID) leave its
leases behind when they die: its restart is announced, so that the next attempt can take them up.`,
  flags: {
    type: { sign: "TYPE", short: "t", words: "the kind of tasks to do", many: true },
    capability: { sign: "CAP", short: "c", words: "what this worker can do", many: true },
    "accept-if": { sign: "CMD", words: "a shell command that says, by exit code 0, whether to accept an offer" },
    concurrency: { sign: "N", short: "j", words: "tasks at once [1]" },
    worker: { sign: "ID", words: "{type}.{instance}, the same across restarts, to get orphaned tasks back" },
    count: { sign: "N", words: "end after N tasks" },
    limit: { sign: "TIME", words: "a command that runs longer is stopped, and its task tried again" },
    grace: { sign: "TIME", words: "between SIGTERM and SIGKILL [5s]" },
    drain: { sign: "TIME", words: "how long running tasks may take when draining [1h]" },
    agent: agentFlag,
    "no-retry": { words: "a failure is final" },
  },
  examples: [
    [
      "leasehold work -t test.run --accept-if 'test $(df --output=avail . | tail -1) -gt 1000000' -- ./test.sh",
      "only with room",
    ],
    ["leasehold work --type math.square -- jq '.inputs.n * .inputs.n'", "a worker in one line"],
    ["leasehold work -t code.review -j 4 -c typescript -- ./review.sh", "four at once"],
    [
      "leasehold work -t test.run --worker ci.build-3 --limit 30m -- ./test.sh",
      "restarted, it takes its tasks up again",
    ],
  ],
  run: async (call) => {
    const { out } = call;
    const types = call.texts("type");
    if (types.length === 0) throw new UsageProblem("say which kind of tasks with --type");
    const [file = "", ...args] = call.wrapped;
    if (file === "") throw new UsageProblem("say what to run after --: `leasehold work --type T -- COMMAND`");
    const { PATH = "" } = call.environment;
    const command = [findCommand(file, PATH, call.cwd), ...args];
    const concurrency = call.integer("concurrency", 1, 1_000) ?? 1;
    const count = call.integer("count", 1);
    const maxRunMs = call.durationMs("limit");
    const graceMs = call.durationMs("grace") ?? graceMsDefault;
    const drainMs = call.durationMs("drain") ?? 3_600_000;
    const workerId = call.text("worker");
    const acceptIf = call.text("accept-if");
    const client = await call.connect();
    // What is wrong with address or key is said as usual, before it settles down to wait.
    await client.call("readyz", {});
    let taken = 0;
    let ended = 0;
    const worker = client.worker({
      types,
      capabilities: call.texts("capability"),
      concurrency: count === null ? concurrency : Math.min(concurrency, count),
      workerId: workerId ?? `leasehold.${hostname().replaceAll(/[^\w-]/g, "-")}-${process.pid}`,
      drainOn: [],
      drainMs,
      ...(maxRunMs !== null && { maxRunMs }),
      ...(acceptIf !== null && { accept: (offer) => accepts(call, acceptIf, offer) }),
      handler: (task, context) => {
        taken++;
        return runOne(call, client, command, task, context, graceMs);
      },
      onEnd: (taskId, end) => {
        if (end !== "declined") ended++;
        if (out.isJson) out.json({ task_id: taskId, end });
        else out.note(`${taskId} ${end.replace("_", " ")}`);
        if (count !== null && Math.max(taken, ended) >= count) void worker.drain();
      },
      onError: (error) => out.note(`goes on after: ${error instanceof Error ? error.message : error}`),
    });
    onStopSignals(() => {
      out.note("draining: nothing new is taken");
      void worker.drain();
    });
    await worker.done;
  },
};

/** T3: whether the check lets the offer be accepted. */
async function accepts(call: Call, check: string, { task, attempt, fence, leases = [] }: Offer): Promise<boolean> {
  const env = { ...withoutKeys(call.environment), ...environmentFor(call, task, { attempt, fence, leases }) };
  const signal = AbortSignal.timeout(acceptMsMax);
  const child = spawn("/bin/sh", ["-c", check], { env, signal, stdio: ["pipe", "ignore", "inherit"] });
  child.stdin.on("error", () => undefined); // It need not read the task.
  child.stdin.end(`${JSON.stringify(task)}\n`);
  const [code] = (await once(child, "exit")) as [number | null];
  return code === 0;
}

async function runOne(
  call: Call,
  client: Client,
  command: readonly string[],
  task: OfferedTask,
  context: TaskContext,
  graceMs: number,
): Promise<TaskOutcome> {
  const agentId = agentNamed(call);
  const agent = agentId === null ? {} : { LEASEHOLD_AGENT_ID: agentId };
  const file = context.leases.some(({ coordinate }) => coordinate !== undefined) ? new LeasesFile(context) : null;
  const leases = file === null ? {} : { LEASEHOLD_LEASES: file.path };
  const env = { ...withoutKeys(call.environment), ...environmentFor(call, task, context), ...agent, ...leases };
  const input = `${JSON.stringify(task)}\n`;
  const { code, stdout, stderrTail } = await runForTask(command, env, input, context, graceMs).finally(() =>
    file?.delete(),
  );
  context.signal.throwIfAborted();
  if (code !== 0) {
    await announceRestart(call, client);
    const tail = stderrTail.trim();
    throw new TaskFailed(`exit code ${code}${tail === "" ? "" : `\n${tail}`}`, { retry: !call.isSet("no-retry") });
  }
  if (stdout.length <= textBytesMax) {
    const text = stdout.toString("utf8");
    // A trailing line feed is the shell's habit and no part of the result.
    if (Buffer.byteLength(text) === stdout.length && !text.includes("\u{fffd}"))
      return { text: text.replace(/\n$/, "") };
  }
  const { pointer, sha256, size } = await putArtifact(client, stdout);
  return {
    artifactLocation: pointer,
    artifactPointer: pointer,
    artifactChecksum: sha256,
    artifactSizeBytes: size,
    artifactMime: task.expected_artifact_mime ?? "application/octet-stream",
  };
}

/** Runs the command, and ends it when the task is cancelled, preempted or lost, before its lease ends. */
async function runForTask(
  command: readonly string[],
  env: NodeJS.ProcessEnv,
  input: string,
  context: TaskContext,
  graceMs: number,
) {
  const watchdog = new Watchdog();
  const chunks: Buffer[] = [];
  let bytes = 0;
  let stderrTail = "";
  const start = async (onGroup: (group: number) => void): Promise<Child> => {
    const started = await startChild(command, { env, stdin: "pipe", stdout: "pipe", stderr: "pipe", onGroup });
    const { stdin, stdout, stderr } = started.process;
    stdin?.on("error", () => undefined); // It need not read its task.
    stdin?.end(input);
    stdout?.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= stdoutBytesMax) chunks.push(chunk);
      else signalGroup(started.group, "SIGKILL");
    });
    stderr?.on("data", (chunk: Buffer) => {
      process.stderr.write(chunk);
      stderrTail = (stderrTail + chunk.toString()).slice(-tailChars);
    });
    return started;
  };
  // The context keeps its own margin: at its end nothing of the command is left.
  const limits = () => {
    const leftMs = context.remainingMs();
    return { termInMs: Math.max(0, leftMs - graceMs), graceMs: Math.min(graceMs, leftMs) };
  };
  try {
    const { code, child } = await supervise({ watchdog, signal: context.signal, limits, everyMs: tellMs, start });
    await child.drained;
    return { code, stdout: Buffer.concat(chunks), stderrTail };
  } finally {
    watchdog.dismiss();
  }
}

interface Artifact {
  readonly pointer: string;
  readonly sha256: string;
  readonly size: number;
}

/** Results that are too large for a receipt are stored beside the ledger and pointed to. */
async function putArtifact(client: Client, bytes: Buffer): Promise<Artifact> {
  const headers = { "content-type": "application/octet-stream" };
  const response = await client.fetch("/v1/artifacts", { method: "PUT", headers, body: new Uint8Array(bytes) });
  const answer = (await response.json().catch(() => ({}))) as Artifact & { readonly detail?: string };
  if (response.ok) return answer;
  throw new Failure(`the result of ${bytes.length} bytes could not be stored: ${answer.detail ?? response.status}`);
}

function environmentFor(
  { address }: Call,
  task: OfferedTask,
  { attempt, fence, leases }: Pick<TaskContext, "attempt" | "fence" | "leases">,
): NodeJS.ProcessEnv {
  return {
    LEASEHOLD_TASK_ID: task.task_id,
    LEASEHOLD_TASK_TYPE: task.task_type,
    LEASEHOLD_ATTEMPT: String(attempt),
    LEASEHOLD_FENCE: String(Math.max(fence, ...leases.map((lease) => lease.fence))),
    LEASEHOLD_LEASE_IDS: leases.map(({ id }) => id).join(","),
    // A trace of this process's own is not the task's.
    TRACEPARENT: task.traceparent,
    ...addressEnvironment(address),
  };
}

export const commands: readonly Command[] = [workCommand];
