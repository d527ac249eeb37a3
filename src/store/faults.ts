/** How a store fails. These are faults of the outside: exceptions with their cause and a code of a closed list. */

export type StoreFaultCode =
  | "store_failed"
  /** Called before it was opened, or after it was closed. */
  | "store_closed"
  /** Another server works on the same data. There is only ever one writer. */
  | "store_locked"
  /** Another server has become the writer since this one was opened; nothing of the batch was stored. */
  | "stale_epoch"
  /** The data was written by a newer Leasehold. It is not touched: an older version could only guess what it means. */
  | "schema_too_new"
  /** The database cannot be used as it is named or set up: an operator has to change something. */
  | "store_refused"
  | "store_unsupported";

/**
 * After one of these from a commit, memory may be ahead of the disk or behind it, and only the disk counts (S2): the
 * store object refuses everything until it is reopened.
 */
export class StoreFault extends Error {
  readonly code: StoreFaultCode;

  constructor(message: string, options: { readonly code?: StoreFaultCode; readonly cause?: unknown } = {}) {
    super(message, "cause" in options ? { cause: options.cause } : {});
    this.name = "StoreFault";
    this.code = options.code ?? "store_failed";
  }
}

export function storeClosed(message = "the store is not open"): StoreFault {
  return new StoreFault(message, { code: "store_closed" });
}

export function staleEpoch(epoch: number): StoreFault {
  const message = `epoch ${epoch} is over: another server has taken the data since`;
  return new StoreFault(message, { code: "stale_epoch" });
}

/** A fault as data, because an exception that crosses threads loses its class. */
export interface FaultReport {
  readonly code: StoreFaultCode;
  readonly message: string;
  readonly cause: string | null;
}

export function reportOf(error: unknown): FaultReport {
  if (!(error instanceof Error)) return { code: "store_failed", message: String(error), cause: null };
  const cause = error.cause instanceof Error ? (error.cause.stack ?? error.cause.message) : null;
  if (error instanceof StoreFault) return { code: error.code, message: error.message, cause };
  return { code: "store_failed", message: error.message, cause: error.stack ?? null };
}

export function faultFrom({ message, ...options }: FaultReport): StoreFault {
  return new StoreFault(message, options);
}
