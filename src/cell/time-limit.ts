/** No driver is waited for without end. */
import { setTimeout as sleep } from "node:timers/promises";

/** How long aborted work may take to stop, so that the next step does not overlap with it. */
const letGoMs = 1_000;

/** The work's own result, or its failure, or ours when the time is up; the signal then tells the work to let go. */
export async function within<T>(ms: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const stop = new AbortController();
  const begun = work(stop.signal);
  const over = new AbortController();
  const late = sleep(ms, "late" as const, { signal: over.signal });
  const first = await Promise.race([begun.then((result) => ({ result })), late]).finally(() => over.abort());
  if (first !== "late") return first.result;
  const error = new Error(`it took longer than ${ms} ms`);
  stop.abort(error);
  await Promise.race([begun.catch(() => {}), sleep(letGoMs, undefined, { ref: false })]);
  throw error;
}
