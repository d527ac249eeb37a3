import type { Millis } from "../kernel/contract/records.ts";

/** The longest that a timer can be set for. */
const timerMsMax = 2 ** 31 - 1;

/** One timer for whatever is next. It keeps no process alive: a deadline is no reason to stay with nothing else to do. */
export class Alarm {
  private readonly ring: () => void;
  private timer: NodeJS.Timeout | null = null;
  private at = Number.POSITIVE_INFINITY;

  constructor(ring: () => void) {
    this.ring = ring;
  }

  /** Rings then, or earlier if it was set so: whoever is rung looks at what is due. */
  set(at: Millis | null, now: () => Millis): void {
    if (at === null || at >= this.at) return;
    this.clear();
    this.at = at;
    const wait = Math.min(Math.max(at - now(), 0), timerMsMax);
    this.timer = setTimeout(() => {
      this.clear();
      this.ring();
    }, wait);
    this.timer.unref();
  }

  clear(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    this.at = Number.POSITIVE_INFINITY;
  }
}
