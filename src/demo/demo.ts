/** A scripted fleet on a server of its own: twelve agents, workers, contention, a crash, a late holder, a fenced GPU. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "../sdk/index.ts";
import { startServer } from "../server/start.ts";
import { editors } from "./cast.ts";
import { edit } from "./editing.ts";
import { crash, oversleep, wantBrokenGpu } from "./mishaps.ts";
import { type Stage, seeded } from "./stage.ts";
import { completeTooLate, plan, workOnTasks } from "./tasks.ts";

export interface DemoOptions {
  /** 0: any that is free. */
  readonly port: number;
  readonly seed: number;
  readonly signal: AbortSignal;
  readonly say: (sentence: string) => void;
  /** Called when the server listens and the fleet begins. */
  readonly begun: (url: string) => void;
}

/** Runs until the signal fires. Nothing of it is left then. */
export async function playDemo({ port, seed, signal, say, begun }: DemoOptions): Promise<void> {
  const data = mkdtempSync(join(tmpdir(), "leasehold-demo-"));
  const server = await startServer({ host: "127.0.0.1", port, data });
  const { url } = server.address;
  const client = createClient({ url });
  const failed = new AbortController();
  const stage: Stage = { client, signal: AbortSignal.any([signal, failed.signal]), random: seeded(seed), say };
  begun(url);
  const parts = [
    ...editors.map((editor) => edit(stage, editor)),
    crash(stage),
    oversleep(stage),
    wantBrokenGpu(stage),
    plan(stage),
    workOnTasks(stage, "chores.1"),
    workOnTasks(stage, "chores.2"),
    completeTooLate(stage),
  ];
  try {
    // A part ends by the signal, and may reject with it. One that fails before ends the others.
    for (const part of parts) part.catch((fault: unknown) => failed.abort(fault));
    await Promise.allSettled(parts);
    if (!signal.aborted) failed.signal.throwIfAborted();
  } finally {
    await client.close();
    await server.close();
    rmSync(data, { recursive: true, force: true });
  }
}
