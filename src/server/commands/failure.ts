/** How a command that cannot be done ends: one line that says what to do, and a code that a script can tell apart. */
import { LedgerKeyUnusable } from "../../ledger/key-file.ts";
import { StoreFault } from "../../store/faults.ts";
import { MasterKeysUnusable } from "../../token/node/master-keys.ts";
import { ConfigProblem } from "../config/config.ts";
import { NoKeys } from "../config/no-keys.ts";

export const exitCodes = {
  done: 0,
  failed: 1,
  usage: 2,
  dataLocked: 3,
  dataTooNew: 4,
  cannotListen: 5,
} as const;

/** Something that the command was asked for cannot be done, and the message says why. */
export class CommandFailed extends Error {
  constructor(message: string, options: { readonly cause?: unknown } = {}) {
    super(message, options);
    this.name = "CommandFailed";
  }
}

export function describeFailure(error: unknown): { readonly line: string; readonly code: number } {
  if (error instanceof ConfigProblem || error instanceof NoKeys) return { line: error.message, code: exitCodes.usage };
  if (error instanceof CommandFailed || error instanceof LedgerKeyUnusable || error instanceof MasterKeysUnusable)
    return { line: error.message, code: exitCodes.failed };
  if (error instanceof StoreFault) {
    if (error.code === "store_locked") return { line: error.message, code: exitCodes.dataLocked };
    if (error.code === "schema_too_new") return { line: error.message, code: exitCodes.dataTooNew };
    return { line: withCause(error), code: exitCodes.failed };
  }
  if (error instanceof Error && "syscall" in error && (error.syscall === "listen" || error.syscall === "getaddrinfo")) {
    return { line: listenProblem(error), code: exitCodes.cannotListen };
  }
  return { line: error instanceof Error ? (error.stack ?? error.message) : String(error), code: exitCodes.failed };
}

function listenProblem(
  error: Error & { readonly code?: string; readonly address?: string; readonly port?: number },
): string {
  const where = error.port === undefined ? "that address" : `${error.address}:${error.port}`;
  switch (error.code) {
    case "EADDRINUSE":
      return `${where} is in use by another program; stop it, or choose another with --port`;
    case "EACCES":
      return `${where} may not be listened on by this user; choose a port from 1024 with --port`;
    default:
      return `cannot listen at ${where}: ${error.message}`;
  }
}

function withCause(error: Error): string {
  const { cause } = error;
  const [why] = (cause instanceof Error ? cause.message : typeof cause === "string" ? cause : "").split("\n");
  return why ? `${error.message}: ${why}` : error.message;
}
