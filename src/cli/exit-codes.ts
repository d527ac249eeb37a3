import type { LeaseholdError } from "../sdk/errors.ts";

/** Every exit code, in one table. docs/cli.md shows it; a test compares the two. */
const table = {
  done: [0, "done, or stopped by a signal"],
  failed: [1, "failed, or refused by the server; the line on standard error says why"],
  usage: [2, "wrong usage: a flag, a name, an address or a key; the line says what to give"],
  dataLocked: [3, "another server has the data"],
  dataTooNew: [4, "the data was written by a newer Leasehold"],
  cannotListen: [5, "the server cannot listen at that address"],
  unavailable: [6, "no server answers, or it cannot serve now; try again"],
  notSo: [
    7,
    "the check failed: `verify`, `token verify`, `token inspect`, `cell --check`, `ledger verify`, `policy test`, `doctor`; or `tasks wait` saw no end in time",
  ],
  notGranted: [
    107,
    "the lease was not granted: another holder is in the way, or it did not come in time; `run -E` chooses another code",
  ],
  leaseLost: [108, "`run` and `work`: the lease was lost, and so the command was stopped"],
  cannotRun: [126, "`run` and `work`: the command cannot be executed"],
  noSuchCommand: [127, "`run` and `work`: the command was not found"],
} as const;

export type ExitName = keyof typeof table;

export const exitNames = Object.keys(table) as readonly ExitName[];
export const exitCodes = Object.fromEntries(exitNames.map((name) => [name, table[name][0]])) as Record<
  ExitName,
  number
>;

export function exitMeaning(name: ExitName): string {
  return table[name][1];
}

/** Of the server's refusals; all others are wrong usage or a failure, by their status. */
const refusals: Readonly<Partial<Record<ExitName, string>>> = {
  usage: "bad_answer unauthorized forbidden tenant_unknown host_not_allowed duplicate_intent manifest_too_large",
  notGranted: "die would_wait wait_timeout request_canceled lease_denied paused",
  unavailable:
    "unreachable timeout rate_limited too_many_connections memory_exhausted too_many_in_flight shutting_down database_unavailable no_leader",
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
  const rows = exitNames.map((name) => `| ${exitCodes[name]} | ${exitMeaning(name)} |`);
  return ["| exit code | meaning |", "| --- | --- |", ...rows].join("\n");
}
