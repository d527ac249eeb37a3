/** Answers that wait until a cell has taken a change of a lease: from then on the old token is void there too (G4, G8). */
import type { Lease } from "../../kernel/contract/records.ts";
import type { CellDone } from "../../protocol/resources/cell-link.ts";

export type Taken =
  | { readonly type: "taken" }
  /** The cell has ended it: by its own clock, or because its resource is fenced. */
  | { readonly type: "ended"; readonly code: string }
  /** It did not say anything in time. */
  | { readonly type: "silent" };

/** What a cell is to know of a lease. */
export type Update = Pick<Lease, "tenant" | "id" | "generation" | "predicate">;

interface Waiter {
  readonly wanted: Update;
  readonly settle: (taken: Taken) => void;
}

/** How long an answer waits for the cell. */
const takenMsMax = 5_000;

export class Renewals {
  private readonly waiters = new Map<string, Set<Waiter>>();

  await(wanted: Update): Promise<Taken> {
    const name = nameOf(wanted.tenant, wanted.id);
    return new Promise((resolve) => {
      const waiter: Waiter = {
        wanted,
        settle: (taken) => {
          clearTimeout(timer);
          waiting.delete(waiter);
          if (waiting.size === 0 && this.waiters.get(name) === waiting) this.waiters.delete(name);
          resolve(taken);
        },
      };
      const timer = setTimeout(() => waiter.settle({ type: "silent" }), takenMsMax);
      const waiting = this.waiters.get(name) ?? new Set();
      this.waiters.set(name, waiting);
      waiting.add(waiter);
    });
  }

  /** An update was answered. That a newer generation is there already says the same of the older ones. */
  note({ tenant, id, generation, predicate }: Update, done: CellDone): void {
    for (const waiter of [...(this.waiters.get(nameOf(tenant, id)) ?? [])]) {
      const { wanted } = waiter;
      if (wanted.generation > generation) continue;
      // A downgrade stays in its generation: an update that was under way before it says nothing about it.
      if (wanted.generation === generation && wanted.predicate !== predicate) continue;
      const isTaken = done.ok || done.code === "stale_generation";
      waiter.settle(isTaken ? { type: "taken" } : { type: "ended", code: done.code });
    }
  }

  /** Nobody will answer any more. */
  giveUp(): void {
    for (const waiting of [...this.waiters.values()]) {
      for (const waiter of [...waiting]) waiter.settle({ type: "silent" });
    }
  }
}

function nameOf(tenant: string, leaseId: string): string {
  return `${tenant}/${leaseId}`;
}
