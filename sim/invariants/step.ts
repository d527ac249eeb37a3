/** What one step did, as the invariants see it. */
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
  /** Tasks that ended in this step, in their final form. */
  readonly ended: readonly EndedTask[];
  /** The kernel's state, for what no record has: the queue that a task is in. */
  readonly state: State;
  /** False after a partial settle: then overdue records may still exist. */
  readonly settled: boolean;
}

/** A broken invariant; the runner prints how to repeat the seed. */
export class Violation extends Error {
  override readonly name = "Violation";
}

export function violated(rule: string, sentence: string, ...evidence: readonly unknown[]): never {
  throw new Violation([`${rule}: ${sentence}`, ...evidence.map((one) => JSON.stringify(one))].join("\n    "));
}
