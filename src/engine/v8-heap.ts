/**
 * The one owner of V8's heap settings. They hold for the whole process, so there is one instance in it.
 *
 * Growth: by default V8 lets a large heap grow past twice its live size before the next major GC: 1 GiB of garbage with a
 * million queued tasks. Above `largeBytes` growth is limited to 90 %, for an extra major GC now and then.
 *
 * Limit: what V8 cannot allocate ends the process, and every acknowledged record is loaded again at the next start. So above
 * `tightShare` of the limit garbage is collected early, and above `fullShare` what adds records is refused (S4).
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
/** While the heap is tight: a tenant can fill some percent of it in a second. */
const tightCheckMs = 50;
const youngBytesMax = 96 * 2 ** 20;
const tightShare = 0.6;
const tightGrowthPercent = 20;
const fullShare = 0.85;
/** A state is left a little below where it is entered, so that it does not go back and forth. */
const leaveShare = 0.05;
/** With fewer records a restore is over before the collector notices. */
const recordsMin = 100_000;
/** The share of the records that is there when room is made: so late that a factor of ten suffices. */
const shareFirst = 0.1;

/** V8's limit is that of all spaces; the process ends where the old one is full, so the young ones do not count. */
function oldSpaceBytes(): number {
  const { heap_size_limit: all } = getHeapStatistics();
  return Math.max(all - youngBytesMax, all / 2);
}

export interface V8HeapOptions {
  readonly usedBytes?: () => number;
  readonly limitBytes?: number;
  readonly setFlag?: (flag: string) => void;
  readonly recordsMin?: number;
}

export class V8Heap {
  private readonly usedBytes: () => number;
  private readonly setFlag: (flag: string) => void;
  private readonly recordsMin: number;
  private readonly limitBytes: number;
  private isBound = false;
  private isTight = false;
  /** So much of the heap is used that nothing may be added (S4). A field, because every command reads it. */
  isFull = false;
  private restorePercent: number | null = null;
  /** 0 is V8's own choice. */
  private percent = 0;

  constructor(options: V8HeapOptions = {}) {
    this.usedBytes = options.usedBytes ?? (() => getHeapStatistics().used_heap_size);
    this.limitBytes = options.limitBytes ?? oldSpaceBytes();
    this.setFlag = options.setFlag ?? setFlagsFromString;
    this.recordsMin = options.recordsMin ?? recordsMin;
  }

  /** Bounds growth while the heap is large, until the function that is returned is called. */
  watch(): () => void {
    let timer: NodeJS.Timeout;
    const watch = (): void => {
      this.check();
      timer = setTimeout(watch, this.isTight ? tightCheckMs : checkMs);
      timer.unref();
    };
    watch();
    return () => {
      clearTimeout(timer);
      this.isBound = false;
      this.isTight = false;
      this.isFull = false;
      this.update();
    };
  }

  check(): void {
    // Two thresholds, so that a heap of about this size does not go back and forth.
    const used = this.usedBytes();
    const share = used / this.limitBytes;
    this.isBound = used > (this.isBound ? largeBytes / 2 : largeBytes);
    this.isTight = share > (this.isTight ? tightShare - leaveShare : tightShare);
    this.isFull = share > (this.isFull ? fullShare - leaveShare : fullShare);
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
    const percent = this.restorePercent ?? (this.isTight ? tightGrowthPercent : this.isBound ? growthPercent : 0);
    if (percent === this.percent) return;
    this.percent = percent;
    this.setFlag(`--heap-growing-percent=${percent}`);
  }
}

export const v8Heap = new V8Heap();
