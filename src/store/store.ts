/**
 * What the engine needs of durable storage: open, load, commit, and queries on history; watch, renew and resign, for data
 * that several servers share; the rest is maintenance. Live records are rows that recovery reads as they are, so there is no log to replay and no snapshot.
 * The engine owns all numbering: the keys of live rows and the sequence of events only ever grow.
 */

/** Milliseconds by the engine's clock (L7). */
export type Millis = number;

export interface Store extends History {
  /** Who leads the data, as it is stored; null: nobody. Works at any time, for a server that does not lead too. */
  watch(): Promise<Leader | null>;
  /**
   * Campaigns: becomes the only writer. The epoch is raised, durably, and the commits of older writers are refused from then
   * on. Fails with store_locked while another server works on the same data or its lease runs, schema_too_new if a newer
   * Leasehold wrote it. A failure means: not the writer, whatever was stored. After a fault only this works, and watch.
   */
  open(): Promise<Opened>;
  /**
   * Extends the writer's lease, and stores the engine's time; null: it has none yet. Fails with stale_epoch if another server leads; after any
   * other fault the store works on, and the lease is what it was. Where one process owns the data, nothing has to be extended.
   */
  renew(now: Millis | null): Promise<LeaderLease | null>;
  /** Stops being the writer, after the commits in flight, so that another can open at once. The caller answers nobody after it. */
  resign(): Promise<void>;
  folded?(): Promise<void>; // Resolves when what was committed before is where other servers read it.
  /**
   * Passes every live row to the callbacks, some thousand at a time and in order of `n`: first those of other kinds,
   * then those of the kind whose bodies are lists. To be called before the first commit.
   */
  load(loading: Loading): Promise<void>;
  /** Where each tenant's ledger ends, for tenants with receipts. To be called before the first commit, like load. */
  ledgerHeads(): Promise<readonly LedgerHead[]>;
  /**
   * One atomic transaction, durable when the promise resolves (S1). Commits take effect in the order of the calls. If
   * one is rejected, its outcome is unknown, all later ones are rejected too, and the store must be reopened (S2). A store
   * that can lose an acknowledgement numbers its commits, asks for the outcome and repeats what is not stored; it rejects
   * only what it cannot find out.
   */
  commit(batch: Batch): Promise<void>;
  /** Deletes history, never live rows (L16), in slices; commits continue in between. */
  prune(limits: PruneLimits): Promise<Pruned>;
  /** Compresses old events and gives free space back to the file system (S8), in slices; commits continue in between. */
  compact(): Promise<void>;
  /** Writes a consistent copy to a file while commits continue (S6). The file appears whole or not at all. */
  backup(toFile: string): Promise<void>;
  /** Waits for commits in flight, then releases the data. Closing a closed store does nothing. */
  close(): Promise<void>;
}

export interface Opened {
  readonly epoch: number;
  /** The time of the last commit: the engine's clock never starts below it (L7). */
  readonly now: Millis;
  readonly lastSeq: number;
  /** The greatest key a live row ever had, so that none is used again. */
  readonly lastN: number;
  /** How many live rows there are to load. */
  readonly liveCount: number;
  /** How often this data was restored from a backup (S6). Fences must jump when it has grown (L11). */
  readonly restores: number;
  /** Wall-clock time of the last restore, 0 if there was none: distinguishes two restores of one backup. */
  readonly restoredAt: Millis;
  /** What the store's own clock advanced since `now` was stored (L7); null: it has none. */
  readonly passedMs: Millis | null;
  /** For how long it is the writer; null: until it closes, because one process owns the data. */
  readonly lease: LeaderLease | null;
}

/** A leader counts its lease by its own monotonic clock, from before it asked. The rest is the store's. */
export interface LeaderLease {
  readonly askedAt: number;
  readonly lastsMs: number;
}

export interface Leader {
  readonly epoch: number;
  /** The process that leads: another one after each start. */
  readonly server: string;
  /** Where others reach it; null: nowhere. */
  readonly url: string | null;
  /** What is left of its lease by the store's clock; infinity: it lasts until the process ends. */
  readonly leftMs: number;
  /** Since when, by the store's clock; 0 where it has none. */
  readonly since: Millis;
}

/** Where one process owns the data, it leads until it lets go of it. */
export function soleLeader(epoch: number): Leader {
  return { epoch, server: "this process", url: null, leftMs: Number.POSITIVE_INFINITY, since: 0 };
}

export interface Loading {
  readonly onRows: (rows: readonly LiveRow[]) => void;
  /** A kind with very many rows; the bodies of all of them are JSON lists. */
  readonly lists: {
    readonly kind: string;
    /** Positions in the list at which few distinct values occur. */
    readonly repeating: readonly number[];
  };
  readonly onLists: (lists: ListColumns) => void;
}

/** Rows by column: `columns[2][7]` is the third item of the eighth list, undefined if that is shorter. */
export interface ListColumns {
  readonly n: readonly number[];
  readonly columns: readonly (readonly unknown[])[];
}

export interface LiveRow {
  readonly n: number;
  /** "lease", "agent", "request", "counters" and so on; the store does not interpret it. */
  readonly kind: string;
  /** JSON text. The store does not interpret it either; people read it through views. */
  readonly body: string;
}

export interface Batch {
  /** Never smaller than that of the commit before (L7). */
  readonly now: Millis;
  /** Inserted or replaced by `n`. */
  readonly puts: readonly LiveRow[];
  /** Deleted by `n`, after the puts. */
  readonly removes: readonly number[];
  /** Large texts beside the live rows, inserted or replaced by `n`. They are never loaded, but read when needed (S4). */
  readonly payloads: readonly StoredPayload[];
  /** Deleted by `n`, after that. */
  readonly payloadRemoves: readonly number[];
  readonly events: PackedEvents | null;
  /** Moves the sequence of events ahead, where history may have been lost (L11). */
  readonly lastSeq?: number;
  readonly ended: readonly EndedLease[];
  readonly endedTasks: readonly EndedTaskRow[];
  readonly endedRequests: readonly EndedRequestRow[];
  /** Appended to the ledger in this order, and never changed or deleted afterwards (R1). */
  readonly receipts: readonly StoredReceipt[];
  readonly heads: readonly SignedHead[];
  /** Appended to the audit log, and never changed or deleted afterwards (S7). */
  readonly audits: readonly AuditRow[];
}

/** An entry of a tenant's audit log; its body is what was hashed. */
export interface AuditRow {
  readonly tenant: string;
  readonly sequence: number;
  readonly at: Millis;
  readonly actor: string;
  readonly action: string;
  readonly hash: string;
  readonly body: string;
}

/** A large text of a live row or of an ended task. Its key is one of those that live rows get, and belongs to no other. */
export interface StoredPayload {
  readonly n: number;
  readonly body: string;
}

/** The events of one batch, packed into one row: a row for each would cost more than the leases they are about. */
export interface PackedEvents {
  readonly firstSeq: number;
  readonly count: number;
  /** JSON text of an array of `count` events, numbered from `firstSeq`. */
  readonly body: string;
}

export interface EndedLease {
  readonly tenant: string;
  /** Sorts by the time of the grant within a tenant. */
  readonly id: string;
  readonly agentId: string;
  readonly resource: string;
  readonly predicate: string;
  /** Whether it could have changed the resource, so that it counts as an observation (A4). */
  readonly writes: boolean;
  /** At most the `now` of its batch. */
  readonly endedAt: Millis;
  readonly body: string;
}

/** An ended task. Its body is the engine's encoding of it. */
export interface EndedTaskRow {
  readonly tenant: string;
  /** Sorts by the time of its creation within a tenant. */
  readonly id: string;
  readonly taskType: string;
  readonly status: string;
  readonly endedAt: Millis;
  /** Of its creation; null where it had none. */
  readonly idempotencyKey: string | null;
  /** The key of its payload, which is deleted when the task is pruned; null: it has none, or its body has it. */
  readonly payload: number | null;
  readonly body: string;
}

/** A granted request whose key memory has forgotten (W10): how its grant ended. */
export interface EndedRequestRow {
  readonly tenant: string;
  readonly agentId: string;
  readonly key: string;
  readonly fingerprint: string;
  readonly leaseId: string;
  readonly endedAs: string;
  readonly endReason: string | null;
}

/** A receipt of the ledger. The body is the text that was hashed; the other fields repeat what queries search by. */
export interface StoredReceipt {
  readonly tenant: string;
  /** 1 for the tenant's first, then growing without a gap. */
  readonly sequence: number;
  readonly id: string;
  readonly taskId: string;
  readonly phase: string;
  readonly recipientAi: string;
  readonly sourceSystem: string;
  readonly dedupe: string | null;
  readonly storedAt: Millis;
  /** SHA-256 of the body, in hex (R6). */
  readonly hash: string;
  readonly body: string;
}

/** A signed statement of a tenant's last receipt at a moment, by number and hash (R6). */
export interface SignedHead {
  readonly tenant: string;
  readonly sequence: number;
  readonly hash: string;
  readonly at: Millis;
  readonly keyId: string;
  /** Ed25519, in base64. */
  readonly signature: string;
}

export interface LedgerHead {
  readonly tenant: string;
  readonly sequence: number;
  readonly hash: string;
  /** The sequence of the tenant's last signed head; 0 if there is none. */
  readonly signedSequence: number;
}

/** An end is final, so a query cannot race a commit; each sees at least what was committed before it. */
export interface History {
  /** Those of the named leases that have ended and were not pruned, in no particular order (L16). */
  endedLease(tenant: string, ids: readonly string[]): Promise<readonly EndedLease[]>;
  /** Those that were granted together: the lease with this id, and those whose ids continue it after a dash. */
  endedGrant(tenant: string, firstId: string): Promise<readonly EndedLease[]>;
  /** A tenant's ended leases, the youngest id first; `before` is the last id of the page before. */
  endedPage(query: EndedPageQuery): Promise<readonly EndedLease[]>;
  /** Bodies of the leases of all tenants that ended last, the last one first: what a start knows of the past (A4). */
  youngestEnded(limit: number): Promise<readonly string[]>;
  /** No lease that ended since this time was pruned; 0 if none ever was. */
  earliestEnded(): Promise<Millis>;
  /** A tenant's events after `seq`, in order. */
  eventsAfter(query: EventsQuery): Promise<EventsAfter>;
  /** The smallest sequence number still kept, or the next one to come if there is none. */
  earliestSeq(): Promise<number>;
  /** Those of the named tasks that have ended and were not pruned, in no particular order. */
  endedTasks(tenant: string, ids: readonly string[]): Promise<readonly EndedTaskRow[]>;
  /** Those that were created with one of these keys, oldest first (T12). */
  endedTasksByKey(tenant: string, keys: readonly string[]): Promise<readonly EndedTaskRow[]>;
  /** Those with one of these keys, oldest first (W10). */
  endedRequests(tenant: string, keys: readonly AgentKey[]): Promise<readonly EndedRequestRow[]>;
  /** A tenant's ended tasks, the youngest id first. */
  endedTaskPage(query: EndedTaskPageQuery): Promise<EndedTaskPage>;
  /** Those of the payloads with these keys that there are, in no particular order. */
  payloads(keys: readonly number[]): Promise<readonly StoredPayload[]>;
  /** Receipts by their ids, in the order of the ledger. If a client used an id twice, both are returned. */
  receiptsById(tenant: string, ids: readonly string[]): Promise<readonly StoredReceipt[]>;
  /** Receipts by their dedupe keys, in the order of the ledger; several senders may have used the same one (R3). */
  receiptsByDedupe(tenant: string, keys: readonly string[]): Promise<readonly StoredReceipt[]>;
  /** A search through a tenant's ledger, oldest first unless asked otherwise. */
  receiptsPage(query: ReceiptPageQuery): Promise<ReceiptPage>;
  /** The ledger after a sequence number. It may stop before `limit`, but is empty only at the end. */
  receiptsAfter(query: ReceiptsAfterQuery): Promise<readonly StoredReceipt[]>;
  /** A tenant's signed heads after a sequence number, oldest first. */
  signedHeads(query: ReceiptsAfterQuery): Promise<readonly SignedHead[]>;
  /** A tenant's audit log, oldest first; a page with fewer than `limit` is the last. */
  auditPage(query: AuditPageQuery): Promise<readonly AuditRow[]>;
  /** The last entry of each tenant. */
  auditHeads(): Promise<readonly AuditRow[]>;
}

export interface AuditPageQuery {
  readonly tenant: string;
  readonly limit: number;
  /** Only those with a greater sequence number. */
  readonly after: number;
  /** Made at this time or later. */
  readonly since: Millis | null;
  readonly actor: string | null;
  readonly action: string | null;
}

/** An agent's id and its key. */
export type AgentKey = readonly [agentId: string, key: string];

/** Bytes of receipts that are returned at once: a page ends with the one that passes it, and has a next (R8). */
export const receiptBytesPerPage = 4 * 1024 * 1024;

export interface EventsQuery {
  readonly tenant: string;
  readonly seq: number;
  /** It stops after the row that brings the number of examined events, of all tenants, to this. */
  readonly limit: number;
  /** The last commits may be left out if others come after `seq`: the tables need no update for each portion. */
  readonly mayLag?: boolean;
}

export interface EventsAfter {
  readonly seqs: readonly number[];
  /** The events as JSON, as they were stored. */
  readonly texts: readonly string[];
  /** The last number that was examined. */
  readonly through: number;
  /** The smallest number still kept, or the next one to come if there is none. */
  readonly earliest: number;
  /** The first number after `seq` that there is, or the next one to come. */
  readonly next: number;
  /** False: `seq` was never given in this history, which jumped over it (L11), or it is forgotten. */
  readonly isKnown: boolean;
}

export interface EndedTaskPageQuery {
  readonly tenant: string;
  readonly limit: number;
  /** `next` of the page before. */
  readonly before?: string;
  readonly status?: string;
  readonly taskType?: string;
}

/** A page examines a bounded number of rows, so it may hold fewer than `limit`, or none, and still have a next. */
export interface EndedTaskPage {
  readonly tasks: readonly EndedTaskRow[];
  readonly next: string | null;
}

export interface ReceiptPageQuery {
  readonly tenant: string;
  readonly limit: number;
  /** Only those with a greater sequence number: `next` of the page before, where the oldest are first. */
  readonly after?: number;
  /** Only those with a smaller one: `next` of the page before, where the newest are first. */
  readonly before?: number;
  readonly newestFirst?: boolean;
  readonly taskId?: string;
  readonly phase?: string;
  readonly recipientAi?: string;
  readonly sourceSystem?: string;
  /** Stored at this time or later. */
  readonly since?: Millis;
}

/** Bounded like a page of ended tasks, and in bytes. */
export interface ReceiptPage {
  readonly receipts: readonly StoredReceipt[];
  readonly next: number | null;
}

export interface ReceiptsAfterQuery {
  readonly tenant: string;
  readonly sequence: number;
  readonly limit: number;
}

export interface EndedPageQuery {
  readonly tenant: string;
  readonly limit: number;
  readonly before?: string;
}

export interface PruneLimits {
  /** Events committed before this are deleted. */
  readonly eventsBefore: Millis;
  /** And all but the last of this number; absent, any number is kept. The same for bytes: as they are stored, compressed or not. */
  readonly eventsKeep?: number;
  readonly eventsBytes?: number;
  /**
   * Ended leases committed before this are deleted (L16). Of the others `endedKeep` stay: half of them are the youngest, the
   * other half is shared by the tenants (S4, fair-share.ts).
   */
  readonly endedBefore: Millis;
  readonly endedKeep: number;
  /** The same for ended tasks; absent, none of them is deleted. The ledger is never pruned (R1). */
  readonly endedTasksBefore?: Millis;
  readonly endedTasksKeep?: number;
  /** And about this number of bytes. */
  readonly endedTasksBytes?: number;
  /** Keys of requests committed before this are deleted; absent, none (W10). */
  readonly endedRequestsBefore?: Millis;
}

export interface Pruned {
  /** Packed rows of events. */
  readonly events: number;
  readonly ended: number;
  readonly endedTasks: number;
}
