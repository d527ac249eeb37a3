/** The work: which agent edits which file, how long it thinks, and where it crashes. */
import type { Random } from "./random.ts";

export interface Edit {
  readonly id: string;
  readonly agent: number;
  readonly file: string;
  readonly thinkMs: number;
  /** The agent crashes: while it thinks, or after its write and before the hook that reports it. */
  readonly crash: "thinking" | "written" | null;
}

export interface Scale {
  readonly agents: number;
  readonly files: number;
  readonly edits: number;
  readonly thinkMs: readonly [min: number, max: number];
  readonly crashes: number;
}

export function fileNames({ files }: Scale): readonly string[] {
  return Array.from({ length: files }, (_, index) => `file-${String(index + 1).padStart(2, "0")}.txt`);
}

export function planEdits(scale: Scale, random: Random): readonly Edit[] {
  const files = fileNames(scale);
  const every = Math.floor(scale.edits / (scale.crashes + 1));
  return Array.from({ length: scale.edits }, (_, index) => ({
    id: `edit-${index + 1}`,
    agent: index % scale.agents,
    file: files[random.below(files.length)] ?? "",
    thinkMs: Math.round(random.between(...scale.thinkMs)),
    crash: scale.crashes > 0 && index % every === every - 1 ? (random.chance(0.5) ? "thinking" : "written") : null,
  }));
}

/** An edit adds a line at the top of what was read, and its count at the bottom. */
export function edited(text: string, id: string): string {
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("total "));
  return [...lines, id, `total ${lines.length + 1}`, ""].join("\n");
}

/** Edits that are not in the file any more. */
export function lostEdits(edits: readonly Edit[], read: (file: string) => string): readonly string[] {
  return edits.filter(({ file, id }) => !read(file).split("\n").includes(id)).map(({ id }) => id);
}

/**
 * The shortest time for these edits: an agent does one at a time, a file has one editor at a time, and nothing else
 * costs time. A greedy schedule (the agent and the file with most work left first) that can be executed, so the true
 * optimum is at most this, and at least the longest work of any one agent or file.
 */
export function idealMs(edits: readonly Edit[]): number {
  const left = new Map<number, Edit[]>();
  for (const edit of edits) left.set(edit.agent, [...(left.get(edit.agent) ?? []), edit]);
  const work = (list: readonly Edit[]) => list.reduce((sum, { thinkMs }) => sum + thinkMs, 0);
  const fileWork = (file: string) => work([...left.values()].flat().filter((edit) => edit.file === file));
  const busyFiles = new Map<string, number>();
  const busyAgents = new Map<number, number>();
  let now = 0;
  let end = 0;
  while ([...left.values()].some((list) => list.length > 0)) {
    const agents = [...left].filter(([agent, list]) => list.length > 0 && (busyAgents.get(agent) ?? 0) <= now);
    for (const [agent, list] of agents.sort(([, a], [, b]) => work(b) - work(a))) {
      const free = list.filter(({ file }) => (busyFiles.get(file) ?? 0) <= now);
      const [best] = free.sort((a, b) => fileWork(b.file) - fileWork(a.file));
      if (best === undefined) continue;
      left.set(
        agent,
        list.filter((edit) => edit !== best),
      );
      busyAgents.set(agent, now + best.thinkMs);
      busyFiles.set(best.file, now + best.thinkMs);
      end = Math.max(end, now + best.thinkMs);
    }
    now = Math.min(...[...busyAgents.values(), ...busyFiles.values()].filter((at) => at > now));
  }
  return end;
}
