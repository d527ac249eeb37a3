/** Agents that edit: each takes what it needs, works for a while, gives it back and rests. */
import type { Intent } from "../sdk/wire.ts";
import type { Editor, Job } from "./cast.ts";
import { about, pause, repeat, type Stage } from "./stage.ts";

export const repository = "shop";
/** Short, so that a watcher sees bars shrink and grow again at each heartbeat. */
const ttlMs = 15_000;

export async function edit(stage: Stage, { name, model, jobs }: Editor): Promise<void> {
  const agent = await stage.client.agent({ id: name, labels: { model, role: "editor" } });
  await pause(stage, about(stage, 2));
  await repeat(stage, async (nth) => {
    const job = jobs[nth % jobs.length];
    if (job === undefined) throw new RangeError(`${name} has no jobs`);
    await agent.withLease(
      manifestOf(job),
      async (held) => {
        await pause(stage, about(stage, job.seconds), held.signal);
        for (const { resource } of held.leases) held.setVersion(resource, `v${nth + 1}`);
      },
      { purpose: job.purpose, ttlMs, timeoutMs: Number.POSITIVE_INFINITY, signal: stage.signal },
    );
    await pause(stage, about(stage, 4));
  });
}

export function fileNamed(path: string): string {
  return `FILE:/${repository}/${path}`;
}

function manifestOf({ writes, reads = [] }: Job): Intent[] {
  return [
    ...writes.map((path) => ({ predicate: "MUTATES" as const, resource: fileNamed(path) })),
    ...reads.map((path) => ({ predicate: "CONSUMES" as const, resource: fileNamed(path) })),
  ];
}
