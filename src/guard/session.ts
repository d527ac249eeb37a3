/** A session of a coding agent as an agent of the control plane: its id, its token, and what it has leased. */
import { hostname, userInfo } from "node:os";
import { join } from "node:path";
import type { Answer, ControlPlane, Method } from "./control-plane.ts";
import {
  createPrivate,
  fileName,
  filesIn,
  readPrivate,
  readPrivateJson,
  remove,
  sessionFolder,
  writePrivate,
} from "./private-files.ts";
import type { Environment } from "./settings.ts";

export interface Session {
  readonly tool: string;
  readonly id: string;
  /** A sub-agent within it, which is an agent of its own. */
  readonly subagent: string | null;
  readonly folder: string;
  /** What this agent of the session knows. */
  readonly agentFolder: string;
  readonly agentId: string;
}

interface Registered {
  readonly agentId: string;
  readonly token: string;
  readonly url: string;
}

/** The server refuses what should be in order: a key that does not fit, a quota. */
export class Refused extends Error {
  override name = "Refused";
}

const mainName = "main";
const registeringMs = 3_000;
const idLengthMax = 128;

export function openSession(tool: string, id: string, subagent: string | null, environment: Environment): Session {
  const folder = sessionFolder(environment, tool, id);
  const name = subagent === null ? mainName : `sub-${fileName(subagent)}`;
  return { tool, id, subagent, folder, agentFolder: join(folder, name), agentId: agentIdOf(tool, id, subagent) };
}

/** Session ids are random, so that this is one agent on all machines, and a lost token can be had again (A3). */
function agentIdOf(tool: string, id: string, subagent: string | null): string {
  const text = `${tool}-${id}${subagent === null ? "" : `/${subagent}`}`;
  return text.length <= idLengthMax && /^[A-Za-z0-9][A-Za-z0-9._:@/-]*$/.test(text)
    ? text
    : `${tool}-${process.getBuiltinModule("node:crypto").hash("sha256", text, "hex").slice(0, 32)}`;
}

/**
 * A call as this agent. It is registered when it first has something to ask; where the server no longer knows it (its
 * data is new, or another process took the agent up), it is registered again, once.
 */
export async function callAs(
  { session, server }: { readonly session: Session; readonly server: ControlPlane },
  method: Method,
  path: string,
  body?: object,
  holdMs = 0,
): Promise<Answer> {
  const token = await tokenFor(session, server, null);
  const answer = await server.call(method, path, body, { token, holdMs });
  const { error } = answer.body;
  if (answer.status !== 401 && error !== "agent_unknown" && error !== "stale_epoch") return answer;
  return await server.call(method, path, body, { token: await tokenFor(session, server, token), holdMs });
}

/** True if this agent was ever registered here: if not, it holds nothing. */
export function isRegistered({ agentFolder }: Session): boolean {
  return readPrivate(join(agentFolder, "agent.json")) !== null;
}

/** Its token: the one that is kept, unless that is the one that was refused. */
export async function tokenFor(session: Session, server: ControlPlane, refused: string | null): Promise<string> {
  const path = join(session.agentFolder, "agent.json");
  const kept = (): string | null => {
    const found = readRegistered(path);
    return found !== null && found.url === server.url && found.token !== refused ? found.token : null;
  };
  const found = kept();
  if (found !== null) return found;
  const lock = join(session.agentFolder, "registering");
  const end = performance.now() + registeringMs;
  // Tools run several hooks at once; were each to register, all but the last would be the older instance.
  while (!createPrivate(lock)) {
    const other = kept();
    if (other !== null) return other;
    if (performance.now() > end) remove(lock);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  try {
    const late = kept();
    if (late !== null) return late;
    const { agentId } = session;
    const { status, body } = await server.call("POST", "/v1/agents", { agent_id: agentId, labels: labelsOf(session) });
    const { agent_token: token, error, detail } = body;
    if ((status !== 200 && status !== 201) || typeof token !== "string") {
      throw new Refused(`${String(detail ?? error ?? status)}`);
    }
    // It exists, and may hold leases: what is true of them is asked before it works (L8).
    if (status === 200) {
      await server.call("POST", `/v1/agents/${encodeURIComponent(agentId)}/verify-all`, {}, { token });
    }
    writePrivate(path, JSON.stringify({ agentId, token, url: server.url } satisfies Registered));
    return token;
  } finally {
    remove(lock);
  }
}

function readRegistered(path: string): Registered | null {
  return readPrivateJson<Registered>(path, { agentId: "string", token: "string", url: "string" });
}

function labelsOf({ tool, subagent }: Session): Readonly<Record<string, string>> {
  return {
    tool,
    host: label(hostname()),
    user: label(userName()),
    ...(subagent !== null && { subagent: label(subagent) }),
  };
}

function label(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, " ").slice(0, 200);
}

/** In some containers the user has no entry, and no name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? "");
  }
}

/** All agents of a session, as their own sessions: it and its sub-agents. */
export function agentsOf(session: Session): readonly Session[] {
  return filesIn(session.folder).flatMap((name) => {
    const agentFolder = join(session.folder, name);
    const found = readRegistered(join(agentFolder, "agent.json"));
    return found === null ? [] : [{ ...session, agentFolder, agentId: found.agentId }];
  });
}
