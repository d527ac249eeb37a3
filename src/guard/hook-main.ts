/**
 * The command that coding agents run at their hooks: `leasehold guard hook TOOL EVENT`, with what happens on standard
 * input. It answers on standard output in the tool's own words and ends with 0; where it cannot even say no in those, it
 * ends with 2 and a sentence on standard error, which every one of them takes as a no. It never hangs.
 *
 * It is a program of its own that imports nothing of the command line, so that it starts quickly. For the same reason
 * it gets Node's own modules by `process.getBuiltinModule`: to import one reads all of its exports, and some of those
 * load a lot (of `node:http`, a whole web client; of `node:crypto`, web cryptography; of `node:fs`, its streams), which
 * is more than all that a hook does.
 */
import { findRepository, NamingProblem } from "../names/repository.ts";
import { TrustProblem } from "../trust/loopback.ts";
import { answerText, type HookAnswer, pass } from "./answers.ts";
import { connect } from "./control-plane.ts";
import type { HookCall } from "./hook-call.ts";
import { type GuardedTool, guardedTools, type Moment, moments, PayloadProblem, readPayload } from "./payload.ts";
import { openSession, Refused } from "./session.ts";
import { type Environment, readSettings, SettingsProblem } from "./settings.ts";

export interface HookResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

const blocked = 2;
/** A write of a very large file comes with its content. */
const inputBytesMax = 64 * 2 ** 20;
const inputMs = 3_000;
/** Beyond what all calls and the longest wait for a lease take; every installed hook is given more than this. */
const answerMsMax = 40_000;

/** Runs `guard hook …`, and ends the process. */
export async function main(args: readonly string[], environment: NodeJS.ProcessEnv): Promise<never> {
  const { code, stdout, stderr } =
    args[0] === "git"
      ? await (await import("./git-hook.ts")).runGitHook(args.slice(1), process.cwd(), environment)
      : await runHook(args, readInput, environment);
  if (stderr !== "") process.stderr.write(stderr);
  await new Promise<void>((resolve) => process.stdout.write(stdout, () => resolve()));
  process.exit(code);
}

/** All of the input, up to a size and a time: a tool that leaves the pipe open is answered as well. */
function readInput(): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const timer = setTimeout(
      () => reject(new PayloadProblem(`its input did not end within ${inputMs / 1_000} s`)),
      inputMs,
    );
    const { stdin } = process;
    stdin.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size <= inputBytesMax) chunks.push(chunk);
      else reject(new PayloadProblem(`its input is larger than ${inputBytesMax / 2 ** 20} MiB`));
    });
    stdin.once("end", () => {
      clearTimeout(timer);
      resolve(Buffer.concat(chunks).toString("utf8"));
    });
    stdin.once("error", (error) => reject(new PayloadProblem(error.message)));
  });
}

async function runHook(
  args: readonly string[],
  input: () => Promise<string>,
  environment: Environment,
): Promise<HookResult> {
  const [name = "", event = ""] = args;
  const tool = guardedTools.find((one) => one === name);
  if (tool === undefined) return no(`"${name}" is not a guarded tool; give one of ${guardedTools.join(", ")}, git`);
  const moment = moments[tool][event];
  if (moment === undefined)
    return no(`"${event}" is not an event of ${tool}; give one of ${Object.keys(moments[tool]).join(", ")}`);
  try {
    const answer = await withinTime(answerTo(tool, moment, await input(), environment));
    return { code: 0, stdout: answerText(tool, event, moment, answer), stderr: "" };
  } catch (error) {
    const words = failureWords(error);
    // Only before a tool runs is there something to refuse.
    if (moment !== "before") return { code: 1, stdout: "", stderr: `leasehold: ${words}\n` };
    return { code: 0, stdout: answerText(tool, event, moment, { ...pass, deny: `Leasehold: ${words}` }), stderr: "" };
  }
}

async function answerTo(
  tool: GuardedTool,
  moment: Moment,
  text: string,
  environment: Environment,
): Promise<HookAnswer> {
  const payload = readPayload(text, moment, process.cwd());
  const settings = readSettings(findRepository(payload.cwd)?.root ?? null, environment);
  const session = openSession(tool, payload.sessionId, payload.subagent, environment);
  const call: HookCall = { tool, payload, settings, session, environment, server: connect(settings) };
  // Each is loaded when it is needed: a hook's start is the agent's waiting time.
  if (moment === "before") return await (await import("./before.ts")).before(call);
  if (moment === "after") return await (await import("./after.ts")).after(call);
  const { lifecycle } = await import("./lifecycle.ts");
  return await lifecycle[moment](call);
}

async function withinTime(work: Promise<HookAnswer>): Promise<HookAnswer> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new TooLate()), answerMsMax);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

class TooLate extends Error {}

/** What is not among these is a mistake of ours, and still must not let a write through. */
function failureWords(error: unknown): string {
  if (error instanceof PayloadProblem)
    return `the hook was called with something that it does not understand: ${error.message}.`;
  if (error instanceof SettingsProblem || error instanceof NamingProblem || error instanceof TrustProblem)
    return `${error.message}.`;
  if (error instanceof Refused) return `the server refuses this agent: ${error.message} Give a key in LEASEHOLD_KEY.`;
  if (error instanceof TooLate)
    return "no answer came in time; see whether the server is well with `leasehold doctor`.";
  return `the guard failed (${error instanceof Error ? error.message : String(error)}); \`leasehold guard status\` may tell why.`;
}

function no(words: string): HookResult {
  return { code: blocked, stdout: "", stderr: `leasehold: ${words}\n` };
}
