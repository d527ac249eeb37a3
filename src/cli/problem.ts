/** What a command cannot do, as one line that says what to do instead. */
import { exitCodes } from "./exit-codes.ts";

/** The user got something wrong: a flag, a name, an address, a key. */
export class UsageProblem extends Error {
  constructor(message: string) {
    super(message);
    this.name = "UsageProblem";
  }
}

/** It was asked for rightly, and cannot be done. */
export class Failure extends Error {
  readonly code: number;
  /** What the server said, for those who asked for JSON. */
  readonly body: unknown;

  constructor(
    message: string,
    code: number = exitCodes.failed,
    { cause, body = null }: { readonly cause?: unknown; readonly body?: unknown } = {},
  ) {
    super(message, cause === undefined ? {} : { cause });
    this.name = "Failure";
    this.code = code;
    this.body = body;
  }
}
