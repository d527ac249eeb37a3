/** How a store fails. These are faults of the outside: exceptions with their cause, in a closed list. */

export const storeFaultCodes = [
  "store_failed",
  "store_closed",
  "store_locked",
  "stale_epoch",
  "schema_too_new",
  "store_unsupported",
] as const;
export type StoreFaultCode = (typeof storeFaultCodes)[number];

/**
 * After one of these from a commit, memory may be ahead of the disk or behind it, and only the disk counts (S2): the
 * store object refuses everything until it is reopened.
 */
export class StoreFault extends Error {
  readonly code: StoreFaultCode;

  constructor(message: string, options: { readonly code?: StoreFaultCode; readonly cause?: unknown } = {}) {
    super(message, "cause" in options ? { cause: options.cause } : {});
    this.name = new.target.name;
    this.code = options.code ?? "store_failed";
  }
}

/** Called before it was opened, or after it was closed. */
export class StoreClosed extends StoreFault {
  constructor(message = "the store is not open") {
    super(message, { code: "store_closed" });
  }
}

/** Another server works on the same data. There is only ever one writer. */
export class StoreLocked extends StoreFault {
  constructor(message: string, cause?: unknown) {
    super(message, { code: "store_locked", cause });
  }
}

/** Another server has become the writer since this one was opened; nothing of the batch was stored. */
export class StaleEpoch extends StoreFault {
  constructor(message: string) {
    super(message, { code: "stale_epoch" });
  }
}

export function staleEpoch(epoch: number): StaleEpoch {
  return new StaleEpoch(`epoch ${epoch} is over: another server has taken the data since`);
}

/** The data was written by a newer Leasehold. It is not touched: an older version could only guess what it means. */
export class SchemaTooNew extends StoreFault {
  constructor(message: string) {
    super(message, { code: "schema_too_new" });
  }
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

export function faultFrom({ code, message, cause }: FaultReport): StoreFault {
  switch (code) {
    case "store_closed":
      return new StoreClosed(message);
    case "store_locked":
      return new StoreLocked(message, cause ?? undefined);
    case "stale_epoch":
      return new StaleEpoch(message);
    case "schema_too_new":
      return new SchemaTooNew(message);
    case "store_failed":
    case "store_unsupported":
      return new StoreFault(message, { code, cause });
  }
}
