/**
 * Clients of a cluster that remember every promise: leases that must last, and workers that take turns at a few resources.
 * Two acknowledged holders of one thing contradict each other; a fence that does not grow would let a late writer through.
 */
import { setTimeout as sleep } from "node:timers/promises";

interface Lease {
  readonly id: string;
  readonly fence: number;
  readonly expires_at: number;
}

const workers = 8;
const resources = 4;
/** A paused server answers nothing; a client that waited longer would measure itself. */
const answerMsMax = 500;

export class ClusterLoad {
  readonly violations: string[] = [];
  acknowledged = 0;
  #lastAckAt = 0;
  readonly #urls: readonly string[];
  readonly #lasting = new Map<string, Lease>();
  readonly #held = new Map<string, string>();
  readonly #fences = new Map<string, number>();
  #isOver = false;
  #running: Promise<unknown> = Promise.resolve();

  constructor(urls: readonly string[]) {
    this.#urls = urls;
  }

  async begin(lasting: number): Promise<void> {
    // Registered from the oldest on, so that nobody is refused for its age alone.
    for (const agent of ["lasting", ...this.#workers]) await this.#until("/v1/agents", { agent_id: agent });
    const portion = 100;
    for (let from = 0; from < lasting; from += portion) {
      const intents = Array.from({ length: Math.min(portion, lasting - from) }, (_, index) => ({
        predicate: "MUTATES",
        resource: `FILE:/lasting/${from + index}`,
      }));
      const body = { agent_id: "lasting", intents, ttl_ms: 3_600_000 };
      const { leases } = (await this.#until("/v1/acquire", body)) as { leases: readonly Lease[] };
      for (const lease of leases) this.#lasting.set(lease.id, lease);
    }
    this.#running = Promise.all(this.#workers.map((agent, index) => this.#work(agent, index)));
  }

  get #workers(): readonly string[] {
    return Array.from({ length: workers }, (_, index) => `worker-${index}`);
  }

  /** Until this number of changes more was acknowledged. */
  async more(count: number): Promise<void> {
    const target = this.acknowledged + count;
    while (this.acknowledged < target) await sleep(5);
  }

  /** Milliseconds until a change is acknowledged that was asked for after `since`. */
  async nextAcknowledged(since: number, msMax: number): Promise<number> {
    while (this.#lastAckAt <= since) {
      if (performance.now() - since > msMax) {
        this.violations.push(`nobody served within ${msMax} ms`);
        break;
      }
      await sleep(5);
    }
    return performance.now() - since;
  }

  /** Nothing acknowledged is lost, and no lease was ended or extended. */
  async compare(): Promise<void> {
    const found = new Map<string, Lease>();
    let cursor: string | null = null;
    do {
      const query: string = cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`;
      const page = (await this.#until(`/v1/leases?agent_id=lasting&limit=1000${query}`, null)) as {
        leases: readonly Lease[];
        next_cursor: string | null;
      };
      for (const lease of page.leases) found.set(lease.id, lease);
      cursor = page.next_cursor;
    } while (cursor !== null);
    for (const [id, lease] of this.#lasting) {
      const now = found.get(id);
      if (now === undefined) this.violations.push(`lease ${id} was acknowledged, and is gone`);
      else if (now.expires_at !== lease.expires_at)
        this.violations.push(`lease ${id} ends at ${now.expires_at}, not at ${lease.expires_at}`);
      else if (now.fence !== lease.fence)
        this.violations.push(`lease ${id} has fence ${now.fence}, not ${lease.fence}`);
    }
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await this.#running;
  }

  /** Takes one thing after the other, and gives it back. A release that may have failed is sent again until it is known. */
  async #work(agent: string, index: number): Promise<void> {
    for (let turn = index; !this.#isOver; turn++) {
      const resource = `FILE:/shared/${turn % resources}`;
      const askedAt = performance.now();
      const body = {
        agent_id: agent,
        intents: [{ predicate: "MUTATES", resource }],
        ttl_ms: 3_600_000,
        wait_timeout_ms: 0,
      };
      const answer = (await this.#ask("/v1/acquire", body, turn)) as { leases?: readonly Lease[] } | null;
      const [lease] = answer?.leases ?? [];
      if (lease === undefined) {
        // It may have been granted, and the answer lost.
        if (answer === null) await this.#until("/v1/release", { agent_id: agent });
        await sleep(5);
        continue;
      }
      this.#note(resource, agent, lease, askedAt);
      await sleep(2);
      if (this.#held.get(resource) === agent) this.#held.delete(resource);
      await this.#until(`/v1/leases/${lease.id}/release`, {});
    }
  }

  #note(resource: string, agent: string, { fence }: Lease, askedAt: number): void {
    this.acknowledged++;
    this.#lastAckAt = Math.max(this.#lastAckAt, askedAt);
    const other = this.#held.get(resource);
    if (other !== undefined) this.violations.push(`${resource} was granted to ${agent} while ${other} had it`);
    const last = this.#fences.get(resource) ?? 0;
    if (fence <= last) this.violations.push(`${resource} was granted with fence ${fence} after ${last}`);
    this.#held.set(resource, agent);
    this.#fences.set(resource, Math.max(fence, last));
  }

  /** Until it is known what became of it: any answer but 5xx. */
  async #until(path: string, body: object | null): Promise<unknown> {
    for (let attempt = 0; ; attempt++) {
      const answer = await this.#ask(path, body, attempt);
      if (answer !== null || this.#isOver) return answer;
      await sleep(50);
    }
  }

  /** null: it may or may not have taken effect. */
  async #ask(path: string, body: object | null, turn: number): Promise<unknown> {
    const url = this.#urls[turn % this.#urls.length] ?? "";
    try {
      const response = await fetch(`${url}${path}`, {
        ...(body !== null && {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify(body),
        }),
        signal: AbortSignal.timeout(answerMsMax),
      });
      const text = await response.text();
      return response.status >= 500 ? null : (JSON.parse(text) as unknown);
    } catch {
      return null;
    }
  }
}
