/** Keeps the leases of tasks alive: from a thread of its own where there are threads, else from this event loop. */
import type { Timekeeper } from "../keeper/clock.ts";
import type { ClientTls } from "../trust/client-tls.ts";
import type { Fetch } from "./http.ts";
import { createPeersWire, type Peer } from "./peers-wire.ts";
import { TaskBeats } from "./task-beats.ts";
import type { TaskLease } from "./wire.ts";

export interface TaskEvents {
  beat(answer: TaskLease): void;
  lost(code: string, detail: string): void;
}

/** One task that is kept. */
export interface KeptTask {
  /** How long its lease lasts without another answer of the server. */
  leftMs(): number;
  progress(value: unknown): void;
  stop(): void;
}

export interface TaskKeeper {
  /** `leftMs`: how long it lasts from now. */
  keep(leaseId: string, leftMs: number, events: TaskEvents): KeptTask;
  close(): Promise<void>;
}

export interface TaskKeeperOptions {
  /** The servers, in the order in which they are tried. */
  readonly peers: readonly Peer[];
  /** The caller's own; null: the platform's. */
  readonly fetch: Fetch | null;
  readonly tls: ClientTls | null;
  readonly time: Timekeeper;
  /** If the event loop stands still for longer, leases are left to run out. */
  readonly maxBusyMs: number;
}

/** A thread cannot use the caller's own fetch; then, and where there are no threads, the event loop keeps them. */
export async function openTaskKeeper(options: TaskKeeperOptions): Promise<TaskKeeper> {
  if (options.fetch === null && hasThreads()) {
    try {
      const { openThreadKeeper } = await import("./node/thread-keeper.ts");
      return await openThreadKeeper(options);
    } catch {
      // Some platforms have the module and no threads.
    }
  }
  return loopKeeper(options);
}

function hasThreads(): boolean {
  const { process } = globalThis as { process?: { versions?: { node?: string } } };
  return process?.versions?.node !== undefined;
}

export function loopKeeper({ peers, fetch: own, tls, time }: TaskKeeperOptions): TaskKeeper {
  const start = time.mark();
  const now = (): number => time.elapsedMs(start);
  const kept = new Map<string, { until: number; readonly events: TaskEvents }>();
  const beats = new TaskBeats({
    wire: createPeersWire(peers, own, tls),
    now,
    isAlive: () => true,
    onBeat(leaseId, at, leftMs, answer) {
      const one = kept.get(leaseId);
      if (one === undefined) return;
      one.until = at + leftMs;
      one.events.beat(answer);
    },
    onLost: (leaseId, code, detail) => kept.get(leaseId)?.events.lost(code, detail),
  });
  return {
    keep(leaseId, leftMs, events) {
      const one = { until: now() + leftMs, events };
      kept.set(leaseId, one);
      beats.add(leaseId, leftMs);
      return {
        leftMs: () => one.until - now(),
        progress: (value) => beats.report(leaseId, value),
        stop() {
          kept.delete(leaseId);
          beats.remove(leaseId);
        },
      };
    },
    close() {
      beats.close();
      return Promise.resolve();
    },
  };
}
