/**
 * Holders that use their tokens all the time: while the lease is live, and deliberately for a while after it has ended.
 * They renew, release or let the lease expire, and retry whatever is refused.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Random } from "../sim/random.ts";
import type { CellChecker } from "./cell-checker.ts";
import type { Service } from "./cell-services.ts";
import type { Lease } from "./cell-users.ts";

interface Acquired {
  readonly leases?: readonly Lease[];
  readonly verdict?: string;
  readonly reason?: string;
  readonly error?: string;
}

export interface Tally {
  grants: number;
  renewals: number;
  releases: number;
  /** Uses that a gateway refused with one of its codes. */
  refused: number;
  resets: number;
  fences: number;
  /** Replies to acquire, by verdict or error. */
  readonly answers: Record<string, number>;
}

export interface HolderWorld {
  readonly url: string;
  readonly checker: CellChecker;
  readonly random: Random;
  readonly tally: Tally;
  readonly isOver: () => boolean;
}

/** null: no reply. */
export async function call<T>(url: string, path: string, body?: object): Promise<{ status: number; body: T } | null> {
  try {
    const response = await fetch(`${url}${path}`, {
      method: body === undefined ? "GET" : "POST",
      headers: body === undefined ? {} : { "content-type": "application/json" },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(20_000),
    });
    return { status: response.status, body: (await response.json()) as T };
  } catch {
    return null;
  }
}

export async function hold(name: string, service: Service, world: HolderWorld): Promise<void> {
  const { url, checker, random, tally, isOver } = world;
  const { resource } = service;
  for (let at = 1; !isOver(); at++) {
    // A new agent each time: an agent never conflicts with itself (C2), and the reply to an earlier grant may be lost.
    const agent = `${name}-${at}`;
    if ((await call(url, "/v1/agents", { agent_id: agent })) === null) {
      await sleep(random.between(50, 200));
      continue;
    }
    const ttl = random.between(1_000, 4_000);
    const intents = [{ predicate: "MUTATES", resource }];
    const asked = { agent_id: agent, intents, ttl_ms: ttl, wait_timeout_ms: 8_000, hold_ms: 8_000 };
    const answer = await call<Acquired>(url, "/v1/acquire", asked);
    const word = answer === null ? "no reply" : (answer.body.reason ?? answer.body.verdict ?? answer.body.error ?? "?");
    tally.answers[word] = (tally.answers[word] ?? 0) + 1;
    const [lease] = answer?.status === 200 ? (answer.body.leases ?? []) : [];
    if (lease === undefined) {
      await sleep(random.between(100, 400));
      continue;
    }
    tally.grants++;
    learn(checker, resource, lease);
    await nobodyElseIsIn(service, lease, checker);
    await use(lease, service, world);
  }
}

function learn(checker: CellChecker, resource: string, { id, fence, expires_at: at }: Lease): void {
  checker.know(id, { resource, fence, endsAt: Date.parse(at) });
}

/** G6: the resource is free when the teardown is confirmed. What this process sees may lag a little. */
async function nobodyElseIsIn(service: Service, lease: Lease, checker: CellChecker): Promise<void> {
  const others = (): string[] => [...service.inside()].filter((id) => id !== lease.id);
  if (others().length === 0) return;
  await sleep(300);
  const late = others().filter((id) => (checker.leases.get(id)?.fence ?? Number.POSITIVE_INFINITY) < lease.fence);
  if (late.length > 0)
    checker.violations.push(`${service.resource}: ${lease.id} was granted while ${late.join()} still used it`);
}

async function use(first: Lease, service: Service, world: HolderWorld): Promise<void> {
  const { url, checker, random, tally, isOver } = world;
  let lease = first;
  let isUsing = true;
  const using = service.use({
    present: () => lease,
    service,
    isUsing: () => isUsing,
    wasRefused: () => tally.refused++,
    checker,
  });
  const renewals = random.chance(0.4) ? random.between(1, 3) : 0;
  for (let at = 0; at < renewals && !isOver(); at++) {
    await sleep(leftMs(lease) * 0.6);
    const answer = await call<Lease>(url, `/v1/leases/${lease.id}/renew`, {});
    if (answer?.status !== 200) break;
    tally.renewals++;
    lease = answer.body;
    learn(checker, service.resource, lease);
  }
  await sleep(random.below(leftMs(lease) + 200));
  if (random.chance(0.5) && (await call(url, `/v1/leases/${lease.id}/release`, {}))?.status === 200) tally.releases++;
  // The gateway must refuse a holder that goes on after the end.
  await sleep(random.between(200, 1_000));
  isUsing = false;
  await using;
}

function leftMs({ expires_at: at }: Lease): number {
  return Math.max(0, Date.parse(at) - Date.now());
}
