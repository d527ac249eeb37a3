/** A token bucket for each credential: it may save up for a burst, and then goes on at its rate. */
import { type Answer, errorAnswer } from "../../protocol/answers/answer.ts";

export interface RateLimit {
  readonly perSecond: number;
  readonly burst: number;
}

/** The bucket: how much was left when it was last looked at. It is filled up by the time that has passed since. */
export interface Meter {
  left: number;
  at: number;
}

export interface RateLimiter {
  /** Counts one request; an answer if it is one too many. */
  take(meter: Meter | null): Answer | null;
}

export function createMeter(): Meter {
  return { left: Number.POSITIVE_INFINITY, at: 0 };
}

export function createRateLimiter(limit: RateLimit | null, now: () => number = () => performance.now()): RateLimiter {
  if (limit === null) return { take: () => null };
  const perMs = limit.perSecond / 1_000;
  return {
    take(meter) {
      if (meter === null) return null;
      const time = now();
      const left = Math.min(limit.burst, meter.left + (time - meter.at) * perMs);
      meter.at = time;
      meter.left = left < 1 ? left : left - 1;
      return left < 1 ? tooMany(limit, Math.ceil((1 - left) / perMs)) : null;
    },
  };
}

function tooMany({ perSecond }: RateLimit, waitMs: number): Answer {
  const detail = `This credential may send ${perSecond} requests a second; wait for retry_after_ms, and send fewer.`;
  return errorAnswer("rate_limited", detail, { retry_after_ms: waitMs });
}
