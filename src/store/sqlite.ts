/**
 * The store on SQLite: one thread that writes, one that answers about history. This is their near end; it keeps the
 * order, numbers the ended leases, and refuses everything once the writer has failed.
 */
import { dirname, resolve } from "node:path";
import { StoreFault, storeClosed } from "./faults.ts";
import { flatten, type Position, positionAfter } from "./flat-batch.ts";
import { unpack } from "./list-columns.ts";
import type { CallName, QueryName, Reply, Send } from "./sqlite-calls.ts";
import { SqliteThread } from "./sqlite-thread.ts";
import type {
  Batch,
  EndedLease,
  EndedSinceQuery,
  LedgerHead,
  Loading,
  Opened,
  Pruned,
  PruneLimits,
  Store,
} from "./store.ts";

export function createSqliteStore(folder: string): Store {
  return new SqliteStore(resolve(folder));
}

class SqliteStore implements Store {
  readonly #folder: string;
  #writer: SqliteThread | null = null;
  /** Started by the first query, because many stores are never queried. */
  #reader: SqliteThread | null = null;
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
      this.#position = { now: opened.now, lastSeq: opened.lastSeq, lastN: opened.lastN, lastEnded };
      this.#refusal = null;
      return opened;
    } catch (error) {
      await this.#stopThreads();
      throw error;
    }
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
    let events = 0;
    let ended = 0;
    let endedTasks = 0;
    for (;;) {
      const slice = await this.#write("prune", limits);
      events += slice.events;
      ended += slice.ended;
      endedTasks += slice.endedTasks;
      if (!slice.more) return { events, ended, endedTasks };
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

  async *endedSince(query: EndedSinceQuery): AsyncGenerator<readonly EndedLease[]> {
    let wanted = query.limit;
    let after: number | null = null;
    do {
      const found: Reply<"endedSince"> = await this.#read("endedSince", { ...query, limit: wanted }, after);
      yield found.rows;
      wanted -= found.rows.length;
      after = found.next;
    } while (after !== null && wanted > 0);
  }

  readonly endedLease = this.#query("endedLease");
  readonly endedPage = this.#query("endedPage");
  readonly earliestEnded = this.#query("earliestEnded");
  readonly eventsAfter = this.#query("eventsAfter");
  readonly earliestSeq = this.#query("earliestSeq");
  readonly endedTasks = this.#query("endedTasks");
  readonly endedTaskPage = this.#query("endedTaskPage");
  readonly receiptsById = this.#query("receiptsById");
  readonly receiptsByDedupe = this.#query("receiptsByDedupe");
  readonly receiptsOfTask = this.#query("receiptsOfTask");
  readonly receiptsPage = this.#query("receiptsPage");
  readonly receiptsAfter = this.#query("receiptsAfter");
  readonly signedHeads = this.#query("signedHeads");

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
    this.#reader ??= new SqliteThread({ role: "reader", folder: this.#folder });
    return await this.#reader.call(name, ...send);
  }

  async #stopThreads(): Promise<void> {
    const threads = [this.#reader, this.#writer];
    [this.#reader, this.#writer] = [null, null];
    await Promise.all(threads.map((thread) => thread?.stop()));
  }
}
