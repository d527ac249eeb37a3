/**
 * Bounds the disk, at intervals (L16, S8): history is kept by age, number and bytes, events are compressed, and free space
 * is given back. Live records are never touched.
 */
import type { Engine } from "../../engine/engine.ts";
import type { EngineLog } from "../../engine/engine-types.ts";
import { defaultTenant } from "../../engine/recovery.ts";
import { unstamped } from "../../kernel/contract/commands.ts";
import { limits } from "../../kernel/contract/limits.ts";
import type { Millis } from "../../kernel/contract/records.ts";
import { halves } from "../../store/fair-share.ts";
import type { Pruned } from "../../store/store.ts";
import type { Config } from "../config/config.ts";

type Keep = Pick<
  Config,
  | ("eventsKeepMs" | "eventsKeepMax" | "eventsKeepBytes")
  | ("endedKeepMs" | "endedKeepMax" | "endedKeepBytes")
  | ("endedTasksKeepMs" | "endedTasksKeepMax" | "endedTasksKeepBytes" | "pruneEveryMs")
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

/** About what an ended lease takes on disk, with its index. */
const endedLeaseBytes = 800;
/** What was forgotten is logged together, because a busy service forgets all the time. */
const loggedEveryMs = 3_600_000;

/** Returns how to stop. */
export function startPruning(engine: Engine, keep: Keep, log: EngineLog): () => void {
  let isBusy = false;
  const endedKeep = Math.min(keep.endedKeepMax, Math.floor(keep.endedKeepBytes / endedLeaseBytes));
  let gone: Pruned = { events: 0, ended: 0, endedTasks: 0 };
  let loggedAt = Number.NEGATIVE_INFINITY;
  const prune = async (): Promise<void> => {
    // While the store is away there is nothing to prune, and the engine has said so.
    if (isBusy || !engine.isServing) return;
    isBusy = true;
    try {
      const now = engine.now();
      // Of older ones, any may go.
      await keepLastWrites(engine, now - keep.endedKeepMs, halves(endedKeep).youngest);
      const { events, ended, endedTasks } = await engine.store.prune({
        eventsBefore: now - keep.eventsKeepMs,
        eventsKeep: keep.eventsKeepMax,
        eventsBytes: keep.eventsKeepBytes,
        endedBefore: now - keep.endedKeepMs,
        endedKeep,
        endedTasksBefore: now - keep.endedTasksKeepMs,
        endedTasksKeep: keep.endedTasksKeepMax,
        endedTasksBytes: keep.endedTasksKeepBytes,
        endedRequestsBefore: now - limits.requestMemoryMs,
      });
      await engine.store.compact();
      gone = {
        events: gone.events + events,
        ended: gone.ended + ended,
        endedTasks: gone.endedTasks + endedTasks,
      };
      if (gone.events + gone.ended + gone.endedTasks === 0 || now < loggedAt + loggedEveryMs) return;
      log.info(gone, "old history was forgotten");
      gone = { events: 0, ended: 0, endedTasks: 0 };
      loggedAt = now;
    } catch (fault) {
      // A server that stops closes its store, whatever is under way.
      if (engine.isServing) log.warn({ err: fault }, "old history could not be forgotten; it is tried again later");
    } finally {
      isBusy = false;
    }
  };
  const timer = setInterval(() => void prune(), keep.pruneEveryMs);
  timer.unref();
  return () => clearInterval(timer);
}
