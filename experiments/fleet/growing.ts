/**
 * The setting that Klock published: five agents, 70 % of the files they touch are shared by all, and the set of files
 * of a task grows while it works. A task succeeds if all its writes are there at its end and it overwrote nothing.
 * Three ways: without coordination; optimistic, by comparing what was read at the end; with guards.
 */
import { setTimeout as pause } from "node:timers/promises";
import { edited } from "./edits.ts";
import { type Random, randomFrom } from "./random.ts";
import { makePlace, type Place } from "./repository.ts";
import { openSession } from "./session.ts";

export type GrowingWay = "no coordination" | "optimistic" | "guards";

export interface GrowingScale {
  readonly agents: number;
  readonly tasksEach: number;
  /** The files that a task touches, one after the other. */
  readonly steps: number;
  readonly sharedFiles: number;
  readonly contention: number;
  readonly thinkMs: readonly [min: number, max: number];
}

export interface GrowingResult {
  readonly way: GrowingWay;
  readonly tasks: number;
  readonly succeeded: number;
  /** Gave up after too many attempts. */
  readonly aborted: number;
  readonly retries: number;
  readonly ms: number;
}

interface Task {
  readonly id: string;
  readonly steps: readonly { readonly file: string; readonly thinkMs: number }[];
}

const optimisticTriesMax = 5;
/** After DIE an agent waits about as long as a step takes, and longer each time. */
const retryMs = 1_000;
const retryMsMax = 4_000;
/** An older agent waits until the file is free. */
const waitMs = 15_000;

export async function runGrowing(
  way: GrowingWay,
  scale: GrowingScale,
  seed: number,
  limitMs: number,
): Promise<GrowingResult> {
  const random = randomFrom(seed);
  const lists = Array.from({ length: scale.agents }, (_, agent) => tasksOf(agent, scale, random));
  const files = new Set(lists.flat().flatMap(({ steps }) => steps.map(({ file }) => file)));
  // After DIE a task first undoes its own writes and then releases its leases.
  const place = await makePlace([...files], { wait_ms: waitMs, on_die: "keep" });
  try {
    const counts = { retries: 0, aborted: 0 };
    const committed: Task[] = [];
    const end = AbortSignal.timeout(limitMs);
    const began = performance.now();
    const run = { "no coordination": uncoordinated, optimistic, guards: guarded }[way];
    await Promise.all(
      lists.map(async (tasks, agent) => {
        for (const task of tasks) {
          if (end.aborted) return;
          if (await run(place, task, agent, counts, end)) committed.push(task);
          else counts.aborted++;
        }
      }),
    );
    const ms = performance.now() - began;
    const succeeded = committed.filter(({ id, steps }) =>
      steps.every(({ file }) => place.read(file).split("\n").includes(id)),
    );
    return { way, tasks: lists.flat().length, succeeded: succeeded.length, ...counts, ms };
  } finally {
    await place.remove();
  }
}

function tasksOf(agent: number, scale: GrowingScale, random: Random): readonly Task[] {
  return Array.from({ length: scale.tasksEach }, (_, index) => {
    const files = new Set<string>();
    while (files.size < scale.steps) {
      const isShared = random.chance(scale.contention);
      files.add(
        isShared
          ? `shared-${random.below(scale.sharedFiles)}.txt`
          : `own-${agent}-${random.below(scale.steps * 2)}.txt`,
      );
    }
    const steps = [...files].map((file) => ({ file, thinkMs: Math.round(random.between(...scale.thinkMs)) }));
    return { id: `task-${agent}-${index}`, steps };
  });
}

type Runner = (
  place: Place,
  task: Task,
  agent: number,
  counts: { retries: number },
  end: AbortSignal,
) => Promise<boolean>;

/** Each file is read when the task reaches it, and all are written at its end. */
const uncoordinated: Runner = async (place, { id, steps }) => {
  const read: (readonly [file: string, text: string])[] = [];
  for (const { file, thinkMs } of steps) {
    read.push([file, place.read(file)]);
    await pause(thinkMs);
  }
  for (const [file, text] of read) place.write(file, edited(text, id));
  return true;
};

/** The same, but before the writes what was read is compared; if anything differs, the task is repeated. */
const optimistic: Runner = async (place, { id, steps }, _agent, counts) => {
  for (let tries = 0; tries < optimisticTriesMax; tries++) {
    if (tries > 0) counts.retries++;
    const read: (readonly [file: string, text: string])[] = [];
    for (const { file, thinkMs } of steps) {
      read.push([file, place.read(file)]);
      await pause(thinkMs);
    }
    if (read.every(([file, text]) => place.read(file) === text)) {
      for (const [file, text] of read) place.write(file, edited(text, id));
      return true;
    }
  }
  return false;
};

/**
 * Each file is claimed when the task reaches it. If it is denied, the task undoes its writes, releases and restarts.
 */
const guarded: Runner = async (place, { id, steps }, agent, counts, end) => {
  const session = await openSession(place, `grower-${agent}`);
  for (let tries = 0; !end.aborted; tries++) {
    if (tries > 0) {
      counts.retries++;
      await pause(Math.min(retryMsMax, retryMs * 2 ** (tries - 1)));
    }
    const undo: (readonly [file: string, text: string])[] = [];
    let isBlocked = false;
    for (const { file, thinkMs } of steps) {
      if ((await session.claim(file)).isDenied) {
        isBlocked = true;
        break;
      }
      const text = await session.read(file);
      await pause(thinkMs);
      if ((await session.mayWrite(file)).isDenied) {
        isBlocked = true;
        break;
      }
      undo.push([file, text]);
      await session.wrote(file, edited(text, id));
    }
    if (isBlocked) for (const [file, text] of undo) await session.wrote(file, text);
    await session.endTurn();
    if (isBlocked) continue;
    session.crash();
    return true;
  }
  session.crash();
  return false;
};
