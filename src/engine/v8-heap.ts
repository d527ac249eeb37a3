/**
 * The one owner of V8's heap settings. They hold for the whole process, so there is one instance in it.
 *
 * Growth: by default V8 lets a large heap grow past twice its live size before the next major GC: 1 GiB of garbage with a
 * million queued tasks. Above `largeBytes` growth is limited to 90 %, for an extra major GC now and then.
 *
 * Restore: while a million records are restored nothing becomes garbage, and each major GC on the way is wasted: they took
 * a restart a second of its own thread and more of the other core. So once a tenth of them is there, the heap may grow to
 * the expected size before the next one. Afterwards the setting is what growth asks for.
 *
 * Pretenuring: V8 allocates directly in the old generation at sites whose objects survived some GCs. Whatever waits for a
 * commit seems to be such an object and is not; in the old generation it stays, with all that it refers to, until the next
 * major GC. That was more than half of what was allocated for a task, and nearly a third of all threads' time (0013).
 */
import { getHeapStatistics, setFlagsFromString } from "node:v8";

const largeBytes = 384 * 2 ** 20;
const growthPercent = 90;
const checkMs = 1_000;
/** With fewer records a restore is over before the collector notices. */
const recordsMin = 100_000;
/** The share of the records that is there when room is made: so late that a factor of ten suffices. */
const shareFirst = 0.1;

export interface V8HeapOptions {
  readonly usedBytes?: () => number;
  readonly setFlag?: (flag: string) => void;
  readonly recordsMin?: number;
}

export class V8Heap {
  private readonly usedBytes: () => number;
  private readonly setFlag: (flag: string) => void;
  private readonly recordsMin: number;
  private isBound = false;
  private restorePercent: number | null = null;
  /** 0 is V8's own choice. */
  private percent = 0;

  constructor(options: V8HeapOptions = {}) {
    this.usedBytes = options.usedBytes ?? (() => getHeapStatistics().used_heap_size);
    this.setFlag = options.setFlag ?? setFlagsFromString;
    this.recordsMin = options.recordsMin ?? recordsMin;
  }

  /** Bounds growth while the heap is large, until the function that is returned is called. */
  watch(): () => void {
    const timer = setInterval(() => this.check(), checkMs);
    timer.unref();
    return () => {
      clearInterval(timer);
      this.isBound = false;
      this.update();
    };
  }

  check(): void {
    // Two thresholds, so that a heap of about this size does not go back and forth.
    this.isBound = this.usedBytes() > (this.isBound ? largeBytes / 2 : largeBytes);
    this.update();
  }

  /** Called now and then during a restore with how many of its records are there. */
  noteRestored(restored: number, records: number): void {
    if (this.restorePercent !== null || records < this.recordsMin || restored < records * shareFirst) return;
    // Only a factor can be set, not a size.
    this.restorePercent = Math.ceil((100 * records) / restored);
    this.update();
  }

  endRestore(): void {
    this.restorePercent = null;
    this.update();
  }

  /** From now on: what was compiled before stays as it is. */
  stopPretenuring(): void {
    this.setFlag("--no-allocation-site-pretenuring");
  }

  private update(): void {
    const percent = this.restorePercent ?? (this.isBound ? growthPercent : 0);
    if (percent === this.percent) return;
    this.percent = percent;
    this.setFlag(`--heap-growing-percent=${percent}`);
  }
}

export const v8Heap = new V8Heap();
