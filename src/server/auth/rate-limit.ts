/**
 * How often a caller may call (S4): a bucket for each key and agent, and one for each tenant, so that many credentials get
 * no more than their tenant's share. What is large takes time to read and to write, so bytes count as requests too, and so do
 * portions of stored events.
 * Failed authentication is counted by address.
 */
import { isIPv6 } from "node:net";
import { setTimeout } from "node:timers/promises";
import { type Answer, errorAnswer } from "../../protocol/answers/answer.ts";
import { limits } from "../../protocol/schema/limits.ts";

export interface RateLimit {
  readonly perSecond: number;
  readonly burst: number;
}

/** Null: no limit. */
export interface RateLimits {
  readonly credential: RateLimit | null;
  readonly tenant: RateLimit | null;
  /** Failed authentication, for each address. */
  readonly failures: RateLimit | null;
}

/** The bucket: how much was left when it was last looked at. It is filled up by the time that has passed since. */
interface Bucket {
  left: number;
  at: number;
}

/** Of a tenant: its quota, where it has one, in place of the server's limit. */
interface TenantBucket extends Bucket {
  limit: RateLimit | null;
}

/** Of a credential, with the one that it shares with all others of its tenant. */
export interface Meter extends Bucket {
  readonly shared: TenantBucket;
}

/** How many seconds' requests of a tenant with a quota may come at once. */
const quotaBurst = 2;

/** Agents whose buckets are remembered; of more the oldest are forgotten, and then only their tenants' count. */
const agentsMax = 100_000;

/** Buckets outlive their credentials: a new token for the same agent, and a new agent of the same tenant, have no new ones. */
export class Meters {
  private readonly tenants = new Map<string, TenantBucket>();
  private readonly agents = new Map<string, Meter>();
  /** Of all tenants without a quota. */
  private readonly usual: RateLimit | null;
  /** Requests a second of a tenant; null: it has no quota. */
  private readonly quotaOf: (tenant: string) => number | null;

  constructor(usual: RateLimit | null = null, quotaOf: (tenant: string) => number | null = () => null) {
    this.usual = usual;
    this.quotaOf = quotaOf;
  }

  ofKey(tenant: string): Meter {
    return { ...full(), shared: this.ofTenant(tenant) };
  }

  ofAgent(tenant: string, agentId: string): Meter {
    const name = `${tenant}/${agentId}`;
    const meter = this.agents.get(name) ?? this.ofKey(tenant);
    this.agents.delete(name);
    this.agents.set(name, meter);
    if (this.agents.size > agentsMax) {
      const [oldest] = this.agents.keys();
      if (oldest !== undefined) this.agents.delete(oldest);
    }
    return meter;
  }

  /** Only of tenants that a valid credential names, so there are no more of them than tenants. */
  private ofTenant(tenant: string): TenantBucket {
    const bucket = this.tenants.get(tenant) ?? { ...full(), limit: this.limitOf(tenant) };
    this.tenants.set(tenant, bucket);
    return bucket;
  }

  /** Its quotas were changed. */
  noteQuotas(tenant: string): void {
    const bucket = this.tenants.get(tenant);
    if (bucket !== undefined) bucket.limit = this.limitOf(tenant);
  }

  private limitOf(tenant: string): RateLimit | null {
    const perSecond = this.quotaOf(tenant);
    return perSecond === null ? this.usual : { perSecond, burst: quotaBurst * perSecond };
  }
}

function full(): Bucket {
  return { left: Number.POSITIVE_INFINITY, at: 0 };
}

/** A token bucket may save up for a burst, and then goes on at its rate. */
export class RateLimiter {
  private readonly credential: RateLimit | null;

  /** Of each credential; a tenant's limit is with its bucket. */
  constructor(credential: RateLimit | null) {
    this.credential = credential;
  }

  /**
   * Counts requests, or the items of a batch; an answer if they are too many. What is larger than the burst passes from a
   * full bucket, and leaves a debt.
   */
  take(meter: Meter | null, cost = 1, now?: number): Answer | null {
    const { credential } = this;
    if (meter === null) return null;
    const { shared } = meter;
    const at = now ?? performance.now();
    const tenant = shared.limit;
    // Every request comes by here, and nearly all find enough in both.
    if (credential !== null) {
      meter.left = Math.min(credential.burst, meter.left + ((at - meter.at) * credential.perSecond) / 1_000);
      meter.at = at;
    }
    if (tenant !== null) {
      shared.left = Math.min(tenant.burst, shared.left + ((at - shared.at) * tenant.perSecond) / 1_000);
      shared.at = at;
    }
    if (meter.left < cost && isShort(credential, meter, cost))
      return refused("This credential", credential, meter, cost);
    if (shared.left < cost && isShort(tenant, shared, cost))
      return refused("All credentials of the tenant together", tenant, shared, cost);
    meter.left -= cost;
    shared.left -= cost;
    return null;
  }

  /** For bytes that are only known afterwards: what they cost is owed. */
  charge(meter: Meter | null, bytes: number): void {
    if (meter === null) return;
    const cost = Math.floor(bytes / limits.bytesPerRequest);
    meter.left -= cost;
    meter.shared.left -= cost;
  }

  /** For work that goes on in portions: one is counted as a request, when it would be let through. Not held for long. */
  async pay(meter: Meter | null): Promise<void> {
    const ms = meter === null ? 0 : this.waitMs(meter, 1);
    if (ms > 0) await setTimeout(Math.min(ms, limits.restMsMax), undefined, { ref: false });
    this.charge(meter, limits.bytesPerRequest);
  }

  /** How long it takes until that cost is let through; 0: it is now. */
  waitMs(meter: Meter, cost: number, now = performance.now()): number {
    const { shared } = meter;
    return Math.max(waitFor(this.credential, meter, cost, now), waitFor(shared.limit, shared, cost, now));
  }
}

/** More than a whole bucket is taken from a full one. */
function isShort(limit: RateLimit | null, { left }: Bucket, cost: number): boolean {
  return limit !== null && left < Math.min(cost, limit.burst);
}

function refused(of: string, limit: RateLimit | null, { left }: Bucket, cost: number): Answer {
  const { perSecond, burst } = limit ?? { perSecond: 0, burst: 0 };
  const detail = `${of} may send ${perSecond} requests a second, items of batches and every 16 KiB of a body or an answer included; wait for retry_after_ms, and send fewer.`;
  const ms = ((Math.min(cost, burst) - left) / perSecond) * 1_000;
  return errorAnswer("rate_limited", detail, { retry_after_ms: Math.ceil(ms) });
}

/** Fills the bucket up. 0: there is enough in it. */
function waitFor(limit: RateLimit | null, bucket: Bucket, cost: number, at: number): number {
  if (limit === null) return 0;
  const perMs = limit.perSecond / 1_000;
  const left = Math.min(limit.burst, bucket.left + (at - bucket.at) * perMs);
  bucket.left = left;
  bucket.at = at;
  const needed = Math.min(cost, limit.burst);
  return left >= needed ? 0 : (needed - left) / perMs;
}

/** Addresses that are remembered; of more the oldest are forgotten. */
const addressesMax = 10_000;

/**
 * Past its limit a failure is answered with 429, and its connection closed. A valid credential is let in all the same:
 * many clients share the address of a proxy, and none of them may lock the others out.
 */
export class FailedLogins {
  private readonly limit: RateLimit | null;
  private readonly addresses = new Map<string, Bucket>();

  constructor(limit: RateLimit | null) {
    this.limit = limit;
  }

  /** Counts one; an answer if it is one too many. A cost of 0 only asks whether there would be one. */
  note(address: string | undefined, cost = 1, now = performance.now()): Answer | null {
    const { limit, addresses } = this;
    if (limit === null || address === undefined) return null;
    const name = networkOf(address);
    const bucket = addresses.get(name) ?? full();
    addresses.delete(name);
    addresses.set(name, bucket);
    if (addresses.size > addressesMax) {
      const [oldest] = addresses.keys();
      if (oldest !== undefined) addresses.delete(oldest);
    }
    const wait = waitFor(limit, bucket, 1, now);
    if (wait === 0) {
      bucket.left -= cost;
      return null;
    }
    const detail = "Too many credentials from this address were refused; send a valid one, or wait for retry_after_ms.";
    return errorAnswer("rate_limited", detail, { retry_after_ms: Math.ceil(wait) });
  }
}

/** Of IPv6 a client has a whole network of addresses. */
function networkOf(address: string): string {
  return isIPv6(address) && !address.startsWith("::ffff:") ? address.split(":", 4).join(":") : address;
}
