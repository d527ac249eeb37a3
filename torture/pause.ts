/**
 * The pause test, as Jepsen did it for etcd's locks: five processes add to one set under leases of two seconds, and are
 * stopped at random for up to five. A holder that continues after its lease has ended writes what it had read before.
 * Where the set checks the fence of every operation, no acknowledged addition is lost; with a plain lock some are.
 *
 *   npm run torture:pause [-- --seconds 300]
 */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { startServer } from "../src/server/start.ts";
import { openSet, type SharedSet } from "./pause-set.ts";

export interface PauseResult {
  /** Acknowledged additions. */
  readonly acknowledged: number;
  /** Acknowledged additions that are not in the set at the end. */
  readonly lost: number;
  /** Operations with a stale fence. */
  readonly refused: number;
  readonly pauses: number;
}

const adders = 5;
const pauseMsMax = 5_000;
const betweenMsMax = 600;

/** Fenced and plain at the same time, each on its own set. */
export async function pauseTrial(
  seconds: number,
): Promise<{ readonly fenced: PauseResult; readonly plain: PauseResult }> {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-pause-"));
  const server = await startServer({ port: 0, data: join(folder, "data"), logLevel: "silent" });
  try {
    const [fenced, plain] = await Promise.all([
      oneTrial(server.address.url, seconds, true),
      oneTrial(server.address.url, seconds, false),
    ]);
    return { fenced, plain };
  } finally {
    await server.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function oneTrial(url: string, seconds: number, isFenced: boolean): Promise<PauseResult> {
  const set = await openSet(isFenced);
  const resource = `FILE:/pause/${isFenced ? "fenced" : "plain"}`;
  const children = Array.from({ length: adders }, (_, index) =>
    spawn(process.execPath, [join(import.meta.dirname, "pause-adder.ts"), url, set.url, resource, `p${index}`], {
      stdio: ["pipe", "ignore", "inherit"],
    }),
  );
  const gone = children.map((child) => new Promise<void>((resolve) => child.once("exit", () => resolve())));
  const end = performance.now() + seconds * 1_000;
  let pauses = 0;
  const stopped = new Set<number>();
  try {
    while (performance.now() < end) {
      await sleep(Math.random() * betweenMsMax);
      const index = Math.floor(Math.random() * adders);
      const child = children[index];
      // One process always runs, else nothing would happen.
      if (child === undefined || stopped.has(index) || stopped.size === adders - 1) continue;
      stopped.add(index);
      pauses++;
      child.kill("SIGSTOP");
      setTimeout(() => {
        child.kill("SIGCONT");
        stopped.delete(index);
      }, Math.random() * pauseMsMax).unref();
    }
  } finally {
    for (const child of children) child.kill("SIGCONT");
    for (const child of children) child.stdin.end();
    const patience = setTimeout(() => {
      for (const child of children) child.kill("SIGKILL");
    }, 10_000);
    await Promise.all(gone);
    clearTimeout(patience);
  }
  const result = resultOf(set, pauses);
  await set.close();
  return result;
}

function resultOf({ acknowledged, items, refused }: SharedSet, pauses: number): PauseResult {
  const present = new Set(items);
  return {
    acknowledged: acknowledged.length,
    lost: acknowledged.filter((one) => !present.has(one)).length,
    refused,
    pauses,
  };
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { seconds: { type: "string", default: "300" } } });
  const seconds = Number(values.seconds);
  const { fenced, plain } = await pauseTrial(seconds);
  const share = ({ acknowledged, lost }: PauseResult) => ((100 * lost) / Math.max(1, acknowledged)).toFixed(1);
  for (const [name, result] of [
    ["with the fence", fenced],
    ["as a plain lock", plain],
  ] as const) {
    const { acknowledged, lost, refused, pauses } = result;
    console.log(
      `${name}: ${acknowledged} acknowledged, ${lost} lost (${share(result)} %), ${refused} refused, ${pauses} pauses`,
    );
  }
  process.exitCode = fenced.lost === 0 && fenced.acknowledged > 0 ? 0 : 1;
}
