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
/** Of one tenant; of more lost at once its oldest is forgotten, and no other tenant's (S4). */
const keptMax = 1_000;

interface Lost {
  readonly key: string;
  readonly until: number;
}

export interface LostAnswers {
  /** The key for this call. `wasLost` is called once if the answer was lost. */
  keyFor(caller: Caller, tool: string, input: Input): { readonly key: string; wasLost(): void };
}

export function createLostAnswers(now: () => number = () => performance.now()): LostAnswers {
  const tenants = new Map<string, Map<string, Lost>>();
  return {
    keyFor({ tenant, actor, secret }, tool, input) {
      // Another credential that says the same means another call.
      const said = JSON.stringify([actor.role, actor.agentId, secret?.keyId, tool, input]);
      const name = createHash("sha256").update(said).digest("base64url");
      const before = tenants.get(tenant)?.get(name);
      tenants.get(tenant)?.delete(name);
      const key =
        before !== undefined && before.until > now() ? before.key : `mcp_${randomBytes(12).toString("base64url")}`;
      return {
        key,
        wasLost() {
          const lost = tenants.get(tenant) ?? new Map<string, Lost>();
          tenants.delete(tenant);
          tenants.set(tenant, lost);
          lost.set(name, { key, until: now() + keptMs });
          const [oldest] = lost.keys();
          if (lost.size > keptMax && oldest !== undefined) lost.delete(oldest);
          forgetOld(tenants, now());
        },
      };
    },
  };
}

/** The tenant that lost one last comes last, so what is too old is at the front. */
function forgetOld(tenants: Map<string, Map<string, Lost>>, now: number): void {
  for (const [tenant, lost] of tenants) {
    const last = [...lost.values()].at(-1);
    if (last !== undefined && last.until > now) return;
    tenants.delete(tenant);
  }
}
