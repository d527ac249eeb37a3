/** How a command that cannot be done ends: one line that says what to do, and a code that a script can tell apart. */
import type { LeaseholdError } from "../sdk/errors.ts";
import { describeFailure as describeServerFailure } from "../server/commands/failure.ts";
import { exitCodes } from "./exit-codes.ts";
import { plain } from "./plain-text.ts";
import { Failure, UsageProblem } from "./problem.ts";

export interface Described {
  readonly line: string;
  readonly code: number;
  /** What the server said, for those who asked for JSON. */
  readonly body: unknown;
}

export function describeFailure(error: unknown, url: string | null): Described {
  if (error instanceof UsageProblem) return { line: oneLine(error.message), code: exitCodes.usage, body: null };
  if (error instanceof Failure) return { line: oneLine(error.message), code: error.code, body: error.body };
  if (isServersWord(error)) return { line: oneLine(lineOf(error, url)), code: codeOf(error), body: error.body };
  if (isSystemError(error)) return { line: oneLine(error.message), code: exitCodes.failed, body: null };
  return { ...describeServerFailure(error), body: null };
}

/** By its shape, so that commands that need no server do not load the SDK. */
export function isServersWord(error: unknown): error is LeaseholdError {
  return error instanceof Error && "code" in error && "detail" in error && "retryable" in error;
}

function lineOf({ code, detail }: LeaseholdError, url: string | null): string {
  switch (code) {
    case "unreachable":
      return `no server answers at ${url}; start one with \`leasehold serve\`, or name another with --url`;
    case "timeout":
      return `the server at ${url} did not answer in time; see whether it is well with \`leasehold doctor\``;
    case "unauthorized":
      return `${detail} Give the key with --key, or in LEASEHOLD_KEY.`;
    default:
      return `${detail} (${code})`;
  }
}

function codeOf({ code, status }: LeaseholdError): number {
  switch (code) {
    case "unreachable":
    case "bad_answer":
    case "unauthorized":
    case "forbidden":
    case "tenant_unknown":
    case "host_not_allowed":
    case "duplicate_intent":
    case "manifest_too_large":
      return exitCodes.usage;
    case "die":
    case "would_wait":
    case "wait_timeout":
    case "request_canceled":
    case "lease_denied":
    case "paused":
      return exitCodes.notGranted;
    case "timeout":
    case "rate_limited":
    case "too_many_connections":
    case "too_many_in_flight":
    case "shutting_down":
    case "database_unavailable":
      return exitCodes.unavailable;
    case "lease_lost":
      return exitCodes.leaseLost;
    default:
      return status === 400 || status === 413 || status === 422 ? exitCodes.usage : exitCodes.failed;
  }
}

/** The outside failed (a file, a socket), and Node's sentence says how; a stack would say no more. */
function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && "syscall" in error && error.syscall !== "listen" && error.syscall !== "getaddrinfo";
}

function oneLine(text: string): string {
  return plain(text.replaceAll(/\s*\n\s*/g, " ").trim());
}
