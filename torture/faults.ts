/**
 * Real disk faults under load: fsync errors and full disks injected by strace, a disk that is really full, and a file
 * size limit. Nothing acknowledged is lost, no reply is wrong, and the log says what happened (S2).
 *
 *   npm run torture:faults [-- --seed 1]
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { format } from "../bench/children.ts";
import { dataFiles } from "../src/store/sqlite-files.ts";
import { createSmallDisk, failSyscalls, hasStrace, limitFileSize, type SmallDisk } from "./break-disk.ts";
import { type FaultPlan, type FaultResult, runFault } from "./fault-trial.ts";
import { exitOnSignals } from "./server-process.ts";
import { describeViolations } from "./violations.ts";

const { values } = parseArgs({ options: { seed: { type: "string", default: String(Date.now() % 1_000_000) } } });
const scratch = mkdtempSync(join(tmpdir(), "leasehold-faults-"));
const folderFor = (name: string): string => join(scratch, name.replaceAll(/\W+/g, "-"));

const fsyncFailed = /did not confirm the write \(fsync failed\)/;
const diskFull = /the disk is full/;
const writeFailed = /reading or writing the disk failed|the disk is full/;

type Injection = readonly [
  name: string,
  calls: string,
  error: string,
  when: string,
  faultMs: FaultPlan["faultMs"],
  cause: RegExp,
];

const injections: readonly Injection[] = [
  ["one fsync fails (EIO)", "fsync,fdatasync", "EIO", "3", "until a commit fails", fsyncFailed],
  ["every fsync fails (EIO)", "fsync,fdatasync", "EIO", "1+", 1_500, fsyncFailed],
  ["one write finds no space (ENOSPC)", "pwrite64", "ENOSPC", "20", "until a commit fails", diskFull],
  ["every write finds no space (ENOSPC)", "pwrite64", "ENOSPC", "1+", 1_500, diskFull],
  ["one write fails (EIO)", "pwrite64", "EIO", "5", "until a commit fails", writeFailed],
];

const plans: FaultPlan[] = [];
for (const [name, calls, error, when, faultMs, cause] of hasStrace ? injections : []) {
  plans.push({
    name,
    dataFolder: folderFor(name),
    begin: ({ pid }) => failSyscalls(pid, calls, error, when),
    faultMs,
    cause,
  });
}
/** The journal is well, but what it has cannot be moved into the tables: the commits after that fail. */
const foldInjections = [
  ["the fold finds no space (ENOSPC)", "pwrite64", "ENOSPC", diskFull],
  ["the fold's fsync fails (EIO)", "fsync,fdatasync", "EIO", fsyncFailed],
] as const;
for (const [name, calls, error, cause] of hasStrace ? foldInjections : []) {
  const dataFolder = folderFor(name);
  const log = `${dataFiles(dataFolder).database}-wal`;
  const begin: FaultPlan["begin"] = ({ pid }) => failSyscalls(pid, calls, error, "1+", log);
  plans.push({ name, dataFolder, begin, faultMs: 1_500, cause });
}
if (!hasStrace) console.log("strace is missing (apt-get install strace): faults of single system calls are NOT tried.");

exitOnSignals();
const smallDisk: SmallDisk | null = createSmallDisk(48);
process.on("exit", () => smallDisk?.remove());
if (smallDisk !== null) {
  const { folder, fill } = smallDisk;
  plans.push({ name: "a full disk (tmpfs)", dataFolder: folder, begin: fill, faultMs: 1_500, cause: diskFull });
} else console.log("cannot mount a file system (root can): a really full disk is NOT tried.");

const name = "files that cannot grow (RLIMIT_FSIZE)";
const begin: FaultPlan["begin"] = ({ pid }) => limitFileSize(pid, 64 * 1024);
plans.push({ name, dataFolder: folderFor(name), begin, faultMs: 1_500, cause: writeFailed });

const results: FaultResult[] = [];
for (const plan of plans) {
  process.stdout.write(`  ${plan.name} … `);
  const result = await runFault(plan, Number(values.seed));
  results.push(result);
  console.log(summaryOf(result));
}

const broken = results.flatMap(({ findings }) => findings.violations);
const verified = results.reduce((sum, { findings }) => sum + findings.verified, 0);
console.log(
  `${plans.length} faults, ${format(verified)} checks of acknowledged leases, ${broken.length} violations (bar 0)`,
);
if (broken.length > 0) {
  console.error(`${describeViolations(broken)}\nThe data is kept in ${scratch}.`);
  process.exitCode = 1;
} else rmSync(scratch, { recursive: true });

function summaryOf({ findings, refused, recoveredMs, lost, message }: FaultResult): string {
  const { tally, violations } = findings;
  return [
    `${violations.length === 0 ? "kept" : `${violations.length} BROKEN`}: ${format(tally.grants)} grants`,
    `${refused} got 503`,
    `service lost ${lost} ×, back ${format(recoveredMs)} ms after the fault`,
    `"${message}"`,
  ].join(", ");
}
