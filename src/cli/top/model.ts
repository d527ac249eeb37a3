/** A snapshot of the server, taken at every interval; times are advanced in between. */
import type { Client } from "../../sdk/client.ts";
import type { Lease, OpenRequest } from "../../sdk/wire.ts";
import { isServerError } from "../problem.ts";

export interface Snapshot {
  /** By our own clock, from before the server was asked. */
  readonly at: number;
  readonly leases: readonly Lease[];
  readonly hasMoreLeases: boolean;
  readonly waiters: readonly OpenRequest[];
  /** How many tasks there are in each status; null where there are none to be seen. */
  readonly tasks: Readonly<Record<string, number>> | null;
  /** What is counted since the server's start, by name; null where this key may not see it. */
  readonly counts: ReadonlyMap<string, number> | null;
}

const leasesMax = 1_000;
const waitersMax = 200;

export async function takeSnapshot(client: Client): Promise<Snapshot> {
  const at = performance.now();
  const [leases, waiters, metrics] = await Promise.all([
    client.call("list_leases", { limit: leasesMax }),
    client.call("list_requests", { limit: waitersMax }),
    readMetrics(client),
  ]);
  return {
    at,
    leases: leases.leases,
    hasMoreLeases: leases.next_cursor !== null,
    waiters: waiters.requests,
    tasks: metrics === null ? null : tasksIn(metrics),
    counts: metrics === null ? null : countsIn(metrics),
  };
}

/** A key that may read leases may not be allowed to read metrics. */
async function readMetrics(client: Client): Promise<string | null> {
  try {
    const response = await client.fetch("/metrics");
    const text = await response.text();
    return response.ok ? text : null;
  } catch (error) {
    if (isServerError(error)) return null;
    throw error;
  }
}

/** Counters of events by type, and how many of each kind are alive. */
export function countsIn(metrics: string): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const [, type = "", value = ""] of metrics.matchAll(/^leasehold_events_total\{type="([^"]+)"\} (\S+)$/gm)) {
    counts.set(type, Number(value));
  }
  for (const [, name = "", value = ""] of metrics.matchAll(/^leasehold_(agents|leases|waiters) (\S+)$/gm)) {
    counts.set(name, Number(value));
  }
  return counts;
}

export function tasksIn(metrics: string): Readonly<Record<string, number>> | null {
  const tasks: Record<string, number> = {};
  for (const [, status = "", value = ""] of metrics.matchAll(/^leasehold_tasks\{status="([^"]+)"\} (\S+)$/gm)) {
    tasks[status] = Number(value);
  }
  return Object.keys(tasks).length === 0 ? null : tasks;
}

/** Events a second between two looks. */
export function rateOf(type: string, before: Snapshot | null, now: Snapshot): number | null {
  if (before?.counts == null || now.counts === null || now.at <= before.at) return null;
  const grown = (now.counts.get(type) ?? 0) - (before.counts.get(type) ?? 0);
  return Math.max(0, grown) / ((now.at - before.at) / 1_000);
}
