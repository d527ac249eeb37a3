/**
 * A batch as flat lists for prepared statements. Measured: by structured clone, flat lists take half the main thread's
 * time of lists of objects, about that of one packed text, and half that of one packed buffer.
 */
import assert from "node:assert/strict";
import type { SQLInputValue } from "node:sqlite";
import type { Batch, Millis, PackedEvents } from "./store.ts";

export interface FlatBatch {
  readonly position: Position;
  /** n, kind, body. */
  readonly puts: readonly SQLInputValue[];
  readonly removes: readonly number[];
  readonly events: PackedEvents | null;
  /** key, at, then the columns of rows.ts, as in those below. */
  readonly ended: readonly SQLInputValue[];
  /** at first. */
  readonly endedTasks: readonly SQLInputValue[];
  readonly receipts: readonly SQLInputValue[];
  readonly heads: readonly SQLInputValue[];
}

/** `lastEnded` is the key of the last ended lease before the batch, `position` the one after it. */
export function flatten(batch: Batch, lastEnded: number, position: Position): FlatBatch {
  const { now, removes, events } = batch;
  const puts: SQLInputValue[] = [];
  for (const { n, kind, body } of batch.puts) puts.push(n, kind, body);
  const ended: SQLInputValue[] = [];
  let key = lastEnded;
  for (const { tenant, id, agentId, resource, predicate, writes, endedAt, body } of batch.ended) {
    key += 1;
    ended.push(key, now, tenant, id, agentId, resource, predicate, writes ? 1 : 0, endedAt, body);
  }
  // Without keys: SQLite assigns the next, since only the oldest are ever deleted.
  const endedTasks: SQLInputValue[] = [];
  for (const { tenant, id, taskType, status, endedAt, body } of batch.endedTasks) {
    endedTasks.push(now, tenant, id, taskType, status, endedAt, body);
  }
  const receipts: SQLInputValue[] = [];
  for (const receipt of batch.receipts) {
    const { tenant, sequence, id, taskId, phase, recipientAi, sourceSystem, dedupe, storedAt, hash, body } = receipt;
    receipts.push(tenant, sequence, id, taskId, phase, recipientAi, sourceSystem, dedupe, storedAt, hash, body);
  }
  const heads: SQLInputValue[] = [];
  for (const { tenant, sequence, hash, at, keyId, signature } of batch.heads) {
    heads.push(tenant, sequence, hash, at, keyId, signature);
  }
  return { position, puts, removes, events, ended, endedTasks, receipts, heads };
}

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
