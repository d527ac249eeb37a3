/**
 * L7: the control plane's time. Within a run it advances by the monotonic clock alone, so that a step of the wall clock
 * does not move it. A restart within one boot of the machine goes on by the machine's monotonic clock, and the wall clock
 * decides nothing. Elsewhere it goes on at the wall clock, or at the last stored time if that is later.
 */
import { randomFillSync } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Entropy } from "../kernel/contract/commands.ts";
import type { Millis } from "../kernel/contract/records.ts";

export interface Clock {
  now(): Millis;
}

/** What the clock is made of, passed in so that tests can step the wall, stop the monotonic one, and reboot. */
export interface TimeSources {
  readonly wall: () => number;
  readonly monotonic: () => number;
  /** Absent: the process's own. A simulation runs timers in its own time. */
  readonly setTimeout?: (run: () => void, ms: number) => Timer;
  /** Absent: boots cannot be told apart. */
  readonly boot?: Boot;
}

/** One boot of the machine, with a clock that all its processes share. */
export interface Boot {
  readonly id: string | null;
  readonly monotonic: () => number;
}

export type Timer = Pick<NodeJS.Timeout, "unref" | typeof Symbol.dispose>;

export const systemTime: TimeSources = {
  wall: Date.now,
  monotonic: performance.now.bind(performance),
  boot: { id: readBootId(), monotonic: () => Number(process.hrtime.bigint()) / 1e6 },
};

/** Only Linux names its boots. */
function readBootId(): string | null {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim() || null;
  } catch {
    return null;
  }
}

export function startClock(startedAt: Millis, { monotonic }: TimeSources): Clock {
  const origin = monotonic();
  return { now: () => startedAt + Math.floor(monotonic() - origin) };
}

/**
 * Stored at each start, and good for all of a run: the service's time and the boot's clock advance together, so that
 * their difference says what time it is whenever the next start comes.
 */
export interface BootTime {
  readonly id: string;
  /** The service's time when the boot's clock was at 0. */
  readonly zeroAt: Millis;
}

export interface Resumed {
  readonly now: Millis;
  /** To be stored; null where boots cannot be told apart. */
  readonly boot: BootTime | null;
  readonly isSameBoot: boolean;
  /** How far the wall clock is ahead of the service's time; in another boot, of the last stored time. Behind: negative. */
  readonly wallAheadMs: number;
}

export function resumeTime(stored: Millis, known: BootTime | null, { wall, boot }: TimeSources): Resumed {
  const wallNow = Math.floor(wall());
  const bootMs = boot?.monotonic() ?? 0;
  if (known !== null && known.id === boot?.id) {
    const now = Math.floor(known.zeroAt + bootMs);
    // Otherwise the boot's clock is not what it was: a container may have one of its own.
    if (now >= stored) return { now, boot: known, isSameBoot: true, wallAheadMs: wallNow - now };
  }
  const now = Math.max(wallNow, stored);
  const id = boot?.id ?? null;
  return {
    now,
    boot: id === null ? null : { id, zeroAt: now - bootMs },
    isSameBoot: false,
    wallAheadMs: stored === 0 ? 0 : wallNow - stored,
  };
}

/** A wall clock that is this far off is reported at a start, and by doctor. */
export const wallOffsetMsMax = 60_000;
/** A jump ahead of more than this ends leases only on the operator's word. */
export const clockJumpMsMax = 24 * 3_600_000;

/** What an operator should know of the wall clock at a start; null: nothing. */
export function describeWallOffset({ isSameBoot, wallAheadMs }: Resumed): string | null {
  if (Math.abs(wallAheadMs) <= wallOffsetMsMax) return null;
  const off = `${Math.round(Math.abs(wallAheadMs) / 1_000)} s`;
  if (isSameBoot) {
    const where = wallAheadMs > 0 ? "ahead of" : "behind";
    return `the wall clock is ${off} ${where} the service's time; leases go on by the machine's monotonic clock`;
  }
  if (wallAheadMs < 0)
    return `the wall clock is ${off} behind the stored time; leases go on from the stored time, set the clock right`;
  return `the wall clock is ${off} ahead of the stored time: the service was down that long, or the clock was set`;
}

/** L7: the wall clock jumped so far that it may be wrong, and leases would end by it. Nothing was changed. */
export class ClockJump extends Error {
  constructor(aheadMs: number) {
    const hours = Math.round(aheadMs / 3_600_000);
    super(
      `the wall clock is ${hours} h ahead of the stored time, and leases would end by it: set the clock right, or start ` +
        "with --accept-clock-jump if the service was down that long",
    );
    this.name = "ClockJump";
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
