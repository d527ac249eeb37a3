/** The messages between the main thread and SQLite's threads: plain data, flat where there is much of it. */
import type { FaultReport } from "./faults.ts";
import type { Extent } from "./journal.ts";
import type { JournalPair } from "./journal-files.ts";
import type { PackedColumns } from "./list-columns.ts";
import type { History, Loading, Opened, Pruned, PruneLimits, Store } from "./store.ts";

/** Queries that are the store's own methods: what is sent are their arguments. */
export type QueryName = keyof History;

/** Every call by its name: what is sent, and what comes back. */
interface Calls extends Pick<Store, QueryName | "ledgerHeads"> {
  open(): Omit<Opened, "passedMs" | "lease"> & {
    readonly lastEnded: number;
    readonly folded: number;
    readonly journal: JournalPair;
  };
  load(after: number, except: string): RowColumns;
  /** The next rows of one kind after a key. */
  loadLists(after: number, lists: Loading["lists"]): PackedColumns;
  /** Moves commits from these parts of the journal into the tables. */
  fold(extents: readonly Extent[]): void;
  /** All of it is folded, and nothing follows. */
  dropJournal(): void;
  /** Where history is to be cut off because of its number or its bytes. */
  findCuts(limits: PruneLimits): HistoryCuts;
  /** One slice; there may be more to delete. */
  prune(limits: PruneLimits, cuts: HistoryCuts): Pruned & { readonly more: boolean };
  /** The oldest rows of events as one block; null where they are too few. */
  packEvents(): EventBlock | null;
  /** In place of the rows that it is made of. */
  storeBlock(block: EventBlock): void;
  /** Gives some free pages back; returns how many more there are. */
  giveBack(): number;
  backup(toFile: string): void;
  close(): void;
}
export type CallName = keyof Calls;
export type Send<Name extends CallName> = Parameters<Calls[Name]>;
export type Reply<Name extends CallName> = Awaited<ReturnType<Calls[Name]>>;
export type Handlers<Name extends CallName> = {
  readonly [N in Name]: (...send: Send<N>) => Reply<N> | Promise<Reply<N>>;
};

export interface Call {
  readonly name: CallName;
  readonly send: readonly unknown[];
}
/** Replies come back in the order of the calls, so they carry no number. */
export type Answer = { readonly reply: unknown } | { readonly fault: FaultReport };

/** What is to go besides what is too old. */
export interface HistoryCuts {
  /** The last key of events; 0: none. */
  readonly eventsThrough: number;
  readonly tenants: readonly TenantCut[];
}

/** Rows of a tenant that has more than its share (S4): those up to an id, unless they are among the youngest of all. */
export interface TenantCut {
  readonly table: "ended" | "ended_tasks";
  readonly tenant: string;
  readonly throughId: string;
  readonly throughKey: number;
}

/** Events of many commits, compressed. */
export interface EventBlock {
  readonly firstSeq: number;
  readonly count: number;
  /** The time of its last commit. */
  readonly at: number;
  readonly body: Uint8Array;
}

/** Live rows by column: measured, a third of what one object a row costs to clone. */
export interface RowColumns {
  readonly n: readonly number[];
  readonly kind: readonly string[];
  readonly body: readonly string[];
}
