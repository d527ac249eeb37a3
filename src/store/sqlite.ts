/**
 * The store on SQLite. A commit is durable with its block in the journal, which is written here; a thread folds the
 * journal into the tables, and another answers about history. This is their near end: it keeps the order, numbers the
 * ended leases, and refuses everything once the journal or the writer has failed.
 */
import { dirname, resolve } from "node:path";
import { StoreFault, storeClosed } from "./faults.ts";
import { flatten, type Position, positionAfter } from "./flat-batch.ts";
import { type Extent, Journal } from "./journal.ts";
import { BlockEncoder } from "./journal-block.ts";
import { unpack } from "./list-columns.ts";
import type { CallName, QueryName, Reply, Send } from "./sqlite-calls.ts";
import { SqliteThread } from "./sqlite-thread.ts";
import {
  type Batch,
  type EventsAfter,
  type EventsQuery,
  type Leader,
  type LedgerHead,
  type Loading,
  type Opened,
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
  #journal: Journal | null = null;
  #encoder = new BlockEncoder(Buffer.alloc(0));
  #position: Position = { now: 0, lastSeq: 0, lastN: 0, lastEnded: 0 };
  /** Of the last commit. */
  #number = 0;
  /** Numbers of the last events: of the commit that is being written, of those durable before it, and of those in the tables. */
  #seqs = { written: 0, durable: 0, folded: 0 };
  #closing: Promise<void> | null = null;
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
      const { lastEnded, folded, journal, ...opened } = await this.#writer.call("open");
      this.#epoch = opened.epoch;
      this.#position = { now: opened.now, lastSeq: opened.lastSeq, lastN: opened.lastN, lastEnded };
      this.#number = folded;
      this.#encoder = new BlockEncoder(Buffer.from(journal.mark, "hex"));
      this.#seqs = { written: opened.lastSeq, durable: opened.lastSeq, folded: opened.lastSeq };
      this.#journal = new Journal(journal, opened.epoch, (extents) => this.#fold(extents));
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
    await this.#folded();
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
  async ledgerHeads(): Promise<readonly LedgerHead[]> {
    await this.#folded();
    return await this.#write("ledgerHeads");
  }

  /** Not an async function: that would keep the batch in memory until it is durable (decision 0013). */
  commit(batch: Batch): Promise<void> {
    const journal = this.#journal;
    if (this.#refusal !== null || journal === null || this.#closing !== null) {
      return Promise.reject(this.#refusal ?? storeClosed());
    }
    try {
      // It takes its place in the order now, and is encoded when its turn has come.
      const { lastEnded } = this.#position;
      const position = positionAfter(this.#position, batch);
      const number = this.#number + 1;
      this.#position = position;
      this.#number = number;
      const encode = (): Buffer => {
        if (this.#refusal !== null) throw this.#refusal;
        this.#noteWritten(position.lastSeq);
        return this.#encoder.encode(number, flatten(batch, lastEnded, position));
      };
      return journal.append(encode).catch(this.#fail);
    } catch (bug) {
      return Promise.reject(bug);
    }
  }

  /** One is written at a time, so that all before it are durable. The same one may come again, after a fold made room for it. */
  #noteWritten(lastSeq: number): void {
    const seqs = this.#seqs;
    if (lastSeq === seqs.written) return;
    seqs.durable = seqs.written;
    seqs.written = lastSeq;
  }

  async #fold(extents: readonly Extent[]): Promise<void> {
    const { durable } = this.#seqs;
    await this.#write("fold", extents);
    this.#seqs.folded = durable;
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
    await this.#folded();
    const copier = new SqliteThread({ role: "copier", folder: this.#folder });
    try {
      await copier.call("backup", target);
    } finally {
      await copier.stop();
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#close().finally(() => {
      this.#closing = null;
    });
    return this.#closing;
  }

  async #close(): Promise<void> {
    try {
      if (this.#refusal !== null) return;
      await this.#journal?.settled();
      await this.#journal?.folded();
      this.#refusal = storeClosed();
      await this.#writer?.call("dropJournal");
      // The writer last: only the last connection copies the log into the database.
      await this.#reader?.call("close").catch(() => undefined);
      await this.#writer?.call("close");
    } finally {
      this.#refusal = storeClosed();
      await this.#stopThreads();
    }
  }

  readonly endedLease = this.#query("endedLease");
  readonly endedGrant = this.#query("endedGrant");
  readonly endedRequests = this.#query("endedRequests");
  readonly endedPage = this.#query("endedPage");
  readonly youngestEnded = this.#query("youngestEnded");
  readonly earliestEnded = this.#query("earliestEnded");

  async eventsAfter(query: EventsQuery): Promise<EventsAfter> {
    // A fold for each portion that somebody reads would cost the commits of all (S4).
    if (query.mayLag !== true || query.seq >= this.#seqs.folded) await this.#folded();
    return await this.#readTables("eventsAfter", query);
  }

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
    await this.#folded();
    return await this.#readTables(name, ...send);
  }

  async #readTables<Name extends CallName>(name: Name, ...send: Send<Name>): Promise<Reply<Name>> {
    if (this.#refusal !== null) throw this.#refusal;
    if (this.#reader === null || this.#reader.isOver) {
      this.#reader = new SqliteThread({ role: "reader", folder: this.#folder });
    }
    return await this.#reader.call(name, ...send);
  }

  /** Everything committed before is in the tables, where queries look. */
  async #folded(): Promise<void> {
    if (this.#refusal !== null) throw this.#refusal;
    await this.#journal?.folded();
  }

  async #stopThreads(): Promise<void> {
    const journal = this.#journal;
    this.#journal = null;
    await journal?.close();
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
