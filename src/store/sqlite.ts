/**
 * The store on SQLite: one thread that writes, one that answers about history. This is their near end; it keeps the
 * order, numbers the ended leases, and refuses everything once the writer has failed.
 */
import { dirname, resolve } from "node:path";
import type { SQLInputValue } from "node:sqlite";
import { StoreFault, storeClosed } from "./faults.ts";
import { unpack } from "./list-columns.ts";
import type { CallName, QueryName, Reply, Send } from "./sqlite-calls.ts";
import { SqliteThread } from "./sqlite-thread.ts";
import {
  type Batch,
  type Leader,
  type LedgerHead,
  type Loading,
  type Millis,
  type Opened,
  type PackedEvents,
  type Pruned,
  type PruneLimits,
  type Store,
  soleLeader,
} from "./store.ts";

export function createSqliteStore(folder: string): Store {
  return new SqliteStore(resolve(folder));
}

class SqliteStore implements Store {
  readonly #folder: string;
  #writer: SqliteThread | null = null;
  /** Started by the first query, because many stores are never queried; and again if it has died. */
  #reader: SqliteThread | null = null;
  #compacting: Promise<void> | null = null;
  #epoch = 0;
  #position: Position = { now: 0, lastSeq: 0, lastN: 0, lastEnded: 0 };
  /** Why it refuses: not yet opened, closed, or failed. */
  #refusal: StoreFault | null = storeClosed();

  constructor(folder: string) {
    this.#folder = folder;
  }

  async open(): Promise<Opened> {
    if (this.#refusal === null) throw new StoreFault("the store is open already");
    await this.#stopThreads();
    this.#writer = new SqliteThread({ role: "writer", folder: this.#folder });
    try {
      const { lastEnded, ...opened } = await this.#writer.call("open");
      this.#epoch = opened.epoch;
      this.#position = { now: opened.now, lastSeq: opened.lastSeq, lastN: opened.lastN, lastEnded };
      this.#refusal = null;
      return { ...opened, passedMs: null, lease: null };
    } catch (error) {
      await this.#stopThreads();
      throw error;
    }
  }

  /** Of this process only: a data folder does not say who has locked it. */
  async watch(): Promise<Leader | null> {
    return this.#refusal === null ? soleLeader(this.#epoch) : null;
  }

  async renew(): Promise<null> {
    if (this.#refusal !== null) throw this.#refusal;
    return null;
  }

  resign(): Promise<void> {
    return this.close();
  }

  async load({ onRows, lists, onLists }: Loading): Promise<void> {
    await this.#loadAll(
      (after) => this.#write("load", after, lists.kind),
      ({ n, kind, body }) =>
        onRows(n.map((key, index) => ({ n: key, kind: kind[index] ?? "", body: body[index] ?? "" }))),
    );
    await this.#loadAll(
      (after) => this.#write("loadLists", after, lists),
      (packed) => onLists(unpack(packed)),
    );
  }

  async #loadAll<T extends { readonly n: readonly number[] }>(
    ask: (after: number) => Promise<T>,
    take: (chunk: T) => void,
  ): Promise<void> {
    let next = ask(0);
    for (;;) {
      const chunk = await next;
      const last = chunk.n.at(-1);
      if (last === undefined) return;
      // Requested before this one is passed on, so that both threads have work.
      next = ask(last);
      next.catch(() => undefined); // If `take` throws, nobody awaits it.
      take(chunk);
    }
  }

  /** By the writer, which is open already: a thread for one query would make every start slower. */
  ledgerHeads(): Promise<readonly LedgerHead[]> {
    return this.#write("ledgerHeads");
  }

  /** Nothing is awaited here: an async function keeps its arguments in memory, here a whole batch (decision 0013). */
  async commit(batch: Batch): Promise<void> {
    if (this.#refusal !== null) throw this.#refusal;
    const { lastEnded } = this.#position;
    this.#position = positionAfter(this.#position, batch);
    return this.#write("commit", flatten(batch, lastEnded, this.#position));
  }

  async prune(limits: PruneLimits): Promise<Pruned> {
    const cuts = await this.#read("findCuts", limits);
    let sum: Pruned = { events: 0, ended: 0, endedTasks: 0 };
    let from = 0;
    for (;;) {
      // Few tenants at a time, because each costs a search in every slice.
      const tenants = cuts.tenants.slice(from, from + tenantsPerSlice);
      const { more, ...gone } = await this.#write("prune", limits, { ...cuts, tenants });
      sum = {
        events: sum.events + gone.events,
        ended: sum.ended + gone.ended,
        endedTasks: sum.endedTasks + gone.endedTasks,
      };
      if (!more) from += tenantsPerSlice;
      if (!more && from >= cuts.tenants.length) return sum;
    }
  }

  compact(): Promise<void> {
    this.#compacting ??= this.#compact().finally(() => {
      this.#compacting = null;
    });
    return this.#compacting;
  }

  async #compact(): Promise<void> {
    for (;;) {
      const began = performance.now();
      const block = await this.#read("packEvents");
      if (block === null) break;
      await this.#write("storeBlock", block);
      await rest(began);
    }
    for (let pages = 1; pages > 0; ) {
      const began = performance.now();
      pages = await this.#write("giveBack");
      await rest(began);
    }
  }

  async backup(toFile: string): Promise<void> {
    if (this.#refusal !== null) throw this.#refusal;
    const target = resolve(toFile);
    if (dirname(target) === this.#folder) throw new StoreFault("a backup must not be written into the data folder");
    const copier = new SqliteThread({ role: "copier", folder: this.#folder });
    try {
      await copier.call("backup", target);
    } finally {
      await copier.stop();
    }
  }

  async close(): Promise<void> {
    const wasOpen = this.#refusal === null;
    this.#refusal = storeClosed();
    try {
      if (!wasOpen) return;
      // The writer last: only the last connection copies the log into the database.
      await this.#reader?.call("close").catch(() => undefined);
      await this.#writer?.call("close");
    } finally {
      await this.#stopThreads();
    }
  }

  readonly endedLease = this.#query("endedLease");
  readonly endedGrant = this.#query("endedGrant");
  readonly endedRequests = this.#query("endedRequests");
  readonly endedPage = this.#query("endedPage");
  readonly youngestEnded = this.#query("youngestEnded");
  readonly earliestEnded = this.#query("earliestEnded");
  readonly eventsAfter = this.#query("eventsAfter");
  readonly earliestSeq = this.#query("earliestSeq");
  readonly endedTasks = this.#query("endedTasks");
  readonly endedTasksByKey = this.#query("endedTasksByKey");
  readonly endedTaskPage = this.#query("endedTaskPage");
  readonly payloads = this.#query("payloads");
  readonly receiptsById = this.#query("receiptsById");
  readonly receiptsByDedupe = this.#query("receiptsByDedupe");
  readonly receiptsPage = this.#query("receiptsPage");
  readonly receiptsAfter = this.#query("receiptsAfter");
  readonly signedHeads = this.#query("signedHeads");
  readonly auditPage = this.#query("auditPage");
  readonly auditHeads = this.#query("auditHeads");

  #query<Name extends QueryName>(name: Name): (...send: Send<Name>) => Promise<Reply<Name>> {
    return (...send) => this.#read(name, ...send);
  }

  /** Nothing is awaited here either, because commits pass through it. */
  #write<Name extends CallName>(name: Name, ...send: Send<Name>): Promise<Reply<Name>> {
    if (this.#refusal !== null || this.#writer === null) return Promise.reject(this.#refusal ?? storeClosed());
    return this.#writer.call(name, ...send).catch(this.#fail);
  }

  /** After any failure the writer cannot be trusted: it rolls back, closes the data and refuses all later calls (S2). */
  readonly #fail = (error: unknown): never => {
    if (error instanceof StoreFault) this.#refusal ??= error;
    throw error;
  };

  /** A failed query changed nothing, so the store stays usable. */
  async #read<Name extends CallName>(name: Name, ...send: Send<Name>): Promise<Reply<Name>> {
    if (this.#refusal !== null) throw this.#refusal;
    if (this.#reader === null || this.#reader.isOver) {
      this.#reader = new SqliteThread({ role: "reader", folder: this.#folder });
    }
    return await this.#reader.call(name, ...send);
  }

  async #stopThreads(): Promise<void> {
    const threads = [this.#reader, this.#writer];
    [this.#reader, this.#writer] = [null, null];
    await Promise.all(threads.map((thread) => thread?.stop()));
  }
}

/** Tenants whose history is cut in one slice. */
const tenantsPerSlice = 50;

/** Compaction takes a fifth of the threads' time at most, so that commits hardly notice it. */
function rest(began: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 4 * (performance.now() - began)));
}

/**
 * A batch as flat lists for prepared statements. Measured: by structured clone, flat lists take half the main thread's
 * time of lists of objects, about that of one packed text, and half that of one packed buffer.
 */
import assert from "node:assert/strict";

export interface FlatBatch {
  readonly position: Position;
  /** n, kind, body. */
  readonly puts: readonly SQLInputValue[];
  readonly removes: readonly number[];
  /** n, body. */
  readonly payloads: readonly SQLInputValue[];
  readonly payloadRemoves: readonly number[];
  readonly events: PackedEvents | null;
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
  const { now, removes, payloadRemoves, events } = batch;
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
