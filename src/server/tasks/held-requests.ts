/**
 * Who holds a connection open for the end of a wait. It costs an entry in a map while nothing happens: no timer in the
 * kernel, no polling. The engine announces each end once it is durable.
 */
import type { Engine } from "../../engine/engine.ts";

export interface RequestWatch {
  /**
   * Calls back when the request was granted or has ended, or when that may have happened unseen. `isLast`: the server
   * is going down, so there is nothing to wait for any more. Returns how to stop watching.
   */
  watch(requestId: string, ended: (isLast: boolean) => void): () => void;
  /** Calls everybody back at once: the server is going down, and they are answered with how things stand. */
  wakeAll(): void;
  readonly size: number;
}

export function watchRequests(engine: Engine): RequestWatch {
  const watchers = new Map<string, Set<(isLast: boolean) => void>>();
  const wakeAll = (isLast: boolean): void => {
    const all = [...watchers.values()];
    watchers.clear();
    for (const waiting of all) for (const ended of waiting) ended(isLast);
  };
  // What was stored in a commit of unknown outcome is announced to nobody (S2), so everybody asks again.
  engine.onRecovery(() => wakeAll(false));
  engine.subscribe((events) => {
    if (watchers.size === 0) return;
    for (const { event } of events) {
      switch (event.type) {
        case "request.granted":
        case "request.timed_out":
        case "request.canceled":
        case "request.paused": {
          const waiting = watchers.get(event.request.id);
          if (waiting === undefined) break;
          watchers.delete(event.request.id);
          for (const ended of waiting) ended(false);
        }
      }
    }
  });
  return {
    get size() {
      return watchers.size;
    },
    wakeAll: () => wakeAll(true),
    watch(requestId, ended) {
      const waiting = watchers.get(requestId) ?? new Set();
      waiting.add(ended);
      watchers.set(requestId, waiting);
      return () => {
        waiting.delete(ended);
        if (waiting.size === 0 && watchers.get(requestId) === waiting) watchers.delete(requestId);
      };
    },
  };
}
