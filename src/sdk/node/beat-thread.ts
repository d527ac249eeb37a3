/** The thread that sends heartbeats; see thread-keeper.ts. */
import { parentPort, workerData } from "node:worker_threads";
import { createPeersWire } from "../peers-wire.ts";
import { TaskBeats } from "../task-beats.ts";
import { exchange } from "../transport.ts";
import { readLease, writeUntil } from "./lease-table.ts";
import { leasesMax, readEveryMs, uptimeMs } from "./shared-time.ts";
import type { FromThread, ThreadData, ToThread } from "./thread-keeper.ts";

const { peers, tls, maxBusyMs, stirs, table } = workerData as ThreadData;
const wire = createPeersWire(peers, null, tls);
const slots = new Map<string, number>();
/** By slot: what the table had when it was last read. */
const seen: { readonly version: number; readonly leaseId: string }[] = [];
const post = (message: FromThread): void => parentPort?.postMessage(message);

let lastStir = Atomics.load(stirs, 0);
let stirredAt = uptimeMs();

function isAlive(): boolean {
  const stir = Atomics.load(stirs, 0);
  if (stir !== lastStir) {
    lastStir = stir;
    stirredAt = uptimeMs();
  }
  return uptimeMs() - stirredAt < maxBusyMs;
}

// Heartbeats are far apart; the count is read more often, so that the time since it changed is right.
setInterval(isAlive, Math.max(Math.min(maxBusyMs / 4, 1_000), 10));

const beats = new TaskBeats({
  wire,
  now: uptimeMs,
  isAlive,
  onBeat(leaseId, at, leftMs, answer) {
    const slot = slots.get(leaseId);
    if (slot === undefined) return;
    writeUntil(table, slot, seen[slot]?.version ?? 0, at + leftMs);
    post({ type: "beat", leaseId, answer });
  },
  onLost: (leaseId, code, detail) => post({ type: "lost", leaseId, code, detail }),
});

parentPort?.on("message", (message: ToThread) => {
  switch (message.type) {
    case "read":
      return readTable();
    case "progress":
      readTable();
      return beats.report(message.leaseId, message.value);
  }
});

function readTable(): void {
  for (let slot = 0; slot < leasesMax; slot++) {
    const before = seen[slot];
    const version = Atomics.load(table.versions, slot);
    if (before === undefined ? version === 0 : before.version === version) continue;
    if (before !== undefined && slots.get(before.leaseId) === slot) {
      slots.delete(before.leaseId);
      beats.remove(before.leaseId);
    }
    const lease = readLease(table, slot);
    seen[slot] = lease ?? { version: version - (version % 2), leaseId: "" };
    if (lease === null) continue;
    slots.set(lease.leaseId, slot);
    beats.add(lease.leaseId, lease.lastsMs);
  }
}

setInterval(readTable, readEveryMs);

// A thread's first call takes longest. It is made before any lease is kept, so that no heartbeat is that slow.
await exchange(wire, "healthz", {}, AbortSignal.timeout(2_000)).catch(() => undefined);
post({ type: "ready" });
