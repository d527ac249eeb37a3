/**
 * One fault under load: the disk fails while agents work, recovers, and they continue. Then every acknowledgement is
 * checked, first on the running server and then after a kill -9 on the same data (S2).
 */
import type { Fault } from "./break-disk.ts";
import { isReady, type ServerProcess, spawnServer } from "./server-process.ts";
import { type Findings, startTrial } from "./trial.ts";

export interface FaultPlan {
  readonly name: string;
  readonly dataFolder: string;
  readonly begin: (server: ServerProcess) => Fault | Promise<Fault>;
  /** How long the fault lasts, or that it ends once a commit has failed. */
  readonly faultMs: number | "until a commit fails";
  /** What the log must say of the cause. */
  readonly cause: RegExp;
}

export interface FaultResult {
  readonly name: string;
  readonly findings: Findings;
  /** From the end of the fault until the server served again; 0 if it always did. */
  readonly recoveredMs: number;
  readonly refused: number;
  readonly message: string;
  /** Log lines about a failed commit: one for each time that the service was lost. */
  readonly lost: number;
}

const beforeMs = 600;
const afterMs = 700;
const recoveryMsMax = 15_000;
const agents = 16;

export async function runFault(plan: FaultPlan, seed: number): Promise<FaultResult> {
  const trial = await startTrial({ agents, seed });
  const { port, violations, findings } = trial;
  let server = spawnServer(port, plan.dataFolder);
  try {
    await server.untilReady();
    await trial.register();
    trial.begin();
    await sleep(beforeMs);
    const fault = await plan.begin(server);
    if (plan.faultMs === "until a commit fails") await untilFelt(server);
    else await sleep(plan.faultMs);
    await fault.end();
    const recoveredMs = await untilServing(port, server);
    if (recoveredMs > recoveryMsMax) violations.add("S2", "the service did not recover", tailOf(server));
    await sleep(afterMs);
    await trial.end("stop");
    const refused = findings.tally.unknown;
    if (refused === 0) violations.add("S2", "no client got an error", tailOf(server));
    await trial.verify();
    const failures = server.log.filter(isFailure);
    const message = causeIn(failures[0] ?? "");
    if (!plan.cause.test(message)) violations.add("S2", "the log does not name the cause", tailOf(server));
    await server.kill();
    server = spawnServer(port, plan.dataFolder);
    await server.untilReady();
    await trial.verify();
    return { name: plan.name, findings, recoveredMs, refused, message, lost: failures.length };
  } finally {
    await trial.close();
    await server.kill();
  }
}

const isFailure = (line: string): boolean => line.includes("a commit failed");
const feltMsMax = 5_000;

async function untilFelt({ log }: ServerProcess): Promise<void> {
  for (const began = performance.now(); performance.now() - began < feltMsMax && !log.some(isFailure); ) await sleep(1);
}

async function untilServing(port: number, server: ServerProcess): Promise<number> {
  const began = performance.now();
  while (!(await isReady(port)) && performance.now() - began <= recoveryMsMax) {
    if (server.hasEnded) throw new Error(`the server ended because of the fault:\n${server.log.slice(-10).join("\n")}`);
    await sleep(5);
  }
  return performance.now() - began;
}

/** The line is JSON; what happened is the message of the error in it. */
function causeIn(line: string): string {
  const { err } = (line.startsWith("{") ? JSON.parse(line) : {}) as { readonly err?: { readonly message?: string } };
  return err?.message ?? line;
}

function tailOf({ log }: ServerProcess): { readonly log: readonly string[] } {
  return { log: log.slice(-8) };
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
