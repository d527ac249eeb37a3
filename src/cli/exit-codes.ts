import type { LeaseholdError } from "../sdk/errors.ts";

/** Every exit code, in one table. docs/cli.md shows it; a test compares the two. */
export const exitCodes = {
  done: 0,
  failed: 1,
  usage: 2,
  dataLocked: 3,
  dataTooNew: 4,
  cannotListen: 5,
  unavailable: 6,
  notSo: 7,
  notGranted: 107,
  leaseLost: 108,
  cannotRun: 126,
  noSuchCommand: 127,
} as const;

export type ExitName = keyof typeof exitCodes;

export const exitMeanings: Readonly<Record<ExitName, string>> = {
  done: "done, or stopped by a signal",
  failed: "failed, or refused by the server; the line on standard error says why",
  usage: "wrong usage: a flag, a name, an address or a key; the line says what to give",
  dataLocked: "another server has the data",
  dataTooNew: "the data was written by a newer Leasehold",
  cannotListen: "the server cannot listen at that address",
  unavailable: "the server cannot serve now, or does not answer in time; try again",
  notSo: "the check failed: `verify`, `token verify`, `token inspect`, `cell --check`, `ledger verify`, `doctor`",
  notGranted:
    "the lease was not granted: another holder is in the way, or it did not come in time; `run -E` chooses another code",
  leaseLost: "`run` and `work`: the lease was lost, and so the command was stopped",
  cannotRun: "`run` and `work`: the command cannot be executed",
  noSuchCommand: "`run` and `work`: the command was not found",
};

/** Of the server's refusals; all others are wrong usage or a failure, by their status. */
const refusals: Readonly<Partial<Record<ExitName, string>>> = {
  usage:
    "unreachable bad_answer unauthorized forbidden tenant_unknown host_not_allowed duplicate_intent manifest_too_large",
  notGranted: "die would_wait wait_timeout request_canceled lease_denied paused",
  unavailable: "timeout rate_limited too_many_connections too_many_in_flight shutting_down database_unavailable",
  leaseLost: "lease_lost",
};
const refusalCodes = new Map(
  Object.entries(refusals).flatMap(([name, codes]) =>
    codes.split(" ").map((code) => [code, exitCodes[name as ExitName]]),
  ),
);

export function serverErrorCode({ code, status }: LeaseholdError): number {
  const isWrong = status === 400 || status === 413 || status === 422;
  return refusalCodes.get(code) ?? (isWrong ? exitCodes.usage : exitCodes.failed);
}

/** As shells report a command that a signal ended. */
export function signalCode(signal: number): number {
  return 128 + signal;
}

/** The table as docs/cli.md shows it. */
export function exitCodeTable(): string {
  const rows = (Object.keys(exitCodes) as ExitName[]).map((name) => `| ${exitCodes[name]} | ${exitMeanings[name]} |`);
  return ["| exit code | meaning |", "| --- | --- |", ...rows].join("\n");
}
