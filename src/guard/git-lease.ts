/**
 * What worktrees of a repository share, git's own folder, is leased for the time of one command: `GIT:/<repository>`. Git
 * fails where two write its references, configuration or worktrees at once; here the second one waits for its turn.
 *
 * It is held by an agent of its own, which never holds anything else: so it may stand by (W14), and no wait for it can be
 * part of a cycle.
 */
import { basename, dirname, join } from "node:path";
import { findRepository } from "../names/repository.ts";
import type { Blocker } from "../sdk/wire.ts";
import { Unreachable } from "./control-plane.ts";
import type { HookCall } from "./hook-call.ts";
import { type Asking, noteHolding, releaseAll } from "./leasing.ts";
import { callAs, isRegistered, openSession, type Session } from "./session.ts";
import { holderWords } from "./words.ts";

/** A command that runs longer is renewed by the helper. */
const ttlMs = 20_000;
/** Within what every tool gives its hooks. */
const waitMs = 25_000;
const folderStart = "git-";

/** Null once it is held, or where it cannot be asked for; else why the command must not run. */
export async function leaseGit(call: HookCall, folders: readonly string[]): Promise<string | null> {
  const names = [...new Set(folders.flatMap((folder) => repositoryName(folder) ?? []))].sort();
  if (names.length === 0) return null;
  const asking = { ...call, session: gitSession(call.session, call) };
  try {
    return await acquire(asking, names);
  } catch (error) {
    // Git's own locks are left.
    if (error instanceof Unreachable) return null;
    throw error;
  }
}

async function acquire(asking: Asking, names: readonly string[]): Promise<string | null> {
  const intents = names.map((name) => ({ predicate: "MUTATES", resource: `GIT:/${name}` }));
  const body = {
    agent_id: asking.session.agentId,
    intents,
    ttl_ms: ttlMs,
    wait_timeout_ms: waitMs,
    hold_ms: waitMs,
    standby_ms: waitMs,
    purpose: "a git command",
  };
  noteHolding(asking.session);
  const { status, body: answer } = await callAs(asking, "POST", "/v1/acquire", body, waitMs);
  if (status === 200) return null;
  const { request_id: request, blocked_by: by, detail, error } = answer;
  if (status === 202 && typeof request === "string")
    await callAs(asking, "DELETE", `/v1/requests/${encodeURIComponent(request)}`);
  const [first] = Array.isArray(by) ? (by as readonly Blocker[]) : [];
  const who = first === undefined ? String(detail ?? error ?? status) : holderWords(first);
  return (
    `Leasehold: another agent's git command has been running here for ${waitMs / 1_000} s, and two at once fail: ${who}. ` +
    "Try again when it is done."
  );
}

/** After the command, whatever came of it. */
export async function releaseGit(call: HookCall): Promise<void> {
  const session = gitSession(call.session, call);
  if (isRegistered(session)) await releaseAll({ ...call, session });
}

/** Its state lies beside that of the agent that it acts for. */
export function gitSession(session: Session, { tool, environment }: Pick<HookCall, "tool" | "environment">): Session {
  const own = basename(session.agentFolder);
  if (own.startsWith(folderStart)) return session;
  const { agentId } = openSession(tool, `${session.id}:git`, session.subagent, environment);
  return { ...session, agentFolder: join(dirname(session.agentFolder), `${folderStart}${own}`), agentId };
}

export function isGitSession({ agentFolder }: Session): boolean {
  return basename(agentFolder).startsWith(folderStart);
}

/** One for all worktrees, also where each has names of its own for its files ("shop@feature"). */
function repositoryName(folder: string): string | null {
  const repository = findRepository(folder);
  if (repository === null || repository.gitFolder === null) return null;
  return repository.name.split("@")[0] ?? repository.name;
}
