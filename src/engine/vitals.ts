/** What an operator watches of the engine: how long commits take, how large they are, how late ends are settled. */
import type { Batch } from "../store/store.ts";

export interface CommitNote {
  readonly ms: number;
  readonly answered: number;
  readonly rows: number;
}

export interface Vitals {
  noteCommit(ms: number, answered: number, batch: Batch): void;
  noteLateness(ms: number): void;
  onCommit: ((note: CommitNote) => void) | null;
  onLateness: ((ms: number) => void) | null;
}

export function createVitals(): Vitals {
  return {
    onCommit: null,
    onLateness: null,
    noteCommit(ms, answered, { puts, removes, ended, endedTasks, receipts, heads }) {
      const added = ended.length + endedTasks.length + receipts.length + heads.length;
      this.onCommit?.({ ms, answered, rows: puts.length + removes.length + added });
    },
    noteLateness(ms) {
      this.onLateness?.(ms);
    },
  };
}
