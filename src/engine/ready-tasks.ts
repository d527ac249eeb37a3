import type { ReadyTask } from "../kernel/kernel.ts";
import { Listeners } from "./listeners.ts";

export type ReadyListener = (ready: readonly ReadyTask[]) => void;

/** Gathers the tasks that can be offered until somebody is told, and tells nobody from within telling. */
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

  /** What becomes ready through what listeners do is for the next time. */
  announce(): void {
    if (this.isAnnouncing || this.gathered.length === 0) return;
    const ready = this.gathered;
    this.gathered = [];
    this.isAnnouncing = true;
    try {
      this.listeners.tell(ready);
    } finally {
      this.isAnnouncing = false;
    }
  }

  clear(): void {
    this.gathered = [];
  }
}
