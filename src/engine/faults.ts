/** How the engine fails its callers. Both say that the outcome of what was under way is unknown or that nothing was done. */

/** S2: the store let us down; the idempotency key settles what became of a command. */
export class DatabaseUnavailable extends Error {
  constructor(cause?: unknown) {
    super("the database is not available; try again, with the same request_id", { cause });
    this.name = "DatabaseUnavailable";
  }
}

export class ShuttingDown extends Error {
  constructor() {
    super("the server is shutting down; try again when it is back");
    this.name = "ShuttingDown";
  }
}
