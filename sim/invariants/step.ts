/** What one step did, as the invariants are shown it. */
import type { Command } from "../../src/kernel/contract/commands.ts";
import type { KernelEvent } from "../../src/kernel/contract/events.ts";
import type { Reply } from "../../src/kernel/contract/replies.ts";
import type { EndedTask, Receipt } from "../../src/kernel/contract/task-records.ts";
import type { State } from "../../src/kernel/kernel.ts";
import type { Change, RecordStore } from "../record-store.ts";

export interface Step {
  readonly now: number;
  readonly store: RecordStore;
  readonly command: Command | null;
  readonly reply: Reply | null;
  readonly events: readonly KernelEvent[];
  readonly changes: readonly Change[];
  /** What the step added to the ledger, in order. */
  readonly receipts: readonly Receipt[];
  /** Tasks that left for history, as they left. */
  readonly ended: readonly EndedTask[];
  /** For what no record tells: where a queued task stands. */
  readonly state: State;
  /** False after a slice of settling that left something due: then what is late may still be there. */
  readonly settled: boolean;
}

/** A broken invariant; whoever runs the seed prints how to repeat it. */
export class Violation extends Error {
  override readonly name = "Violation";
}

export function violated(rule: string, sentence: string, ...evidence: readonly unknown[]): never {
  throw new Violation([`${rule}: ${sentence}`, ...evidence.map((one) => JSON.stringify(one))].join("\n    "));
}
