/**
 * kill -9 under load, repeatedly on the same data: agents compete, the server is killed at any moment and restarted,
 * and everything that it acknowledged is checked before any other client connects.
 */
import type { Random } from "../sim/random.ts";
import { type ServerProcess, spawnServer } from "./server-process.ts";
import { type Findings, startTrial } from "./trial.ts";

export interface KillOptions {
  readonly dataFolder: string;
  readonly rounds: number;
  /** The longest that a round's load lasts before the kill. */
  readonly seconds: number;
  readonly seed: number;
  readonly agents: number;
  readonly onRound?: (progress: Progress) => void;
}

export interface Progress {
  rounds: number;
  kills: number;
  killsWhileStarting: number;
  readonly restartsMs: number[];
  readonly findings: Findings;
}

/** Some kills come while the server is still recovering from the last. */
const killWhileStarting = 0.15;
const killWhileStartingMsMax = 700;
/** The shortest load, as a share of the longest. */
const loadShareMin = 0.2;

export async function runRounds(options: KillOptions): Promise<Progress> {
  const { dataFolder, rounds, seconds, seed, agents, onRound } = options;
  const trial = await startTrial({ agents, seed });
  const { port, random, findings, violations } = trial;
  const progress: Progress = { rounds: 0, kills: 0, killsWhileStarting: 0, restartsMs: [], findings };
  let server = spawnServer(port, dataFolder);
  try {
    await server.untilReady();
    await trial.register();
    while (progress.rounds < rounds && violations.found.length === 0) {
      trial.begin();
      const share = loadShareMin + (1 - loadShareMin) * (random.bits() / 2 ** 32);
      await new Promise((resolve) => setTimeout(resolve, seconds * 1_000 * share));
      await server.kill();
      progress.kills++;
      await trial.end("broken");
      server = await restart(port, dataFolder, random, progress);
      await trial.verify();
      progress.rounds++;
      onRound?.(progress);
    }
  } finally {
    await trial.close();
    await server.kill();
  }
  return progress;
}

async function restart(port: number, dataFolder: string, random: Random, progress: Progress): Promise<ServerProcess> {
  for (;;) {
    const server = spawnServer(port, dataFolder);
    if (!random.chance(killWhileStarting)) {
      progress.restartsMs.push(await server.untilReady());
      return server;
    }
    await new Promise((resolve) => setTimeout(resolve, random.below(killWhileStartingMsMax)));
    await server.kill();
    progress.killsWhileStarting++;
  }
}
