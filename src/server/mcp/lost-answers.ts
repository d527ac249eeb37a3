/**
 * A stream that breaks means that the client sends its request again, and nothing in it says so. So a call that changes
 * something is given an idempotency key, and if its client goes away before the answer, the next call that says the very
 * same gets the same key: what was done is then answered, and not done twice. A call whose answer arrived leaves nothing
 * behind, so asking for the same twice on purpose is still two.
 */
import { createHash, randomBytes } from "node:crypto";
import type { Input } from "../../protocol/operation.ts";
import type { Caller } from "../service.ts";

/** Clients send again within seconds. */
const keptMs = 120_000;
/** More than this many lost at once, and the oldest is forgotten. */
const keptMax = 10_000;

interface Lost {
  readonly key: string;
  readonly until: number;
}

export interface LostAnswers {
  /** The key for this call. `wasLost` is called once if the answer was lost. */
  keyFor(caller: Caller, tool: string, input: Input): { readonly key: string; wasLost(): void };
}

export function createLostAnswers(now: () => number = () => performance.now()): LostAnswers {
  const lost = new Map<string, Lost>();
  return {
    keyFor({ tenant, actor }, tool, input) {
      const said = JSON.stringify([tenant, actor.role, actor.agentId, tool, input]);
      const name = createHash("sha256").update(said).digest("base64url");
      const before = lost.get(name);
      lost.delete(name);
      const key =
        before !== undefined && before.until > now() ? before.key : `mcp_${randomBytes(12).toString("base64url")}`;
      return {
        key,
        wasLost() {
          lost.set(name, { key, until: now() + keptMs });
          for (const [oldest] of lost) {
            if (lost.size <= keptMax) break;
            lost.delete(oldest);
          }
        },
      };
    },
  };
}
