/**
 * Delivers each durable event to its followers, with one subscription to the engine for all of them. Events are encoded
 * already, so a follower costs an entry in an index until an event matches its filter.
 */
import type { NumberedEvent } from "../../engine/batch.ts";
import type { Engine } from "../../engine/engine.ts";
import { FairTurns } from "../answering/fair-turns.ts";
import { type EventFilter, subjectOf } from "./event-filter.ts";
import { FollowerIndex } from "./follower-index.ts";

/** A reader that has seen all events up to the present, or nearly, and gets what comes. */
export interface Follower {
  readonly filter: EventFilter;
  deliver(seq: number, text: string): void;
  /** Events were missed: those after this one must be read from the store. */
  fallBack(lastSeen: number): void;
}

/** Of one tenant, at once: a reader that is near the present sets aside what comes meanwhile. */
const readersMax = 16;

export class EventHub {
  private readonly engine: Engine;
  private readonly tenants = new Map<string, FollowerIndex<Follower>>();
  private readonly followers = new Set<Follower>();
  /** Those that read stored events. */
  readonly readers = new FairTurns(readersMax);
  /** The last event that was delivered; null until the first follower is about to join, and kept up to date from then on. */
  private seen: number | null = null;

  constructor(engine: Engine) {
    this.engine = engine;
    engine.onRecovery(() => {
      const { seen } = this;
      if (seen === null || engine.lastSeq <= seen) return;
      this.seen = engine.lastSeq;
      this.fallBack(seen);
    });
  }

  get size(): number {
    return this.followers.size;
  }

  /** The last event that was delivered; asking begins to follow. */
  get lastSeq(): number {
    if (this.seen === null) {
      this.engine.subscribe((events) => this.follow(events));
      this.seen = this.engine.lastSeq;
    }
    return this.seen;
  }

  join(follower: Follower): void {
    this.seen = this.lastSeq;
    this.followers.add(follower);
    const { tenant } = follower.filter;
    const index = this.tenants.get(tenant) ?? new FollowerIndex<Follower>();
    this.tenants.set(tenant, index);
    index.add(follower);
  }

  leave(follower: Follower): void {
    if (!this.followers.delete(follower)) return;
    const { tenant } = follower.filter;
    const index = this.tenants.get(tenant);
    index?.delete(follower);
    if (index?.isEmpty) this.tenants.delete(tenant);
  }

  private follow(events: readonly NumberedEvent[]): void {
    const first = events[0];
    const last = events.at(-1);
    if (first === undefined || last === undefined) return;
    const seen = this.lastSeq;
    this.seen = last.seq;
    if (this.followers.size === 0) return;
    // Otherwise a commit of unknown outcome was stored after all (S2) but never announced: all read it from the store.
    if (first.seq !== seen + 1) return this.fallBack(seen);
    for (const { seq, event } of events) {
      const index = this.tenants.get(event.tenant);
      if (index === undefined) continue;
      // Once for all that want it, and not at all if nobody does.
      let text: string | null = null;
      index.find(subjectOf(event), (follower) => {
        text ??= this.engine.encodeEvent(event);
        follower.deliver(seq, text);
      });
    }
  }

  private fallBack(seen: number): void {
    for (const follower of [...this.followers]) {
      this.leave(follower);
      follower.fallBack(seen);
    }
  }
}
