/** Spreads seeds over worker threads. Results arrive in any order and are combined by seed. */
import { createHash } from "node:crypto";
import { Worker } from "node:worker_threads";
import { addAll, type Counters } from "./counters.ts";
import type { SeedJob, SeedReport } from "./worker.ts";

export interface FleetResult {
  readonly seeds: number;
  readonly steps: number;
  readonly counters: Counters;
  /** Hash of the seeds' hashes, in the order of the seeds. */
  readonly hash: string;
  readonly hashes: ReadonlyMap<number, string>;
  readonly failures: readonly SeedReport[];
}

export interface Progress {
  readonly seeds: number;
  readonly steps: number;
}

/** Stops after the first failed seed. */
export async function runFleet(
  jobs: readonly SeedJob[],
  workers: number,
  onProgress: (progress: Progress) => void,
): Promise<FleetResult> {
  const reports: SeedReport[] = [];
  const left = [...jobs].reverse();
  const timer = setInterval(() => onProgress(sumOf(reports)), 2_000);
  try {
    const hasFailed = () => reports.some((report) => report.failure !== null);
    const next = () => (hasFailed() ? undefined : left.pop());
    await Promise.all(Array.from({ length: workers }, () => runWorker(next, (report) => reports.push(report))));
  } finally {
    clearInterval(timer);
  }
  reports.sort((a, b) => a.seed - b.seed);
  const counters: Counters = new Map();
  const hash = createHash("sha256");
  for (const report of reports) {
    addAll(counters, report.counters);
    hash.update(report.hash);
  }
  const failures = reports.filter((report) => report.failure !== null);
  const hashes = new Map(reports.map((report) => [report.seed, report.hash]));
  return { ...sumOf(reports), counters, hash: hash.digest("hex"), hashes, failures };
}

function runWorker(next: () => SeedJob | undefined, onReport: (report: SeedReport) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL("./worker.ts", import.meta.url));
    const goOn = () => {
      const job = next();
      if (job === undefined) void worker.terminate();
      else worker.postMessage(job);
    };
    worker.on("message", (report: SeedReport) => {
      onReport(report);
      goOn();
    });
    worker.on("error", reject);
    worker.on("exit", () => resolve());
    goOn();
  });
}

function sumOf(reports: readonly SeedReport[]): Progress {
  return { seeds: reports.length, steps: reports.reduce((sum, report) => sum + report.steps, 0) };
}
