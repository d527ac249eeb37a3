/**
 * The batch under way: what has changed since the last one was sent off, the answers that wait for its commit, and the
 * listeners that are notified when it is durable.
 */
import type { KernelEvent } from "../kernel/contract/events.ts";
import { writing } from "../kernel/contract/predicates.ts";
import type { Digest, Lease, Millis, RecordKind, Request } from "../kernel/contract/records.ts";
import type { Payload, Task } from "../kernel/contract/task-records.ts";
import { carriedBy, endedRequestOf, endedRequestOfLease, type Handle, type ReadyTask } from "../kernel/kernel.ts";
import { type SealedReceipt, storedReceipt } from "../ledger/seal.ts";
import type {
  AuditRow,
  Batch,
  EndedLease,
  EndedRequestRow,
  EndedTaskRow,
  LiveRow,
  SignedHead,
  StoredPayload,
} from "../store/store.ts";
import { type EncodeEvent, storedEventText } from "./codec/event-text.ts";
import { leaseText, payloadText, recordText, taskText } from "./codec/records.gen.ts";
import type { EventListener, Outlet, ReadyListener } from "./engine-types.ts";

/** An event with its place in the one sequence. */
export interface NumberedEvent {
  readonly seq: number;
  readonly event: KernelEvent;
}

/** An answer that leaves when the batch is durable. */
export interface Waiting<T = unknown> {
  readonly encoded: T;
  readonly outlet: Pick<Outlet<T>, "send" | "fail">;
}

export interface OpenBatch {
  readonly changes: Set<Handle>;
  readonly events: NumberedEvent[];
  readonly receipts: SealedReceipt[];
  readonly audits: AuditRow[];
  readonly waiting: Waiting[];
  /** What carries something large, noted when the batch is made for the store. */
  readonly carriers: Carrier[];
  now: Millis;
  /** Of the receipts' texts. */
  receiptBytes: number;
}

export function createBatch(): OpenBatch {
  return {
    changes: new Set(),
    events: [],
    receipts: [],
    audits: [],
    waiting: [],
    carriers: [],
    now: 0,
    receiptBytes: 0,
  };
}

export function addReceipt(batch: OpenBatch, sealed: SealedReceipt): void {
  batch.receipts.push(sealed);
  batch.receiptBytes += sealed.text.length;
}

/** Answers and events, past which callers that can wait should. */
const batchAim = 768;
/** The same for bytes of receipts, which can be large and are copied to the writer (R8). */
const receiptBytesAim = 4 * 1024 * 1024;

/**
 * A batch's answers and events stay in memory until it is durable. If they outgrow the young generation they are copied
 * into the old one, and collecting them costs as much as all the rest (0013).
 */
export function isFull({ waiting, events, receiptBytes }: OpenBatch): boolean {
  return waiting.length + events.length >= batchAim || receiptBytes >= receiptBytesAim;
}

/**
 * What the store is given: each record once and in its newest form, whatever happened to it in between. A lease that
 * began and ended in the same batch is never written as a live one.
 */
export function toStoreBatch(
  { changes, events, receipts, audits, carriers, now }: OpenBatch,
  heads: readonly SignedHead[],
  rows: { next: number },
  encodeEvent: EncodeEvent,
): Batch {
  const puts: LiveRow[] = [];
  const removes: number[] = [];
  const ended: EndedLease[] = [];
  const endedTasks: EndedTaskRow[] = [];
  const endedRequests: EndedRequestRow[] = [];
  const large: { readonly payloads: StoredPayload[]; readonly payloadRemoves: number[] } = {
    payloads: [],
    payloadRemoves: [],
  };
  /** Rows of leases, by their records: most are in an event too. */
  const leaseTexts = new Map<Lease, string>();
  for (const handle of changes) {
    const { kind, row } = handle;
    if (kind === "payload") {
      // It is stored with its task, under the task's number.
      if (!handle.alive) carriers.push({ handle, chars: 0 });
      continue;
    }
    if (handle.alive) {
      if (row === 0) handle.row = rows.next++;
      const isLarge = kind === "digest" || (kind === "task" && row === 0);
      const record = isLarge ? storeApart(handle, handle.row, large.payloads, carriers) : handle.record;
      const body = recordText<RecordKind>(kind, record);
      if (kind === "lease") leaseTexts.set(record as Lease, body);
      puts.push({ n: handle.row, kind, body });
      continue;
    }
    if (row !== 0) removes.push(row);
    handle.row = 0;
    if (kind === "lease") {
      const lease = handle.record as Lease;
      const body = leaseText(lease);
      leaseTexts.set(lease, body);
      ended.push(endedRow(lease, body));
      const request = lease.requestKey === null ? null : endedRequestOfLease(lease);
      if (request !== null) endedRequests.push(request);
    } else if (kind === "request") noteForgotten(endedRequests, handle.record as Request, now);
    else if (kind === "digest") {
      if (row !== 0) large.payloadRemoves.push(row);
      carriers.push({ handle, chars: 0 });
    } else if (kind === "task") {
      let payload: number | null = null;
      if ((handle as Handle<"task">).record.payloadBytes > 0) {
        payload = row === 0 ? rows.next++ : row;
        if (row === 0) storeApart(handle, payload, large.payloads, []);
      }
      endedTasks.push(endedTaskRow(handle.record as Task, payload, now));
    }
  }
  // The tenant selects who sees an event; it is stored but not sent.
  let texts = "";
  for (const { event } of events) {
    const text = storedEventText(event, leaseTexts, encodeEvent);
    texts += `${texts === "" ? "" : ","}["${event.tenant}",${text}]`;
  }
  const [first] = events;
  const packed = first === undefined ? null : { firstSeq: first.seq, count: events.length, body: `[${texts}]` };
  const history = { events: packed, ended, endedTasks, endedRequests };
  return { now, puts, removes, ...large, ...history, receipts: receipts.map(storedReceipt), heads, audits };
}

/** W10: its key, where memory has forgotten it before its time. */
function noteForgotten(rows: EndedRequestRow[], request: Request, now: Millis): void {
  const row = endedRequestOf(request, now);
  if (row !== null) rows.push(row);
}

/** A record that carries something large, and about how large it is as text; 0: it is over. */
export interface Carrier {
  readonly handle: Handle;
  readonly chars: number;
}

/** S4: what is large and not decided with is stored apart. Returns the record as it is stored without it. */
function storeApart(handle: Handle, n: number, payloads: StoredPayload[], carriers: Carrier[]): Handle["record"] {
  const carrier = handle.kind === "task" ? ((handle as TaskHandle).payload ?? null) : handle;
  const carried = carrier === null ? null : carriedBy(carrier);
  if (carrier === null || carried === null) return handle.record;
  const body =
    handle.kind === "task" ? payloadText(carried as Payload) : JSON.stringify((carried as Digest).context ?? null);
  payloads.push({ n, body });
  carriers.push({ handle: carrier, chars: body.length });
  return handle.kind === "task" ? handle.record : { ...(carried as Digest), context: null };
}

type TaskHandle = Handle<"task"> & { readonly payload?: Handle<"payload"> | null };

function endedTaskRow(task: Task, payload: number | null, now: Millis): EndedTaskRow {
  const { tenant, id, spec, status } = task;
  const { taskType, idempotencyKey } = spec;
  const body = endedTaskText(task, null);
  return { tenant, id, taskType, status, endedAt: task.endedAt ?? now, idempotencyKey, payload, body };
}

/** Its payload is stored apart; older versions had it here. */
export function endedTaskText(task: Task, payload: Payload | null): string {
  return `[${taskText(task)},${payload === null ? "null" : payloadText(payload)}]`;
}

function endedRow(lease: Lease, body: string): EndedLease {
  const { tenant, id, agentId, resource, predicate } = lease;
  const endedAt = lease.endedAt ?? lease.expiresAt;
  return { tenant, id, agentId, resource, predicate, writes: writing[predicate], endedAt, body };
}

/** Tasks that became ready since the last flush. */
export class ReadyTasks {
  readonly listeners = new Set<ReadyListener>();
  gathered: ReadyTask[] = [];
  isAnnouncing = false;

  add(ready: readonly ReadyTask[]): void {
    if (this.listeners.size > 0) for (const task of ready) this.gathered.push(task);
  }

  /** What becomes ready while listeners run is announced with the next flush. */
  announce(): void {
    const ready = this.gathered;
    this.gathered = [];
    this.isAnnouncing = true;
    try {
      for (const listener of this.listeners) listener(ready);
    } finally {
      this.isAnnouncing = false;
    }
  }
}

/** Listeners for durable events, tasks that became ready, a recovery, and an empty batch. */
export class Listeners {
  private readonly eventListeners = new Set<EventListener>();
  private readonly recoveryListeners = new Set<() => void>();
  protected emptyListeners: (() => void)[] = [];
  protected readonly ready = new ReadyTasks();
  /** The last event that is durable. */
  lastSeq = 0;
  protected nextSeq = 1;

  /** The last event that memory includes, durable or not: for a read, which is answered when it is (S1). */
  get sequence(): number {
    return this.nextSeq - 1;
  }

  /** Calls back with the events of each batch, in order, once they are durable and after its replies have left. */
  subscribe(listener: EventListener): () => void {
    this.eventListeners.add(listener);
    return () => this.eventListeners.delete(listener);
  }

  /**
   * Calls back with the tasks that became ready, right before a batch is sent off: polls that a listener submits are
   * decided in that batch. Not re-entrant.
   */
  onReady(listener: ReadyListener): () => void {
    this.ready.listeners.add(listener);
    return () => this.ready.listeners.delete(listener);
  }

  /** Calls back once, when the batch that fills is an empty one again. */
  onceEmpty(listener: () => void): void {
    this.emptyListeners.push(listener);
  }

  /** Calls back when the service goes on after a failed commit, whose events were never announced (S2). */
  onRecovery(listener: () => void): void {
    this.recoveryListeners.add(listener);
  }

  protected announceEmpty(): void {
    if (this.emptyListeners.length === 0) return;
    const listeners = this.emptyListeners;
    this.emptyListeners = [];
    for (const listener of listeners) listener();
  }

  /** Replies first: a caller that gets WAIT can begin to watch before the grant of the same batch is announced. */
  protected deliver(waiting: readonly Waiting[], events: readonly NumberedEvent[]): void {
    const last = events.at(-1);
    if (last !== undefined) this.lastSeq = last.seq;
    for (const { encoded, outlet } of waiting) outlet.send(encoded);
    if (last !== undefined) for (const listener of this.eventListeners) listener(events);
  }

  protected announceRecovery(): void {
    for (const listener of this.recoveryListeners) listener();
  }
}
