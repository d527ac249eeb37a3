/**
 * The token of an agent's instance. It runs out, so it is renewed by itself when half of its life is over, for as long as
 * the client is open; neither epoch nor leases change.
 */
import type { Actor } from "./actor.ts";
import type { Client } from "./client.ts";
import { LeaseholdError } from "./errors.ts";
import type { RegisteredAgent } from "./wire.ts";

export type DrawnToken = Pick<RegisteredAgent, "agent_token" | "agent_token_expires_in_ms">;

/** The longest that a timer can be set for. */
const timerMsMax = 2 ** 31 - 1;
const againMsMin = 1_000;

export class AgentToken implements Actor {
  readonly client: Client;
  readonly agentId: string;
  private present = "";
  private endsAt = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(client: Client, agentId: string, drawn: DrawnToken) {
    this.client = client;
    this.agentId = agentId;
    this.replace(drawn);
  }

  /** For an agent that the client's key, or this token, may act for: its instance stays what it is. */
  static async draw(client: Client, agentId: string, token: string | null): Promise<AgentToken> {
    const drawn = await client.call("renew_agent_token", { agent_id: agentId }, { token });
    return new AgentToken(client, agentId, drawn);
  }

  get token(): string {
    return this.present;
  }

  /** Another one was drawn: by a renewal, or because the agent was taken up (A3). */
  replace({ agent_token: token, agent_token_expires_in_ms: lastsMs }: DrawnToken): void {
    if (this.present !== "" && this.present !== token) this.client.forgetToken(this.present);
    this.present = token;
    this.endsAt = performance.now() + lastsMs;
    this.renewIn(lastsMs / 2);
  }

  stop(): void {
    clearTimeout(this.timer);
  }

  private renewIn(ms: number): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.renew(), Math.min(ms, timerMsMax));
    // Nobody's process is kept alive by it; a browser's timer is a number.
    if (typeof this.timer === "object") this.timer.unref();
  }

  private async renew(): Promise<void> {
    const { client, agentId, present } = this;
    if (client.isClosed) return;
    try {
      const drawn = await client.call("renew_agent_token", { agent_id: agentId }, { token: present });
      // The agent may have been taken up meanwhile, with a token of its own.
      if (this.present === present) this.replace(drawn);
    } catch (error) {
      const isRefused = error instanceof LeaseholdError && (error.status === 401 || error.status === 404);
      const leftMs = this.endsAt - performance.now();
      // The next call says so; a server that is away is asked again.
      if (isRefused || leftMs <= 0) return;
      this.renewIn(Math.max(leftMs / 2, againMsMin));
    }
  }
}
