/**
 * The collector looks through the whole heap each time that it has grown by some part of itself. While a million
 * records are restored that is work for nothing, since none of them goes: it took the restart a second of its own
 * thread and four of the collector's. So for as long as that lasts the heap may grow to what will be needed at once.
 */
import { getHeapStatistics, setFlagsFromString } from "node:v8";

/** What a restored record takes in memory, with all that leads to it. */
const bytesPerRecord = 1_000;
/** Fewer are restored before the collector notices. */
const recordsMin = 100_000;

/** Calling the result makes the collector its usual self again. */
export function makeRoom(records: number): () => void {
  if (records < recordsMin) return () => undefined;
  const { used_heap_size: used } = getHeapStatistics();
  // Of the heap after the next look through it, which is soon and finds little more than there is now.
  const percent = Math.ceil((100 * records * bytesPerRecord) / used);
  setFlagsFromString(`--heap-growing-percent=${percent}`);
  return () => setFlagsFromString("--heap-growing-percent=0");
}
