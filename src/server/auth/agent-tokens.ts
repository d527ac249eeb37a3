/**
 * Agents' tokens: tenant, id and epoch, with an HMAC over them. Nothing is stored for a token; that of an older instance
 * has an older epoch, which the kernel refuses (A3). A restore changes the secret, and so voids every older token (S6).
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import type { Engine } from "../../engine/engine.ts";
import type { Caller } from "../service.ts";
import { createMeter } from "./rate-limit.ts";

export interface AgentIdentity {
  readonly tenant: string;
  readonly agentId: string;
  readonly epoch: number;
}

const prefix = "lha1.";

export function mintAgentToken(secret: string, { tenant, agentId, epoch }: AgentIdentity): string {
  const named = `${tenant}.${epoch}.${Buffer.from(agentId).toString("base64url")}`;
  return `${prefix}${named}.${sumOf(secret, named)}`;
}

/** null: not a token of this server. */
export function readAgentToken(secret: string, token: string): AgentIdentity | null {
  if (!token.startsWith(prefix)) return null;
  const [tenant, epoch, id, sum, ...rest] = token.slice(prefix.length).split(".");
  if (tenant === undefined || epoch === undefined || id === undefined || sum === undefined || rest.length > 0)
    return null;
  const expected = Buffer.from(sumOf(secret, `${tenant}.${epoch}.${id}`));
  const shown = Buffer.from(sum);
  if (shown.length !== expected.length || !timingSafeEqual(shown, expected)) return null;
  return { tenant, agentId: Buffer.from(id, "base64url").toString(), epoch: Number(epoch) };
}

function sumOf(secret: string, text: string): string {
  return createHmac("sha256", secret).update(text).digest("base64url");
}

const tokensMax = 20_000;

/** Tokens that were valid, so that their HMAC is not computed again for each request. */
export class AgentTokenCache {
  private readonly engine: Engine;
  private readonly known = new Map<string, Caller>();
  /** The secret that they were checked with; with another one (S6) none of them is valid. */
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
