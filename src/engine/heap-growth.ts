/**
 * How far the heap may grow before the collector looks through it again. The collector's own measure is about twice
 * what is alive: with a million queued tasks that is a gigabyte of nothing. A large heap may grow by half only, which
 * costs a look more now and then; a small one is left alone, where looks are cheap to spare and would be many.
 */
import { getHeapStatistics, setFlagsFromString } from "node:v8";

const largeBytes = 384 * 2 ** 20;
const growthPercent = 50;
const lookMs = 1_000;

export interface HeapGrowth {
  look(): void;
  close(): void;
}

export function boundHeapGrowth(
  usedBytes: () => number = () => getHeapStatistics().used_heap_size,
  setFlag: (flag: string) => void = setFlagsFromString,
): HeapGrowth {
  let isBound = false;
  const bind = (bound: boolean): void => {
    if (bound === isBound) return;
    isBound = bound;
    setFlag(`--heap-growing-percent=${bound ? growthPercent : 0}`);
  };
  // Apart, so that a heap about this size does not go back and forth.
  const look = (): void => bind(usedBytes() > (isBound ? largeBytes / 2 : largeBytes));
  const timer = setInterval(look, lookMs);
  timer.unref();
  return {
    look,
    close() {
      clearInterval(timer);
      bind(false);
    },
  };
}
