/** Reads the clocks for all tasks of a worker, with one timer (A7). */
export interface Watched {
  /** How often its clocks are read, at least. */
  readonly everyMs: number;
  check(): void;
}

export class TaskWatch {
  private readonly watched = new Set<Watched>();
  private timer: ReturnType<typeof setInterval> | undefined;
  private everyMs = Number.POSITIVE_INFINITY;

  add(one: Watched): void {
    this.watched.add(one);
    if (one.everyMs >= this.everyMs) return;
    clearInterval(this.timer);
    this.everyMs = one.everyMs;
    this.timer = setInterval(() => this.tick(), one.everyMs);
  }

  delete(one: Watched): void {
    this.watched.delete(one);
  }

  private tick(): void {
    for (const one of [...this.watched]) one.check();
    // It stops a tick after the last task, not with each: tasks are often short, and many.
    if (this.watched.size > 0) return;
    clearInterval(this.timer);
    this.everyMs = Number.POSITIVE_INFINITY;
  }
}
