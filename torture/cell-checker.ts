/**
 * Checks the operations that the services behind the cells have seen: none after its lease's end, no two holders at
 * once, no resource granted while its last holder still used it.
 */

export const kinds = ["http", "tcp", "process", "udp", "memory"] as const;
export type Kind = (typeof kinds)[number];

export interface Operation {
  readonly kind: Kind;
  readonly resource: string;
  readonly lease: string;
  readonly at: number;
}

export interface KnownLease {
  readonly resource: string;
  /** The fence of its first grant. */
  readonly fence: number;
  endsAt: number;
}

/** A cell was stopped during this time. */
export interface Stop {
  readonly cell: string;
  readonly from: number;
  to: number;
}

/** From the cell's check of its clock to our reading of ours: two processes and a loopback on a busy machine. */
const slackMs: Readonly<Record<Kind, number>> = {
  http: 250,
  tcp: 250,
  process: 1_000,
  udp: 250,
  memory: 250,
};
/** A stopped cell passes on what it had already checked when it continues. */
const wakeMs = 1_000;

export interface Verdict {
  readonly violations: readonly string[];
  readonly operations: Readonly<Record<Kind, number>>;
  /** By how much the latest operation came after its lease's end. */
  readonly latestMs: Readonly<Record<Kind, number>>;
  /** Passed on by a cell that was stopped between its check and its write. */
  readonly inHand: number;
}

export class CellChecker {
  readonly operations: Operation[] = [];
  readonly leases = new Map<string, KnownLease>();
  readonly stops: Stop[] = [];
  readonly violations: string[] = [];

  did(operation: Operation): void {
    this.operations.push(operation);
  }

  know(id: string, { resource, fence, endsAt }: KnownLease): void {
    const known = this.leases.get(id);
    if (known === undefined) this.leases.set(id, { resource, fence, endsAt });
    else known.endsAt = Math.max(known.endsAt, endsAt);
  }

  judge(): Verdict {
    const violations = [...this.violations];
    const latestMs = noneOfEach();
    const counts = noneOfEach();
    const inHand = new Map<string, number>();
    const late = new Map<string, { readonly what: string; overMs: number; count: number }>();
    for (const operation of this.operations) {
      const { kind, lease, at, resource } = operation;
      counts[kind]++;
      const known = this.leases.get(lease);
      if (known === undefined) {
        violations.push(`${kind} ${resource}: an operation of ${lease}, a lease that the server does not know`);
        continue;
      }
      const overMs = at - known.endsAt;
      if (overMs > slackMs[kind] && this.wasInHand(operation, known)) inHand.set(lease, (inHand.get(lease) ?? 0) + 1);
      else if (overMs > slackMs[kind]) {
        const so = late.get(lease) ?? {
          what: `${kind} ${resource}: ${lease}, which ended at ${known.endsAt},`,
          overMs,
          count: 0,
        };
        late.set(lease, { ...so, overMs, count: so.count + 1 });
      } else latestMs[kind] = Math.max(latestMs[kind], overMs);
    }
    for (const { what, overMs, count } of late.values()) {
      violations.push(`${what} was used ${count} times after that, the last time ${overMs} ms later`);
    }
    for (const [lease, count] of inHand) {
      if (count > 1) violations.push(`${lease} was used ${count} times after its end by a cell that was stopped`);
    }
    return { violations: [...violations, ...this.overlaps()], operations: counts, latestMs, inHand: inHand.size };
  }

  private wasInHand({ kind, resource, at }: Operation, { endsAt }: KnownLease): boolean {
    // A write into memory counts from when its holder sent it: no check was before that.
    if (kind === "process" || kind === "memory") return false;
    return this.stops.some(
      ({ cell, from, to }) => resource.endsWith(`/${cell}`) && from <= endsAt && endsAt <= to && at <= to + wakeMs,
    );
  }

  /** In the order of their fences, no lease of a resource is used after the next one was. */
  private overlaps(): readonly string[] {
    const spans = new Map<string, { first: number; last: number; kind: Kind }>();
    for (const { lease, at, kind } of this.operations) {
      const span = spans.get(lease);
      if (span === undefined) spans.set(lease, { first: at, last: at, kind });
      else span.last = Math.max(span.last, at);
    }
    const byResource = Map.groupBy(this.leases, ([, { resource }]) => resource);
    return [...byResource.values()].flatMap((leases) => {
      const found: string[] = [];
      let before: { readonly id: string; readonly last: number } | null = null;
      for (const [id, { resource }] of leases.toSorted(([, a], [, b]) => a.fence - b.fence)) {
        const span = spans.get(id);
        if (span === undefined) continue;
        const overMs = before === null ? 0 : before.last - span.first;
        if (before !== null && overMs > slackMs[span.kind]) {
          found.push(`${resource}: ${before.id} was used ${overMs} ms after ${id} was`);
        }
        if (before === null || span.last > before.last) before = { id, last: span.last };
      }
      return found;
    });
  }
}

function noneOfEach(): Record<Kind, number> {
  return Object.fromEntries(kinds.map((kind) => [kind, 0])) as Record<Kind, number>;
}
