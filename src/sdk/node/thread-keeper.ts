/**
 * Heartbeats of tasks from a thread of their own, so that work that blocks the event loop keeps its lease. The event
 * loop counts up while it runs; when the count stands still for too long, the thread lets the leases run out.
 */
import { Worker } from "node:worker_threads";
import type { ClientTls } from "../../trust/client-tls.ts";
import type { Peer } from "../peers-wire.ts";
import type { TaskEvents, TaskKeeper, TaskKeeperOptions } from "../task-keeper.ts";
import type { TaskLease } from "../wire.ts";
import { createLeaseTable, eraseLease, type LeaseTable, readUntil, writeLease } from "./lease-table.ts";
import { announcedMsMax, leasesMax, stirEveryMs, uptimeMs, uptimeResolutionMs } from "./shared-time.ts";

export interface ThreadData {
  readonly peers: readonly Peer[];
  readonly tls: ClientTls | null;
  readonly maxBusyMs: number;
  /** Counts up while the event loop runs. */
  readonly stirs: Int32Array<SharedArrayBuffer>;
  readonly table: LeaseTable;
}

export type ToThread =
  /** The table has changed, and a heartbeat may be due before it is read again. */
  { readonly type: "read" } | { readonly type: "progress"; readonly leaseId: string; readonly value: unknown };

export type FromThread =
  | { readonly type: "ready" }
  | { readonly type: "beat"; readonly leaseId: string; readonly answer: TaskLease }
  | { readonly type: "lost"; readonly leaseId: string; readonly code: string; readonly detail: string };

export async function openThreadKeeper(options: TaskKeeperOptions): Promise<TaskKeeper> {
  const { peers, tls, maxBusyMs, time } = options;
  const stirs = new Int32Array(new SharedArrayBuffer(4));
  const table = createLeaseTable();
  const workerData: ThreadData = { peers, tls, maxBusyMs, stirs, table };
  const thread = new Worker(threadUrl(), { workerData });
  await new Promise<void>((resolve, reject) => {
    thread.once("message", () => resolve());
    thread.once("error", reject);
  });
  const kept = new Map<string, TaskEvents>();
  const free = Array.from({ length: leasesMax }, (_, index) => leasesMax - 1 - index);
  const post = (message: ToThread): void => thread.postMessage(message);
  thread.on("message", (message: FromThread) => {
    if (message.type === "beat") kept.get(message.leaseId)?.beat(message.answer);
    else if (message.type === "lost") kept.get(message.leaseId)?.lost(message.code, message.detail);
  });
  thread.on("error", (fault: Error) => {
    for (const events of kept.values()) events.lost("internal_error", `The heartbeats have stopped: ${fault.message}`);
  });
  const stirring = setInterval(() => Atomics.add(stirs, 0, 1), stirEveryMs);
  stirring.unref();
  thread.unref();

  return {
    keep(leaseId, leftMs, events) {
      const slot = free.pop();
      if (slot === undefined) throw new RangeError(`At most ${leasesMax} tasks can be kept at once.`);
      const version = writeLease(table, slot, leaseId, leftMs);
      if (version === null) throw new RangeError(`The lease's id is too long: ${leaseId}`);
      kept.set(leaseId, events);
      const isShort = leftMs <= announcedMsMax;
      if (isShort) post({ type: "read" });
      const since = time.mark();
      return {
        leftMs: () => {
          const until = readUntil(table, slot, version);
          return until === null ? leftMs - time.elapsedMs(since) : until - uptimeMs() - uptimeResolutionMs;
        },
        progress: (value) => post({ type: "progress", leaseId, value }),
        stop() {
          if (!kept.delete(leaseId)) return;
          eraseLease(table, slot);
          free.push(slot);
          if (isShort) post({ type: "read" });
        },
      };
    },
    async close() {
      clearInterval(stirring);
      await thread.terminate();
    },
  };
}

/** Beside this file, and of its kind: source or compiled. */
function threadUrl(): URL {
  const { url } = import.meta;
  return new URL(`./beat-thread${url.slice(url.lastIndexOf("."))}`, url);
}
