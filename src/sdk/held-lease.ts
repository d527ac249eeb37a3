/**
 * One lease as the latest answer showed it; its remaining time counts from before that was asked for (A7). Answers may
 * come late, twice and in another order than they were given: what is older than what is known changes nothing.
 */

import type { Mark, Timekeeper } from "../keeper/clock.ts";
import { tokenLimits } from "../token/index.ts";
import type { Lease } from "./wire.ts";

export class HeldLease {
  readonly id: string;
  private readonly time: Timekeeper;
  private present: Lease;
  private since: Mark;
  private readonly listeners = new Set<(token: string) => void>();
  /** Whether it is issued again rather than extended (G8). */
  isBound: boolean;

  constructor(lease: Lease, since: Mark, time: Timekeeper) {
    this.id = lease.id;
    this.present = lease;
    this.since = since;
    this.time = time;
    this.isBound = lease.coordinate !== undefined;
  }

  get lease(): Lease {
    return this.present;
  }

  /** Since before the question that the present answer is to. */
  get ageMs(): number {
    return this.time.elapsedMs(this.since);
  }

  /** How long it can be used, by the latest word; below 0 once it may have ended. */
  get leftMs(): number {
    return this.lifeMs - this.ageMs;
  }

  /** How long it could be used when that answer was given. A token never lives longer than it may (G3). */
  get lifeMs(): number {
    const { token, expires_in_ms: lifeMs } = this.present;
    return token === undefined ? lifeMs : Math.min(lifeMs, tokenLimits.lifeMsMax);
  }

  note(lease: Lease, since: Mark): void {
    const { generation, token } = this.present;
    if (lease.generation < generation) return;
    const isLonger = lease.expires_in_ms - this.time.elapsedMs(since) > this.leftMs;
    if (lease.generation === generation && !isLonger) return;
    // Not every answer shows the token; that of the same generation goes on.
    const kept = lease.token === undefined && lease.generation === generation ? token : lease.token;
    this.present = kept === undefined ? lease : { ...lease, token: kept };
    this.since = since;
    this.isBound ||= lease.coordinate !== undefined;
    if (kept !== undefined && kept !== token) this.tell(kept);
  }

  /** Called with each later token. */
  onToken(listener: (token: string) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private tell(token: string): void {
    // Later, so that a listener that throws is nobody's trouble but its own.
    for (const listener of this.listeners) queueMicrotask(() => listener(token));
  }
}
