/** Virtual time: it advances only when every request in flight is answered, and then to the next timer. */
import type { Timer, TimeSources } from "../../src/engine/clock.ts";
import { createHeap, firstOf, type Ranked, rankIn, removeFrom } from "../../src/kernel/index/heap.ts";
import { beginning } from "../world.ts";

interface Planned extends Ranked {
  readonly run: () => void;
}

export class VirtualTime {
  private readonly planned = createHeap<Planned>();
  private order = 0;
  private present = beginning;

  get now(): number {
    return this.present;
  }

  /** The engine's clocks; the monotonic one continues across restarts. */
  readonly sources: TimeSources = {
    wall: () => this.present,
    monotonic: () => this.present,
    setTimeout: (run, ms) => {
      const item = this.in(ms, run);
      const timer = { unref: () => timer, [Symbol.dispose]: () => this.cancel(item) };
      return timer as Timer;
    },
  };

  in(ms: number, run: () => void): Planned {
    const item: Planned = { rank: 0, tie: 0, tenantId: "", kind: "planned", slot: -1, run };
    rankIn(this.planned, item, this.present + Math.max(0, Math.floor(ms)), this.order++);
    return item;
  }

  private cancel(item: Planned): void {
    if (item.slot !== -1) removeFrom(this.planned, item);
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.in(ms, resolve));
  }

  /** Runs all timers of the next instant. False: there are none. */
  step(): boolean {
    const first = firstOf(this.planned);
    if (first === undefined) return false;
    this.present = Math.max(this.present, first.rank);
    for (let next: Planned | undefined = first; next !== undefined && next.rank <= this.present; ) {
      removeFrom(this.planned, next);
      next.run();
      next = firstOf(this.planned);
    }
    return true;
  }
}
