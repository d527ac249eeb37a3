/**
 * What an agent proves itself with: its tenant, id and epoch, and a sum over them with the server's secret. Nothing is
 * stored for it; an older instance's token is known by its epoch, which the kernel refuses (A3). After a restore the
 * secret is another one, and every older token is void (S6).
 */
import { createHmac, timingSafeEqual } from "node:crypto";

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
