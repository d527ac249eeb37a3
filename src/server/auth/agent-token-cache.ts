/** Agents' tokens that were found good, so that their sums are not computed again for each request. */
import type { Engine } from "../../engine/engine.ts";
import type { Caller } from "../service.ts";
import { readAgentToken } from "./agent-tokens.ts";
import { createMeter } from "./rate-limit.ts";

const tokensMax = 20_000;

export class AgentTokenCache {
  private readonly engine: Engine;
  private readonly known = new Map<string, Caller>();
  /** The secret that they were checked with; with another one (S6) none of them is good. */
  private secret = "";

  constructor(engine: Engine) {
    this.engine = engine;
  }

  /** null: not a token of this server. Whether its epoch is the agent's present one is the kernel's to say (A3). */
  find(token: string): Caller | null {
    const { secret } = this.engine;
    if (secret !== this.secret) {
      this.known.clear();
      this.secret = secret;
    }
    return this.known.get(token) ?? this.check(token);
  }

  private check(token: string): Caller | null {
    const identity = readAgentToken(this.secret, token);
    if (identity === null) return null;
    const { tenant, agentId, epoch } = identity;
    const caller: Caller = { tenant, actor: { role: "agent", agentId, epoch }, meter: createMeter() };
    if (this.known.size >= tokensMax) {
      const [oldest] = this.known.keys();
      if (oldest !== undefined) this.known.delete(oldest);
    }
    this.known.set(token, caller);
    return caller;
  }
}
