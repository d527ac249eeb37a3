/** What a command cannot do, as one line that says what to do instead. */
import type { LeaseholdError } from "../sdk/errors.ts";
import { exitCodes } from "./exit-codes.ts";

/** The user got something wrong: a flag, a name, an address, a key. */
export class UsageProblem extends Error {
  override readonly name = "UsageProblem";
}

/** The request was right, and cannot be done. */
export class Failure extends Error {
  override readonly name = "Failure";
  readonly code: number;
  /** The server's answer, for `--json`. */
  readonly body: unknown;

  constructor(
    message: string,
    code: number = exitCodes.failed,
    { cause, body = null }: { readonly cause?: unknown; readonly body?: unknown } = {},
  ) {
    super(message, cause === undefined ? {} : { cause });
    this.code = code;
    this.body = body;
  }
}

/** Recognised by its shape, so that commands that need no server do not load the SDK. */
export function isServerError(error: unknown): error is LeaseholdError {
  return error instanceof Error && "code" in error && "detail" in error && "retryable" in error;
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
