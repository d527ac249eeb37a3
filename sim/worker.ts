/** A worker thread: runs the seeds that it is sent, one after another. */
import { parentPort } from "node:worker_threads";
import type { Counters } from "./counters.ts";
import { runSeed, type SeedResult } from "./run.ts";

export interface SeedJob {
  readonly seed: number;
  readonly steps: number;
}

export interface SeedReport extends SeedResult {
  readonly counters: readonly (readonly [string, number])[];
}

parentPort?.on("message", ({ seed, steps }: SeedJob) => {
  const counters: Counters = new Map();
  const result = runSeed(seed, steps, counters);
  const report: SeedReport = { ...result, counters: [...counters] };
  parentPort?.postMessage(report);
});
