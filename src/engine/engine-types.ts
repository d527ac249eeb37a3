/** What the engine is given, what it gives, and how it fails its callers. */
import type { Command, Entropy } from "../kernel/contract/commands.ts";
import type { Millis } from "../kernel/contract/records.ts";
import type { Reply } from "../kernel/contract/replies.ts";
import type { ReadyTask } from "../kernel/kernel.ts";
import type { LedgerKey } from "../ledger/keys.ts";
import type { SealedReceipt } from "../ledger/seal.ts";
import type { Opened, Store } from "../store/store.ts";
import type { NumberedEvent } from "./batch.ts";
import type { TimeSources } from "./clock.ts";
import type { EncodeEvent } from "./codec/event-text.ts";
import type { V8Heap } from "./v8-heap.ts";

export interface EngineOptions {
  readonly store: Store;
  /** Encodes an event as the text that is sent. */
  readonly encodeEvent: EncodeEvent;
  readonly log: EngineLog;
  readonly time?: TimeSources;
  /** How far the wall clock may have jumped ahead where leases are alive (L7). Absent: the named limit. */
  readonly clockJumpMsMax?: number;
  /** For simulations, which draw from a seed. */
  readonly drawEntropy?: () => Entropy;
  /** Opens the key that signs the heads of the ledger, once the data is ours. Absent: a key that ends with the process. */
  readonly ledgerKey?: () => LedgerKey;
  /** How much text of payloads memory keeps (S4). Absent: the named limit. */
  readonly payloadCharsMax?: number;
  /** For tests; the process has one. */
  readonly heap?: V8Heap;
  /** An election that is won already: the store is open. Absent: the engine opens it. */
  readonly opened?: Opened;
  /** Called in place of a recovery when memory was dropped: the term is over, and others may lead (leadership.ts). */
  readonly onTermOver?: (fault: unknown) => void;
  /** False: a shard that adopts its tenants from the directory's. Absent: a first start makes the default tenant. */
  readonly makesDefaultTenant?: boolean;
  /** Encrypts what agent tokens are derived from, where others can read the data. */
  readonly secrets?: SecretBox;
}

export interface SecretBox {
  seal(text: string): string;
  open(sealed: string): string;
}

export interface EngineLog {
  info(details: object, message: string): void;
  warn(details: object, message: string): void;
  error(details: object, message: string): void;
}

/** A decided command. Its caller gets it when the batch is durable; before that only `Outlet.encode` sees it. */
export interface Decision {
  readonly reply: Reply;
  /** When it was decided: remaining times in the reply are as of then. */
  readonly now: Millis;
  /** What it added to the ledger, in order, with its place in the chain. */
  readonly receipts: readonly SealedReceipt[];
}

/**
 * Where the outcome of a command goes. `encode` runs at once, and only what it returns is kept in memory until the commit;
 * where it is null the decision itself is kept. `send` gets that when it is durable; `fail` is called instead if that
 * cannot be known (S2).
 */
export interface Outlet<T = Decision> {
  readonly encode: ((decided: Decision) => T) | null;
  send(encoded: T): void;
  fail(fault: Error): void;
}

/** Who learns that the outcome is unknown. */
export interface Caller {
  readonly outlet: Pick<Outlet<never>, "fail">;
}

export interface CommitNote {
  /** By the monotonic clock. */
  readonly began: number;
  readonly ms: number;
  readonly answered: number;
  readonly rows: number;
}

/** How many commits are noted before the metrics get them. */
export const notedMax = 1_000;

/**
 * For metrics: commits, and by how much what was due was settled late. They are handed over after many commits and before
 * the metrics are read, so that a commit costs no more than a note.
 */
export class Vitals {
  commits: CommitNote[] = [];
  latenessMs: number[] = [];
  onNoted: ((commits: readonly CommitNote[], latenessMs: readonly number[]) => void) | null = null;

  handOver(): void {
    this.onNoted?.(this.commits, this.latenessMs);
    this.commits = [];
    this.latenessMs = [];
  }
}

export type EventListener = (events: readonly NumberedEvent[]) => void;
export type ReadyListener = (ready: readonly ReadyTask[]) => void;

/** S2: the store failed, so the outcome is unknown; the idempotency key settles what became of a command. */
export class DatabaseUnavailable extends Error {
  constructor(cause?: unknown) {
    super("the database is not available; try again, with the same request_id", { cause });
    this.name = "DatabaseUnavailable";
  }
}

/** S4: what adds records or lets them grow. What ends something, or extends it, is always decided. */
const growing: ReadonlySet<string> = new Set([
  "acquire",
  "register_agent",
  "save_digest",
  "declare_resource",
  "enrol_cell",
  "create_task",
  "set_task_type",
  "create_tenant",
  "create_key",
]);

/** True: the command was refused. */
export function refuseGrowth({ type }: Command, outlet: Caller["outlet"]): boolean {
  if (!growing.has(type)) return false;
  outlet.fail(new OutOfMemory());
  return true;
}

/** S4: what would add records while the heap is nearly full. Nothing was decided. */
export class OutOfMemory extends Error {
  constructor() {
    super("the server's memory is nearly used up, and nothing can be added; try again later");
    this.name = "OutOfMemory";
  }
}

export class ShuttingDown extends Error {
  constructor() {
    super("the server is shutting down; try again when it is back");
    this.name = "ShuttingDown";
  }
}
