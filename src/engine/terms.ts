/** What the engine is given, and what it gives. */
import type { KernelEvent } from "../kernel/contract/events.ts";
import type { Millis } from "../kernel/contract/records.ts";
import type { Reply } from "../kernel/contract/replies.ts";
import type { LedgerKey } from "../ledger/keys.ts";
import type { SealedReceipt } from "../ledger/seal.ts";
import type { Store } from "../store/store.ts";
import type { NumberedEvent } from "./batch.ts";
import type { TimeSources } from "./clock.ts";

export interface EngineOptions {
  readonly store: Store;
  /** How an event is put into the words that are stored and sent. */
  readonly encodeEvent: (event: KernelEvent) => string;
  readonly log: EngineLog;
  readonly time?: TimeSources;
  /** What signs the heads of the ledger, asked for once the data is ours. Absent: a key that is gone with the process. */
  readonly ledgerKey?: () => LedgerKey;
}

export interface EngineLog {
  info(details: object, message: string): void;
  warn(details: object, message: string): void;
  error(details: object, message: string): void;
}

/** A decided command; whoever holds this tells nobody before it is durable. */
export interface Decided {
  readonly reply: Reply;
  /** When it was decided: remaining times in the reply are as of then. */
  readonly now: Millis;
  /** What it added to the ledger, in order, with its place in the chain. */
  readonly receipts: readonly SealedReceipt[];
}

export type EventListener = (events: readonly NumberedEvent[]) => void;
