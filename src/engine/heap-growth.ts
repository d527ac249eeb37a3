/**
 * How far the heap may grow before the collector looks through it again. By its own measure the collector lets a large
 * one grow to more than twice what is alive: with a million queued tasks that is a gigabyte of nothing. So a large heap
 * may not quite double, which costs a look more now and then; a small one is left alone, where looks would be many.
 */
import { getHeapStatistics, setFlagsFromString } from "node:v8";

const largeBytes = 384 * 2 ** 20;
const growthPercent = 90;
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
