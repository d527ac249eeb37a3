/** What the main thread and the threads of SQLite say to each other: plain data, flat where it is much. */
import type { SQLInputValue } from "node:sqlite";
import type { FaultReport } from "./faults.ts";
import type { PackedColumns } from "./list-columns.ts";
import type { Position } from "./position.ts";
import type { Batch, EndedLease, Opened, PackedEvents, PruneLimits, ResourceFilter } from "./store.ts";

/** Every call by its name: what is sent, and what comes back. */
export interface Calls {
  readonly open: { readonly send: null; readonly reply: Opened & { readonly lastEnded: number } };
  readonly load: { readonly send: { readonly after: number; readonly except: string }; readonly reply: RowColumns };
  readonly loadLists: { readonly send: ListSlice; readonly reply: PackedColumns };
  readonly commit: { readonly send: FlatBatch; readonly reply: null };
  readonly prune: { readonly send: PruneLimits; readonly reply: PrunedSlice };
  readonly endedLease: {
    readonly send: { readonly tenant: string; readonly ids: readonly string[] };
    readonly reply: readonly EndedLease[];
  };
  readonly endedPage: {
    readonly send: { readonly tenant: string; readonly limit: number; readonly before: string | null };
    readonly reply: readonly EndedLease[];
  };
  readonly endedSince: { readonly send: EndedScan; readonly reply: EndedScanned };
  readonly earliestEnded: { readonly send: null; readonly reply: number };
  readonly eventsAfter: {
    readonly send: { readonly seq: number; readonly limit: number };
    readonly reply: readonly PackedEvents[];
  };
  readonly earliestSeq: { readonly send: null; readonly reply: number };
  readonly backup: { readonly send: { readonly toFile: string }; readonly reply: null };
  readonly close: { readonly send: null; readonly reply: null };
}
export type CallName = keyof Calls;
export type Send<Name extends CallName> = Calls[Name]["send"];
export type Reply<Name extends CallName> = Calls[Name]["reply"];
export type Handlers<Name extends CallName> = {
  readonly [N in Name]: (send: Send<N>) => Reply<N> | Promise<Reply<N>>;
};

export interface Call {
  readonly name: CallName;
  readonly send: unknown;
}
/** Replies come back in the order of the calls, so they carry no number. */
export type Answer = { readonly reply: unknown } | { readonly fault: FaultReport };

/**
 * A batch as lists that go straight into prepared statements. Measured: flat lists by structured clone cost the main
 * thread half of what lists of objects do, about as much as one packed text, and half of one packed buffer.
 */
export interface FlatBatch {
  readonly position: Position;
  /** n, kind, body. */
  readonly puts: readonly SQLInputValue[];
  readonly removes: readonly number[];
  readonly events: PackedEvents | null;
  /** key, at, tenant, id, agent_id, resource, predicate, writes, ended_at, body. */
  readonly ended: readonly SQLInputValue[];
}
export const putWidth = 3;
export const endedWidth = 10;

/** `lastEnded` is the key of the last ended lease before the batch, `position` where the batch leads. */
export function flatten(
  { now, puts, removes, events, ended }: Batch,
  lastEnded: number,
  position: Position,
): FlatBatch {
  const flatPuts: SQLInputValue[] = [];
  for (const { n, kind, body } of puts) flatPuts.push(n, kind, body);
  const flatEnded: SQLInputValue[] = [];
  let key = lastEnded;
  for (const { tenant, id, agentId, resource, predicate, writes, endedAt, body } of ended) {
    key += 1;
    flatEnded.push(key, now, tenant, id, agentId, resource, predicate, writes ? 1 : 0, endedAt, body);
  }
  return { position, puts: flatPuts, removes, events, ended: flatEnded };
}

/** The next rows of one kind after a key. */
export interface ListSlice {
  readonly after: number;
  readonly kind: string;
  readonly repeating: readonly number[];
}

/** Live rows by column: measured, a third of what one object a row costs to clone. */
export interface RowColumns {
  readonly n: readonly number[];
  readonly kind: readonly string[];
  readonly body: readonly string[];
}

export interface PrunedSlice {
  readonly events: number;
  readonly ended: number;
  /** There may be more to forget. */
  readonly more: boolean;
}

/** One slice of a search through the ended leases; `after` is null where it begins. */
export interface EndedScan {
  readonly tenant: string;
  readonly since: number;
  readonly limit: number;
  readonly touching: ResourceFilter | null;
  readonly after: number | null;
}
export interface EndedScanned {
  readonly rows: readonly EndedLease[];
  /** Where the next slice goes on; null at the end. */
  readonly next: number | null;
}
