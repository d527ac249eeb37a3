/** A batch as flat lists, for the journal and for prepared statements; and the position that every commit moves. */
import assert from "node:assert/strict";
import type { SQLInputValue } from "node:sqlite";
import type { Batch, Millis } from "./store.ts";

export interface FlatBatch {
  readonly position: Position;
  /** n, kind, body. */
  readonly puts: readonly SQLInputValue[];
  readonly removes: readonly number[];
  /** n, body. */
  readonly payloads: readonly SQLInputValue[];
  readonly payloadRemoves: readonly number[];
  /** First number, count, time of the commit, body; empty: none. */
  readonly events: readonly SQLInputValue[];
  /** key, at, then the columns of rows.ts, as in those below. */
  readonly ended: readonly SQLInputValue[];
  /** at first. */
  readonly endedTasks: readonly SQLInputValue[];
  readonly endedRequests: readonly SQLInputValue[];
  readonly receipts: readonly SQLInputValue[];
  readonly heads: readonly SQLInputValue[];
  readonly audits: readonly SQLInputValue[];
}

/** `lastEnded` is the key of the last ended lease before the batch, `position` the one after it. */
export function flatten(batch: Batch, lastEnded: number, position: Position): FlatBatch {
  const { now, removes, payloadRemoves } = batch;
  const events = batch.events === null ? [] : [batch.events.firstSeq, batch.events.count, now, batch.events.body];
  const puts: SQLInputValue[] = [];
  for (const { n, kind, body } of batch.puts) puts.push(n, kind, body);
  const payloads: SQLInputValue[] = [];
  for (const { n, body } of batch.payloads) payloads.push(n, body);
  const ended: SQLInputValue[] = [];
  let key = lastEnded;
  for (const { tenant, id, agentId, resource, predicate, writes, endedAt, body } of batch.ended) {
    key += 1;
    ended.push(key, now, tenant, id, agentId, resource, predicate, writes ? 1 : 0, endedAt, body);
  }
  // Without keys: SQLite assigns the next, since only the oldest are ever deleted.
  const endedTasks: SQLInputValue[] = [];
  for (const { tenant, id, taskType, status, endedAt, idempotencyKey, payload, body } of batch.endedTasks) {
    endedTasks.push(now, tenant, id, taskType, status, endedAt, idempotencyKey, payload, body);
  }
  const endedRequests: SQLInputValue[] = [];
  for (const { tenant, agentId, key, fingerprint, leaseId, endedAs, endReason } of batch.endedRequests) {
    endedRequests.push(now, tenant, agentId, key, fingerprint, leaseId, endedAs, endReason);
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
  const audits: SQLInputValue[] = [];
  for (const { tenant, sequence, at, actor, action, hash, body } of batch.audits) {
    audits.push(tenant, sequence, at, actor, action, hash, body);
  }
  return {
    position,
    puts,
    removes,
    payloads,
    payloadRemoves,
    events,
    ended,
    endedTasks,
    endedRequests,
    receipts,
    heads,
    audits,
  };
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
  for (const { n } of batch.payloads) if (n > lastN) lastN = n;
  if (events !== null) {
    const { firstSeq, count } = events;
    if (!(firstSeq > lastSeq && count > 0)) assert.fail(`${count} events from ${firstSeq} do not follow ${lastSeq}`);
    lastSeq = firstSeq + count - 1;
  }
  if (batch.lastSeq !== undefined) {
    if (!(Number.isSafeInteger(batch.lastSeq) && batch.lastSeq >= lastSeq))
      assert.fail(`event ${batch.lastSeq} is before ${lastSeq}`);
    lastSeq = batch.lastSeq;
  }
  return { now, lastSeq, lastN, lastEnded: position.lastEnded + batch.ended.length };
}
