/** The network: requests and replies are dropped, delayed, repeated and reordered. */
import { type Counters, count } from "../counters.ts";
import type { Random } from "../random.ts";
import { Unknown } from "./flaky-service.ts";
import type { VirtualTime } from "./virtual-time.ts";

export interface Weather {
  readonly random: Random;
  readonly time: VirtualTime;
  readonly counters: Counters;
  /** Set when the faults end: from then on every message arrives once and at once. */
  isCalm: boolean;
}

const patienceMs = 2_000;

/** Sends a request, perhaps twice, and waits for a reply. Null: none came, and the outcome is unknown. */
export function attempt<T>(weather: Weather, request: () => Promise<T>): Promise<T | null> {
  const { random, time, counters } = weather;
  return new Promise((resolve, reject) => {
    time.in(patienceMs, () => resolve(null));
    const copies = weather.isCalm ? 1 : random.weighted({ one: 88, none: 6, two: 6 });
    if (copies === "none") return count(counters, "network: request dropped");
    if (copies === "two") count(counters, "network: request repeated");
    for (let copy = copies === "two" ? 2 : 1; copy > 0; copy--) {
      time.in(delay(weather), () => {
        request().then(
          (answer) => {
            if (!weather.isCalm && random.chance(0.06)) return count(counters, "network: reply dropped");
            time.in(delay(weather), () => resolve(answer));
          },
          (fault: unknown) => {
            if (fault instanceof Unknown) time.in(delay(weather), () => resolve(null));
            else reject(fault);
          },
        );
      });
    }
  });
}

/** Mostly milliseconds; sometimes longer than any caller waits. */
function delay({ random, isCalm }: Weather): number {
  if (isCalm) return 1;
  return random.chance(0.04) ? random.between(1_000, 20_000) : random.between(0, 40);
}

/** Repeats the request until there is a reply, which its key makes safe (W10, T1, R3). */
export async function insist<T>(weather: Weather, request: () => Promise<T>): Promise<T> {
  for (let tries = 0; ; tries++) {
    const answer = await attempt(weather, request);
    if (answer !== null) return answer;
    count(weather.counters, "network: request sent again");
    await weather.time.sleep(weather.random.between(20, 400) * Math.min(tries + 1, 5));
  }
}
