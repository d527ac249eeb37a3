/** The engine's timers: one for the next deadline, and one for the time that is to be stored (L7). */
import type { Millis } from "../kernel/contract/records.ts";
import type { State } from "../kernel/kernel.ts";
import { holdsLeases } from "../kernel/views.ts";
import type { Timer, TimeSources } from "./clock.ts";

/** The longest that a timer can be set for. */
const timerMsMax = 2 ** 31 - 1;

/** One timer for the next deadline. It does not keep the process alive. */
export class Alarm {
  private readonly time: TimeSources;
  private readonly ring: () => void;
  private timer: Timer | null = null;
  /** When it rings; infinity: it is not set. */
  at = Number.POSITIVE_INFINITY;

  constructor(time: TimeSources, ring: () => void) {
    this.time = time;
    this.ring = ring;
  }

  /** Rings at that time, or earlier if it was set so before: the callee checks what is due. */
  set(at: Millis, now: () => Millis): void {
    if (at >= this.at) return;
    if (this.timer !== null) this.clear();
    this.at = at;
    const wait = Math.min(Math.max(at - now(), 0), timerMsMax);
    const { setTimeout: start = setTimeout } = this.time;
    this.timer = start(() => {
      this.clear();
      this.ring();
    }, wait);
    this.timer.unref();
  }

  clear(): void {
    this.timer?.[Symbol.dispose]();
    this.timer = null;
    this.at = Number.POSITIVE_INFINITY;
  }
}

/** L7: when the time is to be stored. What a restart in another boot cannot know is what has passed since. */
export class StoredTime {
  /** How often the time is stored while leases are alive and nothing else is stored; L7 asks for every 5 s. */
  static readonly everyMs = 4_000;
  readonly alarm: Alarm;
  /** What was stored last. */
  at: Millis = 0;
  /** Whether the alarm rang since it was last asked what is due. A field, because every commit uses it. */
  hasRung = false;

  constructor(time: TimeSources, ring: () => void) {
    this.alarm = new Alarm(time, () => {
      this.hasRung = true;
      ring();
    });
  }

  begin(now: () => Millis): void {
    this.at = now();
    this.alarm.set(this.at + StoredTime.everyMs, now);
  }

  /** Asked when it rang, where nothing else is to be stored. While no lease is alive, the next commit sets the alarm again. */
  isDue(state: State, at: Millis, now: () => Millis): boolean {
    this.hasRung = false;
    const dueAt = this.at + StoredTime.everyMs;
    if (dueAt > at) this.alarm.set(dueAt, now);
    return dueAt <= at && holdsLeases(state);
  }

  clear(): void {
    this.hasRung = false;
    this.alarm.clear();
  }
}
