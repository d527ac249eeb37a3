/** The batch under way: what has changed since the last one was sent off, and who waits for it to be durable. */
import type { KernelEvent } from "../kernel/events.ts";
import type { Handle, Step } from "../kernel/kernel.ts";
import { writes } from "../kernel/predicates.ts";
import type { Lease, Millis } from "../kernel/records.ts";
import type { Batch, EndedLease, LiveRow } from "../store/store.ts";
import { leaseText, recordText } from "./record-text.ts";

/** An event with its place in the one sequence, and as the text that is stored and sent. */
export interface NumberedEvent {
  readonly seq: number;
  readonly event: KernelEvent;
  readonly text: string;
}

/** Somebody who is answered when the batch is durable, or told that it is not. */
export interface Waiting {
  readonly settled: () => void;
  readonly failed: (fault: Error) => void;
}

export interface OpenBatch {
  readonly changes: Set<Handle>;
  readonly events: NumberedEvent[];
  readonly waiting: Waiting[];
  now: Millis;
}

export function createBatch(): OpenBatch {
  return { changes: new Set(), events: [], waiting: [], now: 0 };
}

export function hasChanges({ changes, events }: OpenBatch): boolean {
  return changes.size > 0 || events.length > 0;
}

/** Events are put into words at once, while the records they hold are at hand and the work is spread over the turns. */
export function addStep(
  batch: OpenBatch,
  step: Step,
  now: Millis,
  nextSeq: number,
  encode: (event: KernelEvent) => string,
): number {
  batch.now = now;
  for (const handle of step.changes) batch.changes.add(handle);
  let seq = nextSeq;
  for (const event of step.events) batch.events.push({ seq: seq++, event, text: encode(event) });
  return seq;
}

/**
 * What the store is given: each record once and in its newest form, whatever happened to it in between. A lease that
 * began and ended in the same batch is never written as a live one.
 */
export function toStoreBatch({ changes, events, now }: OpenBatch, nextRow: () => number): Batch {
  const puts: LiveRow[] = [];
  const removes: number[] = [];
  const ended: EndedLease[] = [];
  for (const handle of changes) {
    if (handle.alive) {
      if (handle.row === 0) handle.row = nextRow();
      puts.push({ n: handle.row, kind: handle.kind, body: recordText(handle.kind, handle.record) });
      continue;
    }
    if (handle.row !== 0) removes.push(handle.row);
    handle.row = 0;
    if (handle.kind === "lease") ended.push(endedRow(handle.record as Lease));
  }
  return { now, puts, removes, ended, events: packEvents(events) };
}

function endedRow(lease: Lease): EndedLease {
  const { tenant, id, agentId, resource, predicate } = lease;
  const endedAt = lease.endedAt ?? lease.expiresAt;
  return { tenant, id, agentId, resource, predicate, writes: writes(predicate), endedAt, body: leaseText(lease) };
}

/** `[[tenant, event], …]`: the tenant is not part of what a tenant is shown, but says who is. */
function packEvents(events: readonly NumberedEvent[]): Batch["events"] {
  const [first] = events;
  if (first === undefined) return null;
  let body = "[";
  for (const { event, text } of events) body += `${body.length > 1 ? "," : ""}["${event.tenant}",${text}]`;
  return { firstSeq: first.seq, count: events.length, body: `${body}]` };
}
