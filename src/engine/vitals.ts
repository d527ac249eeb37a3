/** What an operator watches of the engine: how long commits take, how large they are, how late ends are settled. */
import type { Batch } from "../store/store.ts";

export interface CommitNote {
  readonly ms: number;
  readonly answered: number;
  readonly rows: number;
}

export interface Vitals {
  noteCommit(note: CommitNote): void;
  noteLateness(ms: number): void;
  onCommit: ((note: CommitNote) => void) | null;
  onLateness: ((ms: number) => void) | null;
}

export function rowsIn({ puts, removes, ended, endedTasks, receipts, heads }: Batch): number {
  return puts.length + removes.length + ended.length + endedTasks.length + receipts.length + heads.length;
}

export function createVitals(): Vitals {
  return {
    onCommit: null,
    onLateness: null,
    noteCommit(note) {
      this.onCommit?.(note);
    },
    noteLateness(ms) {
      this.onLateness?.(ms);
    },
  };
}
