/** Commands that came while something was due; they are decided after it, in their order (L3). */
import type { Millis } from "../kernel/contract/records.ts";

/** What the queue needs of the engine. */
export interface QueueOwner {
  readonly isServing: boolean;
  now(): Millis;
  /** Settles a slice of what is due; true when nothing is due by then any more. */
  settleSlice(now: Millis): boolean;
  /** The batch is full and waits for the one before it, whose commit calls `run` again. */
  mustWaitForCommit(): boolean;
  /** Nothing is due and nothing is queued: until the next deadline there is nothing to do. */
  setDeadline(): void;
}

export class CommandQueue {
  /** How many are queued. A field, because every command reads it. */
  length = 0;
  private queue: ((now: Millis) => void)[] = [];
  private isSet = false;
  private readonly owner: QueueOwner;

  constructor(owner: QueueOwner) {
    this.owner = owner;
  }

  add(decide: (now: Millis) => void): void {
    this.length = this.queue.push(decide);
    this.resume();
  }

  run(): void {
    const { owner, queue } = this;
    this.queue = [];
    this.length = 0;
    for (const [index, decide] of queue.entries()) {
      const now = owner.now();
      if (owner.isServing && !owner.settleSlice(now)) {
        this.queue = [...queue.slice(index), ...this.queue];
        this.length = this.queue.length;
        return this.resume();
      }
      decide(now);
    }
    if (!owner.isServing) return;
    if (owner.settleSlice(owner.now())) owner.setDeadline();
    else this.resume();
  }

  /** In the next turn of the loop. */
  private resume(): void {
    if (this.isSet || this.owner.mustWaitForCommit()) return;
    this.isSet = true;
    setImmediate(() => {
      this.isSet = false;
      this.run();
    });
  }
}
