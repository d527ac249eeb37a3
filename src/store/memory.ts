/**
 * The contract in its simplest form: the oracle that other stores are compared with, and the store of simulations. The
 * data is in a separate object, the disk, which outlives the store objects as a real disk outlives processes.
 */
import { StoreClosed, StoreFault, StoreLocked, staleEpoch } from "./faults.ts";
import { type Position, positionAfter } from "./flat-batch.ts";
import { toColumns } from "./list-columns.ts";
import * as ledger from "./memory-ledger.ts";
import type {
  Batch,
  EndedLease,
  EndedPageQuery,
  EndedSinceQuery,
  EndedTaskPage,
  EndedTaskPageQuery,
  EndedTaskRow,
  LedgerHead,
  LiveRow,
  Loading,
  Opened,
  PackedEvents,
  Pruned,
  PruneLimits,
  ReceiptPage,
  ReceiptPageQuery,
  ReceiptsAfterQuery,
  ResourceFilter,
  SignedHead,
  Store,
  StoredReceipt,
} from "./store.ts";

const rowsPerChunk = 1_000;

export interface MemoryDisk {
  epoch: number;
  restores: number;
  restoredAt: number;
  position: Position;
  readonly live: Map<number, LiveRow>;
  readonly events: (PackedEvents & { readonly at: number })[];
  readonly ended: (EndedLease & { readonly key: number; readonly at: number })[];
  readonly ledger: ledger.MemoryLedger;
  /** No lease that ended since this time is missing. */
  endedFrom: number;
  /** The store that works on it. Set to null, it is like the disk of a killed process. */
  owner: Store | null;
  /** The next commit is rejected, and its batch is either lost or stored: a caller cannot know which. */
  failNextCommit: "lost" | "stored" | null;
  /** Awaited before a batch is stored, so that a test can act while it is in flight. */
  beforeCommit: ((batch: Batch) => Promise<void>) | null;
}

export function createMemoryDisk(): MemoryDisk {
  return {
    epoch: 0,
    restores: 0,
    restoredAt: 0,
    position: { now: 0, lastSeq: 0, lastN: 0, lastEnded: 0 },
    live: new Map(),
    events: [],
    ended: [],
    ledger: ledger.createMemoryLedger(),
    endedFrom: 0,
    owner: null,
    failNextCommit: null,
    beforeCommit: null,
  };
}

export function createMemoryStore(disk: MemoryDisk = createMemoryDisk()): Store {
  return new MemoryStore(disk);
}

class MemoryStore implements Store {
  readonly #disk: MemoryDisk;
  #epoch = 0;
  #position: Position;
  /** Why it refuses: not yet opened, closed, or failed. */
  #refusal: StoreFault | null = new StoreClosed();
  /** The commits in flight, in order: each waits for the one before. */
  #tail: Promise<void> = Promise.resolve();

  constructor(disk: MemoryDisk) {
    this.#disk = disk;
    this.#position = disk.position;
  }

  async open(): Promise<Opened> {
    const disk = this.#disk;
    if (disk.owner !== null && disk.owner !== this) throw new StoreLocked("another store works on this memory");
    disk.owner = this;
    disk.epoch += 1;
    this.#epoch = disk.epoch;
    this.#position = disk.position;
    this.#refusal = null;
    this.#tail = Promise.resolve();
    const { now, lastSeq, lastN } = disk.position;
    const { epoch, live, restores, restoredAt } = disk;
    return { epoch, now, lastSeq, lastN, liveCount: live.size, restores, restoredAt };
  }

  async load({ onRows, lists, onLists }: Loading): Promise<void> {
    this.#check();
    const [others, listed]: [LiveRow[], LiveRow[]] = [[], []];
    const inOrder = [...this.#disk.live.values()].sort((a, b) => a.n - b.n);
    for (const row of inOrder) (row.kind === lists.kind ? listed : others).push(row);
    for (const chunk of chunksOf(others)) onRows(chunk);
    for (const chunk of chunksOf(listed)) {
      const parsed = chunk.map(({ body }) => JSON.parse(body) as unknown[]);
      onLists(
        toColumns(
          Array.from(chunk, ({ n }) => n),
          parsed,
        ),
      );
    }
  }

  async ledgerHeads(): Promise<readonly LedgerHead[]> {
    this.#check();
    return ledger.ledgerHeads(this.#disk.ledger);
  }

  async commit(batch: Batch): Promise<void> {
    this.#check();
    this.#position = positionAfter(this.#position, batch);
    const position = this.#position;
    const done = this.#tail.then(() => this.#store(batch, position));
    this.#tail = done;
    this.#tail.catch(() => undefined); // The caller has the rejection; the tail only keeps the order.
    await done;
  }

  async #store(batch: Batch, position: Position): Promise<void> {
    this.#check();
    const disk = this.#disk;
    const epoch = this.#epoch;
    try {
      await disk.beforeCommit?.(batch);
    } catch (cause) {
      throw this.#fail(new StoreFault("the commit failed", { cause }));
    }
    if (disk.epoch !== epoch) throw this.#fail(staleEpoch(epoch));
    const fate = disk.failNextCommit;
    disk.failNextCommit = null;
    if (fate === "lost") throw this.#fail(new StoreFault("the commit failed, as the test asked"));
    write(disk, batch, position);
    if (fate === "stored") throw this.#fail(new StoreFault("the commit failed, as the test asked"));
  }

  #fail(fault: StoreFault): StoreFault {
    this.#refusal = fault;
    if (this.#disk.owner === this) this.#disk.owner = null;
    return fault;
  }

  #check(): void {
    if (this.#refusal !== null) throw this.#refusal;
  }

  async endedLease(tenant: string, ids: readonly string[]): Promise<readonly EndedLease[]> {
    this.#check();
    const wanted = new Set(ids);
    return this.#disk.ended.filter((lease) => lease.tenant === tenant && wanted.has(lease.id)).map(plain);
  }

  async endedPage({ tenant, limit, before }: EndedPageQuery): Promise<readonly EndedLease[]> {
    this.#check();
    return this.#disk.ended
      .filter((lease) => lease.tenant === tenant && (before === undefined || lease.id < before))
      .sort((a, b) => (a.id < b.id ? 1 : -1))
      .slice(0, limit)
      .map(plain);
  }

  async *endedSince({ tenant, since, limit, touching }: EndedSinceQuery): AsyncGenerator<readonly EndedLease[]> {
    this.#check();
    yield this.#disk.ended
      .filter((lease) => lease.tenant === tenant && lease.writes && lease.endedAt >= since)
      .filter((lease) => touching === undefined || mayTouch(lease.resource, touching))
      .slice(0, limit)
      .map(plain);
  }

  async earliestEnded(): Promise<number> {
    this.#check();
    return this.#disk.endedFrom;
  }

  async eventsAfter({ seq, limit }: { seq: number; limit: number }): Promise<readonly PackedEvents[]> {
    this.#check();
    const rows: PackedEvents[] = [];
    let found = 0;
    for (const { firstSeq, count, body } of this.#disk.events) {
      if (firstSeq + count - 1 <= seq) continue;
      if (found >= limit) break;
      found += firstSeq + count - 1 - Math.max(seq, firstSeq - 1);
      rows.push({ firstSeq, count, body });
    }
    return rows;
  }

  async earliestSeq(): Promise<number> {
    this.#check();
    return this.#disk.events[0]?.firstSeq ?? this.#disk.position.lastSeq + 1;
  }

  async endedTasks(tenant: string, ids: readonly string[]): Promise<readonly EndedTaskRow[]> {
    this.#check();
    const wanted = new Set(ids);
    const { endedTasks } = this.#disk.ledger;
    return endedTasks.filter((task) => task.tenant === tenant && wanted.has(task.id)).map(ledger.plainTask);
  }

  async endedTaskPage(query: EndedTaskPageQuery): Promise<EndedTaskPage> {
    this.#check();
    return ledger.endedTaskPage(this.#disk.ledger, query);
  }

  async receiptsById(tenant: string, ids: readonly string[]): Promise<readonly StoredReceipt[]> {
    this.#check();
    const wanted = new Set(ids);
    return this.#disk.ledger.receipts.filter((one) => one.tenant === tenant && wanted.has(one.id));
  }

  async receiptsByDedupe(tenant: string, keys: readonly string[]): Promise<readonly StoredReceipt[]> {
    this.#check();
    const wanted = new Set<string | null>(keys);
    return this.#disk.ledger.receipts.filter((one) => one.tenant === tenant && wanted.has(one.dedupe));
  }

  async receiptsOfTask(tenant: string, taskId: string): Promise<readonly StoredReceipt[]> {
    this.#check();
    return ledger.receiptsOfTask(this.#disk.ledger, tenant, taskId);
  }

  async receiptsPage(query: ReceiptPageQuery): Promise<ReceiptPage> {
    this.#check();
    return ledger.receiptsPage(this.#disk.ledger, query);
  }

  async receiptsAfter(query: ReceiptsAfterQuery): Promise<readonly StoredReceipt[]> {
    this.#check();
    return ledger.receiptsAfter(this.#disk.ledger, query);
  }

  async signedHeads(query: ReceiptsAfterQuery): Promise<readonly SignedHead[]> {
    this.#check();
    return ledger.signedHeads(this.#disk.ledger, query);
  }

  async prune(limits: PruneLimits): Promise<Pruned> {
    this.#check();
    const { eventsBefore, endedBefore, endedKeep, endedTasksBefore = 0, endedTasksKeep = 2 ** 50 } = limits;
    const { events, ended, position } = this.#disk;
    const tasks = this.#disk.ledger.endedTasks;
    const oldEvents = countWhile(events, (row) => row.at < eventsBefore);
    const oldEnded = countWhile(ended, (row) => row.at < endedBefore || row.key <= position.lastEnded - endedKeep);
    events.splice(0, oldEvents);
    const gone = ended.splice(0, oldEnded).at(-1);
    if (gone !== undefined) this.#disk.endedFrom = gone.at + 1;
    const { length } = tasks;
    const oldTasks = tasks.findIndex((row, index) => row.at >= endedTasksBefore && index >= length - endedTasksKeep);
    const endedTasks = tasks.splice(0, oldTasks === -1 ? length : oldTasks).length;
    return { events: oldEvents, ended: oldEnded, endedTasks };
  }

  async backup(): Promise<void> {
    throw new StoreFault("memory has no backup: it is gone with its process", { code: "store_unsupported" });
  }

  async close(): Promise<void> {
    await this.#tail.catch(() => undefined);
    this.#fail(new StoreClosed());
  }
}

function write(disk: MemoryDisk, batch: Batch, position: Position): void {
  const { now, puts, removes, events, ended } = batch;
  for (const { n, kind, body } of puts) disk.live.set(n, { n, kind, body });
  for (const n of removes) disk.live.delete(n);
  if (events !== null) disk.events.push({ ...events, at: now });
  let key = disk.position.lastEnded;
  for (const lease of ended) disk.ended.push({ ...lease, at: now, key: ++key });
  for (const task of batch.endedTasks) disk.ledger.endedTasks.push({ ...task, at: now });
  for (const receipt of batch.receipts) disk.ledger.receipts.push(receipt);
  for (const head of batch.heads) disk.ledger.heads.push(head);
  disk.position = position;
}

function mayTouch(resource: string, { names, prefixes }: ResourceFilter): boolean {
  const isPattern = resource.includes("*") || resource.includes("?");
  return isPattern || names.includes(resource) || prefixes.some((prefix) => resource.startsWith(prefix));
}

function plain(lease: EndedLease): EndedLease {
  const { tenant, id, agentId, resource, predicate, writes, endedAt, body } = lease;
  return { tenant, id, agentId, resource, predicate, writes, endedAt, body };
}

function countWhile<T>(rows: readonly T[], test: (row: T) => boolean): number {
  const end = rows.findIndex((row) => !test(row));
  return end === -1 ? rows.length : end;
}

function* chunksOf(rows: readonly LiveRow[]): Generator<readonly LiveRow[]> {
  for (let start = 0; start < rows.length; start += rowsPerChunk) yield rows.slice(start, start + rowsPerChunk);
}
