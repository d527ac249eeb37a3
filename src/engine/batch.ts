/** The batch under way: what has changed since the last one was sent off, and the answers that wait for its commit. */
import type { KernelEvent } from "../kernel/contract/events.ts";
import { writes } from "../kernel/contract/predicates.ts";
import type { Lease, Millis, Request } from "../kernel/contract/records.ts";
import type { Payload, Task } from "../kernel/contract/task-records.ts";
import { endedRequestOf, type Handle, type ReadyTask } from "../kernel/kernel.ts";
import { type SealedReceipt, storedReceipt } from "../ledger/seal.ts";
import type { Batch, EndedLease, EndedRequestRow, EndedTaskRow, LiveRow, SignedHead } from "../store/store.ts";
import { leaseText, payloadText, recordText, taskText } from "./codec/records.gen.ts";
import type { Outlet, ReadyListener } from "./engine-types.ts";

/** An event with its place in the one sequence, and as the text that is stored and sent. */
export interface NumberedEvent {
  readonly seq: number;
  readonly event: KernelEvent;
  readonly text: string;
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
  readonly waiting: Waiting[];
  now: Millis;
  /** Of the receipts' texts. */
  receiptBytes: number;
}

export function createBatch(): OpenBatch {
  return { changes: new Set(), events: [], receipts: [], waiting: [], now: 0, receiptBytes: 0 };
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
  { changes, events, receipts, now }: OpenBatch,
  heads: readonly SignedHead[],
  rows: { next: number },
): Batch {
  const puts: LiveRow[] = [];
  const removes: number[] = [];
  const ended: EndedLease[] = [];
  const endedTasks: EndedTaskRow[] = [];
  const endedRequests: EndedRequestRow[] = [];
  for (const handle of changes) {
    if (handle.alive) {
      if (handle.row === 0) handle.row = rows.next++;
      puts.push({ n: handle.row, kind: handle.kind, body: recordText(handle.kind, handle.record) });
      continue;
    }
    if (handle.row !== 0) removes.push(handle.row);
    handle.row = 0;
    if (handle.kind === "lease") ended.push(endedRow(handle.record as Lease));
    else if (handle.kind === "request") noteForgotten(endedRequests, handle.record as Request, now);
    else if (handle.kind === "task") endedTasks.push(endedTaskRow(handle as EndedTaskHandle, now));
  }
  // The tenant selects who sees an event; it is stored but not sent.
  let texts = "";
  for (const { event, text } of events) texts += `${texts === "" ? "" : ","}["${event.tenant}",${text}]`;
  const [first] = events;
  const packed = first === undefined ? null : { firstSeq: first.seq, count: events.length, body: `[${texts}]` };
  const history = { events: packed, ended, endedTasks, endedRequests };
  return { now, puts, removes, ...history, receipts: receipts.map(storedReceipt), heads };
}

/** W10: its key, where memory has forgotten it before its time. */
function noteForgotten(rows: EndedRequestRow[], request: Request, now: Millis): void {
  const row = endedRequestOf(request, now);
  if (row !== null) rows.push(row);
}

/** A task's handle keeps its payload's when both are over. */
type EndedTaskHandle = Handle<"task"> & { readonly payload?: { readonly record: Payload } | null };

function endedTaskRow({ record, payload }: EndedTaskHandle, now: Millis): EndedTaskRow {
  const task: Task = record;
  const { tenant, id, spec, status } = task;
  const body = endedTaskText(task, payload?.record ?? null);
  const { taskType, idempotencyKey } = spec;
  return { tenant, id, taskType, status, endedAt: task.endedAt ?? now, idempotencyKey, body };
}

/** With its payload, which nothing else keeps. */
export function endedTaskText(task: Task, payload: Payload | null): string {
  return `[${taskText(task)},${payload === null ? "null" : payloadText(payload)}]`;
}

function endedRow(lease: Lease): EndedLease {
  const { tenant, id, agentId, resource, predicate } = lease;
  const endedAt = lease.endedAt ?? lease.expiresAt;
  return { tenant, id, agentId, resource, predicate, writes: writes(predicate), endedAt, body: leaseText(lease) };
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
