/**
 * A process of its own that outlives its cell. It knows which processes run under which lease and until when; where
 * the cell is stopped over a lease's end, or is killed, it ends them in its place: a process that was started is not
 * cut off by a gateway that has gone. It reads lines of JSON from its standard input and needs nothing else.
 */
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { uptimeMs } from "../sdk/node/shared-time.ts";
import { ControlGroup, ProcessTree } from "./process-tree.ts";

export type GuardWord =
  | {
      readonly type: "keep";
      readonly mark: string;
      /** By the machine's clock that counts sleep, which is the same for all its processes. */
      readonly endsAt: number;
      readonly graceMs: number;
      readonly killMs: number;
      readonly group: { readonly folder: string; readonly name: string } | null;
    }
  /** A process that was started with a session of its own. */
  | { readonly type: "lead"; readonly mark: string; readonly pid: number }
  /** The cell has seen that nothing of it is left. */
  | { readonly type: "drop"; readonly mark: string };

type Keep = Extract<GuardWord, { type: "keep" }>;

/** A little after its time, so that a cell that is well acts first. */
const lateMs = 100;
const tickMs = 50;

function guard(): void {
  const kept = new Map<string, { word: Keep; readonly tree: ProcessTree; ending: Promise<void> | null }>();
  const end = (mark: string): Promise<void> => {
    const one = kept.get(mark);
    if (one === undefined) return Promise.resolve();
    const { graceMs, killMs, group } = one.word;
    one.ending ??= one.tree
      .end(graceMs, killMs)
      .then(() => (group === null ? undefined : new ControlGroup(group.folder, group.name).end(killMs)))
      // Who cannot be killed is the cell's to report, when it is back: it fences the resource.
      .catch(() => undefined)
      .then(() => {
        one.tree.stopWatching();
        kept.delete(mark);
      });
    return one.ending;
  };
  const lines = createInterface({ input: process.stdin });
  lines.on("line", (line) => {
    const word = JSON.parse(line) as GuardWord;
    const known = kept.get(word.mark);
    switch (word.type) {
      case "keep":
        if (known === undefined) kept.set(word.mark, { word, tree: new ProcessTree(word.mark), ending: null });
        else known.word = word;
        return;
      case "lead":
        known?.tree.lead(word.pid);
        return;
      case "drop":
        known?.tree.stopWatching();
        kept.delete(word.mark);
        return;
    }
  });
  // The cell is gone, and with it every way to use the lease (G6).
  lines.on("close", () => void Promise.all([...kept.keys()].map(end)).then(() => process.exit(0)));
  setInterval(() => {
    const now = uptimeMs();
    for (const [mark, { word }] of kept) if (now >= word.endsAt + lateMs) void end(mark);
  }, tickMs);
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => undefined);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) guard();
