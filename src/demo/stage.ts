/** What every part of the demo gets: the server, the time, chance, and a place to say what happens. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "../sdk/index.ts";

export interface Stage {
  readonly client: Client;
  /** Fires when the demo is over. */
  readonly signal: AbortSignal;
  /** From 0 up to 1. The same seed gives the same demo. */
  readonly random: () => number;
  /** Something worth noticing, in one sentence. */
  readonly say: (sentence: string) => void;
}

/** Rejects when the demo is over, or when the other signal fires. */
export async function pause(stage: Stage, seconds: number, signal?: AbortSignal): Promise<void> {
  const either = signal === undefined ? stage.signal : AbortSignal.any([stage.signal, signal]);
  await sleep(seconds * 1_000, undefined, { signal: either });
}

/** Around a length, so that no two turns are alike. */
export function about(stage: Stage, seconds: number): number {
  return seconds * (0.7 + 0.6 * stage.random());
}

/** A part that goes on until the demo is over. What fails in one turn is said, and the next turn begins. */
export async function repeat(stage: Stage, turn: (nth: number) => Promise<void>): Promise<void> {
  for (let nth = 0; !stage.signal.aborted; nth++) {
    try {
      await turn(nth);
    } catch (error) {
      if (stage.signal.aborted) return;
      stage.say(error instanceof Error ? error.message : String(error));
      await pause(stage, 1).catch(() => undefined);
    }
  }
}

/** Numbers that look like chance, from a seed. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
