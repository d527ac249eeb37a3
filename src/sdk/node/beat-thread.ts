/** The thread that sends heartbeats; see thread-keeper.ts. */
import { parentPort, workerData } from "node:worker_threads";
import { createHttpWire } from "../http.ts";
import { createDispatcher, fetchThrough } from "../platform-tls.ts";
import { TaskBeats } from "../task-beats.ts";
import { uptimeMs } from "./shared-time.ts";
import type { FromThread, ThreadData, ToThread } from "./thread-keeper.ts";

const { url, credentials, tls, maxBusyMs, stirs, untils } = workerData as ThreadData;
const fetcher = tls === null ? fetch : fetchThrough(createDispatcher(tls));
const slots = new Map<string, number>();
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
  wire: createHttpWire(url, credentials, fetcher),
  now: uptimeMs,
  isAlive,
  onBeat(leaseId, at, leftMs, answer) {
    const slot = slots.get(leaseId);
    if (slot === undefined) return;
    untils[slot] = at + leftMs;
    post({ type: "beat", leaseId, answer });
  },
  onLost: (leaseId, code, detail) => post({ type: "lost", leaseId, code, detail }),
});

parentPort?.on("message", (message: ToThread) => {
  switch (message.type) {
    case "keep":
      slots.set(message.leaseId, message.slot);
      return beats.add(message.leaseId, message.leftMs);
    case "progress":
      return beats.report(message.leaseId, message.value);
    case "stop":
      slots.delete(message.leaseId);
      return beats.remove(message.leaseId);
  }
});

// A thread's first call takes longest. It is made before any lease is kept, so that no heartbeat is that slow.
const warmUp = fetcher(`${url}/healthz`, { signal: AbortSignal.timeout(2_000) });
await warmUp.then((response) => response.arrayBuffer()).catch(() => undefined);
post({ type: "ready" });
