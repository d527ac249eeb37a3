import type { ReadyTask } from "../kernel/kernel.ts";
import type { ReadyListener } from "./engine-types.ts";

/** Callbacks for one kind of event, called in the order in which they were added. */
export class Listeners<Args extends readonly unknown[] = []> {
  private readonly all = new Set<(...args: Args) => void>();

  get size(): number {
    return this.all.size;
  }

  /** Returns how to stop listening. */
  add(listener: (...args: Args) => void): () => void {
    this.all.add(listener);
    return () => this.all.delete(listener);
  }

  call(...args: Args): void {
    for (const listener of this.all) listener(...args);
  }
}

/** Collects tasks that became ready and announces them once per flush; not re-entrant. */
export class ReadyTasks {
  private readonly listeners = new Listeners<Parameters<ReadyListener>>();
  private gathered: ReadyTask[] = [];
  isAnnouncing = false;

  listen(listener: ReadyListener): () => void {
    return this.listeners.add(listener);
  }

  add(ready: readonly ReadyTask[]): void {
    if (this.listeners.size > 0) for (const task of ready) this.gathered.push(task);
  }

  /** What becomes ready while listeners run is announced with the next flush. */
  announce(): void {
    if (this.isAnnouncing || this.gathered.length === 0) return;
    const ready = this.gathered;
    this.gathered = [];
    this.isAnnouncing = true;
    try {
      this.listeners.call(ready);
    } finally {
      this.isAnnouncing = false;
    }
  }

  clear(): void {
    this.gathered = [];
  }
}
