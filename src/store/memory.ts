/**
 * The contract in its simplest form: the oracle that other stores are compared with, and the store of simulations. The
 * data is in a separate object, the disk, which outlives the store objects as a real disk outlives processes.
 */
import { takeOld } from "./fair-share.ts";
import { StoreFault, staleEpoch, storeClosed } from "./faults.ts";
import { type Position, positionAfter } from "./flat-batch.ts";
import { toColumns } from "./list-columns.ts";
import { collectEvents } from "./packed-events.ts";
import {
  type AuditRow,
  type Batch,
  type EndedLease,
  type EndedRequestRow,
  type EndedTaskRow,
  type History,
  type Leader,
  type LedgerHead,
  type LiveRow,
  type Loading,
  type Millis,
  type Opened,
  type PackedEvents,
  type Pruned,
  type PruneLimits,
  type ReceiptsAfterQuery,
  receiptBytesPerPage,
  type SignedHead,
  type Store,
  type StoredReceipt,
  soleLeader,
} from "./store.ts";

const rowsPerChunk = 1_000;

export interface MemoryDisk {
  epoch: number;
  restores: number;
  restoredAt: number;
  position: Position;
  readonly live: Map<number, LiveRow>;
  readonly payloads: Map<number, string>;
  readonly events: (PackedEvents & { readonly at: number })[];
  readonly ended: (EndedLease & { readonly key: number; readonly at: number })[];
  readonly ledger: {
    readonly receipts: StoredReceipt[];
    readonly audits: AuditRow[];
    readonly heads: SignedHead[];
    readonly endedTasks: (EndedTaskRow & { readonly at: Millis })[];
    readonly endedRequests: (EndedRequestRow & { readonly at: Millis })[];
  };
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
    payloads: new Map(),
    events: [],
    ended: [],
    ledger: { receipts: [], audits: [], heads: [], endedTasks: [], endedRequests: [] },
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
  #refusal: StoreFault | null = storeClosed();
  /** The commits in flight, in order: each waits for the one before. */
  #tail: Promise<void> = Promise.resolve();

  constructor(disk: MemoryDisk) {
    this.#disk = disk;
    this.#position = disk.position;
  }

  async open(): Promise<Opened> {
    const disk = this.#disk;
    if (disk.owner !== null && disk.owner !== this)
      throw new StoreFault("another store works on this memory", { code: "store_locked" });
    disk.owner = this;
    disk.epoch += 1;
    this.#epoch = disk.epoch;
    this.#position = disk.position;
    this.#refusal = null;
    this.#tail = Promise.resolve();
    const { now, lastSeq, lastN } = disk.position;
    const { epoch, live, restores, restoredAt } = disk;
    const opened = { epoch, now, lastSeq, lastN, liveCount: live.size, restores, restoredAt };
    return { ...opened, passedMs: null, lease: null };
  }

  async watch(): Promise<Leader | null> {
    const { owner, epoch } = this.#disk;
    return owner === null ? null : soleLeader(epoch);
  }

  async renew(): Promise<null> {
    if (this.#data.epoch !== this.#epoch) throw staleEpoch(this.#epoch);
    return null;
  }

  resign(): Promise<void> {
    return this.close();
  }

  async load({ onRows, lists, onLists }: Loading): Promise<void> {
    const [others, listed]: [LiveRow[], LiveRow[]] = [[], []];
    const inOrder = [...this.#data.live.values()].sort((a, b) => a.n - b.n);
    for (const row of inOrder) (row.kind === lists.kind ? listed : others).push(row);
    for (const chunk of chunksOf(others)) onRows(chunk);
    for (const chunk of chunksOf(listed)) {
      const keys = chunk.map(({ n }) => n);
      const parsed = chunk.map(({ body }) => JSON.parse(body) as unknown[]);
      onLists(toColumns(keys, parsed));
    }
  }

  async ledgerHeads(): Promise<readonly LedgerHead[]> {
    const { receipts, heads } = this.#data.ledger;
    const found = new Map<string, LedgerHead>();
    for (const { tenant, sequence, hash } of receipts) found.set(tenant, { tenant, sequence, hash, signedSequence: 0 });
    for (const { tenant, sequence } of heads) {
      const head = found.get(tenant);
      if (head !== undefined) found.set(tenant, { ...head, signedSequence: Math.max(head.signedSequence, sequence) });
    }
    return [...found.values()].sort((a, b) => (a.tenant < b.tenant ? -1 : 1));
  }

  async commit(batch: Batch): Promise<void> {
    if (this.#refusal !== null) throw this.#refusal;
    this.#position = positionAfter(this.#position, batch);
    const position = this.#position;
    const done = this.#tail.then(() => this.#store(batch, position));
    this.#tail = done;
    this.#tail.catch(() => undefined); // The caller has the rejection; the tail only keeps the order.
    await done;
  }

  async #store(batch: Batch, position: Position): Promise<void> {
    const disk = this.#data;
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

  get #data(): MemoryDisk {
    if (this.#refusal !== null) throw this.#refusal;
    return this.#disk;
  }

  readonly endedLease: History["endedLease"] = async (tenant, ids) =>
    this.#data.ended.filter((lease) => lease.tenant === tenant && ids.includes(lease.id)).map(plainLease);

  readonly endedGrant: History["endedGrant"] = async (tenant, firstId) =>
    this.#data.ended
      .filter((lease) => lease.tenant === tenant && (lease.id === firstId || lease.id.startsWith(`${firstId}-`)))
      .map(plainLease);

  readonly endedRequests: History["endedRequests"] = async (tenant, keys) =>
    this.#data.ledger.endedRequests
      .filter(
        (one) => one.tenant === tenant && keys.some(([agentId, key]) => one.agentId === agentId && one.key === key),
      )
      .map(({ at: _at, ...request }) => request);

  readonly endedPage: History["endedPage"] = async ({ tenant, limit, before }) =>
    this.#data.ended
      .filter((lease) => lease.tenant === tenant && (before === undefined || lease.id < before))
      .sort(youngestFirst)
      .slice(0, limit)
      .map(plainLease);

  readonly youngestEnded: History["youngestEnded"] = async (limit) =>
    this.#data.ended
      .slice(-limit)
      .reverse()
      .map(({ body }) => body);

  readonly earliestEnded = async (): Promise<Millis> => this.#data.endedFrom;

  readonly eventsAfter: History["eventsAfter"] = async (query) => {
    const { events, position } = this.#data;
    const { seq } = query;
    const isKept = events.some(({ firstSeq, count }) => firstSeq <= seq && seq < firstSeq + count);
    const rows = events.filter(({ firstSeq, count }) => firstSeq + count - 1 > seq);
    return collectEvents(query, rows, { earliest: this.#earliestSeq, lastSeq: position.lastSeq, isKept });
  };

  readonly earliestSeq = async (): Promise<number> => this.#earliestSeq;

  get #earliestSeq(): number {
    return this.#data.events[0]?.firstSeq ?? this.#disk.position.lastSeq + 1;
  }

  readonly endedTasks: History["endedTasks"] = async (tenant, ids) =>
    this.#data.ledger.endedTasks.filter((task) => task.tenant === tenant && ids.includes(task.id)).map(plainTask);

  readonly endedTasksByKey: History["endedTasksByKey"] = async (tenant, keys) =>
    this.#data.ledger.endedTasks
      .filter(({ tenant: its, idempotencyKey: key }) => its === tenant && key !== null && keys.includes(key))
      .map(plainTask);

  readonly endedTaskPage: History["endedTaskPage"] = async ({ tenant, limit, before, status, taskType }) => {
    const tasks = this.#data.ledger.endedTasks
      .filter((task) => task.tenant === tenant && (before === undefined || task.id < before))
      .filter((task) => agrees(status, task.status) && agrees(taskType, task.taskType))
      .sort(youngestFirst)
      .slice(0, limit)
      .map(plainTask);
    return { tasks, next: tasks.length >= limit ? (tasks.at(-1)?.id ?? null) : null };
  };

  readonly payloads: History["payloads"] = async (keys) =>
    keys.flatMap((n) => {
      const body = this.#data.payloads.get(n);
      return body === undefined ? [] : [{ n, body }];
    });

  readonly receiptsById: History["receiptsById"] = async (tenant, ids) =>
    this.#data.ledger.receipts.filter((one) => one.tenant === tenant && ids.includes(one.id));

  readonly receiptsByDedupe: History["receiptsByDedupe"] = async (tenant, keys) =>
    this.#data.ledger.receipts.filter(
      ({ tenant: its, dedupe }) => its === tenant && dedupe !== null && keys.includes(dedupe),
    );

  readonly receiptsPage: History["receiptsPage"] = async (query) => {
    const { tenant, limit, after = 0, before = 2 ** 50, newestFirst, taskId, phase, since = 0 } = query;
    const { recipientAi, sourceSystem } = query;
    const found = this.#data.ledger.receipts
      .filter((one) => one.tenant === tenant && one.sequence > after && one.sequence < before && one.storedAt >= since)
      .filter((one) => agrees(taskId, one.taskId) && agrees(phase, one.phase))
      .filter((one) => agrees(recipientAi, one.recipientAi) && agrees(sourceSystem, one.sourceSystem));
    const matching = (newestFirst === true ? found.reverse() : found).slice(0, limit);
    const receipts = upToBytes(matching);
    const isCut = receipts.length >= limit || receipts.length < matching.length;
    return { receipts, next: isCut ? (receipts.at(-1)?.sequence ?? null) : null };
  };

  readonly receiptsAfter: History["receiptsAfter"] = async (query) => rowsAfter(this.#data.ledger.receipts, query);

  readonly signedHeads: History["signedHeads"] = async (query) =>
    rowsAfter(this.#data.ledger.heads, query).sort((a, b) => a.sequence - b.sequence);

  readonly auditPage: History["auditPage"] = async ({ tenant, after, since, actor, action, limit }) =>
    this.#data.ledger.audits
      .filter((row) => row.tenant === tenant && row.sequence > after && (since === null || row.at >= since))
      .filter((row) => (actor === null || row.actor === actor) && (action === null || row.action === action))
      .slice(0, limit);

  readonly auditHeads: History["auditHeads"] = async () =>
    [...new Map(this.#data.ledger.audits.map((row) => [row.tenant, row])).values()].sort((a, b) =>
      a.tenant < b.tenant ? -1 : 1,
    );

  async prune(limits: PruneLimits): Promise<Pruned> {
    const { eventsBefore, endedBefore, endedKeep, endedTasksBefore = 0, endedTasksKeep = 2 ** 50 } = limits;
    const { events, ended, ledger } = this.#data;
    const { eventsKeep = 2 ** 50 } = limits;
    const kept = new Map<number, number>();
    events.reduceRight((sum, { firstSeq, count }) => {
      kept.set(firstSeq, sum + count);
      return sum + count;
    }, 0);
    const isOld = (row: MemoryDisk["events"][number]): boolean =>
      row.at < eventsBefore || (kept.get(row.firstSeq) ?? 0) > eventsKeep;
    const oldEvents = countWhile(events, isOld);
    events.splice(0, oldEvents);
    const goneEnded = takeOld(ended, endedBefore, endedKeep);
    for (const { at } of goneEnded) this.#disk.endedFrom = Math.max(this.#disk.endedFrom, at + 1);
    const goneTasks = takeOld(ledger.endedTasks, endedTasksBefore, endedTasksKeep);
    for (const { payload } of goneTasks) if (payload !== null) this.#disk.payloads.delete(payload);
    const requests = ledger.endedRequests;
    requests.splice(
      0,
      countWhile(requests, ({ at }) => at < (limits.endedRequestsBefore ?? 0)),
    );
    return { events: oldEvents, ended: goneEnded.length, endedTasks: goneTasks.length };
  }

  async compact(): Promise<void> {}

  async backup(): Promise<void> {
    throw new StoreFault("memory has no backup: it is gone with its process", { code: "store_unsupported" });
  }

  async close(): Promise<void> {
    await this.#tail.catch(() => undefined);
    this.#fail(storeClosed());
  }
}

function write(disk: MemoryDisk, batch: Batch, position: Position): void {
  const { now, puts, removes, events, ended } = batch;
  for (const { n, kind, body } of puts) disk.live.set(n, { n, kind, body });
  for (const n of removes) disk.live.delete(n);
  for (const { n, body } of batch.payloads) disk.payloads.set(n, body);
  for (const n of batch.payloadRemoves) disk.payloads.delete(n);
  if (events !== null) disk.events.push({ ...events, at: now });
  let key = disk.position.lastEnded;
  for (const lease of ended) disk.ended.push({ ...lease, at: now, key: ++key });
  for (const task of batch.endedTasks) disk.ledger.endedTasks.push({ ...task, at: now });
  for (const request of batch.endedRequests) disk.ledger.endedRequests.push({ ...request, at: now });
  for (const receipt of batch.receipts) disk.ledger.receipts.push(receipt);
  for (const head of batch.heads) disk.ledger.heads.push(head);
  for (const row of batch.audits) disk.ledger.audits.push(row);
  disk.position = position;
}

function plainLease({ key: _key, at: _at, ...lease }: MemoryDisk["ended"][number]): EndedLease {
  return lease;
}

function plainTask({ at: _at, ...task }: MemoryDisk["ledger"]["endedTasks"][number]): EndedTaskRow {
  return task;
}

function youngestFirst(a: { readonly id: string }, b: { readonly id: string }): number {
  return a.id < b.id ? 1 : -1;
}

function agrees(wanted: string | undefined, value: string): boolean {
  return wanted === undefined || wanted === value;
}

function rowsAfter<T extends { readonly tenant: string; readonly sequence: number }>(
  rows: readonly T[],
  { tenant, sequence, limit }: ReceiptsAfterQuery,
): T[] {
  return rows.filter((row) => row.tenant === tenant && row.sequence > sequence).slice(0, limit);
}

function countWhile<T>(rows: readonly T[], test: (row: T) => boolean): number {
  const end = rows.findIndex((row) => !test(row));
  return end === -1 ? rows.length : end;
}

function* chunksOf(rows: readonly LiveRow[]): Generator<readonly LiveRow[]> {
  for (let start = 0; start < rows.length; start += rowsPerChunk) yield rows.slice(start, start + rowsPerChunk);
}

/** Up to the one that passes the bytes of a page. */
function upToBytes(receipts: readonly StoredReceipt[]): StoredReceipt[] {
  let bytes = 0;
  return receipts.filter(({ body }) => {
    const isIn = bytes < receiptBytesPerPage;
    bytes += body.length;
    return isIn;
  });
}
