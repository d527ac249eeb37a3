/**
 * The control plane's time, as a cell counts it by itself (G11): never behind it, so that nothing is let through after
 * a lease's end. It advances by the monotonic clock. That one stands still while a machine sleeps or a virtual one is
 * stopped, and the wall clock does not: when the wall clock has run ahead, the time between was slept through, or
 * somebody set the clock; which of the two is not known, and the stricter is taken. The next message from the control
 * plane puts it right.
 */
import { type Clock, systemClock } from "../keeper/clock.ts";

/** The wall clock is corrected by small steps all the time. */
const apartMsMin = 50;
/** Clocks drift; a word from the control plane that is older than this gives way to a newer one, even a looser one. */
const observationMsMax = 60_000;

export type CellTime = Pick<Clock, "monotonic" | "wall">;

export class CellClock {
  private readonly time: CellTime;
  /** What is added to the monotonic clock. */
  private offset: number;
  /** The wall clock's lead over the monotonic one, when last looked at. */
  private lead: number;
  private observedAt: number | null = null;

  /** Until the control plane has spoken, the wall clock is all there is. */
  constructor(time: CellTime = systemClock) {
    this.time = time;
    const monotonic = time.monotonic();
    this.lead = time.wall() - monotonic;
    this.offset = this.lead;
  }

  /** Milliseconds since 1970, rounded up: never behind. */
  now(): number {
    return Math.ceil(this.look() + this.offset);
  }

  /** To be taken before a message is sent, for `observe` when it is answered. */
  mark(): number {
    return this.look();
  }

  /**
   * The control plane's time, from an answer to a message that was sent at the mark. It was stamped after that, so the
   * control plane's time is at most what it says and all that has passed since the mark. The tightest bound is kept.
   */
  observe(serverTime: number, mark: number): void {
    const offset = serverTime - mark;
    const monotonic = this.look();
    const isOld = this.observedAt === null || monotonic - this.observedAt > observationMsMax;
    if (!isOld && offset >= this.offset) return;
    this.offset = offset;
    this.observedAt = monotonic;
  }

  private look(): number {
    const monotonic = this.time.monotonic();
    const moved = this.time.wall() - monotonic - this.lead;
    if (moved >= apartMsMin || moved <= -apartMsMin) {
      this.lead += moved;
      if (moved > 0) {
        this.offset += moved;
        this.observedAt = null;
      }
    }
    return monotonic;
  }
}
