/**
 * Which session of a coding agent a process belongs to: the hooks note the agent's process, and its commands and MCP servers
 * find the session by their ancestors. So all of one session are one agent of the control plane, with one token, which
 * lies in this user's private folder (L13).
 */
import { join } from "node:path";
import { stateFolder } from "../trust/owner-token.ts";
import { connect } from "./control-plane.ts";
import type { HookCall } from "./hook-call.ts";
import { type GuardedTool, guardedTools, type Moment } from "./payload.ts";
import { fileName, filesIn, readPrivate, readPrivateJson, remove, writePrivate } from "./private-files.ts";
import { ancestorsOf, isAlive, type ProcessId, toolAbove } from "./processes.ts";
import { openSession, type Session, tokenFor } from "./session.ts";
import type { Environment, Settings } from "./settings.ts";

interface ToolSession {
  readonly tool: GuardedTool;
  readonly id: string;
}

/** The agent of a session, for another process of the same session. */
export interface SessionAgent {
  readonly session: Session;
  readonly agentId: string;
  readonly token: string;
}

const toolFile = "tool.json";
/** Where the session was started. */
export const homeFile = "home";

function toolsFolder(environment: Environment): string {
  return join(stateFolder(environment), "tools");
}

function folderOf({ pid, started }: ProcessId, environment: Environment): string {
  return join(toolsFolder(environment), `${pid}-${fileName(started)}`);
}

/** At a session's beginning, and again when it turns up below another process (it was resumed). */
export function rememberTool({ session, payload, tool, environment, pid }: HookCall, moment: Moment): void {
  const known = toolOf(session);
  if (moment === "end") {
    if (known !== null) remove(join(folderOf(known, environment), fileName(session.id)));
    return;
  }
  const isNew = known === null || moment === "start" || moment === "prompt";
  if (!isNew) return;
  if (readPrivate(join(session.folder, homeFile)) === null) writePrivate(join(session.folder, homeFile), payload.home);
  const found = toolAbove(pid);
  if (found === null || (known !== null && known.pid === found.pid && known.started === found.started)) return;
  if (known !== null) remove(join(folderOf(known, environment), fileName(session.id)));
  writePrivate(join(session.folder, toolFile), JSON.stringify(found));
  const noted: ToolSession = { tool, id: payload.sessionId };
  writePrivate(join(folderOf(found, environment), fileName(session.id)), JSON.stringify(noted));
}

/** The process that a session runs in; null where it is not known. */
export function toolOf(session: Pick<Session, "folder">): ProcessId | null {
  return readPrivateJson<ProcessId>(join(session.folder, toolFile), { pid: "number", started: "string" });
}

/**
 * The session above a process. Null where there is none, and where several share the process (windows of one editor): then
 * nobody can say which of them called.
 */
export function sessionAbove(pid: number, environment: Environment): Session | null {
  for (const one of ancestorsOf(pid)) {
    const folder = folderOf(one, environment);
    const sessions = filesIn(folder).flatMap((name) => {
      const noted = readPrivateJson<ToolSession>(join(folder, name), { tool: "string", id: "string" });
      const tool = guardedTools.find((known) => known === noted?.tool);
      return noted === null || tool === undefined ? [] : [openSession(tool, noted.id, null, environment)];
    });
    if (sessions.length > 0) return sessions.length === 1 ? (sessions[0] ?? null) : null;
  }
  return null;
}

/** With a token that is good now: another than `refused`, which the server no longer takes. */
export async function sessionAgent(
  settings: Settings,
  pid: number,
  refused: string | null = null,
): Promise<SessionAgent | null> {
  const session = sessionAbove(pid, settings.environment);
  if (session === null) return null;
  return { session, agentId: session.agentId, token: await tokenFor(session, connect(settings), refused) };
}

/** What processes that have ended left behind. */
export function forgetEndedTools(environment: Environment): void {
  const folder = toolsFolder(environment);
  for (const name of filesIn(folder)) {
    const [pid = "", started = ""] = name.split("-");
    if (!isAlive({ pid: Number(pid), started: Buffer.from(started, "hex").toString() })) remove(join(folder, name));
  }
}

const aliveFile = "alive";

/** A sign of life from a process of the session that is not a hook. */
export function noteAlive({ folder }: Pick<Session, "folder">): void {
  writePrivate(join(folder, aliveFile), String(Date.now()));
}

export function lastAlive({ folder }: Pick<Session, "folder">): number {
  return Number(readPrivate(join(folder, aliveFile)) ?? 0);
}
