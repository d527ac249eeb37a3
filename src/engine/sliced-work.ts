/** What the kernel does slice by slice (L14), with other commands in between; callers are answered when it is done. */
import type { Millis } from "../kernel/contract/records.ts";
import { advance, answerLater, type Job, type PendingReply, type State, type Step } from "../kernel/kernel.ts";
import type { SealedReceipt } from "../ledger/seal.ts";
import type { Decision, Outlet } from "./engine-types.ts";

/** Records that are ended before others get their turn. */
const sliceRecords = 125;

/** A caller whose command is decided and not done. */
export interface Pending {
  readonly reply: PendingReply;
  readonly receipts: readonly SealedReceipt[];
  readonly outlet: Outlet<never>;
}

/** What is needed of the engine. */
export interface WorkOwner {
  readonly isServing: boolean;
  now(): Millis;
  settleSlice(now: Millis): boolean;
  mustWaitForCommit(): boolean;
  /** Runs a step of the kernel, and takes what it changed; null: it threw, and memory was dropped (S2). */
  step<T extends Step>(what: string, now: Millis, run: (state: State) => T): T | null;
  answer(decided: Decision, outlet: Outlet<never>): void;
}

export class SlicedWork {
  private pending: Pending[] = [];
  private isSet = false;
  private readonly owner: WorkOwner;

  constructor(owner: WorkOwner) {
    this.owner = owner;
  }

  add(pending: Pending): void {
    this.pending.push(pending);
  }

  /** In the next turn of the loop. A full batch waits for the one before it, whose commit calls again. */
  resume(): void {
    if (this.isSet || this.owner.mustWaitForCommit()) return;
    this.isSet = true;
    setImmediate(() => {
      this.isSet = false;
      const now = this.owner.now();
      if (this.owner.isServing && this.owner.settleSlice(now)) this.run(now);
      else if (this.owner.isServing) this.resume();
    });
  }

  /** A slice, and the answers of those whose work is done with it. */
  run(now: Millis): void {
    const advanced = this.owner.step("ending many records", now, (state) => advance(state, now, sliceRecords));
    if (advanced !== null && advanced.done !== null) this.answer(advanced.done, now);
  }

  private answer(job: Job, now: Millis): void {
    const done = this.pending.filter(({ reply }) => reply.job === job);
    this.pending = this.pending.filter(({ reply }) => reply.job !== job);
    for (const one of done) {
      const begun = this.owner.step("answering after many ends", now, (state) => answerLater(state, one.reply, now));
      // Memory was dropped; those that are left get the same answer as everybody.
      if (begun === null) this.pending.push(one);
      else if (begun.reply.type === "later") this.pending.push({ ...one, reply: begun.reply });
      else this.owner.answer({ reply: begun.reply, now, receipts: one.receipts }, one.outlet);
    }
  }

  /** Everybody who still waits, when memory is dropped. */
  drop(): readonly Pending[] {
    const { pending } = this;
    this.pending = [];
    return pending;
  }
}
