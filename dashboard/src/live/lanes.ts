/**
 * What is known of each agent: read once from `GET /v1/activity`, and then kept by events. The server derives what an
 * agent does (its activity). Between two reads the page moves it only where an event leaves no doubt; where it could, the
 * lane is marked stale and read again.
 */
import { type Signal, signal } from "@preact/signals";
import type { AgentActivity, Intent, Lease, Wait } from "../../../src/sdk/wire.ts";
import { serverNow } from "../api/session.ts";

export type Activity = AgentActivity["activity"];

export interface Bar {
  readonly id: string;
  readonly resource: string;
  readonly predicate: string;
  readonly state: string;
  readonly purpose: string | null;
  readonly ttl: number;
  /** By the server's clock. */
  readonly endsAt: number;
}

export interface Ask {
  readonly id: string;
  readonly state: string;
  readonly intents: readonly Intent[];
  readonly since: number;
  readonly endsAt: number;
}

export interface Lane {
  readonly id: string;
  labels: Readonly<Record<string, string>>;
  state: string;
  activity: Activity;
  since: number;
  pausedFor: string | null;
  retryAt: number | null;
  isPausedByOperator: boolean;
  readonly bars: Map<string, Bar>;
  /** Of those that are not listed. */
  hidden: number;
  readonly asks: Map<string, Ask>;
  /** Of one that is blocked and in view: what is in its way. */
  waits: readonly Wait[];
  /** To be read again. */
  isStale: boolean;
  /** When it was last read, by our clock. */
  readAt: number;
  /** Its row alone is drawn again. */
  readonly version: Signal<number>;
}

export function laneOf(from: AgentActivity): Lane {
  const now = serverNow();
  return {
    id: from.agent_id,
    labels: from.labels,
    state: from.state,
    activity: from.activity,
    since: Date.parse(from.since),
    pausedFor: from.paused_for ?? null,
    retryAt: from.retry_in_ms === undefined ? null : now + from.retry_in_ms,
    isPausedByOperator: from.paused_by_operator,
    bars: new Map(from.leases.map((lease) => [lease.id, barOf(lease as Lease)])),
    hidden: from.leases_total - from.leases.length,
    asks: new Map(
      from.requests.map((ask) => [
        ask.request_id,
        {
          id: ask.request_id,
          state: ask.state,
          intents: ask.intents as readonly Intent[],
          since: Date.parse(ask.submitted_at),
          endsAt: now + ask.times_out_in_ms,
        },
      ]),
    ),
    waits: [],
    isStale: false,
    readAt: Date.now(),
    version: signal(0),
  };
}

export function barOf(lease: Lease): Bar {
  const { id, resource, predicate, state, purpose, ttl } = lease;
  return { id, resource, predicate, state, purpose, ttl, endsAt: Date.parse(lease.expires_at) };
}

const liveStates = new Set(["BINDING", "ACTIVE", "HELD", "CLOSING"]);

/** A lease as an event shows it. Returns whether the lane still has it. */
export function putLease(lane: Lane, lease: Lease): void {
  if (liveStates.has(lease.state)) {
    const known = lane.bars.get(lease.id);
    const bar = barOf(lease);
    // An event of before the list was read is older than a heartbeat that the list has seen.
    lane.bars.set(lease.id, known !== undefined && known.endsAt > bar.endsAt ? { ...bar, endsAt: known.endsAt } : bar);
  } else if (!lane.bars.delete(lease.id) && lane.hidden > 0) lane.hidden--;
}

/** Lanes that an event has touched since they were last drawn. */
export const changed = new Set<Lane>();

/** After an event: what it does now, as far as that is certain. */
export function settle(lane: Lane, at: number): void {
  const before = lane.activity;
  const holds = lane.bars.size + lane.hidden > 0;
  if (lane.isPausedByOperator) lane.activity = "waiting_for_person";
  else if (lane.asks.size > 0) lane.activity = "blocked";
  else if (holds && lane.state !== "PAUSED" && lane.state !== "DIE_RESTART") lane.activity = "working";
  else if (lane.state === "PAUSED" || lane.state === "DIE_RESTART") lane.isStale = true;
  else lane.activity = "idle";
  if (lane.activity !== before) lane.since = at;
  changed.add(lane);
}
