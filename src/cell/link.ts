/**
 * A cell's link to its control plane: one connection at a time, opened again whenever it breaks, with back-off and full
 * jitter. Meanwhile the cell goes on to enforce what it has (G11); the next hello compares what both believe.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { CellConnection, type ConnectionEnd, type ConnectionOptions, type Contact } from "./connection.ts";
import type { CellEvent } from "./core.ts";
import { EndedReports } from "./ended-reports.ts";

export interface LinkOptions extends Omit<ConnectionOptions, "reports" | "session" | keyof Contact> {
  /** Asked for each connection. */
  readonly contact: () => Promise<Contact>;
  /** Said once for each kind of trouble, until there is a connection again. */
  readonly onTrouble: (reason: string) => void;
}

export type LinkEnd =
  | { readonly type: "left" }
  /** The control plane wants nothing of this cell: another key is needed, or another process has taken its place. */
  | { readonly type: "refused"; readonly reason: string; readonly isReplaced: boolean };

const backOffMs = { base: 200, cap: 5_000 } as const;
/** A connection that lasted this long was a good one: the next begins without a pause. */
const goodMs = 5_000;
const notedMsMax = 5_000;

export class CellLink {
  private readonly options: LinkOptions;
  private readonly reports = new EndedReports();
  private readonly stop = new AbortController();
  private connection: CellConnection | null = null;
  /** How often a connection came to be. */
  private welcomes = 0;

  constructor(options: LinkOptions) {
    this.options = options;
  }

  /** For the core's `onEvent`. */
  tell(event: CellEvent): void {
    if (event.type === "ended") {
      const report = this.reports.add(event);
      this.connection?.tellEnded(report);
    }
    this.connection?.tellInventory();
  }

  async run(): Promise<LinkEnd> {
    const { core, onTrouble } = this.options;
    let attempt = 0;
    let said: string | null = null;
    while (!this.stop.signal.aborted) {
      await core.settled();
      const openedAt = performance.now();
      const welcomes = this.welcomes;
      const end = await this.connectOnce();
      if (this.stop.signal.aborted) break;
      const final = this.finalEnd(end);
      if (final !== null) return final;
      const wasGood = this.welcomes > welcomes;
      if (end.reason !== said || wasGood) onTrouble(end.reason);
      said = end.reason;
      attempt = wasGood && performance.now() - openedAt > goodMs ? 0 : attempt + 1;
      const pauseMs = Math.random() * Math.min(backOffMs.cap, backOffMs.base * 2 ** Math.min(attempt, 16));
      await sleep(pauseMs, undefined, { signal: this.stop.signal }).catch(() => {});
    }
    return { type: "left" };
  }

  /** Tears everything down, sees to it that the control plane knows, and says good-bye. */
  async leave(reason: string): Promise<void> {
    const { core } = this.options;
    const drained = core.drain();
    this.connection?.tellInventory();
    await drained;
    const late = sleep(notedMsMax, undefined, { ref: false });
    if (this.connection !== null) await Promise.race([this.reports.whenNoted(), this.connection.over, late]);
    this.stop.abort();
    await this.connection?.leave(reason);
  }

  /** Without a word, as if it were cut. */
  close(): void {
    this.stop.abort();
    this.connection?.abandon("it was closed");
  }

  private async connectOnce(): Promise<ConnectionEnd> {
    const { onWelcome, onTrouble: _onTrouble, contact, ...options } = this.options;
    let found: Contact;
    try {
      found = await contact();
    } catch (error) {
      return { reason: error instanceof Error ? error.message : String(error), refusal: "none" };
    }
    if (this.stop.signal.aborted) return { reason: "it was closed", refusal: "none" };
    const connection = new CellConnection({
      ...options,
      ...found,
      session: randomUUID(),
      reports: this.reports,
      onWelcome: (welcome) => {
        this.welcomes++;
        onWelcome(welcome);
      },
    });
    this.connection = connection;
    const end = await connection.over;
    this.connection = null;
    return end;
  }

  /** A key that was good before may be again; a place that another process has taken is lost. */
  private finalEnd({ reason, refusal }: ConnectionEnd): LinkEnd | null {
    if (refusal === "replaced") return { type: "refused", reason, isReplaced: true };
    if (refusal === "not_allowed" && this.welcomes === 0) return { type: "refused", reason, isReplaced: false };
    return null;
  }
}
