/**
 * The one keeper of leases: everything that holds something for longer than a call keeps it with these two classes.
 *
 *   Heartbeat   sends a heartbeat or a renewal when it is due, never two at once, and again soon if no answer came
 *   Deadline    stops the work before its lease can have ended, whether or not anything was heard (A7)
 *
 * They are apart because the heartbeats of tasks leave from a thread of their own (sdk/node/thread-keeper.ts), while the
 * deadline stops what runs in the event loop.
 *
 *   withLease, hold, `run`     Holding      heartbeat_all for its leases, renew_lease for each bound one (Renewal); the
 *                                           first at once where that collects the grant of a wait (W8)
 *   workers, `work`            TaskKeeper   heartbeat_tasks for all tasks, in a thread where there are threads
 *   `mcp`                      Session      heartbeat_all for each agent, heartbeat_task for each task
 *   the server's own MCP       Presence     heartbeat_all for an agent while one of its calls is held
 *   guards                     a hook ends with its step: it sends one heartbeat and keeps nothing (guard/leasing.ts)
 */
import type { Mark, Timekeeper } from "./clock.ts";

/** A heartbeat leaves after this part of the time that its lease lasts, so that two of them may be lost. */
export const beatShare = 1 / 3;

export interface HeartbeatOptions {
  /**
   * Sends one heartbeat. Returns in how many ms the next one is due, null if there is to be none; rejects if nothing was
   * heard. What the answer says is counted from before it was asked for.
   */
  readonly send: (signal: AbortSignal) => Promise<number | null>;
  /** How long the lease lasts; after a failure it is tried again soon by this measure. */
  readonly lastsMs: () => number;
  /** Does not keep the process alive. */
  readonly isBackground?: boolean;
}

const everyMsMin = 10;

export class Heartbeat {
  private readonly options: HeartbeatOptions;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private dueAt = Number.POSITIVE_INFINITY;
  private underWay: Promise<void> | null = null;
  private controller: AbortController | null = null;
  private failures = 0;
  private isStopped = false;

  constructor(options: HeartbeatOptions) {
    this.options = options;
  }

  get isUnderWay(): boolean {
    return this.underWay !== null;
  }

  /** In how many ms the next one is due; Infinity: one is under way, or there is to be none. */
  get dueInMs(): number {
    return this.underWay === null && !this.isStopped ? this.dueAt - performance.now() : Number.POSITIVE_INFINITY;
  }

  /** The next one leaves within this time. It can only be brought forward; one that is under way is let end first. */
  within(ms: number): void {
    const at = performance.now() + Math.max(ms, 0);
    if (this.isStopped || !(at < this.dueAt)) return;
    this.dueAt = at;
    if (this.underWay === null) this.schedule(ms);
  }

  /** Sends one now, or waits for the one under way. Never rejects. `step` is sent in place of the usual one. */
  now(step = this.options.send): Promise<void> {
    if (this.isStopped) return Promise.resolve();
    this.underWay ??= this.run(step);
    return this.underWay;
  }

  stop(): void {
    this.isStopped = true;
    clearTimeout(this.timer);
    this.controller?.abort();
  }

  private schedule(ms: number): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.now(), ms <= 0 ? 0 : Math.max(ms, everyMsMin));
    // Not every platform's timers keep the process alive.
    if (this.options.isBackground === true) (this.timer as { unref?: () => void }).unref?.();
  }

  private async run(step: HeartbeatOptions["send"]): Promise<void> {
    clearTimeout(this.timer);
    this.dueAt = Number.POSITIVE_INFINITY;
    this.controller = new AbortController();
    let next: number | null;
    try {
      next = await step(this.controller.signal);
      this.failures = 0;
    } catch {
      const lastsMs = this.options.lastsMs();
      next = backOffMs(this.failures++, lastsMs / 64, lastsMs / 8);
    }
    this.underWay = null;
    if (next === null) return this.stop();
    const wanted = this.dueAt - performance.now();
    this.dueAt = Number.POSITIVE_INFINITY;
    const soonest = Math.min(next, wanted);
    if (Number.isFinite(soonest)) this.within(soonest);
  }
}

export interface DeadlineOptions {
  readonly time: Timekeeper;
  /** How long the lease may still be used, its margin taken off. */
  readonly leftMs: () => number;
  /** How often the clocks are read, at least. */
  readonly everyMs: number;
  /** The time is up. `sinceMs`: how long ago the clocks were read before, which is long if the program stood still. */
  readonly onEnd: (sinceMs: number) => void;
  readonly onTick?: () => void;
}

export class Deadline {
  private readonly options: DeadlineOptions;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readAt: Mark;
  private isStopped = false;

  constructor(options: DeadlineOptions) {
    this.options = options;
    this.readAt = options.time.mark();
  }

  start(): void {
    this.tick();
  }

  /** Reads the clocks now. */
  check(): void {
    const { time, leftMs, onEnd } = this.options;
    if (this.isStopped) return;
    const sinceMs = time.elapsedMs(this.readAt);
    this.readAt = time.mark();
    if (leftMs() > 0) return;
    this.stop();
    onEnd(sinceMs);
  }

  stop(): void {
    this.isStopped = true;
    clearTimeout(this.timer);
  }

  private readonly tick = (): void => {
    this.check();
    if (!this.isStopped) this.options.onTick?.();
    if (this.isStopped) return;
    const { everyMs, leftMs } = this.options;
    this.timer = setTimeout(this.tick, Math.min(everyMs, Math.max(leftMs(), 1)));
  };
}

const marginMsMin = 25;
const marginMsMax = 2_000;

/** How long before its end a lease is not used any more: a tenth of what it lasts, within bounds. */
export function marginMsOf(lastsMs: number): number {
  return Math.min(Math.max(lastsMs / 10, marginMsMin), marginMsMax);
}

/** How often a deadline reads the clocks: a twentieth of what the lease lasts, within bounds. */
export function tickMs(lastsMs: number, max: number): number {
  return Math.min(Math.max(lastsMs / 20, everyMsMin), max);
}

/** Base times two for each attempt before, up to the cap; half of it is left to chance, so that a crowd spreads out. */
export function backOffMs(attempt: number, baseMs: number, capMs: number): number {
  const full = Math.min(capMs, baseMs * 2 ** Math.min(attempt, 30));
  return full / 2 + (Math.random() * full) / 2;
}
