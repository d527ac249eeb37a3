/** The coding session that a command or an MCP server was started in: its guard and this process are one agent. */
import { noteAlive, sessionAgent } from "../guard/identity.ts";
import { noteHolding } from "../guard/leasing.ts";
import { readSettings } from "../guard/settings.ts";
import { findRepository } from "../names/repository.ts";
import type { Call } from "./command.ts";

export interface SharedAgent {
  readonly agentId: string;
  readonly token: string;
  /** A sign of life of the session. */
  alive(): void;
}

/** Null where there is none, or its guard uses another server. `refused` is a token that the server no longer takes. */
export async function sharedAgent(
  { cwd, environment, url }: Pick<Call, "cwd" | "environment" | "url">,
  refused: string | null = null,
): Promise<SharedAgent | null> {
  try {
    const settings = readSettings(findRepository(cwd)?.root ?? null, environment);
    if (!settings.urls.some((one) => new URL(one).origin === new URL(url).origin)) return null;
    const found = await sessionAgent(settings, process.pid, refused);
    if (found === null) return null;
    const { agentId, token, session } = found;
    const alive = (): void => {
      noteAlive(session);
      // What this process acquires is renewed and released with what the guard leased.
      noteHolding(session);
    };
    return { agentId, token, alive };
  } catch {
    // Settings that a guard refuses, or a server that is not there yet: this process acts for itself.
    return null;
  }
}
