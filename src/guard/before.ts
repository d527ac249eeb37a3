/** Before a tool runs: what it is about to write is leased, or it does not run. */
import { type HookAnswer, pass } from "./answers.ts";
import { Unreachable } from "./control-plane.ts";
import { uncommittedEdits } from "./edited-files.ts";
import { type HookCall, purposeOf } from "./hook-call.ts";
import { type Plan, planWrites, type TargetFile } from "./intents.ts";
import {
  type Change,
  keepForAfter,
  lease,
  nothingReleased,
  type Released,
  releaseAll,
  releaseUnedited,
  renew,
} from "./leasing.ts";
import { checkoutFolder } from "./private-files.ts";
import { covers } from "./targets.ts";
import { type Action, actionOf } from "./tools.ts";
import { markWrite, noteRead, noteSeen, readWriteMark, seenVersion, versionOf } from "./versions.ts";
import { blockedReason, changedReason, earlyReason, staleReason, unguardedNotice, unreachableReason } from "./words.ts";

export async function before(call: HookCall): Promise<HookAnswer> {
  const { payload, settings } = call;
  const action = actionOf(payload.toolName, payload.toolInput);
  if (action === null) {
    return denied(
      `Leasehold: this call of ${payload.toolName} does not say which file it writes, so it cannot be guarded.`,
    );
  }
  if (action.kind === "none") return pass;
  if (action.kind === "read") {
    // Before it reads, and not after: what is written in between must count as not seen.
    for (const path of action.paths) noteRead(call.session.agentFolder, path, payload.cwd);
    // Reading does not depend on the server.
    await renew(call).catch(() => []);
    return pass;
  }
  try {
    const plan = await planOf(call, action);
    const answer = await decide(call, plan);
    // Last, and for the time of the command alone: nothing else is waited for while it is held.
    const deny = answer.deny === null ? await leaseGitFor(call, plan) : null;
    return deny === null ? answer : denied(deny);
  } catch (error) {
    if (!(error instanceof Unreachable)) throw error;
    if (settings.unreachable === "open") return { ...pass, notice: unguardedNotice(settings.url, error.message) };
    return denied(unreachableReason(settings.url, error.message));
  }
}

async function leaseGitFor(call: HookCall, { git }: Plan): Promise<string | null> {
  return git.length === 0 ? null : await (await import("./git-lease.ts")).leaseGit(call, git);
}

async function planOf(call: HookCall, action: Extract<Action, { kind: "write" | "shell" }>): Promise<Plan> {
  if (action.kind === "write") return planWrites(action, call.payload.cwd);
  return await (await import("./shell-plan.ts")).planShell(call, action.command);
}

async function decide(call: HookCall, { intents, files, outside, isClear }: Plan): Promise<HookAnswer> {
  const notice =
    outside.length === 0
      ? null
      : `Leasehold: not guarded, because it is not in a repository: ${outside.slice(0, 5).join(", ")}`;
  if (intents.length === 0) {
    // A command without known writes may run for long: what its session holds must outlast it.
    await renew(call).catch((error: unknown) => {
      if (!isClear || !(error instanceof Unreachable)) throw error;
    });
    return { ...pass, notice };
  }
  const verdict = await lease(call, intents, purposeOf(call));
  switch (verdict.kind) {
    case "refused":
      return denied(`Leasehold: ${verdict.detail}`);
    case "blocked": {
      // W5: after DIE a session releases all, so that no other waits for it while it tries again.
      const released = verdict.isDead ? await afterDie(call) : nothingReleased;
      return denied(blockedReason(verdict.blockers, verdict.total, verdict.retryAfterMs, released));
    }
    case "early":
      return denied(earlyReason(verdict.leftMs));
    case "granted": {
      const stale = staleFiles(call, files);
      const names = stale.map(({ target }) => target.resource);
      if (stale.length > 0) return denied(staleReason(names, writerOf(call, stale)));
      const missed = missedChanges(call, files, verdict.changes);
      if (missed.length > 0) return denied(changedReason(missed));
      if (verdict.changes.length > 0) keepForAfter(call.session, changedReason(verdict.changes));
      for (const { target } of files) {
        const version = versionOf(target.path);
        const mark = { agentId: call.session.agentId, state: "writing", version, at: Date.now() } as const;
        markWrite(checkoutFolder(target.repository, call.environment), target.path, mark);
      }
      return { ...pass, notice };
    }
  }
}

async function afterDie(call: HookCall): Promise<Released> {
  switch (call.settings.onDie) {
    case "keep":
      return nothingReleased;
    case "release":
      return await releaseAll(call);
    case "unedited":
      return await releaseUnedited(call, await uncommittedEdits(call.session.agentFolder));
  }
}

/**
 * The lease says that no other agent writes now; it does not say that none wrote since the agent read. An edit of a part
 * is applied to what is there, so its agent is warned once; one that replaces the whole would undo what it never saw.
 */
function staleFiles(call: HookCall, files: readonly TargetFile[]): readonly TargetFile[] {
  const { agentFolder } = call.session;
  return files.filter(({ target, isWhole }) => {
    const seen = seenVersion(agentFolder, target.path);
    if (seen === null) return false;
    const now = versionOf(target.path);
    if (seen === now) return false;
    if (isWhole) return true;
    noteSeen(agentFolder, target.path, now);
    // A formatter of its own, or its user: the edit will find what it looks for, or not.
    return writerOf(call, [{ target, isWhole }]) !== null;
  });
}

/**
 * A4: what others did, perhaps in another checkout, to files that the agent read before. It hears of it once: from now on
 * the server knows that the agent holds them. What it never read, it cannot rely on.
 */
function missedChanges(call: HookCall, files: readonly TargetFile[], changes: readonly Change[]): readonly Change[] {
  return changes.filter(({ resource, version }) =>
    files.some(({ target }) => {
      const seen = seenVersion(call.session.agentFolder, target.path);
      return seen !== null && seen !== version && covers(resource, target.resource);
    }),
  );
}

function writerOf({ session, environment }: HookCall, files: readonly TargetFile[]): string | null {
  for (const { target } of files) {
    const mark = readWriteMark(checkoutFolder(target.repository, environment), target.path);
    if (mark !== null && mark.agentId !== session.agentId) return mark.agentId;
  }
  return null;
}

function denied(reason: string): HookAnswer {
  return { ...pass, deny: reason };
}
