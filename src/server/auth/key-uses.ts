/** When keys were last used: collected in memory, stored once a minute, so that no request costs a write. */
import { defaultTenant } from "../../engine/recovery.ts";
import { unstamped } from "../../kernel/contract/commands.ts";
import { limits } from "../../kernel/contract/limits.ts";
import type { Service } from "../service.ts";

const actor = { role: "operator", agentId: null, epoch: null } as const;

/** `stop` stores what is left. */
export function startNotingUses({ engine, keys, log, place }: Service): { stop(): Promise<void> } {
  const note = async (): Promise<void> => {
    // Without its store the engine refuses; the next use is noted again.
    if (!engine.isServing) return;
    try {
      const taken = keys.takeUses();
      const uses = place === null ? taken : await place.exchangeUses(taken);
      if (uses.length === 0) return;
      await engine.command({ type: "note_key_uses", tenant: defaultTenant, actor, entropy: unstamped, uses });
    } catch (fault) {
      if (engine.isServing) log.warn({ err: fault }, "when keys were last used could not be stored; it is tried again");
    }
  };
  const timer = setInterval(() => void note(), limits.keyUseMs);
  timer.unref();
  return {
    stop() {
      clearInterval(timer);
      return note();
    },
  };
}
