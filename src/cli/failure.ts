/** How a command that failed ends: one line that says what to do, and a code that a script can tell apart. */
import { ClockJump } from "../engine/clock.ts";
import { LedgerKeyUnusable } from "../ledger/key-file.ts";
import type { LeaseholdError } from "../sdk/errors.ts";
import { ConfigProblem, NoKeys } from "../server/config/config.ts";
import { StoreFault } from "../store/faults.ts";
import { MasterKeysUnusable } from "../token/node/master-keys.ts";
import { isLoopback, TrustProblem } from "../trust/loopback.ts";
import { exitCodes, serverErrorCode } from "./exit-codes.ts";
import { plain } from "./plain-text.ts";
import { Failure, isServerError, UsageProblem } from "./problem.ts";

/** The line, the exit code, and the server's answer, for `--json`. */
export function describeFailure(error: unknown, url: string | null) {
  const report = (text: string, code: number, body: unknown = null) => ({ line: oneLine(text), code, body });
  const needsOperator = [ConfigProblem, NoKeys, ClockJump, TrustProblem].some((kind) => error instanceof kind);
  if (error instanceof Error && (error instanceof UsageProblem || needsOperator))
    return report(error.message, exitCodes.usage);
  if (error instanceof Failure) return report(error.message, error.code, error.body);
  if (isServerError(error)) return report(lineOf(error, url), serverErrorCode(error), error.body);
  if (error instanceof LedgerKeyUnusable || error instanceof MasterKeysUnusable)
    return report(error.message, exitCodes.failed);
  if (error instanceof StoreFault) {
    if (error.code === "store_locked") return report(error.message, exitCodes.dataLocked);
    if (error.code === "store_refused") return report(error.message, exitCodes.usage);
    if (error.code === "schema_too_new") return report(error.message, exitCodes.dataTooNew);
    return report(withCause(error), exitCodes.failed);
  }
  if (isSystemError(error)) {
    const isAddress = error.syscall === "listen" || error.syscall === "getaddrinfo";
    return isAddress ? report(listenProblem(error), exitCodes.cannotListen) : report(error.message, exitCodes.failed);
  }
  const line = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { line, code: exitCodes.failed, body: null };
}

function lineOf({ code, detail }: LeaseholdError, url: string | null): string {
  switch (code) {
    case "unreachable":
      return `no server answers at ${url}; ${startAdvice(url)}, or name another with --url`;
    case "timeout":
      return `the server at ${url} did not answer in time, though its address can be reached; check it with \`leasehold doctor\``;
    case "unauthorized":
      return `${detail} Give the key with --key, or in LEASEHOLD_KEY.`;
    default:
      return `${detail} (${code})`;
  }
}

/** One can only be started on this machine. */
export function startAdvice(url: string | null): string {
  const isHere = url !== null && isLoopback(new URL(url).hostname);
  return isHere ? "start one with `leasehold` (`npx leasehold`)" : "see that it runs and can be reached from here";
}

type SystemError = NodeJS.ErrnoException & { readonly address?: string; readonly port?: number };

/** The outside failed (a file, a socket), and Node's sentence says how; a stack would say no more. */
function isSystemError(error: unknown): error is SystemError {
  return error instanceof Error && "syscall" in error;
}

function listenProblem({ code, address, port, message }: SystemError): string {
  const where = port === undefined ? "that address" : `${address}:${port}`;
  switch (code) {
    case "EADDRINUSE":
      return `${where} is in use by another program; stop it, or choose another with --port`;
    case "EACCES":
      return `this user may not listen on ${where}; choose a port from 1024 with --port`;
    default:
      return `cannot listen at ${where}: ${message}`;
  }
}

function withCause({ message, cause }: Error): string {
  const [why] = (cause instanceof Error ? cause.message : typeof cause === "string" ? cause : "").split("\n");
  const reason = why?.replace(/^\w*Error: /, "");
  // A fault that was explained has the reason in its own words already.
  return reason && !message.includes(reason) ? `${message}: ${reason}` : message;
}

function oneLine(text: string): string {
  return plain(text.replaceAll(/\s*\n\s*/g, " ").trim());
}
