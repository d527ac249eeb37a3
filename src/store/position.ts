import assert from "node:assert/strict";
import type { Batch, Millis } from "./store.ts";

/** The position of a store. Every commit moves it forward, and none may move it back. */
export interface Position {
  readonly now: Millis;
  readonly lastSeq: number;
  readonly lastN: number;
  /** The key of the last ended lease; they are numbered by the store, in the order of their commits. */
  readonly lastEnded: number;
}

/** The position after a batch. A batch that does not follow is a bug in the engine; retrying cannot help. */
export function positionAfter(position: Position, batch: Batch): Position {
  const { now, events } = batch;
  if (!(Number.isSafeInteger(now) && now >= position.now)) assert.fail(`time ${now} is before ${position.now} (L7)`);
  let { lastN, lastSeq } = position;
  for (const { n } of batch.puts) {
    if (!(Number.isSafeInteger(n) && n > 0)) assert.fail(`${n} cannot be the key of a row`);
    if (n > lastN) lastN = n;
  }
  if (events !== null) {
    const { firstSeq, count } = events;
    if (!(firstSeq > lastSeq && count > 0)) assert.fail(`${count} events from ${firstSeq} do not follow ${lastSeq}`);
    lastSeq = firstSeq + count - 1;
  }
  return { now, lastSeq, lastN, lastEnded: position.lastEnded + batch.ended.length };
}
