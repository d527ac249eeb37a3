/** As which agent a command acts, and with which credential. */
import { hostname, userInfo } from "node:os";
import type { Client } from "../sdk/client.ts";
import type { Call, Flag } from "./command.ts";
import { plain } from "./plain-text.ts";
import { isServerError } from "./problem.ts";
import { sharedAgent } from "./session-agent.ts";

export interface Acting {
  readonly agentId: string;
  /** The agent's own credential; null where the key that was given may act for it. */
  readonly token: string | null;
  /** Whether it was registered for this. */
  readonly isNew: boolean;
}

export const agentFlag: Flag = { sign: "ID", names: "agent", words: "act as this agent; also LEASEHOLD_AGENT_ID" };

/** The agent that the flag or the environment names; null where none is. */
export function agentNamed({ text, environment }: Call): string | null {
  const { LEASEHOLD_AGENT_ID } = environment;
  return text("agent") ?? (LEASEHOLD_AGENT_ID || null);
}

/**
 * The agent that is named, taken as it is where our credential may act for it: registering it again would take it away
 * from its present instance (A3). One that is unknown, or that this key may only register, is registered; and where
 * none is named, it is the agent of the coding session that this was started in, else a new one.
 */
export async function actingAgent(call: Call, client: Client): Promise<Acting> {
  const agentId = agentNamed(call);
  const { LEASEHOLD_AGENT_TOKEN } = call.environment;
  if (agentId === null) {
    const shared = await sharedAgent(call);
    shared?.alive();
    return shared === null ? register(client, null) : { agentId: shared.agentId, token: shared.token, isNew: false };
  }
  const token = LEASEHOLD_AGENT_TOKEN || null;
  try {
    // What it holds is verified before it works (L8): a restart may have been announced for it.
    await client.call("verify_all", { agent_id: agentId }, { token });
    return { agentId, token, isNew: false };
  } catch (error) {
    const isOurs = token === null && isServerError(error);
    if (!isOurs || (error.code !== "agent_unknown" && error.code !== "forbidden")) throw error;
  }
  const registered = await register(client, agentId);
  await client.call("verify_all", { agent_id: agentId }, asAgent(registered));
  return registered;
}

export async function register(client: Client, agentId: string | null): Promise<Acting> {
  const labels = { tool: "leasehold", host: label(hostname()), user: label(userName()), pid: String(process.pid) };
  const registered = await client.call("register_agent", { ...(agentId !== null && { agent_id: agentId }), labels });
  return { agentId: registered.agent_id, token: registered.agent_token, isNew: true };
}

/**
 * L9: a command that acts as the agent of the environment has died, and may be run again. What the agent holds is kept back
 * for it. A server that is away is not waited for.
 */
export async function announceRestart(call: Call, client: Client): Promise<void> {
  const agentId = agentNamed(call);
  if (agentId === null) return;
  const options = { timeoutMs: 3_000, retries: 1, ...agentToken(call) };
  await client.call("restart_agent", { agent_id: agentId }, options).catch(() => undefined);
}

/** For calls about what is named by its own id: with the agent's token, where the environment has one. */
export function agentToken({ environment }: Call): { readonly token?: string } {
  const { LEASEHOLD_AGENT_TOKEN } = environment;
  return LEASEHOLD_AGENT_TOKEN ? { token: LEASEHOLD_AGENT_TOKEN } : {};
}

/** For calls as that agent. */
export function asAgent({ token }: Acting): { readonly token?: string } {
  return token === null ? {} : { token };
}

function label(text: string): string {
  return plain(text).slice(0, 200);
}

/** In some containers the user has no entry, and no name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? "");
  }
}
