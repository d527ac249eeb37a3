/**
 * The server's history of a run: when each lease was to end, including grants and renewals whose replies were lost. It
 * must never have leased a resource to two holders at once (C1), nor before the last teardown was confirmed (G6).
 */
import type { CellChecker } from "./cell-checker.ts";

interface LeaseEvent {
  readonly type: string;
  readonly lease: {
    readonly id: string;
    readonly resource: string;
    readonly fence: number;
    readonly acquired_at: string;
    readonly expires_at: string;
  };
}

/** The longest that a cell may take to bind a lease. */
const bindMs = 10_000;
const types = ["binding", "granted", "renewed", "closing", "released", "expired", "revoked"];

export async function learnFromHistory(url: string, checker: CellChecker): Promise<void> {
  const asked = new URLSearchParams({
    since: "0",
    follow: "false",
    types: types.map((type) => `lease.${type}`).join(),
  });
  const response = await fetch(`${url}/v1/events?${asked}`);
  if (!response.ok) throw new Error(`the history cannot be read: ${await response.text()}`);
  const holders = new Map<string, string>();
  for (const [, data = ""] of (await response.text()).matchAll(/^data: (.+)$/gm)) {
    const { type, lease } = JSON.parse(data) as LeaseEvent;
    const { id, resource, fence } = lease;
    const before = holders.get(resource);
    switch (type) {
      case "lease.binding":
        if (before !== undefined && before !== id) {
          checker.violations.push(`${resource}: the server gave it to ${id} while ${before} had it`);
        }
        holders.set(resource, id);
        checker.know(id, { resource, fence, endsAt: Date.parse(lease.acquired_at) + bindMs });
        break;
      case "lease.granted":
        // Until then it was only BINDING; from now on its expiry counts.
        checker.leases.set(id, { resource, fence, endsAt: Date.parse(lease.expires_at) });
        break;
      case "lease.renewed":
        checker.know(id, { resource, fence, endsAt: Date.parse(lease.expires_at) });
        break;
      case "lease.closing":
        break;
      default:
        if (before === id) holders.delete(resource);
    }
  }
}
