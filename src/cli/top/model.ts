/** A snapshot of the fleet, read from the API at every interval; times are advanced in between. */
import type { Client } from "../../sdk/client.ts";
import { followEvents } from "../../sdk/events.ts";
import type { AgentActivity, EventType, Overview, Wait } from "../../sdk/wire.ts";

export type Activity = AgentActivity["activity"];

/** What needs attention comes first. */
export const activities = ["lost", "waiting_for_person", "blocked", "working", "idle"] as const satisfies Activity[];

export const activityWords: Readonly<Record<Activity, string>> = {
  lost: "lost",
  waiting_for_person: "waiting for a person",
  blocked: "blocked",
  working: "working",
  idle: "idle",
};

export interface Snapshot {
  /** By our own clock, from before the server was asked. */
  readonly at: number;
  readonly overview: Overview;
  readonly agents: readonly AgentActivity[];
  readonly waits: readonly Wait[];
  readonly hasMore: boolean;
}

const agentsMax = 1_000;
const attentionMax = 200;
const waitsMax = 500;

export async function takeSnapshot(client: Client): Promise<Snapshot> {
  const at = performance.now();
  const [overview, first, waits] = await Promise.all([
    client.call("get_overview", {}),
    client.call("list_activity", { limit: agentsMax }),
    client.call("list_waits", { limit: waitsMax }),
  ]);
  const isCut = first.next_cursor !== null;
  // A large fleet's working and idle agents must not hide those that need attention.
  const attention = isCut
    ? await Promise.all(
        activities.slice(0, 3).map((activity) => client.call("list_activity", { activity, limit: attentionMax })),
      )
    : [];
  const agents = new Map([first, ...attention].flatMap((page) => page.agents.map((one) => [one.agent_id, one])));
  return {
    at,
    overview,
    agents: [...agents.values()],
    waits: waits.waits,
    hasMore: isCut || waits.next_cursor !== null,
  };
}

/** What is counted, and the word for it. */
export const rated = {
  "lease.granted": "granted",
  "lease.released": "released",
  "lease.expired": "expired",
  "request.died": "died",
  "task.completed": "tasks done",
} as const satisfies Partial<Record<EventType, string>>;

export type Rated = keyof typeof rated;
export type Rates = Readonly<Record<Rated, number>>;

/** Long enough that single events do not make the figure jump. */
const windowMs = 5_000;
const bucketMs = 500;

/** Counts events as they come, for rates per second over the last seconds. */
export class RateMeter {
  private readonly begunAt: number;
  private buckets: { readonly at: number; readonly counts: Record<Rated, number> }[] = [];

  constructor(now: number) {
    this.begunAt = now;
  }

  count(type: Rated, now: number): void {
    let last = this.buckets.at(-1);
    if (last === undefined || now - last.at >= bucketMs) {
      last = { at: now, counts: zeros() };
      this.buckets.push(last);
    }
    last.counts[type]++;
  }

  rates(now: number): Rates {
    this.buckets = this.buckets.filter(({ at }) => now - at < windowMs);
    const seconds = Math.min(windowMs, Math.max(1_000, now - this.begunAt)) / 1_000;
    const rates = zeros();
    for (const { counts } of this.buckets) for (const type of ratedTypes) rates[type] += counts[type] / seconds;
    return rates;
  }

  /** Counts what came after `since`, until `signal` ends it; false where this key may not read events. */
  async follow(client: Client, since: number, signal: AbortSignal): Promise<boolean> {
    try {
      for await (const { type } of followEvents(client, { since, types: ratedTypes, signal })) {
        this.count(type as Rated, performance.now());
      }
      return true;
    } catch {
      return signal.aborted;
    }
  }
}

const ratedTypes = Object.keys(rated) as Rated[];

function zeros(): Record<Rated, number> {
  return { "lease.granted": 0, "lease.released": 0, "lease.expired": 0, "request.died": 0, "task.completed": 0 };
}
