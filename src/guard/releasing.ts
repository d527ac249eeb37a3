/** `leasehold guard release`: what a session holds is given back by hand, from outside of it. */
import { join } from "node:path";
import { connect } from "./control-plane.ts";
import { sessionAbove } from "./identity.ts";
import { releaseAll, renew } from "./leasing.ts";
import { guardedTools } from "./payload.ts";
import { filesIn, sessionsFolder } from "./private-files.ts";
import { agentsOf, openSession, type Session } from "./session.ts";
import type { Settings } from "./settings.ts";

export interface HoldingSession {
  /** As the coding agent calls it. */
  readonly id: string;
  readonly agentId: string;
  readonly resources: readonly string[];
}

/** The sessions of this user on this machine that hold something now. */
export async function holdingSessions(settings: Settings): Promise<readonly HoldingSession[]> {
  const found: HoldingSession[] = [];
  for (const session of knownSessions(settings)) {
    for (const agent of agentsOf(session)) {
      const held = await renew({ settings, server: connect(settings), session: agent });
      if (held.length === 0) continue;
      const resources = held.map(({ resource }) => resource);
      found.push({ id: session.id, agentId: agent.agentId, resources });
    }
  }
  return found;
}

/** Of the sessions whose id or agent begins so; how many leases there were. */
export async function releaseSessions(settings: Settings, isMeant: (session: Session) => boolean): Promise<number> {
  let released = 0;
  for (const session of knownSessions(settings)) {
    for (const agent of agentsOf(session)) {
      if (!isMeant(agent)) continue;
      const { given } = await releaseAll({ settings, server: connect(settings), session: agent });
      released += given.length;
    }
  }
  return released;
}

/** The session in which this command was run by a coding agent. */
export function ownSession(settings: Settings): Session | null {
  return sessionAbove(process.pid, settings.environment);
}

function knownSessions({ environment }: Settings): readonly Session[] {
  return filesIn(sessionsFolder(environment)).flatMap((name) => {
    const [tool = "", hex = ""] = name.split("-");
    const known = guardedTools.find((one) => one === tool);
    if (known === undefined) return [];
    // A session whose id is too long for a file's name is known by what its agents were registered as.
    const id = name.includes("-long-") ? name : Buffer.from(hex, "hex").toString();
    const session = openSession(known, id, null, environment);
    return [{ ...session, folder: join(sessionsFolder(environment), name) }];
  });
}
