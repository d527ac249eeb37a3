/** The batch under way: what has changed since the last one was sent off, and the answers that wait for its commit. */
import type { KernelEvent } from "../kernel/contract/events.ts";
import { writes } from "../kernel/contract/predicates.ts";
import type { Lease, Millis } from "../kernel/contract/records.ts";
import type { Payload, Task } from "../kernel/contract/task-records.ts";
import type { Handle, Step } from "../kernel/kernel.ts";
import { type SealedReceipt, storedReceipt } from "../ledger/seal.ts";
import type { Batch, EndedLease, EndedTaskRow, LiveRow, SignedHead } from "../store/store.ts";
import { leaseText, recordText } from "./codec/record-text.ts";
import { endedTaskText } from "./codec/task-text.ts";
import type { Outlet } from "./engine-types.ts";
import type { LedgerChain } from "./ledger-chain.ts";

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
}

export function createBatch(): OpenBatch {
  return { changes: new Set(), events: [], receipts: [], waiting: [], now: 0 };
}

export function hasChanges({ changes, events }: OpenBatch): boolean {
  return changes.size > 0 || events.length > 0;
}

/** Answers and events, past which callers that can wait should. */
const batchAim = 768;

/**
 * A batch's answers and events stay in memory until it is durable. If they outgrow the young generation they are copied
 * into the old one, and collecting them costs as much as all the rest (0013).
 */
export function isFull({ waiting, events }: OpenBatch): boolean {
  return waiting.length + events.length >= batchAim;
}

/** Receipts are sealed, and events encoded, at once: the records they hold are at hand, and the work is spread out. */
export function addStep(
  batch: OpenBatch,
  step: Step,
  now: Millis,
  nextSeq: number,
  encode: (event: KernelEvent) => string,
  ledger: LedgerChain,
): number {
  batch.now = now;
  for (const handle of step.changes) batch.changes.add(handle);
  for (const receipt of step.receipts) batch.receipts.push(ledger.seal(receipt, now));
  let seq = nextSeq;
  for (const event of step.events) batch.events.push({ seq: seq++, event, text: encode(event) });
  return seq;
}

/**
 * What the store is given: each record once and in its newest form, whatever happened to it in between. A lease that
 * began and ended in the same batch is never written as a live one.
 */
export function toStoreBatch(
  { changes, events, receipts, now }: OpenBatch,
  heads: readonly SignedHead[],
  nextRow: () => number,
): Batch {
  const puts: LiveRow[] = [];
  const removes: number[] = [];
  const ended: EndedLease[] = [];
  const endedTasks: EndedTaskRow[] = [];
  for (const handle of changes) {
    if (handle.alive) {
      if (handle.row === 0) handle.row = nextRow();
      puts.push({ n: handle.row, kind: handle.kind, body: recordText(handle.kind, handle.record) });
      continue;
    }
    if (handle.row !== 0) removes.push(handle.row);
    handle.row = 0;
    if (handle.kind === "lease") ended.push(endedRow(handle.record as Lease));
    else if (handle.kind === "task") endedTasks.push(endedTaskRow(handle as EndedTaskHandle, now));
  }
  const stored = receipts.map(storedReceipt);
  return { now, puts, removes, ended, endedTasks, receipts: stored, heads, events: packEvents(events) };
}

/** A task's handle keeps its payload's when both are over. */
type EndedTaskHandle = Handle<"task"> & { readonly payload?: { readonly record: Payload } | null };

function endedTaskRow({ record, payload }: EndedTaskHandle, now: Millis): EndedTaskRow {
  const task: Task = record;
  const { tenant, id, spec, status } = task;
  const body = endedTaskText(task, payload?.record ?? null);
  return { tenant, id, taskType: spec.taskType, status, endedAt: task.endedAt ?? now, body };
}

function endedRow(lease: Lease): EndedLease {
  const { tenant, id, agentId, resource, predicate } = lease;
  const endedAt = lease.endedAt ?? lease.expiresAt;
  return { tenant, id, agentId, resource, predicate, writes: writes(predicate), endedAt, body: leaseText(lease) };
}

/** `[[tenant, event], …]`: the tenant selects who sees the event; it is stored but not sent. */
function packEvents(events: readonly NumberedEvent[]): Batch["events"] {
  const [first] = events;
  if (first === undefined) return null;
  let body = "[";
  for (const { event, text } of events) body += `${body.length > 1 ? "," : ""}["${event.tenant}",${text}]`;
  return { firstSeq: first.seq, count: events.length, body: `${body}]` };
}

export function rowsIn({ puts, removes, ended, endedTasks, receipts, heads }: Batch): number {
  return puts.length + removes.length + ended.length + endedTasks.length + receipts.length + heads.length;
}
