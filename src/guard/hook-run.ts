/**
 * The work of a hook, in the helper or in the hook's own process. The answer is in the tool's own words and the exit code
 * is 0; where it cannot even say no in those, the code is 2 with a sentence on standard error, which every tool takes as
 * a no.
 */
import { NamingProblem } from "../names/project-file.ts";
import { findRepository } from "../names/repository.ts";
import { TrustProblem } from "../trust/loopback.ts";
import { answerText, type HookAnswer, pass } from "./answers.ts";
import { connect } from "./control-plane.ts";
import type { HookCall } from "./hook-call.ts";
import type { HookResult } from "./hook-main.ts";
import { rememberTool } from "./identity.ts";
import {
  type GuardedTool,
  guardedTools,
  type Moment,
  moments,
  PayloadProblem,
  readPayload,
  worktreeEvents,
} from "./payload.ts";
import type { HelperCall } from "./resident/client.ts";
import { openSession, Refused } from "./session.ts";
import { readSettings, SettingsProblem } from "./settings.ts";

/** What the helper adds: it knows whether the hook still waits, and looks after the sessions that it hears of. */
export interface Watcher {
  isGone(): boolean;
  note(call: HookCall, moment: Moment): void;
}

const alone: Watcher = { isGone: () => false, note: () => undefined };
const blocked = 2;
/** Beyond what all calls and the longest wait for a lease take; every installed hook is given more than this. */
const answerMsMax = 40_000;

export async function answerHook(
  call: HelperCall,
  problem: string | null = null,
  watcher: Watcher = alone,
): Promise<HookResult> {
  const [name = "", event = ""] = call.args;
  if (name === "git") return await (await import("./git-hook.ts")).runGitHook(call);
  const tool = guardedTools.find((one) => one === name);
  if (tool === undefined) return no(`"${name}" is not a guarded tool; give one of ${guardedTools.join(", ")}, git`);
  const ofWorktrees = tool === "claude" ? worktreeEvents.find((one) => one === event) : undefined;
  if (ofWorktrees !== undefined) return await (await import("./worktree-hook.ts")).runWorktreeHook(ofWorktrees, call);
  const moment = moments[tool][event];
  if (moment === undefined)
    return no(`"${event}" is not an event of ${tool}; give one of ${Object.keys(moments[tool]).join(", ")}`);
  try {
    if (problem !== null) throw new PayloadProblem(problem);
    const answer = await withinTime(answerTo(tool, moment, call, watcher));
    return { code: 0, stdout: answerText(tool, event, moment, answer), stderr: "" };
  } catch (error) {
    const words = failureWords(error);
    // Only before a tool runs is there something to refuse.
    if (moment !== "before") return { code: 1, stdout: "", stderr: `leasehold: ${words}\n` };
    return { code: 0, stdout: answerText(tool, event, moment, { ...pass, deny: `Leasehold: ${words}` }), stderr: "" };
  }
}

async function answerTo(tool: GuardedTool, moment: Moment, hook: HelperCall, watcher: Watcher): Promise<HookAnswer> {
  const { environment, pid } = hook;
  const payload = readPayload(hook.input, moment, hook.cwd);
  const settings = readSettings(findRepository(payload.cwd)?.root ?? null, environment);
  const session = openSession(tool, payload.sessionId, payload.subagent, environment);
  const call: HookCall = { tool, payload, settings, session, environment, server: connect(settings), pid };
  rememberTool(call, moment);
  watcher.note(call, moment);
  // Each is loaded when it is needed: a hook's start is the agent's waiting time.
  if (moment === "before") return await beforeSeen(call, watcher);
  if (moment === "after") return await (await import("./after.ts")).after(call);
  const { lifecycle } = await import("./lifecycle.ts");
  return await lifecycle[moment](call);
}

/** A tool whose hook took too long runs without its answer: that is noted, and reported when it has run. */
async function beforeSeen(call: HookCall, watcher: Watcher): Promise<HookAnswer> {
  const answer = await (await import("./before.ts")).before(call);
  const { noteAllowed, noteUnanswered } = await import("./unseen.ts");
  if (watcher.isGone()) noteUnanswered(call);
  else if (answer.deny === null) noteAllowed(call);
  return answer;
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
