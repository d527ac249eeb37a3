/**
 * The deterministic simulation.
 *
 *   npm run sim -- --seed 7 --steps 1000       one seed, twice: its transcript must be the same
 *   npm run sim -- --seed 1 --seeds 50         fifty seeds from 1 on, over two threads
 *   npm run sim -- --tasks 1000                1,000 tasks through the engine, with faults; 0 for none
 *   npm run sim -- --long                      1,000,000 steps over 1,000 seeds, and 10,000 tasks through the engine;
 *                                              every counter must be above 0
 */
import { parseArgs } from "node:util";
import { type Counters, describe, missing, missingOfService } from "./counters.ts";
import { runFleet } from "./fleet.ts";
import { runSeed } from "./run.ts";
import { runService } from "./service/run-service.ts";
import type { SeedJob, SeedReport } from "./worker.ts";

const workers = 2;
const longSeeds = 1_000;
/** Every fifth world is large; together a million steps. */
const longSteps = { small: 1_100, large: 600 };
const longTasks = 10_000;
/** In the long form every Nth seed runs twice, to check that its transcripts are the same. */
const repeatedEvery = 100;

process.exitCode = await main();

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      seed: { type: "string", default: "1" },
      seeds: { type: "string", default: "1" },
      steps: { type: "string", default: "1000" },
      tasks: { type: "string", default: "200" },
      long: { type: "boolean", default: false },
    },
  });
  const [seed, seeds, steps] = [values.seed, values.seeds, values.steps].map(Number);
  const tasks = values.long ? longTasks : Number(values.tasks);
  if (![seed, seeds, steps, tasks + 1].every((number) => Number.isSafeInteger(number) && Number(number) >= 1)) {
    console.error("sim: --seed, --seeds and --steps are whole numbers of at least 1, --tasks of at least 0.");
    return 2;
  }
  const jobs = values.long ? longJobs() : jobsFrom(Number(seed), Number(seeds), Number(steps));
  const began = performance.now();
  const result = await runFleet(jobs, Math.min(workers, jobs.length), ({ seeds: done, steps: made }) => {
    console.log(`sim: ${done} of ${jobs.length} seeds, ${made} steps`);
  });
  if (result.failures.length > 0) {
    for (const failure of result.failures) report(failure);
    return 1;
  }
  const repeated = values.long ? jobs.filter((job) => job.seed % repeatedEvery === 0) : jobs.slice(0, 1);
  if (!isRepeatable(repeated, result.hashes)) return 1;

  console.log(describe(result.counters));
  const seconds = ((performance.now() - began) / 1_000).toFixed(1);
  console.log(`sim: ${result.seeds} seeds, ${result.steps} steps, ${seconds} s, no violation`);
  console.log(`sim: transcript ${result.hash}`);
  const unmet = values.long ? missing(result.counters) : [];
  if (unmet.length > 0) console.error(`sim: never exercised: ${unmet.join(", ")}`);
  const isServed = tasks === 0 || (await serve(Number(seed), tasks, values.long));
  return unmet.length > 0 || !isServed ? 1 : 0;
}

/** Runs the tasks through the real engine. */
async function serve(seed: number, tasks: number, isLong: boolean): Promise<boolean> {
  const counters: Counters = new Map();
  const began = performance.now();
  try {
    const { receipts, dead, simulatedMs } = await runService(seed, tasks, counters);
    console.log(describe(counters));
    const seconds = ((performance.now() - began) / 1_000).toFixed(1);
    const what = `${tasks} tasks, ${dead} of them dead letters, ${receipts} receipts`;
    console.log(`sim: ${what}, ${Math.round(simulatedMs / 1_000)} simulated s in ${seconds} s, no violation`);
  } catch (fault) {
    console.error(`sim: the service with seed ${seed} and ${tasks} tasks violates an invariant`);
    console.error(fault instanceof Error ? (fault.stack ?? fault.message) : fault);
    console.error(`sim: repeat it with\n  npm run sim -- --seed ${seed} --steps 1 --tasks ${tasks}`);
    return false;
  }
  const unmet = isLong ? missingOfService(counters) : [];
  if (unmet.length > 0) console.error(`sim: never happened in the service: ${unmet.join(", ")}`);
  return unmet.length === 0;
}

function jobsFrom(first: number, howMany: number, steps: number): SeedJob[] {
  return Array.from({ length: howMany }, (_, index) => ({ seed: first + index, steps }));
}

function longJobs(): SeedJob[] {
  return Array.from({ length: longSeeds }, (_, index) => {
    const seed = index + 1;
    return { seed, steps: seed % 5 === 0 ? longSteps.large : longSteps.small };
  });
}

/** Each seed ran in a thread before; here it runs again and must give the same transcript. */
function isRepeatable(jobs: readonly SeedJob[], hashes: ReadonlyMap<number, string>): boolean {
  for (const { seed, steps } of jobs) {
    if (runSeed(seed, steps, new Map()).hash === hashes.get(seed)) continue;
    console.error(`sim: seed ${seed} gave two transcripts; something in it is not determined by the seed.`);
    return false;
  }
  return true;
}

function report({ seed, steps, failure }: SeedReport): void {
  console.error(`sim: seed ${seed} violates an invariant\n  ${failure}`);
  console.error(`sim: repeat it with\n  npm run sim -- --seed ${seed} --steps ${steps}`);
}
