/**
 * The collector looks through the whole heap each time that it has grown by some factor. While a million records are
 * restored that is work for nothing, since none of them goes: it took the restart a second of its own thread and more
 * of the other core. So once it is clear how much there will be, the heap may grow to that before the next look.
 */
import { setFlagsFromString } from "node:v8";

/** Fewer are restored before the collector notices. */
const recordsMin = 100_000;
/** How much of them is there when room is made: the heap will then grow by no more than ten times what it is. */
const shareFirst = 0.1;

export interface HeapRoom {
  /** Called now and then with how many records are restored by now. */
  note(restored: number): void;
  /** Makes the collector its usual self again. */
  close(): void;
}

export function heapRoomFor(records: number, setFlag: (flag: string) => void = setFlagsFromString): HeapRoom {
  let isMade = false;
  return {
    note(restored) {
      if (isMade || records < recordsMin || restored < records * shareFirst) return;
      isMade = true;
      // Only a factor can be set, and only for every thread of the process: so late that it need not be a large one.
      setFlag(`--heap-growing-percent=${Math.ceil((100 * records) / restored)}`);
    },
    close() {
      if (isMade) setFlag("--heap-growing-percent=0");
      isMade = false;
    },
  };
}
