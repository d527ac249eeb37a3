/**
 * What the cell has ended of its own accord, kept until the control plane has noted it: over breaks of the connection,
 * and where an answer is late. A repeated report does no harm.
 */
import { type CellEnded, linkReason } from "../protocol/resources/cell-link.ts";
import type { CellEvent } from "./core.ts";

export type EndedReport = Omit<CellEnded, "seq">;

export class EndedReports {
  private readonly open = new Set<EndedReport>();
  private readonly waiting: (() => void)[] = [];

  add({ lease, code, failure }: Extract<CellEvent, { type: "ended" }>): EndedReport {
    const report: EndedReport = {
      type: "ended",
      lease_id: lease.id,
      generation: lease.generation,
      code,
      failure: failure === null ? null : linkReason(failure),
    };
    this.open.add(report);
    return report;
  }

  all(): readonly EndedReport[] {
    return [...this.open];
  }

  noted(report: EndedReport): void {
    this.open.delete(report);
    if (this.open.size === 0) for (const resolve of this.waiting.splice(0)) resolve();
  }

  /** Resolves when the control plane knows of every end. */
  whenNoted(): Promise<void> {
    if (this.open.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.waiting.push(resolve));
  }
}
