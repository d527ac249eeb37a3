/**
 * L7: the control plane's time. It starts at the later of the wall clock and the last committed time, and from then on
 * advances by the monotonic clock alone; a step of the wall clock does not move it, and it never runs backwards.
 */
import { randomFillSync } from "node:crypto";
import type { Entropy } from "../kernel/contract/commands.ts";
import type { Millis } from "../kernel/contract/records.ts";

export interface Clock {
  now(): Millis;
}

/** What the clock is made of, passed in so that tests can step the wall and stop the monotonic one. */
export interface TimeSources {
  readonly wall: () => number;
  readonly monotonic: () => number;
  /** Absent: the process's own. A simulation runs timers in its own time. */
  readonly setTimeout?: (run: () => void, ms: number) => Timer;
}

export type Timer = Pick<NodeJS.Timeout, "unref" | typeof Symbol.dispose>;

export const systemTime: TimeSources = { wall: Date.now, monotonic: performance.now.bind(performance) };

export function startClock(lastCommitted: Millis, { wall, monotonic }: TimeSources): Clock {
  const startedAt = Math.max(Math.floor(wall()), lastCommitted);
  const origin = monotonic();
  return { now: () => startedAt + Math.floor(monotonic() - origin) };
}

/** A wall clock that is this far off the stored time is worth a loud word at start. */
export const wallOffsetMsMax = 60_000;

export function describeWallOffset(lastCommitted: Millis, wall: Millis): string | null {
  if (lastCommitted === 0 || lastCommitted - wall <= wallOffsetMsMax) return null;
  const seconds = Math.round((lastCommitted - wall) / 1000);
  return `the wall clock is ${seconds} s behind the stored time; leases go on from the stored time, set the clock right`;
}

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
    this.clear();
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

/** Random numbers are drawn in large portions, because each draw is a system call. */
const pool = new Uint32Array(16_384);
let used = pool.length;

export function drawEntropy(): Entropy {
  if (used >= pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  const first = pool[used] ?? 0;
  const second = pool[used + 1] ?? 0;
  used += 2;
  return [first, second];
}
