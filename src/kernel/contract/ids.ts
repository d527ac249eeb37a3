/**
 * Ids are text that sorts by time, because stores like keys that grow: ten characters of time and twelve of the
 * command's random numbers. A request's leases carry its suffix, so a waiter needs no randomness when it is granted.
 */
import type { Entropy } from "./commands.ts";
import type { Millis } from "./records.ts";

const digits = "0123456789abcdefghjkmnpqrstvwxyz";
const pairs: readonly string[] = Array.from({ length: 1024 }, (_, n) => digits.charAt(n >> 5) + digits.charAt(n & 31));

/** Ids of every kind are random from here on, whatever their prefix: where a hash may begin. */
export const randomFrom = 19;

/** Of keys, whose ids the server draws. */
export const keyIdPrefix = "key_";

export function agentIdFrom(now: Millis, entropy: Entropy): string {
  return `agt_${suffixFrom(now, entropy)}`;
}

export function taskIdFrom(now: Millis, entropy: Entropy): string {
  return `T-${suffixFrom(now, entropy)}`;
}

export function suffixOf(requestId: string): string {
  return requestId.slice(4);
}

export const leaseIdPrefix = "lse_";

/** The id of the lease for the request's intent at this index. */
export function leaseIdWith(suffix: string, index: number): string {
  return index === 0 ? `lse_${suffix}` : `lse_${suffix}-${index}`;
}

/** Which of the leases that were granted together it is. */
export function leaseIndexOf(leaseId: string): number {
  const dash = leaseId.indexOf("-");
  return dash < 0 ? 0 : Number(leaseId.slice(dash + 1));
}

/** The other way round: the request through which a lease was granted. */
export function requestIdOf(leaseId: string): string {
  const dash = leaseId.indexOf("-");
  return `req_${dash < 0 ? leaseId.slice(4) : leaseId.slice(4, dash)}`;
}

/** Ids of requests that are submitted at this time or later sort here or after it; so do those of their leases. */
export function firstRequestIdAt(time: Millis): string {
  return `req_${suffixFrom(Math.max(time, 0), [0, 0])}`;
}

export function firstLeaseIdAt(time: Millis): string {
  return `lse_${suffixFrom(Math.max(time, 0), [0, 0])}`;
}

/** When a request was submitted, by its id. */
export function timeOfId(requestId: string): Millis {
  return [...suffixOf(requestId).slice(0, 10)].reduce((time, digit) => time * 32 + digits.indexOf(digit), 0);
}

let cachedTime = -1;
let timePart = "";

/** What the ids of a request and of its leases have in common. Many commands share a millisecond; its text is kept. */
export function suffixFrom(now: Millis, [first, second]: Entropy): string {
  if (now !== cachedTime) {
    const high = Math.floor(now / 2 ** 20);
    const low = now % 2 ** 20;
    timePart = pair(Math.floor(high / 2 ** 20)) + pair(high >>> 10) + pair(high) + pair(low >>> 10) + pair(low);
    cachedTime = now;
  }
  return (
    timePart +
    pair(first >>> 20) +
    pair(first >>> 10) +
    pair(first) +
    pair(second >>> 20) +
    pair(second >>> 10) +
    pair(second)
  );
}

function pair(bits: number): string {
  return pairs[bits & 1023] ?? "";
}
