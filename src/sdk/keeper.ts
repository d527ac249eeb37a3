/** Who keeps the leases of tasks alive: a thread of its own where there are threads, else this event loop. */
import { Beats } from "./beats.ts";
import type { Timekeeper } from "./clock.ts";
import { createHttpWire, type Fetch } from "./http.ts";
import type { Credentials } from "./transport.ts";
import type { TaskLease } from "./wire.ts";

export interface KeeperEvents {
  beat(answer: TaskLease): void;
  lost(code: string, detail: string): void;
}

/** One lease that is kept. */
export interface KeptLease {
  /** How long it lasts without another word from the server. */
  leftMs(): number;
  progress(value: unknown): void;
  stop(): void;
}

export interface Keeper {
  /** `leftMs`: how long it lasts from now. */
  keep(leaseId: string, leftMs: number, events: KeeperEvents): KeptLease;
  close(): Promise<void>;
}

export interface KeeperOptions {
  readonly url: string;
  readonly credentials: Credentials;
  readonly fetch: Fetch;
  readonly time: Timekeeper;
  /** After so long without a stir of the event loop, leases are let run out. */
  readonly maxBusyMs: number;
}

/** A thread cannot be given a fetch of the caller's own; then, and where there are no threads, the loop does it. */
export async function openKeeper(options: KeeperOptions, hasOwnFetch: boolean): Promise<Keeper> {
  if (!hasOwnFetch && hasThreads()) {
    try {
      const { openThreadKeeper } = await import("./node/thread-keeper.ts");
      return await openThreadKeeper(options);
    } catch {
      // Some platforms have the name and not the thing.
    }
  }
  return loopKeeper(options);
}

function hasThreads(): boolean {
  const { process } = globalThis as { process?: { versions?: { node?: string } } };
  return process?.versions?.node !== undefined;
}

export function loopKeeper({ url, credentials, fetch: fetcher, time }: KeeperOptions): Keeper {
  const start = time.mark();
  const now = (): number => time.elapsedMs(start);
  const kept = new Map<string, { until: number; readonly events: KeeperEvents }>();
  const beats = new Beats({
    wire: createHttpWire(url, credentials, fetcher),
    now,
    isAlive: () => true,
    report: {
      beat(leaseId, at, leftMs, answer) {
        const one = kept.get(leaseId);
        if (one === undefined) return;
        one.until = at + leftMs;
        one.events.beat(answer);
      },
      lost: (leaseId, code, detail) => kept.get(leaseId)?.events.lost(code, detail),
    },
  });
  return {
    keep(leaseId, leftMs, events) {
      const one = { until: now() + leftMs, events };
      kept.set(leaseId, one);
      beats.add(leaseId, leftMs);
      return {
        leftMs: () => one.until - now(),
        progress: (value) => beats.tell(leaseId, value),
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
