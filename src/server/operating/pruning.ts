/** Forgets history by age and by count, at intervals (L16). Live records are never touched. */
import type { Engine } from "../../engine/engine.ts";
import type { EngineLog } from "../../engine/engine-types.ts";
import { defaultTenant } from "../../engine/recovery.ts";
import { unstamped } from "../../kernel/contract/commands.ts";
import type { Millis } from "../../kernel/contract/records.ts";
import type { Config } from "../config/config.ts";

type Keep = Pick<
  Config,
  "eventsKeepMs" | "endedKeepMs" | "endedKeepMax" | "endedTasksKeepMs" | "endedTasksKeepMax" | "pruneEveryMs"
>;

/** What the register of last writes needs of the leases that are about to be deleted becomes records of its own (A5). */
async function keepLastWrites(engine: Engine, before: Millis, keep: number): Promise<void> {
  const actor = { role: "operator", agentId: null, epoch: null } as const;
  for (;;) {
    const command = { type: "forget_ends", tenant: defaultTenant, actor, entropy: unstamped, before, keep } as const;
    const { reply } = await engine.command(command);
    if (reply.type !== "forgotten" || reply.count === 0) return;
  }
}

/** Returns how to stop. */
export function startPruning(engine: Engine, keep: Keep, log: EngineLog): () => void {
  let isBusy = false;
  const prune = async (): Promise<void> => {
    // While the store is away there is nothing to prune, and the engine has said so.
    if (isBusy || !engine.isServing) return;
    isBusy = true;
    try {
      const now = engine.now();
      const { eventsKeepMs, endedKeepMs, endedKeepMax: endedKeep, endedTasksKeepMs } = keep;
      await keepLastWrites(engine, now - endedKeepMs, endedKeep);
      const gone = await engine.store.prune({
        eventsBefore: now - eventsKeepMs,
        endedBefore: now - endedKeepMs,
        endedKeep,
        endedTasksBefore: now - endedTasksKeepMs,
        endedTasksKeep: keep.endedTasksKeepMax,
      });
      if (gone.events + gone.ended + gone.endedTasks > 0) log.info(gone, "old history was forgotten");
    } catch (fault) {
      log.warn({ err: fault }, "old history could not be forgotten; it is tried again later");
    } finally {
      isBusy = false;
    }
  };
  const timer = setInterval(() => void prune(), keep.pruneEveryMs);
  timer.unref();
  return () => clearInterval(timer);
}
