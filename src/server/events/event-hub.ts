/**
 * Delivers each durable event to its followers, with one subscription to the engine for all of them. Events are encoded
 * already, so a follower costs an entry in an index until an event matches its filter.
 */
import type { NumberedEvent } from "../../engine/batch.ts";
import type { Engine } from "../../engine/engine.ts";
import { type EventFilter, subjectOf } from "./event-filter.ts";
import { FollowerIndex } from "./follower-index.ts";

/** A reader that has seen all events up to the present, or nearly, and gets what comes. */
export interface Follower {
  readonly filter: EventFilter;
  deliver(seq: number, text: string): void;
  /** Events were missed: those after this one must be read from the store. */
  fallBack(lastSeen: number): void;
}

export interface EventHub {
  /** The last event that has been handed out. */
  readonly lastSeq: number;
  readonly size: number;
  join(follower: Follower): void;
  leave(follower: Follower): void;
}

export function createEventHub(engine: Engine): EventHub {
  const tenants = new Map<string, FollowerIndex<Follower>>();
  const followers = new Set<Follower>();
  // Set, and kept up to date, from the moment that the first follower is about to join.
  let lastSeq: number | null = null;
  const begin = (): number => {
    if (lastSeq === null) {
      engine.subscribe(follow);
      lastSeq = engine.lastSeq;
    }
    return lastSeq;
  };

  function follow(events: readonly NumberedEvent[]): void {
    const first = events[0];
    const last = events.at(-1);
    if (first === undefined || last === undefined) return;
    // A commit of unknown outcome has been stored after all (S2) but was never announced, so all read it from the store.
    const seen = lastSeq ?? first.seq - 1;
    lastSeq = last.seq;
    if (followers.size === 0) return;
    if (first.seq === seen + 1) broadcast(events);
    else fallBack(seen);
  }

  engine.onRecovery(() => {
    const seen = lastSeq;
    if (seen === null || engine.lastSeq <= seen) return;
    lastSeq = engine.lastSeq;
    fallBack(seen);
  });

  function broadcast(events: readonly NumberedEvent[]): void {
    for (const { seq, event, text } of events) {
      const index = tenants.get(event.tenant);
      index?.find(subjectOf(event), (follower) => follower.deliver(seq, text));
    }
  }

  function fallBack(seen: number): void {
    for (const follower of [...followers]) {
      leave(follower);
      follower.fallBack(seen);
    }
  }

  function leave(follower: Follower): void {
    if (!followers.delete(follower)) return;
    const { tenant } = follower.filter;
    const index = tenants.get(tenant);
    index?.delete(follower);
    if (index?.isEmpty) tenants.delete(tenant);
  }

  return {
    get lastSeq() {
      return begin();
    },
    get size() {
      return followers.size;
    },
    join(follower) {
      begin();
      followers.add(follower);
      const { tenant } = follower.filter;
      const index = tenants.get(tenant) ?? new FollowerIndex<Follower>();
      tenants.set(tenant, index);
      index.add(follower);
    },
    leave,
  };
}
