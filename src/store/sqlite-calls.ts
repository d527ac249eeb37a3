/** The messages between the main thread and SQLite's threads: plain data, flat where there is much of it. */
import type { FaultReport } from "./faults.ts";
import type { FlatBatch } from "./flat-batch.ts";
import type { PackedColumns } from "./list-columns.ts";
import type {
  EndedLease,
  EndedTaskPage,
  EndedTaskPageQuery,
  EndedTaskRow,
  LedgerHead,
  Opened,
  PackedEvents,
  PruneLimits,
  ReceiptPage,
  ReceiptPageQuery,
  ReceiptsAfterQuery,
  ResourceFilter,
  SignedHead,
  StoredReceipt,
} from "./store.ts";

/** Every call by its name: what is sent, and what comes back. */
export interface Calls {
  readonly open: { readonly send: null; readonly reply: Opened & { readonly lastEnded: number } };
  readonly load: { readonly send: { readonly after: number; readonly except: string }; readonly reply: RowColumns };
  readonly loadLists: { readonly send: ListSlice; readonly reply: PackedColumns };
  readonly commit: { readonly send: FlatBatch; readonly reply: null };
  readonly ledgerHeads: { readonly send: null; readonly reply: readonly LedgerHead[] };
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
  readonly endedTasks: {
    readonly send: { readonly tenant: string; readonly ids: readonly string[] };
    readonly reply: readonly EndedTaskRow[];
  };
  readonly endedTaskPage: { readonly send: EndedTaskPageQuery; readonly reply: EndedTaskPage };
  readonly receiptsById: {
    readonly send: { readonly tenant: string; readonly ids: readonly string[] };
    readonly reply: readonly StoredReceipt[];
  };
  readonly receiptsByDedupe: {
    readonly send: { readonly tenant: string; readonly keys: readonly string[] };
    readonly reply: readonly StoredReceipt[];
  };
  readonly receiptsOfTask: {
    readonly send: { readonly tenant: string; readonly taskId: string };
    readonly reply: readonly StoredReceipt[];
  };
  readonly receiptsPage: { readonly send: ReceiptPageQuery; readonly reply: ReceiptPage };
  readonly receiptsAfter: { readonly send: ReceiptsAfterQuery; readonly reply: readonly StoredReceipt[] };
  readonly signedHeads: { readonly send: ReceiptsAfterQuery; readonly reply: readonly SignedHead[] };
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
  readonly endedTasks: number;
  /** There may be more to delete. */
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
  /** Where the next slice continues; null at the end. */
  readonly next: number | null;
}
