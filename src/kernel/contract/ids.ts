/**
 * Ids are text that sorts by time, because stores like keys that grow: ten characters of time and twelve of the
 * command's random numbers. A request's leases carry its suffix, so a waiter needs no randomness when it is granted.
 */
import type { Entropy } from "./commands.ts";
import type { Millis } from "./records.ts";

const digits = "0123456789abcdefghjkmnpqrstvwxyz";
const codes = Uint8Array.from(digits, (digit) => digit.charCodeAt(0));

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
    const top = Math.floor(high / 2 ** 20);
    timePart = "";
    for (const bits of [top, high >>> 10, high, low >>> 10, low]) {
      timePart += digits.charAt((bits >>> 5) & 31) + digits.charAt(bits & 31);
    }
    cachedTime = now;
  }
  // Twelve digits, six of each, in one call: a text that is joined from pieces is copied once more when it is hashed.
  const random = String.fromCharCode(
    code(first >>> 25),
    code(first >>> 20),
    code(first >>> 15),
    code(first >>> 10),
    code(first >>> 5),
    code(first),
    code(second >>> 25),
    code(second >>> 20),
    code(second >>> 15),
    code(second >>> 10),
    code(second >>> 5),
    code(second),
  );
  return timePart + random;
}

function code(bits: number): number {
  return codes[bits & 31] ?? 0;
}
