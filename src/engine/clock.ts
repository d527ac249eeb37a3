/**
 * L7: the control plane's time. It starts at the later of the wall clock and the last committed time, and from then on
 * advances by the monotonic clock alone; a step of the wall clock does not move it, and it never runs backwards.
 */
import type { Millis } from "../kernel/contract/records.ts";

export interface Clock {
  now(): Millis;
}

/** What the clock is made of, passed in so that tests can step the wall and stop the monotonic one. */
export interface TimeSources {
  readonly wall: () => number;
  readonly monotonic: () => number;
}

export const systemTime: TimeSources = { wall: () => Date.now(), monotonic: () => performance.now() };

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
